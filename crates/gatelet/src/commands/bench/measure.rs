//! Measures the tokens of the user's servers: definitions, searches, and results by the
//! records of calls.

use catalog::tokens;
use cost::{Catalogue, Gateway as GatewayCost, SERVER_DESCRIPTION, Task, ToolCost};
use gateway::{Gateway, Surface};
use serde_json::{Map, Value, json};
use tool::{Listing, Tool};

use super::super::asking;
use super::super::{stats, tokens as definitions};
use crate::paths::Paths;

/// How many searches are made, each with words of one tool's description that its name has not.
const SEARCHES: usize = 40;

/// How many words of a description a search has.
const WORDS: usize = 8;

/// What a result is taken to cost where no records say it, in tokens: the mean of the
/// 249 calls of 43 recorded tasks (docs/benchmarks.md). Half of them cost less than 80.
const ASSUMED_RESULT: u64 = 600;

/// What a model writes for a call, and what a user asks, in tokens: the means of the
/// same recordings.
const WRITTEN: u64 = 150;
const QUESTION: u64 = 30;

/// Everything that an estimate needs.
pub(super) struct Measured {
    pub(super) catalogue: Catalogue,
    pub(super) gateway: GatewayCost,
    pub(super) searches: Searches,
    pub(super) results: Option<Results>,
    /// Upstreams whose definitions nobody knows, and why.
    pub(super) uncounted: Vec<(String, String)>,
}

/// Searches with the words of the user's own tools.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Searches {
    pub(super) made: usize,
    /// How many of them found the tool whose words they were.
    pub(super) found: usize,
    /// Tokens of an answer, on average.
    pub(super) mean: u64,
    /// Tokens of the longest answer.
    pub(super) longest: u64,
}

/// Tokens of results, on average, by the records of calls.
#[derive(Clone, Copy, Debug)]
pub(super) struct Results {
    pub(super) calls: usize,
    /// Tokens of one result as the server sent it, and as a model read it.
    pub(super) raw: u64,
    pub(super) sent: u64,
}

/// Reads the records of calls, where there are any.
pub(super) fn results(paths: &Paths) -> Option<Results> {
    let costs = stats::result_costs(paths).ok()?;
    let calls: usize = costs.iter().map(|cost| cost.calls).sum();
    let mean = |tokens: fn(&stats::ResultCost) -> usize| {
        let all: usize = costs.iter().map(tokens).sum();
        all.checked_div(calls).map(|mean| mean as u64)
    };
    Some(Results { calls, raw: mean(|cost| cost.raw)?, sent: mean(|cost| cost.sent)? })
}

/// Counts definitions and makes searches.
pub(super) async fn measure(
    gateway: &Gateway,
    results: Option<Results>,
) -> anyhow::Result<Measured> {
    let upstreams = gateway.roster().default_pool().snapshot().upstreams().to_vec();
    let listings: Vec<_> = upstreams
        .iter()
        .map(|upstream| (upstream.label().to_owned(), upstream.listing()))
        .collect();
    let tools: Vec<(&str, &Tool)> = listings
        .iter()
        .flat_map(|(label, listing)| listing.tools.iter().map(move |tool| (label.as_str(), tool)))
        .collect();
    let searches = searches(gateway, &tools).await?;
    Ok(Measured {
        catalogue: Catalogue {
            tools: tools.iter().map(|(label, tool)| cost(label, tool)).collect(),
            servers: listings.iter().map(|(label, _)| server_cost(label)).sum(),
        },
        gateway: GatewayCost {
            definitions: definitions::count_definitions(&own_listing(gateway)) as u64,
            search: searches.mean,
            call_overhead: overhead(&tools),
        },
        searches,
        results,
        uncounted: definitions::uncounted(gateway),
    })
}

fn own_listing(gateway: &Gateway) -> std::sync::Arc<Listing> {
    let context = asking::context();
    gateway.surface(Surface::Cash).provider_for(&context.client, &context.caller).listing()
}

/// The tokens that a host without gatelet sends for a tool.
fn cost(label: &str, tool: &Tool) -> ToolCost {
    ToolCost {
        definition: definitions::count_definition(tool) as u64,
        name: tokens::count(&direct_name(label, tool)) as u64,
    }
}

/// The tokens that a host sends for a server whose tools it does not list.
fn server_cost(label: &str) -> u64 {
    tokens::count(label) as u64 + SERVER_DESCRIPTION
}

fn direct_name(label: &str, tool: &Tool) -> String {
    format!("mcp__{label}__{}", tool.name)
}

/// How many tokens more a model writes for a call through gatelet, on average.
fn overhead(tools: &[(&str, &Tool)]) -> u64 {
    let more = tools.iter().map(|(label, tool)| {
        let through = json!({"namespace": label, "function": tool.name, "kwargs": {}});
        let through = tokens::count("call") + tokens::count(&through.to_string());
        let direct = tokens::count(&direct_name(label, tool)) + tokens::count("{}");
        through.saturating_sub(direct) as u64
    });
    more.sum::<u64>().checked_div(tools.len() as u64).unwrap_or(0)
}

/// Makes searches with the words of tools, evenly drawn from all of them.
async fn searches(gateway: &Gateway, tools: &[(&str, &Tool)]) -> anyhow::Result<Searches> {
    let step = tools.len().div_ceil(SEARCHES).max(1);
    let (mut done, mut sum) = (Searches::default(), 0);
    for (_, tool) in tools.iter().step_by(step) {
        let query = json!({"query": words(tool)});
        let arguments = Map::from_iter([("kwargs".to_owned(), query)]);
        let reply = asking::call_tool(gateway, "help", arguments).await?;
        let text = reply.tool_result().map(|result| result.text()).unwrap_or_default();
        let read = tokens::count(&text) as u64;
        done.made += 1;
        done.found += usize::from(names(&text, &tool.name));
        done.longest = done.longest.max(read);
        sum += read;
    }
    done.mean = sum.checked_div(done.made as u64).unwrap_or(0);
    Ok(done)
}

/// Whether a page names a tool, in its own spelling or as `help` spells it.
fn names(page: &str, tool: &str) -> bool {
    page.split(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-')))
        .any(|word| catalog::name::same(word, tool))
}

/// The first words of a tool's description that are not in its name, or the name if there are
/// none. With the name's words nearly every search would find its tool.
fn words(tool: &Tool) -> String {
    let about =
        tool.raw.member("description").and_then(|text| text.string_value()).unwrap_or_default();
    let letters = |text: &str| -> String {
        text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
    };
    let name = letters(&tool.name);
    // Three letters are enough of a word: `files` is in `read_file`.
    let is_in_name = |word: &str| {
        let stem: String = letters(word).chars().take(5).collect();
        let stem = stem.trim_end_matches('s');
        3 <= stem.len() && name.contains(stem)
    };
    let other: Vec<&str> =
        about.split_whitespace().filter(|word| !is_in_name(word)).take(WORDS).collect();
    match other.is_empty() {
        true => tool.name.replace(['_', '-'], " "),
        false => other.join(" "),
    }
}

impl Measured {
    /// A task of so many searches and calls with these servers.
    pub(super) fn task(&self, searches: usize, calls: usize) -> Task {
        let (result, sent) =
            self.results.map_or((ASSUMED_RESULT, ASSUMED_RESULT), |known| (known.raw, known.sent));
        Task {
            question: QUESTION,
            searches,
            calls,
            written: WRITTEN,
            result,
            result_through_gateway: sent,
        }
    }

    pub(super) fn as_json(&self) -> Value {
        let Searches { made, found, mean, longest } = self.searches;
        let results = self.results.map(|results| {
            json!({"calls": results.calls, "tokens_raw": results.raw, "tokens_sent": results.sent})
        });
        let missing = |(label, why): &(String, String)| json!({"label": label, "reason": why});
        json!({
            "tools": self.catalogue.tools.len(),
            "definitions": {
                "direct": self.catalogue.definitions(),
                "gatelet": self.gateway.definitions,
            },
            "searches": {"made": made, "found": found, "mean_tokens": mean, "longest_tokens": longest},
            "results": results,
            "uncounted": self.uncounted.iter().map(missing).collect::<Vec<_>>(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn searches_do_not_use_the_words_of_a_name() {
        let tool = |about: &str| {
            let schema = json!({"type": "object"});
            let tool = json!({"name": "read_file", "description": about, "inputSchema": schema});
            Tool::parse(tool.into()).unwrap()
        };
        assert_eq!(
            words(&tool("Reads the files of a disk and returns text")),
            "the of a disk and returns text"
        );
        assert_eq!(words(&tool("Read file")), "read file");
    }

    #[test]
    fn a_page_names_a_tool_only_as_a_whole_word() {
        assert!(names("- `files.read_file(path: string)`", "read_file"));
        assert!(names("files.read_file(path)", "read-file"), "as help spells it");
        assert!(!names("files.read_file_lines(path)", "read_file"));
        assert!(!names("", "read_file"));
    }
}
