//! Finds private keys in PEM format (RFC 7468), between their begin and end lines.

use std::ops::Range;

use regex::Regex;

/// The begin line of a private key.
pub(super) const BEGIN: &str = "-----BEGIN [A-Z ]*PRIVATE KEY-----";
const END: &str = "-----END [A-Z ]*PRIVATE KEY-----";

/// Finds private keys.
#[derive(Debug)]
pub(super) struct Finder {
    begin: Regex,
    end: Regex,
}

impl Finder {
    pub(super) fn new() -> Finder {
        let compile = |pattern| Regex::new(pattern).expect("our own patterns compile");
        Finder { begin: compile(BEGIN), end: compile(END) }
    }

    /// The ranges of the private keys in a text. A key without an end line goes to the next
    /// double quote, which may be that of the JSON around it.
    ///
    /// Begin and end lines are each searched once, from front to back: searching the end of
    /// every begin line separately would take quadratic time.
    pub(super) fn find(&self, text: &str) -> Vec<Range<usize>> {
        let mut ends = self.end.find_iter(text).peekable();
        let (mut found, mut from) = (Vec::new(), 0);
        while let Some(begin) = self.begin.find_at(text, from) {
            while ends.next_if(|end| end.start() < begin.end()).is_some() {}
            let rest = begin.end()..text.len();
            let end = match ends.peek() {
                Some(end) => end.end(),
                None => text[rest.clone()].find('"').map_or(rest.end, |at| rest.start + at),
            };
            found.push(begin.start()..end);
            from = end;
        }
        found
    }
}
