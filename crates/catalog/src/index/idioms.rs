//! Maps everyday phrases to the terms that tools use.
//!
//! `turn off`, `who am I` or `tts` mean something that tools call by another name, and
//! their single words mislead: `turn` is navigation. So the meaning of an idiom is added
//! after it before a query is parsed. The words of the idiom stay.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::LazyLock;

/// Idioms by their first word, long ones first.
static IDIOMS: LazyLock<HashMap<&str, Vec<Idiom>>> =
    LazyLock::new(|| parse(include_str!("idioms.txt")));

struct Idiom {
    /// The words after the first.
    rest: Vec<&'static str>,
    meaning: &'static str,
}

/// The most bytes of a first word.
const LONGEST: usize = 12;

/// The query with the meanings of its idioms added, as far as `has` says that the catalog
/// has their words.
pub(crate) fn with_meanings<'a>(query: &'a str, has: &dyn Fn(&str) -> bool) -> Cow<'a, str> {
    let mut expanded = String::new();
    let (mut copied, mut at) = (0, 0);
    while let Some(start) = query[at..].find(char::is_alphanumeric) {
        let start = at + start;
        let length = query[start..].find(|c: char| !c.is_alphanumeric());
        at = length.map_or(query.len(), |length| start + length);
        let Some((idiom, end)) = find_idiom(&query[start..at], query, at) else { continue };
        let known: Vec<&str> = idiom.meaning.split(' ').filter(|word| has(word)).collect();
        if !known.is_empty() {
            expanded.extend([&query[copied..end], " ", &known.join(" ")]);
            copied = end;
        }
        at = end;
    }
    if copied == 0 {
        return Cow::Borrowed(query);
    }
    expanded.push_str(&query[copied..]);
    Cow::Owned(expanded)
}

/// The idiom that begins with the word `first`, which ends at `at`, and where it ends.
fn find_idiom(first: &str, query: &str, at: usize) -> Option<(&'static Idiom, usize)> {
    let mut lower = [0; LONGEST];
    let lower = lower.get_mut(..first.len())?;
    lower.copy_from_slice(first.as_bytes());
    lower.make_ascii_lowercase();
    let idioms = IDIOMS.get(std::str::from_utf8(lower).ok()?)?;
    idioms.iter().find_map(|idiom| Some((idiom, idiom.match_rest(query, at)?)))
}

impl Idiom {
    /// The end of the idiom, if its other words follow.
    fn match_rest(&self, query: &str, mut at: usize) -> Option<usize> {
        for word in &self.rest {
            let after = query[at..].strip_prefix([' ', '-'])?;
            let next = after.get(..word.len())?;
            if !next.eq_ignore_ascii_case(word)
                || after[word.len()..].starts_with(char::is_alphanumeric)
            {
                return None;
            }
            at += 1 + word.len();
        }
        Some(at)
    }
}

/// Parses lines of the form `meaning: idiom other-idiom`.
fn parse(text: &'static str) -> HashMap<&'static str, Vec<Idiom>> {
    let mut idioms: HashMap<&str, Vec<Idiom>> = HashMap::new();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    for (meaning, sayings) in lines.filter_map(|line| line.split_once(": ")) {
        for mut words in sayings.split(' ').map(|saying| saying.split('-')) {
            let Some(first) = words.next() else { continue };
            let idiom = Idiom { rest: words.collect(), meaning };
            idioms.entry(first).or_default().push(idiom);
        }
    }
    for same in idioms.values_mut() {
        same.sort_by_key(|idiom| std::cmp::Reverse(idiom.rest.len()));
    }
    idioms
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(query: &str, expected: &str) {
        assert_eq!(with_meanings(query, &|word| word != "machine"), expected);
    }

    #[test]
    fn what_a_saying_means_stands_after_it() {
        check("Turn off the lamp", "Turn off shut down the lamp");
        check("who am I?", "who am I current user?");
        check("list PRs, keep-an-eye on CI", "list PRs pull request, keep-an-eye monitor on CI");
    }

    #[test]
    fn a_word_that_the_catalog_lacks_is_left_out() {
        check("my vm", "my vm virtual");
        assert!(matches!(with_meanings("my vm", &|_| false), Cow::Borrowed("my vm")));
    }

    #[test]
    fn part_of_a_saying_is_not_the_saying() {
        for query in ["turn", "turn offers", "turnoff", "who am", "look  up", "é", "", "pró"] {
            check(query, query);
        }
    }

    #[test]
    fn every_saying_is_said_once_and_can_be_found() {
        let mut seen = std::collections::BTreeSet::new();
        for line in include_str!("idioms.txt").lines().filter(|line| !line.starts_with('#')) {
            let (meaning, sayings) = line.split_once(": ").expect(line);
            for saying in sayings.split(' ') {
                assert!(seen.insert(saying), "{saying}");
                let said = saying.replace('-', " ").to_uppercase();
                check(&said, &format!("{said} {}", meaning.replace(" machine", "")));
            }
        }
    }
}
