//! `help`: all namespaces, the content of one namespace, one function, or a search.

use std::collections::BTreeMap;

use catalog::index::{self, Verdict};
use catalog::{ItemRef, Namespace, Priors, Slot, Unresolved, reply, summary};
use serde_json::json;
use tool::{Json, Reply};

use super::arguments::LenientArguments;
use super::request::CashRequest;
use crate::builtin;
use crate::search::{SearchAnswer, SearchRequest};

/// The most characters of a hit's description in JSON.
const MAX_DESCRIPTION: usize = 150;

/// The most characters of the query that the reply repeats.
const MAX_ECHO: usize = 80;

/// The output format of help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Markdown,
    Json,
}

impl CashRequest<'_> {
    /// Answers `help`.
    pub(super) async fn help(&self, arguments: Option<&Json>) -> Reply {
        let asked = LenientArguments::parse(arguments);
        let format = match asked.text("format").as_deref() {
            Some("json" | "JSON") => Format::Json,
            Some("ts" | "TS" | "typescript" | "TypeScript") => return self.declarations(&asked),
            Some(_) | None => Format::Markdown,
        };
        let namespace = asked.text("namespace").unwrap_or_default();
        let function = asked.text("function").filter(|function| !function.is_empty());
        let query = asked.text("query").filter(|query| !query.trim().is_empty());
        let page = match (&function, query) {
            (Some(function), _) => self.function_help(&namespace, function, &asked, format),
            (None, Some(query)) => {
                return self.search(&namespace, &query, &asked, format).await;
            }
            (None, None) => self.namespace_page(&namespace, &asked, format),
        };
        match page {
            Ok(text) => Reply::text(&text),
            Err(why) if namespace.is_empty() && why == Unresolved::Function => {
                Reply::error_text(&self.missing_namespace(function.as_deref().unwrap_or_default()))
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

    fn function_help(
        &self,
        namespace: &str,
        function: &str,
        asked: &LenientArguments,
        format: Format,
    ) -> Result<String, Unresolved> {
        let slot = self.resolve(namespace, function)?;
        Ok(self.function_page(slot, asked, format))
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
            let (text, items) = self.find_matches(namespace, query, asked, format);
            Ok(SearchAnswer::new(self.snapshot, items, Reply::text(&text)))
        };
        let (search, request) = (&self.cash.search, SearchRequest::functions(query));
        let answer = search.run(request, Ok(()), self.snapshot, self.context, answer).await;
        answer.unwrap_or_else(|refusal| self.refusal(&refusal))
    }

    /// Searches, and returns the text of the reply and the functions in it.
    fn find_matches(
        &self,
        namespace: &str,
        query: &str,
        asked: &LenientArguments,
        format: Format,
    ) -> (String, Vec<ItemRef>) {
        let catalog = &self.snapshot.catalog;
        let limit = asked.number("limit");
        let within = catalog.namespace(namespace).ok().map(|namespace| namespace.path.as_str());
        let inside = |slot| {
            let path = catalog.path(slot);
            within.is_none_or(|within| {
                within.is_empty()
                    || path.strip_prefix(within).is_some_and(|r| r.is_empty() || r.starts_with('.'))
            })
        };
        // Computed once, because `sees` runs for every function.
        let all = self.visible.shows_all();
        let sees = |slot| (all || self.sees(slot)) && inside(slot);
        let priors = self.cash.search.priors(self.context, query);
        let missing = builtin::unsearched(catalog, &self.visible);
        match format {
            Format::Markdown => {
                builtin::find_functions(catalog, query, limit, &priors, &sees, missing)
            }
            Format::Json => self.matches_as_json(query, limit, &priors, &sees, missing),
        }
    }

    /// Searches, and returns JSON: the first hits with signatures, the names of others by
    /// namespace.
    fn matches_as_json(
        &self,
        query: &str,
        limit: Option<usize>,
        priors: &Priors,
        sees: &dyn Fn(Slot) -> bool,
        missing: Option<String>,
    ) -> (String, Vec<ItemRef>) {
        let catalog = &self.snapshot.catalog;
        let config = builtin::search_reply_config(limit);
        let found = catalog.search_with(query, config.depth(), priors, sees);
        let (signed, others) = found.hits.split_at(found.hits.len().min(config.limit));
        let stems = index::terms(query);
        let functions = signed.iter().map(|hit| {
            json!({
                "namespace": catalog.path(hit.slot),
                "function": catalog.function(hit.slot).name,
                "signature": catalog.signature_for(hit.slot, 160, &stems),
                "description": catalog.summary(hit.slot, MAX_DESCRIPTION),
            })
        });
        let mut page = json!({"query": summary::cut(query, MAX_ECHO), "functions": functions.collect::<Vec<_>>()});
        let mut more: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for hit in others {
            let names = more.entry(catalog.path(hit.slot)).or_default();
            names.push(&catalog.function(hit.slot).name);
        }
        if !more.is_empty() {
            page["more"] = json!(more);
        }
        match found.verdict {
            Verdict::Relevant => {}
            Verdict::Ambiguous => page["note"] = json!(reply::AMBIGUOUS),
            Verdict::Nothing => {
                let near = found.near.iter().map(|slot| catalog.path(*slot));
                page["note"] = json!(reply::nothing(near));
            }
        }
        if let Some(missing) = missing {
            page["unsearched"] = json!(missing);
        }
        let items = found.hits.iter().map(|hit| ItemRef::Tool(hit.slot)).collect();
        (page.to_string(), items)
    }

    /// The error for a function without its namespace: says in which namespaces it is.
    fn missing_namespace(&self, function: &str) -> String {
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

    /// Returns whether the caller sees a namespace.
    pub(super) fn shows(&self, namespace: &Namespace) -> bool {
        self.visible.shows_namespace(&self.snapshot.catalog, namespace)
    }
}
