//! What the operator or the server says a server is for.

use std::collections::HashSet;

use super::line::{cleaned, cut};
use super::names;
use crate::index::words::{self, Shape};
use crate::{Source, name, summary};

/// How long the operator's words may be.
const LINE: usize = 150;
/// How much of a server's text is looked at, in characters and sentences.
const READ: usize = 4_000;
const SENTENCES: usize = 6;

/// The operator's words for an upstream, or else a sentence of the server that
/// says what it does; nothing where neither does.
pub(crate) fn stated(source: &Source) -> Option<String> {
    let own = source.description.as_deref().map(|words| summary::sentence(words, LINE));
    if let Some(own) = own.filter(|own| !own.is_empty()) {
        return Some(own);
    }
    let server = &source.listing.server;
    let member = |key: &str| server.raw.member_as::<String>(key);
    let own = OwnWords::new([source.label.as_str(), &server.name]);
    let told = |text: Option<String>, kind: Text| {
        let sentences = sentences(text.as_deref()?);
        sentences.iter().find_map(|sentence| own.telling(sentence, kind))
    };
    told(member("description"), Text::Description)
        .or_else(|| told(server.instructions.clone(), Text::Instructions))
        .or_else(|| told(member("title"), Text::Description))
        .filter(|line| !name::same(line, &source.label))
}

/// What a text is there for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Text {
    /// To say what the server is.
    Description,
    /// To tell a model how to use it; only some sentences say what it is.
    Instructions,
}

/// The first sentences of a text, on one line each. Headings, code and tables
/// are none.
fn sentences(text: &str) -> Vec<String> {
    let text: String = text.chars().take(READ).collect();
    let mut all = Vec::new();
    let (mut paragraph, mut code) = (String::new(), false);
    let mut close = |paragraph: &mut String| {
        let mut rest = std::mem::take(paragraph);
        while !rest.is_empty() {
            let end = summary::end_of_sentence(&rest);
            let tail = rest[end..].trim_start().to_owned();
            rest.truncate(end);
            all.push(std::mem::replace(&mut rest, tail));
        }
    };
    for line in text.lines().map(str::trim) {
        if line.starts_with("```") {
            code = !code;
        }
        let breaks = line.is_empty() || code || line.starts_with(['#', '|', '`', '<', '-', '*']);
        if breaks || line.starts_with(|c: char| c.is_ascii_digit()) {
            close(&mut paragraph);
        } else {
            if !paragraph.is_empty() {
                paragraph.push(' ');
            }
            paragraph.push_str(line);
        }
    }
    close(&mut paragraph);
    all.truncate(SENTENCES);
    all
}

/// The words that a server is called by: they say nothing new in its line.
struct OwnWords(HashSet<String>);

impl OwnWords {
    fn new<'a>(texts: impl IntoIterator<Item = &'a str>) -> OwnWords {
        let mut known = HashSet::new();
        for text in texts {
            words::each(text, |word, _| {
                known.insert(word.to_owned());
            });
        }
        OwnWords(known)
    }

    /// The sentence without its beginning that every server's has (`This server
    /// provides tools to`), if it says what the server does.
    fn telling(&self, sentence: &str, kind: Text) -> Option<String> {
        let lower = sentence.to_lowercase();
        let orders = ORDERS.iter().any(|order| lower.contains(order));
        let technical = sentence.contains(['`', '_', '/', '{']) || sentence.ends_with(':');
        if orders || technical || shouts(sentence) {
            return None;
        }
        let clean = cleaned(sentence);
        let all: Vec<&str> = clean.split(' ').collect();
        let empty = |word: &&str| self.is_empty(word);
        let start = all.iter().take_while(|word| self.is_empty(word)).count();
        let telling = all.iter().filter(|word| !self.is_empty(word)).count();
        if telling < 2 {
            return None;
        }
        // Instructions speak of many things; a sentence about the server names
        // it first, or begins with what it does.
        let first = all.iter().find(|word| !empty(word)).map(|word| plain(word));
        let about = all[..start].iter().any(|word| {
            let word = plain(word);
            matches!(word.as_str(), "server" | "mcp" | "tools") || self.0.contains(&word)
        });
        if kind == Text::Instructions && !about && !first.is_some_and(|word| acts(&word)) {
            return None;
        }
        let line = all[if start + 2 <= all.len() { start } else { 0 }..].join(" ");
        let mut chars = line.chars();
        let first = chars.next()?;
        Some(cut(&first.to_uppercase().chain(chars).collect::<String>()))
    }

    fn is_empty(&self, word: &str) -> bool {
        let word = plain(word);
        word.is_empty() || GENERIC.contains(&word.as_str()) || self.0.contains(&word)
    }
}

fn plain(word: &str) -> String {
    let mut plain = String::new();
    words::each(word, |part, shape| {
        if shape == Shape::Word {
            plain.push_str(part);
        }
    });
    plain
}

/// `search`, `searches`, `searching`.
fn acts(word: &str) -> bool {
    let stems = [word.strip_suffix("ing"), word.strip_suffix("es"), word.strip_suffix('s')];
    let stem = |stem: &str| names::is_verb(stem) || names::is_verb(&format!("{stem}e"));
    names::is_verb(word) || stems.into_iter().flatten().any(stem)
}

fn shouts(sentence: &str) -> bool {
    let letters = sentence.chars().filter(|c| c.is_alphabetic());
    let (upper, all) =
        letters.fold((0, 0), |(upper, all), c| (upper + usize::from(c.is_uppercase()), all + 1));
    all == 0 || all < 2 * upper
}

/// What speaks to a model about how to behave is no description.
const ORDERS: &[&str] = &[
    "instruction",
    "audience",
    "llm",
    "you are ",
    "you must",
    "you should",
    "always ",
    "never ",
    "important",
    "note:",
    "please",
    "welcome",
    "guideline",
    "when using",
    "when the user",
    "when working",
    "before ",
    "first,",
    "start with",
    "overview",
    "workflow",
    "usage",
    "follow",
    "must ",
    "do not",
    "don't",
    "if you",
    "if the",
    "prefer ",
    "make sure",
    "ensure ",
    "remember",
    "this document",
    "use this",
    "use the",
    "warning",
    "critical",
    "http",
    "ignore",
    "system prompt",
    "install ",
];

/// Words that any server's description has.
const GENERIC: &[&str] = &[
    "a",
    "an",
    "the",
    "this",
    "that",
    "these",
    "which",
    "it",
    "its",
    "is",
    "are",
    "be",
    "and",
    "for",
    "to",
    "of",
    "with",
    "from",
    "via",
    "as",
    "by",
    "mcp",
    "server",
    "servers",
    "model",
    "context",
    "protocol",
    "tool",
    "tools",
    "toolset",
    "official",
    "simple",
    "implementation",
    "based",
    "provides",
    "provide",
    "providing",
    "offers",
    "offering",
    "exposes",
    "exposing",
    "lets",
    "let",
    "allows",
    "allowing",
    "allow",
    "enables",
    "enabling",
    "enable",
    "gives",
    "giving",
    "you",
    "your",
    "users",
    "user",
    "ai",
    "llms",
    "agents",
    "agent",
    "assistant",
    "assistants",
    "claude",
    "clients",
    "client",
    "access",
    "interact",
    "interacting",
    "interaction",
    "use",
    "using",
    "used",
    "through",
    "capabilities",
    "functionality",
    "set",
    "collection",
    "comprehensive",
    "powerful",
    "integration",
    "integrates",
    "interface",
    "wrapper",
];
