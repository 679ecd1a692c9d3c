//! Compares versions of packages.
//!
//! npm and PyPI write them differently; what both have is a row of numbers and a
//! word for what is not final. That is what is compared.

use std::cmp::Ordering;

/// A version that can be compared with others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Version {
    epoch: u64,
    /// Without zeros at the end, so that 1.0 is 1.
    numbers: Vec<u64>,
    phase: Phase,
}

/// What a version is beside its numbers. The number counts trials and repairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    Development(u64),
    Alpha(u64),
    Beta(u64),
    Candidate(u64),
    Final,
    Repaired(u64),
}

impl Version {
    /// Reads a version; `None` when it is none.
    pub(crate) fn read(text: &str) -> Option<Version> {
        // What is behind `+` says how it was built.
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
        Some(Version { epoch, numbers, phase: Phase::read(&text[end..]) })
    }

    /// Returns whether it came out to be tried, and not to be used.
    pub(crate) fn is_trial(&self) -> bool {
        self.phase < Phase::Final
    }
}

impl Phase {
    fn read(rest: &str) -> Phase {
        let rest = rest.trim_start_matches(['-', '.', '_']).to_ascii_lowercase();
        let digits = |text: &str| {
            let from = text.find(|c: char| c.is_ascii_digit()).unwrap_or(text.len());
            let digits: String = text[from..].chars().take_while(char::is_ascii_digit).collect();
            digits.parse().unwrap_or(0)
        };
        let word: String = rest.chars().take_while(char::is_ascii_alphabetic).collect();
        let n = digits(&rest);
        match word.as_str() {
            "" if rest.is_empty() => Phase::Final,
            "post" | "rev" | "r" => Phase::Repaired(n),
            "a" | "alpha" => Phase::Alpha(n),
            "b" | "beta" => Phase::Beta(n),
            "rc" | "c" | "pre" | "preview" => Phase::Candidate(n),
            _ => Phase::Development(n),
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
            let [older, newer] = [pair[0], pair[1]].map(|text| Version::read(text).unwrap());
            assert!(older < newer, "{pair:?}");
        }
        assert_eq!(Version::read("v1.0+build"), Version::read("1"));
        for text in ["", "latest", "^1", "1..2", "99999999999999999999999"] {
            assert_eq!(Version::read(text), None, "{text}");
        }
        assert!(Version::read("1.0rc1").unwrap().is_trial());
        assert!(!Version::read("1.0.post1").unwrap().is_trial());
    }
}
