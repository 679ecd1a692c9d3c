//! Parses and compares versions of packages.
//!
//! npm and PyPI write versions differently; both have a list of numbers and a word for
//! a prerelease, and these are compared.

use std::cmp::Ordering;

/// A version that can be compared with others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Version {
    epoch: u64,
    /// Without zeros at the end, so that 1.0 equals 1.
    numbers: Vec<u64>,
    phase: ReleasePhase,
}

/// The kind of a release, with its number, such as 2 for `rc2`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ReleasePhase {
    Development(u64),
    Alpha(u64),
    Beta(u64),
    Candidate(u64),
    Final,
    Post(u64),
}

impl Version {
    /// Parses a version; `None` when the text is not one.
    pub(crate) fn parse(text: &str) -> Option<Version> {
        // Build metadata after `+` is ignored.
        let text = text.trim().trim_start_matches(['v', 'V']).split('+').next()?;
        let (epoch, text) = match text.split_once('!') {
            Some((epoch, rest)) => (epoch.parse().ok()?, rest),
            None => (0, text),
        };
        let is_number = |c: char| c.is_ascii_digit() || c == '.';
        let end = text.find(|c| !is_number(c)).unwrap_or(text.len());
        let numbers = text[..end].trim_end_matches('.').split('.').map(str::parse);
        let mut numbers: Vec<u64> = numbers.collect::<Result<_, _>>().ok()?;
        while numbers.last() == Some(&0) {
            numbers.pop();
        }
        Some(Version { epoch, numbers, phase: ReleasePhase::parse(&text[end..]) })
    }

    /// Returns whether this is a prerelease.
    pub(crate) fn is_prerelease(&self) -> bool {
        self.phase < ReleasePhase::Final
    }
}

impl ReleasePhase {
    fn parse(rest: &str) -> ReleasePhase {
        let rest = rest.trim_start_matches(['-', '.', '_']).to_ascii_lowercase();
        let digits = |text: &str| {
            let from = text.find(|c: char| c.is_ascii_digit()).unwrap_or(text.len());
            let digits: String = text[from..].chars().take_while(char::is_ascii_digit).collect();
            digits.parse().unwrap_or(0)
        };
        let word: String = rest.chars().take_while(char::is_ascii_alphabetic).collect();
        let n = digits(&rest);
        match word.as_str() {
            "" if rest.is_empty() => ReleasePhase::Final,
            "post" | "rev" | "r" => ReleasePhase::Post(n),
            "a" | "alpha" => ReleasePhase::Alpha(n),
            "b" | "beta" => ReleasePhase::Beta(n),
            "rc" | "c" | "pre" | "preview" => ReleasePhase::Candidate(n),
            _ => ReleasePhase::Development(n),
        }
    }
}

impl Ord for Version {
    fn cmp(&self, other: &Version) -> Ordering {
        let key = |version: &Version| (version.epoch, version.numbers.clone(), version.phase);
        key(self).cmp(&key(other))
    }
}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Version) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_in_the_order_in_which_they_came_out() {
        let ordered = [
            "0.9",
            "1.0.dev1",
            "1.0.0-alpha.1",
            "1.0a2",
            "1.0b1",
            "1.0-rc.1",
            "1.0rc2",
            "1.0.0",
            "1.0.post1",
            "1.0.1",
            "1.2",
            "1.10",
            "2",
            "2025.4.25",
            "2026.1.2",
            "1!0.1",
        ];
        for pair in ordered.windows(2) {
            let [older, newer] = [pair[0], pair[1]].map(|text| Version::parse(text).unwrap());
            assert!(older < newer, "{pair:?}");
        }
        assert_eq!(Version::parse("v1.0+build"), Version::parse("1"));
        for text in ["", "latest", "^1", "1..2", "99999999999999999999999"] {
            assert_eq!(Version::parse(text), None, "{text}");
        }
        assert!(Version::parse("1.0rc1").unwrap().is_prerelease());
        assert!(!Version::parse("1.0.post1").unwrap().is_prerelease());
    }
}
