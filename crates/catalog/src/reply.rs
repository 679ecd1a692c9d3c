//! What a model reads after a search, and before it knows what to search for.
//!
//! Every text is bounded in exact tokens. The first hits have what a call needs:
//! the name as it must be written, a compact signature, the first sentence. The
//! hits after them are names alone, because what is not on the page is not
//! called. The same catalog, query and caller give the same bytes.

mod functions;
mod items;
mod map;
mod unsearched;

use std::fmt::Write;

use crate::{summary, tokens};

pub use functions::{SearchReply, functions, search};
pub use items::{items, search_items};
pub use map::map;
pub use unsearched::{not_searched, unsearched};

/// How much a reply may say.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// The most hits with a signature.
    pub limit: usize,
    /// The most hits after those, as names.
    pub names: usize,
    /// The most tokens of the whole reply.
    pub tokens: usize,
    pub spelling: Spelling,
}

/// How a namespace and a function are given in a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spelling {
    /// As one name: `files.read`.
    Dotted,
    /// Each by itself: `files / read`.
    Apart,
}

impl Config {
    /// Room for `limit` hits and no others; five of them take at most 400 tokens.
    pub fn with_limit(limit: usize, spelling: Spelling) -> Config {
        Config { limit, names: 0, tokens: PER_HIT * limit.max(5), spelling }
    }

    /// The reply to who does not say how many hits there should be: a few with
    /// signatures, then names, in at most 400 tokens.
    pub fn usual(spelling: Spelling) -> Config {
        Config { names: NAMES, ..Config::with_limit(SIGNED, spelling) }
    }

    /// How many hits are looked for.
    pub fn depth(&self) -> usize {
        self.limit + self.names
    }
}

const PER_HIT: usize = 80;
/// How many hits of a usual reply have a signature at most, and how many more
/// are named.
const SIGNED: usize = 5;
const NAMES: usize = 20;

/// What is said before hits of several servers that are equally good.
pub const AMBIGUOUS: &str = "Several servers offer this; choose by server or say more.";

/// The most namespaces that are named when nothing matches.
const NEAREST: usize = 5;

/// The answer to a search that nothing matches; `near` are the namespaces of
/// what came nearest.
pub fn nothing<'a>(near: impl Iterator<Item = &'a str>) -> String {
    let mut paths: Vec<&str> = Vec::new();
    for path in near {
        if !path.is_empty() && !paths.contains(&path) && paths.len() < NEAREST {
            paths.push(path);
        }
    }
    let mut text = "Nothing matches. Say what should be done in other words".to_owned();
    if paths.is_empty() {
        text.push('.');
    } else {
        let _ = write!(text, "; the nearest namespaces are {}.", paths.join(", "));
    }
    text
}

/// A reply with a line of its own at the end, both within the budget.
pub fn with_line(
    line: Option<String>,
    config: &Config,
    reply: impl FnOnce(&Config) -> String,
) -> String {
    let Some(line) = line else { return reply(config) };
    let tokens = config.tokens.saturating_sub(tokens::count(&line) + 1);
    let text = reply(&Config { tokens, ..*config });
    format!("{}\n{line}\n", text.trim_end())
}

fn fitting(text: String, limit: usize) -> String {
    if tokens::fits(&text, limit) { text } else { summary::cut(&text, limit) }
}

#[cfg(test)]
mod tests;
