//! The pages of `help` that list: all namespaces, or the content of one.
//!
//! A function has one line: what it does, and the names of its arguments while
//! they fit into a budget of tokens. Types, and what is said of each argument,
//! are on the function's own page.

use catalog::source::Role;
use catalog::{Namespace, Slot, State, Unresolved, summary, tokens};
use serde_json::{Value, json};
use tool::text::quoted;

use super::arguments::LenientArguments;
use super::help::Format;
use super::request::CashRequest;
use artifacts::gate::{LIMIT, thousands};

/// How many entries a listing shows at once.
const PAGE: usize = 200;
/// A larger page number is not accepted.
const LAST: usize = 1_000_000;
/// How long a description in JSON may be.
const LINE: usize = 150;

/// How much of an upstream's instructions is told; servers send up to 2,000.
const INSTRUCTIONS: usize = 4_000;

/// Tokens within which the functions of a page are listed with their arguments.
const BUDGET: usize = 1_000;

/// Characters of a function's line: first those of its sentence, then those of
/// its arguments. The first pair with which a whole page fits is taken.
const WIDTHS: [(usize, usize); 4] = [(100, 90), (60, 90), (40, 70), (30, 50)];
/// How long the sentence is where there is no room for arguments.
const SHORT: usize = 40;

/// What is said before functions with arguments.
const LEGEND: &str = "In brackets: kwargs, with `?` the optional ones.\n\n";

/// One line of a listing.
struct Entry {
    name: String,
    description: String,
    /// The names of the arguments, where they are shown.
    kwargs: Option<String>,
    /// Why it cannot be called, if so.
    away: Option<String>,
    /// Whether it is listed as it was last seen; only programs are told.
    remembered: bool,
}

/// The functions of one page.
struct Functions {
    /// How many there are on all pages.
    n_all: usize,
    entries: Vec<Entry>,
}

impl CashRequest<'_> {
    pub(super) fn about_namespace(
        &self,
        path: &str,
        asked: &LenientArguments,
        format: Format,
    ) -> Result<String, Unresolved> {
        let namespace = self.snapshot.catalog.namespace(path)?;
        if !self.shows(namespace) {
            return Err(Unresolved::Namespace);
        }
        let page = asked.number("page").unwrap_or(1).clamp(1, LAST);
        let namespaces = self.below(namespace);
        let functions = self.functions(namespace, page);
        // Both lists are turned together: the longer has the last page.
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
                    let instructions = quoted(&instructions, INSTRUCTIONS);
                    text.push_str(&format!("\n`{upstream}` says:\n\n{instructions}\n"));
                }
                section(&mut text, "## Sub-namespaces", &namespaces, page);
                functions.section(&mut text, page);
                text.extend(over.map(|over| format!("\n{over}\n")));
                text
            }
            Format::Json => {
                let mut told = json!({"namespace": namespace.path});
                if !namespaces.is_empty() || functions.n_all == 0 {
                    told["namespaces"] = as_json(on_page(&namespaces, page), "namespace");
                    told["total_namespaces"] = json!(namespaces.len());
                }
                if 0 < functions.n_all {
                    told["functions"] = as_json(&functions.entries, "function");
                    told["total"] = json!(functions.n_all);
                }
                if let Some(instructions) = self.instructions(namespace).filter(|_| page == 1) {
                    told["instructions"] = json!(summary::cut(&instructions, INSTRUCTIONS));
                }
                if 1 < n_pages {
                    told["page"] = json!(page);
                    told["pages"] = json!(n_pages);
                }
                if let Some(over) = over {
                    told["note"] = json!(over);
                }
                if namespace.path.is_empty() {
                    told["arguments"] = json!(ARGUMENTS.map(|(name, _)| name));
                }
                told.to_string()
            }
        })
    }

    fn root(&self, namespaces: &[Entry], functions: &Functions, page: usize) -> String {
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

    /// The namespaces directly below, gatelet's own last.
    fn below(&self, namespace: &Namespace) -> Vec<Entry> {
        let catalog = &self.snapshot.catalog;
        let mut children: Vec<&Namespace> =
            namespace.children.iter().map(|at| &catalog.namespaces()[*at]).collect();
        children.retain(|child| self.shows(child));
        let is_own = |child: &&Namespace| {
            child.source.is_some_and(|source| catalog.sources()[source].role == Role::Builtin)
        };
        children.sort_by_key(is_own);
        let entry = |child: &Namespace| Entry {
            name: child.label.clone(),
            description: catalog.purpose(child, &|slot| self.sees(slot)),
            kwargs: None,
            away: self.unavailable_reason(child),
            remembered: self.is_remembered(child),
        };
        children.into_iter().map(entry).collect()
    }

    /// The functions of one page, as wide as all of them fit; where none of the
    /// widths lets all of them fit, the first have arguments and the others not.
    fn functions(&self, namespace: &Namespace, page: usize) -> Functions {
        let seen = namespace.functions.iter().copied().filter(|slot| self.sees(*slot));
        let seen: Vec<Slot> = seen.collect();
        let shown = on_page(&seen, page);
        let all_with = |(sentence, arguments): (usize, usize)| -> Vec<Entry> {
            shown.iter().map(|slot| self.function_entry(*slot, sentence, Some(arguments))).collect()
        };
        let cost = |entries: &[Entry]| -> usize {
            entries.iter().map(|entry| tokens::count(&entry.line()) + 1).sum()
        };
        let wide = WIDTHS.into_iter().map(all_with).find(|entries| cost(entries) <= BUDGET);
        let entries = wide.unwrap_or_else(|| {
            let mut left = BUDGET;
            let narrow = |slot: &Slot| {
                let entry = self.function_entry(*slot, SHORT, Some(WIDTHS[2].1));
                let cost = tokens::count(&entry.line()) + 1;
                if left < cost {
                    left = 0;
                    return self.function_entry(*slot, SHORT, None);
                }
                left -= cost;
                entry
            };
            shown.iter().map(narrow).collect()
        });
        Functions { n_all: seen.len(), entries }
    }

    fn function_entry(&self, slot: Slot, sentence: usize, arguments: Option<usize>) -> Entry {
        let catalog = &self.snapshot.catalog;
        Entry {
            name: catalog.function(slot).name.clone(),
            description: words(catalog.summary(slot, sentence)),
            kwargs: arguments.map(|limit| catalog.argument_names(slot, limit)),
            away: None,
            remembered: false,
        }
    }

    /// What the upstream of a namespace tells its users, at its top.
    fn instructions(&self, namespace: &Namespace) -> Option<String> {
        let source = &self.snapshot.catalog.sources()[namespace.source?];
        let is_top = source.role != Role::Builtin && namespace.path == source.label;
        let told = source.listing.server.instructions.as_deref().filter(|_| is_top)?.trim();
        (!told.is_empty()).then(|| told.to_owned())
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
    /// The functions under their heading; nothing where none is on this page.
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
        rest(text, self.n_all, page);
    }
}

/// A function without a description still has a line that says so.
fn words(summary: String) -> String {
    if summary.is_empty() { "(no description)".to_owned() } else { summary }
}

/// Every argument that `help` understands beside namespace and function.
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

/// One page of a list; nothing where it has no such page.
fn section(text: &mut String, heading: &str, entries: &[Entry], page: usize) {
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
    rest(text, entries.len(), page);
}

/// A line for each entry; those that are away for one reason share a line.
fn lines(text: &mut String, entries: &[Entry]) {
    let mut away: Vec<(&str, Vec<&str>)> = Vec::new();
    for entry in entries {
        match &entry.away {
            Some(reason) if entry.description.is_empty() => {
                match away.iter_mut().find(|(other, _)| other == reason) {
                    Some((_, names)) => names.push(&entry.name),
                    None => away.push((reason, vec![&entry.name])),
                }
            }
            Some(_) | None => {
                text.push_str(&entry.line());
                text.push('\n');
            }
        }
    }
    for (reason, names) in away {
        let names = names.join("**, **");
        text.push_str(&format!("- **{names}** (available: false — unavailable: {reason})\n"));
    }
}

/// How much is on later pages.
fn rest(text: &mut String, n_all: usize, page: usize) {
    let left = n_all.saturating_sub(page.saturating_mul(PAGE));
    if 0 < left {
        text.push_str(&format!(
            "\n{} more: `page` {}, or search with `query`.\n",
            thousands(left),
            page + 1
        ));
    }
}

impl Entry {
    fn line(&self) -> String {
        let Entry { name, description, kwargs, away, .. } = self;
        let mut line = format!("- **{name}**");
        if !description.is_empty() {
            line.push_str(&format!(" — {description}"));
        }
        if let Some(kwargs) = kwargs {
            line.push_str(&format!(" [{kwargs}]"));
        }
        if let Some(reason) = away {
            line.push_str(&format!(" (available: false — unavailable: {reason})"));
        }
        line
    }
}

fn as_json(entries: &[Entry], kind: &str) -> Value {
    let told = entries.iter().map(|entry| {
        let description = summary::cut(&entry.description, LINE);
        let mut told = json!({"name": entry.name, "kind": kind, "description": description});
        if let Some(kwargs) = &entry.kwargs {
            told["kwargs"] = json!(kwargs);
        }
        if let Some(reason) = &entry.away {
            told["available"] = json!(false);
            told["reason"] = json!(reason);
        }
        if entry.remembered {
            told["remembered"] = json!(true);
        }
        told
    });
    told.collect::<Vec<_>>().into()
}
