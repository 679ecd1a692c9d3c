//! The description of a server by its operator or by the server itself, in one line.

use std::collections::HashSet;

use super::line::{cleaned, cut};
use super::names;
use crate::index::words::{self, Shape};
use crate::{Source, name, summary};

/// The most characters of the operator's description.
const LINE: usize = 150;
/// The most characters and sentences of a server's text that are considered.
const MAX_CHARS: usize = 4_000;
const MAX_SENTENCES: usize = 6;

/// The operator's description of an upstream, or else the first sentence of the server
/// that says what it does.
pub(crate) fn stated(source: &Source) -> Option<String> {
    let own = source.description.as_deref().map(|words| summary::sentence(words, LINE));
    if let Some(own) = own.filter(|own| !own.is_empty()) {
        return Some(own);
    }
    let server = &source.listing.server;
    let member = |key: &str| server.raw.member_as::<String>(key);
    let own = OwnWords::new([source.label.as_str(), &server.name]);
    let first_informative = |text: Option<String>, kind: Text| {
        let sentences = sentences(text.as_deref()?);
        sentences.iter().find_map(|sentence| own.informative_part(sentence, kind))
    };
    first_informative(member("description"), Text::Description)
        .or_else(|| first_informative(server.instructions.clone(), Text::Instructions))
        .or_else(|| first_informative(member("title"), Text::Description))
        .filter(|line| !name::same(line, &source.label))
}

/// The purpose of a text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Text {
    /// It says what the server is.
    Description,
    /// It tells a model how to use the server; only some sentences say what it is.
    Instructions,
}

/// The first sentences of a text, each on one line, without headings, code and tables.
fn sentences(text: &str) -> Vec<String> {
    let text: String = text.chars().take(MAX_CHARS).collect();
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
    all.truncate(MAX_SENTENCES);
    all
}

/// The words of a server's names, which add nothing to its description.
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

    /// The sentence without its generic beginning (`This server provides tools to`), if it
    /// says what the server does.
    fn informative_part(&self, sentence: &str, kind: Text) -> Option<String> {
        let lower = sentence.to_lowercase();
        let orders = ORDERS.iter().any(|order| lower.contains(order));
        let technical = sentence.contains(['`', '_', '/', '{']) || sentence.ends_with(':');
        if orders || technical || is_shouted(sentence) {
            return None;
        }
        let clean = cleaned(sentence);
        let all: Vec<&str> = clean.split(' ').collect();
        let empty = |word: &&str| self.is_uninformative(word);
        let start = all.iter().take_while(|word| self.is_uninformative(word)).count();
        let telling = all.iter().filter(|word| !self.is_uninformative(word)).count();
        if telling < 2 {
            return None;
        }
        // In instructions, only a sentence that begins with the server or with a verb is
        // about the server.
        let first = all.iter().find(|word| !empty(word)).map(|word| plain(word));
        let about = all[..start].iter().any(|word| {
            let word = plain(word);
            matches!(word.as_str(), "server" | "mcp" | "tools") || self.0.contains(&word)
        });
        if kind == Text::Instructions && !about && !first.is_some_and(|word| is_verb_form(&word)) {
            return None;
        }
        let line = all[if start + 2 <= all.len() { start } else { 0 }..].join(" ");
        let mut chars = line.chars();
        let first = chars.next()?;
        Some(cut(&first.to_uppercase().chain(chars).collect::<String>()))
    }

    /// Whether a word is generic or part of the server's names.
    fn is_uninformative(&self, word: &str) -> bool {
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

/// Whether a word is a form of a verb: `search`, `searches`, `searching`.
fn is_verb_form(word: &str) -> bool {
    let stems = [word.strip_suffix("ing"), word.strip_suffix("es"), word.strip_suffix('s')];
    let stem = |stem: &str| names::is_verb(stem) || names::is_verb(&format!("{stem}e"));
    names::is_verb(word) || stems.into_iter().flatten().any(stem)
}

/// Whether most letters of a sentence are capitals.
fn is_shouted(sentence: &str) -> bool {
    let letters = sentence.chars().filter(|c| c.is_alphabetic());
    let (upper, all) =
        letters.fold((0, 0), |(upper, all), c| (upper + usize::from(c.is_uppercase()), all + 1));
    all == 0 || all < 2 * upper
}

/// Texts that mark a sentence as an instruction to the model, not a description.
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

/// Words that occur in the description of any server.
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
