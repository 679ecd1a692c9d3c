//! Private keys in the form of RFC 7468: between a line that begins and a line
//! that ends them.

use std::ops::Range;

use regex::Regex;

/// How a private key begins.
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

    /// Returns where the private keys of a text are. One that does not end goes to
    /// the next double quote, which may be that of the JSON around it.
    ///
    /// Beginnings and ends are each looked for once, from the front to the
    /// back. A search for the end of every beginning would read the rest of the
    /// text as often as there are beginnings.
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
