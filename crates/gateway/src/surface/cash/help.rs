//! `help` in three layers: all namespaces, then the content of one, then one
//! function. No layer shows what belongs to the next.

use catalog::index::Verdict;
use catalog::source::Role;
use catalog::{ItemRef, Namespace, State, Unresolved, reply, summary};
use serde_json::{Value, json};
use tool::text::quoted;
use tool::{Json, Reply};

use super::arguments::LenientArguments;
use super::request::CashRequest;
use crate::builtin;
use crate::search::{SearchAnswer, Wanted};
use artifacts::gate::{LIMIT, thousands};

/// How many entries a listing shows at once.
const PAGE: usize = 200;
/// A larger page number is not accepted.
const LAST: usize = 1_000_000;
/// How long the line of an entry may be, beside its name.
const LINE: usize = 150;

/// How much of an upstream's instructions is told; servers send up to 2,000.
const INSTRUCTIONS: usize = 4_000;

/// How much of a query is repeated in the reply.
const ECHO: usize = 80;

/// How help is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Markdown,
    Json,
}

/// One line of a listing.
struct Entry {
    name: String,
    description: String,
    /// Why it cannot be called, if so.
    away: Option<String>,
    remembered: bool,
}

impl CashRequest<'_> {
    pub(super) async fn help(&self, arguments: Option<&Json>) -> Reply {
        let asked = LenientArguments::read(arguments);
        let format = match asked.text("format").as_deref() {
            Some("json" | "JSON") => Format::Json,
            Some("ts" | "TS" | "typescript" | "TypeScript") => return self.declarations(&asked),
            Some(_) | None => Format::Markdown,
        };
        let namespace = asked.text("namespace").unwrap_or_default();
        let function = asked.text("function").filter(|function| !function.is_empty());
        let query = asked.text("query").filter(|query| !query.trim().is_empty());
        let told = match (&function, query) {
            (Some(function), _) => self.about_function(&namespace, function, &asked, format),
            (None, Some(query)) => {
                return self.search(&namespace, &query, &asked, format).await;
            }
            (None, None) => self.about_namespace(&namespace, &asked, format),
        };
        match told {
            Ok(text) => Reply::text(&text),
            Err(why) if namespace.is_empty() && why == Unresolved::Function => {
                Reply::error_text(&self.without_namespace(function.as_deref().unwrap_or_default()))
            }
            Err(why) => {
                if let Some(reply) = self.unavailable(&why, &namespace) {
                    return reply;
                }
                let function = function.unwrap_or_default();
                Reply::error_text(&self.no_such(&why, &namespace, &function))
            }
        }
    }

    fn about_function(
        &self,
        namespace: &str,
        function: &str,
        asked: &LenientArguments,
        format: Format,
    ) -> Result<String, Unresolved> {
        let slot = self.resolve(namespace, function)?;
        Ok(self.function_page(slot, asked, format))
    }

    fn about_namespace(
        &self,
        path: &str,
        asked: &LenientArguments,
        format: Format,
    ) -> Result<String, Unresolved> {
        let namespace = self.snapshot.catalog.namespace(path)?;
        if !self.shows(namespace) {
            return Err(Unresolved::Namespace);
        }
        let namespaces = self.below(namespace);
        let functions = self.functions(namespace);
        let page = asked.number("page").unwrap_or(1).clamp(1, LAST);
        // Both lists are turned together: the longer has the last page.
        let n_pages = namespaces.len().max(functions.len()).div_ceil(PAGE);
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
                section(&mut text, "## Functions", &functions, page);
                text.extend(over.map(|over| format!("\n{over}\n")));
                text
            }
            Format::Json => {
                let mut told = json!({"namespace": namespace.path});
                if !namespaces.is_empty() || functions.is_empty() {
                    told["namespaces"] = as_json(&namespaces, "namespace", page);
                    told["total_namespaces"] = json!(namespaces.len());
                }
                if !functions.is_empty() {
                    told["functions"] = as_json(&functions, "function", page);
                    told["total"] = json!(functions.len());
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

    fn root(&self, namespaces: &[Entry], functions: &[Entry], page: usize) -> String {
        let mut text = String::new();
        section(&mut text, "# Available Namespaces", namespaces, page);
        section(&mut text, "## Functions", functions, page);
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

    /// Searches all functions, or those of a namespace.
    async fn search(
        &self,
        namespace: &str,
        query: &str,
        asked: &LenientArguments,
        format: Format,
    ) -> Reply {
        let answer = async {
            let (text, places) = self.matches(namespace, query, asked, format);
            Ok(SearchAnswer::at(self.snapshot, places, Reply::text(&text)))
        };
        let (search, wanted) = (&self.cash.search, Wanted::functions(query));
        let answer = search.run(wanted, Ok(()), self.snapshot, self.context, answer).await;
        answer.unwrap_or_else(|refusal| self.refusal(&refusal))
    }

    fn matches(
        &self,
        namespace: &str,
        query: &str,
        asked: &LenientArguments,
        format: Format,
    ) -> (String, Vec<ItemRef>) {
        let catalog = &self.snapshot.catalog;
        let limit = asked
            .number("limit")
            .unwrap_or(builtin::DEFAULT_RESULTS)
            .clamp(1, builtin::MAX_RESULTS);
        let within = catalog.namespace(namespace).ok().map(|namespace| namespace.path.as_str());
        let inside = |slot| {
            let path = catalog.path(slot);
            within.is_none_or(|within| {
                within.is_empty()
                    || path.strip_prefix(within).is_some_and(|r| r.is_empty() || r.starts_with('.'))
            })
        };
        // Asked of every function there is.
        let all = self.visible.shows_all();
        let sees = |slot| (all || self.sees(slot)) && inside(slot);
        let priors = self.cash.search.priors(self.context, query);
        let missing = builtin::unsearched(catalog, &self.visible);
        match format {
            Format::Markdown => builtin::found(catalog, query, limit, &priors, &sees, missing),
            Format::Json => {
                let found = catalog.search_with(query, limit, &priors, &sees);
                let told = found.hits.iter().map(|hit| {
                    json!({
                        "namespace": catalog.path(hit.slot),
                        "function": catalog.function(hit.slot).name,
                        "signature": catalog.signature(hit.slot, 160),
                        "description": catalog.summary(hit.slot, LINE),
                    })
                });
                let mut told = json!({"query": summary::cut(query, ECHO), "functions": told.collect::<Vec<_>>()});
                match found.verdict {
                    Verdict::Relevant => {}
                    Verdict::Ambiguous => told["note"] = json!(reply::AMBIGUOUS),
                    Verdict::Nothing => {
                        let near = found.near.iter().map(|slot| catalog.path(*slot));
                        told["note"] = json!(reply::nothing(near));
                    }
                }
                if let Some(missing) = missing {
                    told["unsearched"] = json!(missing);
                }
                let places = found.hits.iter().map(|hit| ItemRef::Tool(hit.slot)).collect();
                (told.to_string(), places)
            }
        }
    }

    /// A function asked for without its namespace.
    fn without_namespace(&self, function: &str) -> String {
        let catalog = &self.snapshot.catalog;
        let named = |slot: &catalog::Slot| {
            catalog::name::same(&catalog.function(*slot).name, function) && self.sees(*slot)
        };
        let homes: Vec<String> = catalog
            .slots()
            .filter(named)
            .take(5)
            .map(|slot| catalog.path(slot).to_owned())
            .collect();
        if homes.is_empty() {
            return self.no_such(&Unresolved::Function, "", function);
        }
        let function = summary::echo(function);
        let calls = homes
            .iter()
            .map(|path| format!("`help(namespace=\"{path}\", function=\"{function}\")`"));
        format!(
            "**Error:** No function `{function}` in the root namespace. It is in: {}.",
            calls.collect::<Vec<_>>().join(", ")
        )
    }

    /// Whether a namespace exists for this caller.
    pub(super) fn shows(&self, namespace: &Namespace) -> bool {
        self.visible.shows_namespace(&self.snapshot.catalog, namespace)
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
            away: self.unavailable_reason(child),
            remembered: self.is_remembered(child),
        };
        children.into_iter().map(entry).collect()
    }

    fn functions(&self, namespace: &Namespace) -> Vec<Entry> {
        let catalog = &self.snapshot.catalog;
        let seen = namespace.functions.iter().filter(|slot| self.sees(**slot));
        let entry = |slot: &catalog::Slot| Entry {
            name: catalog.function(*slot).name.clone(),
            description: words(catalog.summary(*slot, LINE)),
            away: None,
            remembered: false,
        };
        seen.map(entry).collect()
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

/// One page of a list; nothing where it has no such page.
fn section(text: &mut String, heading: &str, entries: &[Entry], page: usize) {
    let before = (page - 1).saturating_mul(PAGE);
    if entries.len() <= before {
        return;
    }
    if !text.is_empty() {
        text.push('\n');
    }
    text.push_str(heading);
    text.push_str("\n\n");
    for entry in entries.iter().skip(before).take(PAGE) {
        text.push_str(&entry.line());
        text.push('\n');
    }
    let left = entries.len().saturating_sub(page.saturating_mul(PAGE));
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
        let Entry { name, description, away, remembered } = self;
        let mut line = format!("- **{name}**");
        if !description.is_empty() {
            line.push_str(&format!(" — {description}"));
        }
        match away {
            Some(reason) => line.push_str(&format!(" (available: false — unavailable: {reason})")),
            None if *remembered => line.push_str(" (from memory)"),
            None => {}
        }
        line
    }
}

fn as_json(entries: &[Entry], kind: &str, page: usize) -> Value {
    let told = entries.iter().skip((page - 1).saturating_mul(PAGE)).take(PAGE).map(|entry| {
        let mut told = json!({"name": entry.name, "kind": kind, "description": entry.description});
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
