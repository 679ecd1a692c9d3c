//! Writes the `instructions` that gatelet gives hosts as an MCP server.
//!
//! Hosts decide by this text whether a model considers the server at all, and cut it:
//! some after 512 characters, others after 2,048. So the first 512 make sense alone,
//! and there are never more than 2,000. The text says how to start and lists the
//! namespaces. It does not depend on the health of upstreams, so that prompts which
//! contain it stay cached.

use catalog::source::Role;
use catalog::{Catalog, Namespace};

use crate::choice::Surface;
use policy::visibility::CallerView;

/// The characters that every host reads.
const FIRST_CHARS: usize = 512;
/// The most characters of the text.
const MAX_CHARS: usize = 2_000;
/// How many words of each purpose are shown: the first number with which all fit.
const PURPOSE_WORDS: [usize; 4] = [12, 6, 5, 4];
/// The characters among the first that are kept for purposes where names alone would fill
/// them.
const EXAMPLE_CHARS: usize = 120;

/// A namespace and its purpose.
struct NamespacePurpose {
    name: String,
    purpose: String,
}

/// Which functions a client sees in its list of tools beside gatelet's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListedDirectly {
    All,
    NotAll,
}

/// Writes the instructions of a surface, with the namespaces that a caller sees.
pub(crate) fn instructions(
    surface: Surface,
    listed: ListedDirectly,
    catalog: &Catalog,
    visible: &CallerView<'_>,
) -> String {
    let sees = |slot| visible.shows_function(catalog, slot);
    let top = catalog.root().children.iter().map(|at| &catalog.namespaces()[*at]);
    let is_builtin = |namespace: &Namespace| {
        namespace.source.is_some_and(|at| catalog.sources()[at].role == Role::Builtin)
    };
    let seen = top.filter(|one| !is_builtin(one) && visible.shows_namespace(catalog, one));
    let line = |namespace: &Namespace| NamespacePurpose {
        name: namespace.label.clone(),
        purpose: catalog.purpose(namespace, &sees),
    };
    let mut lines: Vec<NamespacePurpose> = seen.map(line).collect();
    lines.sort_by(|a, b| a.name.cmp(&b.name));
    let start = match (surface, listed) {
        (Surface::Cash | Surface::Auto, ListedDirectly::All) if !lines.is_empty() => ALL_LISTED,
        _ => how_to_start(surface),
    };
    write_text(start, &lines)
}

/// How a model starts where everything that it may call is in its list of tools.
const ALL_LISTED: &str = "Offers the tools of other servers, all of them listed directly: call them \
    by name. skill() lists instructions for longer tasks, call(namespace, function, kwargs, pick) \
    filters a result.";

/// Says how a model starts on a surface.
fn how_to_start(surface: Surface) -> &'static str {
    match surface {
        Surface::Cash | Surface::Auto => {
            "Reaches the tools of other servers. help(kwargs={\"query\": \"what to do\"}) finds \
             functions in all of them, call(namespace, function, kwargs) runs one, skill() lists \
             instructions for longer tasks."
        }
        Surface::Gateway => {
            "Reaches the tools of other servers. tool_browse(query=\"what to do\") finds tools in \
             all of them, tool_execute(tool_id, args) runs one (tool_id=\"calls\", calls=[{tool_id, args}, …] \
             several), tool_view reads long results."
        }
        Surface::Proxy => {
            "Lists the tools of other servers without their schemas. tool_hydrate(tool_id) shows \
             what a tool takes, tool_execute(tool_id, args) runs it (tool_id=\"calls\", calls=[{tool_id, args}, …] \
             several), tool_view reads long results."
        }
        Surface::Direct => {
            "Offers the tools of other servers, each named by its server: server_tool."
        }
    }
}

/// Writes how to start and all namespaces with their purposes. If that does not fit into
/// the first characters, names come first and purposes follow.
fn write_text(start: &str, lines: &[NamespacePurpose]) -> String {
    if lines.is_empty() {
        return format!("{start} No server is connected yet.");
    }
    let whole = |words: usize| format!("{start} Namespaces: {}.", join_with_purposes(lines, words));
    if let Some(text) =
        PURPOSE_WORDS.map(whole).into_iter().find(|text| length(text) <= FIRST_CHARS)
    {
        return text;
    }
    let mut text = format!("{start} Namespaces: ");
    let room = FIRST_CHARS - length(&text);
    let (_, n_named) = join_names(lines, room.saturating_sub(EXAMPLE_CHARS));
    let (first, n_named) = join_some_purposes(lines, n_named, room);
    text.push_str(&first);
    if n_named < lines.len() {
        // A name alone is better than nothing.
        let (rest, _) = join_names(&lines[n_named..], MAX_CHARS / 2);
        text.push_str("\nMore namespaces: ");
        text.push_str(&rest);
    }
    let room = MAX_CHARS - length(&text);
    let described: Vec<&NamespacePurpose> =
        lines.iter().filter(|line| !line.purpose.is_empty()).collect();
    let whole = PURPOSE_WORDS.map(|words| purpose_lines(&described, words, usize::MAX));
    let fitting = whole.into_iter().find(|purpose_lines| length(purpose_lines) <= room);
    text.push_str(&fitting.unwrap_or_else(|| purpose_lines(&described, PURPOSE_WORDS[1], room)));
    text
}

/// Writes a line for each namespace, as many as fit into `room` characters. `words` is
/// the number of words of each purpose.
fn purpose_lines(lines: &[&NamespacePurpose], words: usize, room: usize) -> String {
    let mut text = String::new();
    for (at, line) in lines.iter().enumerate() {
        let more = format!("\n- {}: {}", line.name, first_words(&line.purpose, words));
        let rest = format!("\n- and {} more", lines.len() - at);
        if room < length(&text) + length(&more) + length(&rest) {
            return text + &rest;
        }
        text.push_str(&more);
    }
    text
}

/// Joins all namespaces, each with the first `words` words of its purpose.
fn join_with_purposes(lines: &[NamespacePurpose], words: usize) -> String {
    let one = |line: &NamespacePurpose| match first_words(&line.purpose, words) {
        purpose if purpose.is_empty() => line.name.clone(),
        purpose => format!("{} ({purpose})", line.name),
    };
    lines.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// Words that say nothing at the end of what is cut.
const LINKS: [&str; 10] = ["and", "or", "the", "a", "of", "to", "in", "for", "with", "from"];

fn first_words(purpose: &str, words: usize) -> String {
    let all: Vec<&str> = purpose.split(' ').collect();
    if all.len() <= words {
        return purpose.trim_end_matches('.').to_owned();
    }
    let mut kept = &all[..words];
    while let [before @ .., last] = kept
        && LINKS.contains(last)
        && 1 < kept.len()
    {
        kept = before;
    }
    format!("{}…", kept.join(" ").trim_end_matches([',', '…', ' ', '.']))
}

/// Joins the first `n_named` names, the first of them with their purposes, as many as fit
/// into `room` characters, and says how many namespaces are left out. Returns how many are
/// named, too.
fn join_some_purposes(lines: &[NamespacePurpose], n_named: usize, room: usize) -> (String, usize) {
    let (named, left) = lines.split_at(n_named);
    let end = match left.len() {
        0 => ".".to_owned(),
        n if named.is_empty() => format!("{n} more."),
        n => format!(", and {n} more."),
    };
    let with = |n_described: usize| {
        let (described, bare) = named.split_at(n_described);
        let described = join_with_purposes(described, PURPOSE_WORDS[3]);
        let bare = bare.iter().map(|line| line.name.clone());
        let parts = Some(described).filter(|text| !text.is_empty()).into_iter().chain(bare);
        parts.collect::<Vec<_>>().join(", ") + &end
    };
    let fitting = (1..=n_named).map(with).take_while(|text| length(text) <= room).last();
    (fitting.unwrap_or_else(|| with(0)), n_named)
}

/// Joins as many names as fit into `room` characters and says how many are left out.
/// Returns how many fit, too.
fn join_names(lines: &[NamespacePurpose], room: usize) -> (String, usize) {
    let mut text = String::new();
    for (at, line) in lines.iter().enumerate() {
        let comma = if at == 0 { "" } else { ", " };
        let rest = format!(", and {} more.", lines.len() - at);
        if room < length(&text) + length(comma) + length(&line.name) + length(&rest) {
            text.push_str(if at == 0 { &rest[2..] } else { &rest });
            return (text, at);
        }
        text.push_str(comma);
        text.push_str(&line.name);
    }
    text.push('.');
    (text, lines.len())
}

fn length(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests;
