//! The page of `help` about a namespace: its sub-namespaces and functions.
//!
//! A function has one line: what it does, and the names of its arguments as long as they
//! fit into a budget of tokens. Types and descriptions of arguments are on the
//! function's own page.

use catalog::source::Role;
use catalog::{Namespace, Slot, State, Unresolved, summary, tokens};
use serde_json::{Value, json};
use tool::text::quoted;

use super::arguments::LenientArguments;
use super::help::Format;
use super::request::CashRequest;
use artifacts::gate::{LIMIT, thousands};

/// How many entries one page shows.
const PAGE: usize = 200;
/// The largest page number.
const MAX_PAGE: usize = 1_000_000;
/// The most characters of a description in JSON.
const MAX_DESCRIPTION: usize = 150;

/// The most characters of an upstream's instructions; servers send up to 2,000.
const MAX_INSTRUCTIONS: usize = 4_000;

/// The most tokens of the functions that are listed with their arguments.
const MAX_FUNCTION_TOKENS: usize = 1_000;

/// The characters of a function's description and of its arguments in a line. The first
/// pair with which a whole page fits is taken.
const WIDTHS: [(usize, usize); 4] = [(100, 90), (60, 90), (40, 70), (30, 50)];
/// The characters of a description if there is no room for arguments.
const SHORT_DESCRIPTION: usize = 40;

/// Explains the notation of arguments.
const LEGEND: &str = "In brackets: kwargs, with `?` the optional ones.\n\n";

/// A line about a namespace or a function.
struct PageEntry {
    name: String,
    description: String,
    /// The names of the arguments, if they are shown.
    kwargs: Option<String>,
    /// Why it is unavailable, if it is.
    unavailable: Option<String>,
    /// Whether the listing is a remembered one; only shown in JSON.
    remembered: bool,
}

/// The functions of one page.
struct Functions {
    /// How many there are on all pages.
    n_all: usize,
    entries: Vec<PageEntry>,
}

impl CashRequest<'_> {
    /// Renders the page of a namespace.
    pub(super) fn namespace_page(
        &self,
        path: &str,
        asked: &LenientArguments,
        format: Format,
    ) -> Result<String, Unresolved> {
        let namespace = self.snapshot.catalog.namespace(path)?;
        if !self.shows(namespace) {
            return Err(Unresolved::Namespace);
        }
        let page = asked.number("page").unwrap_or(1).clamp(1, MAX_PAGE);
        let namespaces = self.child_entries(namespace);
        let functions = self.functions(namespace, page);
        // Both lists have the same page numbers: the longer has the last page.
        let n_pages = namespaces.len().max(functions.n_all).div_ceil(PAGE);
        let over = (0 < n_pages && n_pages < page)
            .then(|| format!("Nothing is on page {page}: the last is {n_pages}."));
        Ok(match format {
            Format::Markdown if namespace.path.is_empty() => {
                let over = over.map(|over| format!("{over}\n")).unwrap_or_default();
                over + &self.root(&namespaces, &functions, page)
            }
            Format::Markdown => {
                let mut text = format!("# {}\n", namespace.path);
                if let Some(reason) = self.unavailable_reason(namespace) {
                    text.push_str(&format!("\navailable: false — unavailable: {reason}\n"));
                }
                if let Some(instructions) = self.instructions(namespace).filter(|_| page == 1) {
                    let upstream = &namespace.label;
                    let instructions = quoted(&instructions, MAX_INSTRUCTIONS);
                    text.push_str(&format!("\n`{upstream}` says:\n\n{instructions}\n"));
                }
                section(&mut text, "## Sub-namespaces", &namespaces, page);
                functions.section(&mut text, page);
                text.extend(over.map(|over| format!("\n{over}\n")));
                text
            }
            Format::Json => {
                let mut page_json = json!({"namespace": namespace.path});
                if !namespaces.is_empty() || functions.n_all == 0 {
                    page_json["namespaces"] = as_json(on_page(&namespaces, page), "namespace");
                    page_json["total_namespaces"] = json!(namespaces.len());
                }
                if 0 < functions.n_all {
                    page_json["functions"] = as_json(&functions.entries, "function");
                    page_json["total"] = json!(functions.n_all);
                }
                if let Some(instructions) = self.instructions(namespace).filter(|_| page == 1) {
                    page_json["instructions"] =
                        json!(summary::cut(&instructions, MAX_INSTRUCTIONS));
                }
                if 1 < n_pages {
                    page_json["page"] = json!(page);
                    page_json["pages"] = json!(n_pages);
                }
                if let Some(over) = over {
                    page_json["note"] = json!(over);
                }
                if namespace.path.is_empty() {
                    page_json["arguments"] = json!(ARGUMENTS.map(|(name, _)| name));
                }
                page_json.to_string()
            }
        })
    }

    /// Renders the page of the root namespace.
    fn root(&self, namespaces: &[PageEntry], functions: &Functions, page: usize) -> String {
        let mut text = String::new();
        section(&mut text, "# Available Namespaces", namespaces, page);
        functions.section(&mut text, page);
        let arguments: Vec<String> =
            ARGUMENTS.iter().map(|(name, words)| format!("`{name}` {words}")).collect();
        text.push_str(&format!("\nSupported arguments (in kwargs): {}.\n", arguments.join(", ")));
        let gate = self.cash.pipeline.gate.load();
        if gate.limit != LIMIT {
            text.push_str(&format!("Results over {} characters are gated.\n", gate.limit));
        }
        if let Some(ceiling) = gate.ceiling {
            text.push_str(&format!("No sizelimit lets more than {ceiling} characters through.\n"));
        }
        text
    }

    /// Returns the namespaces directly below, gatelet's own last.
    fn child_entries(&self, namespace: &Namespace) -> Vec<PageEntry> {
        let catalog = &self.snapshot.catalog;
        let mut children: Vec<&Namespace> =
            namespace.children.iter().map(|at| &catalog.namespaces()[*at]).collect();
        children.retain(|child| self.shows(child));
        let is_own = |child: &&Namespace| {
            child.source.is_some_and(|source| catalog.sources()[source].role == Role::Builtin)
        };
        children.sort_by_key(is_own);
        let entry = |child: &Namespace| PageEntry {
            name: child.label.clone(),
            description: catalog.purpose(child, &|slot| self.sees(slot)),
            kwargs: None,
            unavailable: self.unavailable_reason(child),
            remembered: self.is_remembered(child),
        };
        children.into_iter().map(entry).collect()
    }

    /// Returns the functions of one page, with lines as wide as all of them fit. If they do
    /// not fit with any width, only the first ones have arguments.
    fn functions(&self, namespace: &Namespace, page: usize) -> Functions {
        let seen = namespace.functions.iter().copied().filter(|slot| self.sees(*slot));
        let seen: Vec<Slot> = seen.collect();
        let shown = on_page(&seen, page);
        let all_with = |(sentence, arguments): (usize, usize)| -> Vec<PageEntry> {
            shown.iter().map(|slot| self.function_entry(*slot, sentence, Some(arguments))).collect()
        };
        let cost = |entries: &[PageEntry]| -> usize {
            entries.iter().map(|entry| tokens::count(&entry.line()) + 1).sum()
        };
        let wide =
            WIDTHS.into_iter().map(all_with).find(|entries| cost(entries) <= MAX_FUNCTION_TOKENS);
        let entries = wide.unwrap_or_else(|| {
            let mut left = MAX_FUNCTION_TOKENS;
            let narrow = |slot: &Slot| {
                let entry = self.function_entry(*slot, SHORT_DESCRIPTION, Some(WIDTHS[2].1));
                let cost = tokens::count(&entry.line()) + 1;
                if left < cost {
                    left = 0;
                    return self.function_entry(*slot, SHORT_DESCRIPTION, None);
                }
                left -= cost;
                entry
            };
            shown.iter().map(narrow).collect()
        });
        Functions { n_all: seen.len(), entries }
    }

    fn function_entry(&self, slot: Slot, sentence: usize, arguments: Option<usize>) -> PageEntry {
        let catalog = &self.snapshot.catalog;
        PageEntry {
            name: catalog.function(slot).name.clone(),
            description: or_placeholder(catalog.summary(slot, sentence)),
            kwargs: arguments.map(|limit| catalog.argument_names(slot, limit)),
            unavailable: None,
            remembered: false,
        }
    }

    /// Returns the instructions of an upstream, for its top namespace.
    fn instructions(&self, namespace: &Namespace) -> Option<String> {
        let source = &self.snapshot.catalog.sources()[namespace.source?];
        let is_top = source.role != Role::Builtin && namespace.path == source.label;
        let page_json = source.listing.server.instructions.as_deref().filter(|_| is_top)?.trim();
        (!page_json.is_empty()).then(|| page_json.to_owned())
    }

    pub(super) fn unavailable_reason(&self, namespace: &Namespace) -> Option<String> {
        let source = &self.snapshot.catalog.sources()[namespace.source?];
        let scrubber = &self.cash.pipeline.scrubber;
        source.unavailable().map(|reason| scrubber.scrub_to_line(reason))
    }

    fn is_remembered(&self, namespace: &Namespace) -> bool {
        let sources = self.snapshot.catalog.sources();
        namespace.source.is_some_and(|source| sources[source].state == State::Remembered)
    }
}

impl Functions {
    /// Adds the functions under a heading; nothing if none is on this page.
    fn section(&self, text: &mut String, page: usize) {
        if self.entries.is_empty() {
            return;
        }
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str("## Functions\n\n");
        if self.entries.iter().any(|entry| entry.kwargs.is_some()) {
            text.push_str(LEGEND);
        }
        lines(text, &self.entries);
        match self.entries.iter().filter(|entry| entry.kwargs.is_none()).count() {
            0 => {}
            n => text.push_str(&format!(
                "\nThe kwargs of the last {} are not shown: add `function`, or search with `query`.\n",
                thousands(n)
            )),
        }
        add_remainder(text, self.n_all, page);
    }
}

/// Returns a description, or a placeholder if there is none.
fn or_placeholder(summary: String) -> String {
    if summary.is_empty() { "(no description)".to_owned() } else { summary }
}

/// The arguments of `help` beside namespace and function, each with a hint.
const ARGUMENTS: [(&str, &str); 6] = [
    ("query", "(search all functions)"),
    ("limit", "(of a search)"),
    ("format", "(markdown|json|ts)"),
    ("params", "(\"full\", of a function)"),
    ("examples", "(true, of a function)"),
    ("page", "(of a long list)"),
];

fn on_page<T>(entries: &[T], page: usize) -> &[T] {
    let before = (page - 1).saturating_mul(PAGE).min(entries.len());
    let end = page.saturating_mul(PAGE).min(entries.len());
    &entries[before..end]
}

/// Adds one page of a list under a heading; nothing if it has no such page.
fn section(text: &mut String, heading: &str, entries: &[PageEntry], page: usize) {
    let shown = on_page(entries, page);
    if shown.is_empty() {
        return;
    }
    if !text.is_empty() {
        text.push('\n');
    }
    text.push_str(heading);
    text.push_str("\n\n");
    lines(text, shown);
    add_remainder(text, entries.len(), page);
}

/// Adds a line for each entry; those that are unavailable for the same reason share one.
fn lines(text: &mut String, entries: &[PageEntry]) {
    let mut unavailable: Vec<(&str, Vec<&str>)> = Vec::new();
    for entry in entries {
        match &entry.unavailable {
            Some(reason) if entry.description.is_empty() => {
                match unavailable.iter_mut().find(|(other, _)| other == reason) {
                    Some((_, names)) => names.push(&entry.name),
                    None => unavailable.push((reason, vec![&entry.name])),
                }
            }
            Some(_) | None => {
                text.push_str(&entry.line());
                text.push('\n');
            }
        }
    }
    for (reason, names) in unavailable {
        let names = names.join("**, **");
        text.push_str(&format!("- **{names}** (available: false — unavailable: {reason})\n"));
    }
}

/// Adds how many entries are on later pages.
fn add_remainder(text: &mut String, n_all: usize, page: usize) {
    let left = n_all.saturating_sub(page.saturating_mul(PAGE));
    if 0 < left {
        text.push_str(&format!(
            "\n{} more: `page` {}, or search with `query`.\n",
            thousands(left),
            page + 1
        ));
    }
}

impl PageEntry {
    fn line(&self) -> String {
        let PageEntry { name, description, kwargs, unavailable, .. } = self;
        let mut line = format!("- **{name}**");
        if !description.is_empty() {
            line.push_str(&format!(" — {description}"));
        }
        if let Some(kwargs) = kwargs {
            line.push_str(&format!(" [{kwargs}]"));
        }
        if let Some(reason) = unavailable {
            line.push_str(&format!(" (available: false — unavailable: {reason})"));
        }
        line
    }
}

fn as_json(entries: &[PageEntry], kind: &str) -> Value {
    let page_json = entries.iter().map(|entry| {
        let description = summary::cut(&entry.description, MAX_DESCRIPTION);
        let mut page_json = json!({"name": entry.name, "kind": kind, "description": description});
        if let Some(kwargs) = &entry.kwargs {
            page_json["kwargs"] = json!(kwargs);
        }
        if let Some(reason) = &entry.unavailable {
            page_json["available"] = json!(false);
            page_json["reason"] = json!(reason);
        }
        if entry.remembered {
            page_json["remembered"] = json!(true);
        }
        page_json
    });
    page_json.collect::<Vec<_>>().into()
}
