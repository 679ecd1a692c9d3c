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
const PURPOSE_WORDS: [usize; 4] = [12, 6, 4, 3];

/// A namespace and its purpose.
struct NamespacePurpose {
    name: String,
    purpose: String,
}

/// Writes the instructions of a surface, with the namespaces that a caller sees.
pub(crate) fn instructions(
    surface: Surface,
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
    write_text(how_to_start(surface), &lines)
}

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
    let (first, n_named) = join_names(lines, FIRST_CHARS - length(&text));
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

fn first_words(purpose: &str, words: usize) -> String {
    let mut all = purpose.split(' ');
    let kept = all.by_ref().take(words).collect::<Vec<_>>().join(" ");
    match all.next() {
        Some(_) => format!("{}…", kept.trim_end_matches([',', '…', ' ', '.'])),
        None => kept.trim_end_matches('.').to_owned(),
    }
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
