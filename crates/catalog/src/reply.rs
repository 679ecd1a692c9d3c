//! Renders the replies that a model reads: to a search, and the overview before one.
//!
//! Every text is bounded in exact tokens. The first hits have what a call needs:
//! the exact name, a compact signature, the first sentence. The hits after them are names
//! alone, because a model does not call what the reply does not name. The same catalog,
//! query and caller give the same bytes.

mod copies;
mod functions;
mod items;
mod map;
mod unsearched;

use std::fmt::Write;

use crate::{summary, tokens};

pub use functions::{SearchReply, search};
pub use items::{items, search_items};
pub use map::map;
pub use unsearched::{not_searched, unsearched};

/// The limits and the notation of a reply.
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

    /// The limits where the caller does not say how many hits to show: a few with
    /// signatures, then names, in at most 400 tokens.
    pub fn usual(spelling: Spelling) -> Config {
        Config { names: NAMES, ..Config::with_limit(SIGNED, spelling) }
    }

    /// How many hits the reply shows or names at most, copies not counted.
    pub fn depth(&self) -> usize {
        self.limit + self.names
    }
}

const PER_HIT: usize = 80;
/// The most hits with a signature in a usual reply, and the most further names.
const SIGNED: usize = 5;
const NAMES: usize = 20;

/// The line before hits of several servers that are equally good.
pub const AMBIGUOUS: &str = "Several servers offer this; choose by server or say more.";

/// The most namespaces that are named when nothing matches.
const NEAREST: usize = 5;

/// The reply to a search without hits; `near` are the namespaces of the nearest items.
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

/// A reply with an additional last line, both within the budget.
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

/// Cuts a text that has more than `limit` tokens.
fn fitting(text: String, limit: usize) -> String {
    if tokens::fits(&text, limit) { text } else { summary::cut(&text, limit) }
}

#[cfg(test)]
mod tests;
