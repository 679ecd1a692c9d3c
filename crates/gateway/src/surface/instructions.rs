//! What hosts read about this server before anybody calls it: `instructions`.
//!
//! Hosts decide by this text whether a model looks at the server at all, and
//! cut it: some read 512 characters, others 2,048. So the first 512 stand
//! alone, and there are never more than 2,000. The text says how to start and
//! what is behind, by namespaces; it changes when a namespace comes or goes or
//! changes its purpose, not with how upstreams fare, so that prompts which hold
//! it stay cached.

use catalog::source::Role;
use catalog::{Catalog, Namespace};

use crate::choice::Surface;
use policy::visibility::Visible;

/// The characters that every host shows.
const FIRST: usize = 512;
/// The most characters.
const MOST: usize = 2_000;
/// The most words of a purpose, widest first.
const WIDTHS: [usize; 4] = [12, 6, 4, 3];

/// One namespace and what it is for.
struct Line {
    name: String,
    purpose: String,
}

/// The instructions of a surface, as far as a caller sees what is behind it.
pub(crate) fn instructions(surface: Surface, catalog: &Catalog, visible: &Visible<'_>) -> String {
    let sees = |slot| visible.shows_function(catalog, slot);
    let top = catalog.root().children.iter().map(|at| &catalog.namespaces()[*at]);
    let is_builtin = |namespace: &Namespace| {
        namespace.source.is_some_and(|at| catalog.sources()[at].role == Role::Builtin)
    };
    let seen = top.filter(|one| !is_builtin(one) && visible.shows_namespace(catalog, one));
    let line = |namespace: &Namespace| Line {
        name: namespace.label.clone(),
        purpose: catalog.purpose(namespace, &sees),
    };
    let mut lines: Vec<Line> = seen.map(line).collect();
    lines.sort_by(|a, b| a.name.cmp(&b.name));
    written(start(surface), &lines)
}

/// How a model starts.
fn start(surface: Surface) -> &'static str {
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

/// The text: how to start, all namespaces with what they are for as far as that
/// fits into the first part, and the rest of it behind.
fn written(start: &str, lines: &[Line]) -> String {
    if lines.is_empty() {
        return format!("{start} No server is connected yet.");
    }
    let whole = |words: usize| format!("{start} Namespaces: {}.", joined(lines, words));
    if let Some(text) = WIDTHS.map(whole).into_iter().find(|text| length(text) <= FIRST) {
        return text;
    }
    let mut text = format!("{start} Namespaces: ");
    let (first, named) = names(lines, FIRST - length(&text));
    text.push_str(&first);
    if named < lines.len() {
        // A name says more of a server than nothing.
        let (rest, _) = names(&lines[named..], MOST / 2);
        text.push_str("\nMore namespaces: ");
        text.push_str(&rest);
    }
    let room = MOST - length(&text);
    let described: Vec<&Line> = lines.iter().filter(|line| !line.purpose.is_empty()).collect();
    let whole = WIDTHS.map(|words| list(&described, words, usize::MAX));
    let fitting = whole.into_iter().find(|list| length(list) <= room);
    text.push_str(&fitting.unwrap_or_else(|| list(&described, WIDTHS[1], room)));
    text
}

/// A line for each namespace, as many as there is room for.
fn list(lines: &[&Line], words: usize, room: usize) -> String {
    let mut text = String::new();
    for (at, line) in lines.iter().enumerate() {
        let more = format!("\n- {}: {}", line.name, shortened(&line.purpose, words));
        let rest = format!("\n- and {} more", lines.len() - at);
        if room < length(&text) + length(&more) + length(&rest) {
            return text + &rest;
        }
        text.push_str(&more);
    }
    text
}

/// All namespaces, each with so many words of what it is for.
fn joined(lines: &[Line], words: usize) -> String {
    let one = |line: &Line| match shortened(&line.purpose, words) {
        purpose if purpose.is_empty() => line.name.clone(),
        purpose => format!("{} ({purpose})", line.name),
    };
    lines.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn shortened(purpose: &str, words: usize) -> String {
    let mut all = purpose.split(' ');
    let kept = all.by_ref().take(words).collect::<Vec<_>>().join(" ");
    match all.next() {
        Some(_) => format!("{}…", kept.trim_end_matches([',', '…', ' ', '.'])),
        None => kept.trim_end_matches('.').to_owned(),
    }
}

/// As many names as fit, with how many are left out; and how many fit.
fn names(lines: &[Line], room: usize) -> (String, usize) {
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
