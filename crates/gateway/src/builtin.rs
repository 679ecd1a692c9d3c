//! The built-in functions, in the reserved namespace `gatelet`.
//!
//! They are listed, documented, checked and called like any other function, but
//! answered in this process.

mod find;
mod view;

use std::sync::Arc;

use arc_swap::ArcSwap;
use async_trait::async_trait;
use catalog::source::Role;
use catalog::{Catalog, Slot, Source};
use serde_json::json;
use tool::{Ask, Context, CredentialHealth, Failure, Json, Listing, Reply, RpcError, Tool};

use crate::recipes::{self, Draft, RecipeStore, Recipes};
use crate::search::Search;
use artifacts::Store;
use artifacts::gate::thousands;
use policy::live::LiveStages;
use policy::validate::ValidCall;
use roster::{BUILTIN, Builtin, Phase, Snapshot};
use skills::skill_index::SkillIndex;

pub(crate) use find::{config, found, unsearched};
pub(crate) use view::{AnswerBudget, is_media, view};

pub use roster::BUILTIN as LABEL;

/// Whether a call views a kept answer; its reply keeps to the size limit by
/// itself.
pub(crate) fn is_view(call: &ValidCall) -> bool {
    call.callee.upstream == BUILTIN && call.slot().is_some() && call.callee.tool == "view"
}

/// Whether a call runs a script: one that comes with it, or a recipe.
pub(crate) fn is_script(call: &ValidCall) -> bool {
    let tool = call.callee.tool.as_str();
    let is_own = call.callee.upstream == BUILTIN && call.slot().is_some();
    is_own && (tool == "run" || tool.starts_with(recipes::PREFIX))
}

/// The function by which a model saves a script.
const SAVE: &str = "save_recipe";

/// Whether a call saves a recipe.
pub(crate) fn is_saving(call: &ValidCall) -> bool {
    call.callee.upstream == BUILTIN && call.slot().is_some() && call.callee.tool == SAVE
}

/// Whether scripts can be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scripts {
    Off,
    On,
}

/// How many functions a search names unless more are asked for.
pub(crate) const DEFAULT_RESULTS: usize = 5;
const MAX_RESULTS: usize = 50;

/// Answers for the namespace `gatelet`.
pub struct BuiltinTools {
    listing: Arc<Listing>,
    artifacts: Arc<dyn Store>,
    policies: Arc<LiveStages>,
    skills: Arc<SkillIndex>,
    search: Arc<Search>,
    recipes: Arc<ArcSwap<Recipes>>,
    recipe_store: Option<Arc<dyn RecipeStore>>,
}

impl BuiltinTools {
    pub(crate) fn new(
        artifacts: Arc<dyn Store>,
        policies: Arc<LiveStages>,
        skills: Arc<SkillIndex>,
        search: Arc<Search>,
        scripts: Scripts,
        recipes: Arc<ArcSwap<Recipes>>,
        recipe_store: Option<Arc<dyn RecipeStore>>,
    ) -> BuiltinTools {
        let listing = Arc::new(listing(scripts, recipe_store.is_some()));
        BuiltinTools { listing, artifacts, policies, skills, search, recipes, recipe_store }
    }
}

#[async_trait]
impl Builtin for BuiltinTools {
    fn source(&self) -> Source {
        let words = "This gate: search everything, read long results in parts, upstream health.";
        Source {
            description: Some(words.to_owned()),
            role: Role::Builtin,
            skills: self.skills.own().listed(),
            ..Source::new(BUILTIN, self.listed())
        }
    }

    async fn ask(
        &self,
        ask: Ask,
        snapshot: &Snapshot,
        context: &Context,
    ) -> Result<Reply, Failure> {
        let Ask::Call(call) = ask else {
            return Ok(Reply::Error(RpcError::new(-32601, "gatelet itself has functions only")));
        };
        let arguments = call.arguments.unwrap_or_else(Json::empty_object);
        Ok(match call.name.as_str() {
            "find" => self.find(&arguments, snapshot, context).await,
            "view" => view(&*self.artifacts, &arguments, &AnswerBudget::default(), context).await,
            "status" => Reply::text(&self.status(snapshot, context)),
            SAVE => self.save(&arguments),
            other => Reply::error_text(&format!("gatelet has no function `{other}`")),
        })
    }
}

impl BuiltinTools {
    /// Saves a recipe. Somebody has agreed to it by now.
    fn save(&self, arguments: &Json) -> Reply {
        let store =
            self.recipe_store.as_ref().ok_or_else(|| "recipes cannot be saved here".to_owned());
        let saved = store.and_then(|store| {
            let draft = Draft::read(arguments)?;
            store.save(&draft).map(|()| draft.name)
        });
        match saved {
            Ok(name) => Reply::text(&format!(
                "Saved: call it as `{BUILTIN}.{}{name}` in a moment.",
                recipes::PREFIX
            )),
            Err(why) => Reply::error_text(&format!("**Error:** {why}.")),
        }
    }

    /// Our own functions, and the recipes of now.
    fn listed(&self) -> Arc<Listing> {
        let recipes = self.recipes.load();
        if recipes.iter().next().is_none() {
            return Arc::clone(&self.listing);
        }
        let mut listing = Listing::clone(&self.listing);
        listing.tools.extend(recipes.tools());
        Arc::new(listing)
    }

    /// What is unavailable and why, of what the caller sees.
    fn status(&self, snapshot: &Snapshot, context: &Context) -> String {
        let visible = self.policies.visible_to(&context.caller);
        status(snapshot, &|at| visible.shows_source(&snapshot.catalog, at))
    }
}

/// `- orders / create(customer_id: string) — Create an order.`
pub(crate) fn line(catalog: &Catalog, slot: Slot) -> String {
    let away = catalog.source(slot).unavailable().map_or("", |_| " (unavailable)");
    let summary = catalog.summary(slot, 120);
    let dash = if summary.is_empty() { "" } else { " — " };
    format!("- {} / {}{dash}{summary}{away}", catalog.path(slot), catalog.signature(slot, 160))
}

/// More upstreams that merely start are counted, not listed.
const STARTING: usize = 5;

/// How many upstreams there are and what is wrong with which; those that are
/// fine are not listed, and neither are many that only start.
fn status(snapshot: &Snapshot, shows: &dyn Fn(usize) -> bool) -> String {
    let mut problems: Vec<(Availability, String)> = Vec::new();
    let (mut n_all, mut n_away, mut n_starting) = (0, 0, 0);
    for (at, source) in snapshot.catalog.sources().iter().enumerate() {
        let Some(upstream) = snapshot.upstream(at).filter(|_| shows(at)) else { continue };
        let status = upstream.status();
        let availability = match status.unanswered {
            0 => Availability::of(&status.phase),
            _ => Availability::of(&status.phase).min(Availability::Away),
        };
        n_all += 1;
        n_away += usize::from(availability == Availability::Away);
        n_starting += usize::from(availability == Availability::Starting);
        let wrong = problems_of(&status);
        if !wrong.is_empty() {
            problems.push((availability, format!("- {}: {}", source.label, wrong.join("; "))));
        }
    }
    if STARTING < n_starting {
        problems.retain(|(availability, _)| *availability != Availability::Starting);
    }
    problems.sort_by_key(|(availability, _)| *availability);
    let first = tally(n_all, n_away, n_starting);
    let lines: Vec<String> = problems.into_iter().map(|(_, line)| line).collect();
    if lines.is_empty() { first } else { format!("{first}\n\n{}", lines.join("\n")) }
}

/// What is wrong with an upstream; nothing where all is well.
fn problems_of(status: &roster::Status) -> Vec<String> {
    let tools = thousands(status.listing.tools.len());
    let phase = match &status.phase {
        Phase::Up if status.unanswered != 0 => Some(format!(
            "DOES NOT ANSWER: {} calls in a row got no answer in time; {tools} functions",
            status.unanswered
        )),
        Phase::Up | Phase::Asleep => None,
        Phase::Starting => Some(format!("starting, {tools} functions known")),
        Phase::Down { reason, .. } => {
            Some(format!("UNAVAILABLE: {reason}; retried by itself, and when called"))
        }
    };
    let credential = match &status.credential {
        None | Some(CredentialHealth::Fine) => None,
        Some(health) => Some(format!("credentials: {health}")),
    };
    [phase, unread(&status.listing), credential].into_iter().flatten().collect()
}

/// How an upstream is doing, worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Availability {
    Away,
    Starting,
    There,
}

impl Availability {
    /// As its line says it.
    fn of(phase: &Phase) -> Availability {
        match phase {
            Phase::Down { .. } => Availability::Away,
            Phase::Starting => Availability::Starting,
            Phase::Up | Phase::Asleep => Availability::There,
        }
    }
}

/// How all upstreams are doing, in a sentence.
fn tally(all: usize, away: usize, starting: usize) -> String {
    let upstreams = if all == 1 { "upstream" } else { "upstreams" };
    let is = |count: usize| if count == 1 { "is" } else { "are" };
    match (all, away, starting) {
        (0, _, _) => "No upstreams are configured.".to_owned(),
        (1, 0, 0) => "The only upstream is available.".to_owned(),
        (_, 0, 0) => format!("All {all} upstreams are available."),
        (_, away, 0) => format!("{away} of {all} {upstreams} {} unavailable.", is(away)),
        (_, 0, starting) => {
            format!("{starting} of {all} {upstreams} {} still starting.", is(starting))
        }
        (_, away, starting) => format!(
            "{away} of {all} upstreams {} unavailable, {starting} {} still starting.",
            is(away),
            is(starting)
        ),
    }
}

/// Which lists may differ from the upstream's own.
fn unread(listing: &Listing) -> Option<String> {
    let word = |kind: &tool::Kind| match kind {
        tool::Kind::Tools => "functions",
        tool::Kind::Resources => "resources",
        tool::Kind::Templates => "resource templates",
        tool::Kind::Prompts => "prompts",
    };
    let words: Vec<&str> = listing.failed_lists.iter().map(word).collect();
    (!words.is_empty())
        .then(|| format!("its {} cannot be read and are as last seen", words.join(", ")))
}

fn listing(scripts: Scripts, can_save: bool) -> Listing {
    let read_only = json!({"readOnlyHint": true});
    let tools = [
        json!({
            "name": "find",
            "description": "Find functions in all namespaces by what they do.",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "query": {"type": "string", "description": "What you want to do, in words."},
                    "limit": {"type": "integer", "minimum": 1, "maximum": MAX_RESULTS, "default": DEFAULT_RESULTS},
                    "kind": {
                        "type": "string",
                        "enum": ["function", "resource", "prompt", "skill", "all"],
                        "default": "function",
                    },
                },
                "required": ["query"],
                "additionalProperties": false,
            },
            "annotations": read_only,
        }),
        json!({
            "name": "view",
            "description": "Read a part of a result that was too long.\n\nGive the handle and one of \
                `head`, `tail`, `lines`, `grep`, `jq`. Without one, the beginning. Without a handle, \
                what is kept.",
            "inputSchema": view::schema(),
            "annotations": read_only,
        }),
        json!({
            "name": "status",
            "description": "Which upstreams are unavailable and why.",
            "inputSchema": {
                "type": "object",
                "properties": {},
                "additionalProperties": false,
            },
            "annotations": read_only,
        }),
    ];
    let read = |raw: serde_json::Value| Tool::parse(raw.into()).expect("our own tools have names");
    let run = (scripts == Scripts::On).then(run_definition);
    let save = (scripts == Scripts::On && can_save).then(save_definition);
    let tools = tools.into_iter().chain(run).chain(save).map(read).collect();
    Listing { tools, ..Listing::default() }
}

/// The function that runs scripts.
fn run_definition() -> serde_json::Value {
    json!({
        "name": "run",
        "description": "Run JavaScript that calls functions, so that only what it returns comes back. \
            `code` is the body of an async function: `await tools.<namespace>.<function>({…})` gives \
            parsed data and throws on errors, `Promise.all` runs calls side by side, `console.log` \
            goes into the reply, `return` ends it.\n\nNo files, network, clock or randomness. \
            `help(namespace, function, kwargs={\"format\": \"ts\"})` has types.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "code": {"type": "string", "description": "JavaScript, with `inputs` and `tools`."},
                "inputs": {"type": "object", "description": "The value of `inputs`."},
                "resume": {"type": "string", "description": "The handle of a script that stopped."},
                "fresh": {
                    "type": "boolean",
                    "description": "Start again although the same script was begun before.",
                },
            },
            "additionalProperties": false,
        },
    })
}

/// The function that saves scripts.
fn save_definition() -> serde_json::Value {
    json!({
        "name": SAVE,
        "description": "Save a script that proved its worth as a function `gatelet.recipes.NAME`. The user \
            has to agree.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "name": {"type": "string", "description": "Lower case letters, digits and `_`."},
                "description": {"type": "string", "description": "What it does, in a sentence."},
                "inputs": {"type": "object", "description": "The JSON Schema of its `inputs`."},
                "functions": {
                    "type": "array",
                    "items": {"type": "string"},
                    "description": "What it may call, such as `orders.list`; nothing else.",
                },
                "code": {"type": "string", "description": "As for `run`."},
            },
            "required": ["name", "description", "functions", "code"],
            "additionalProperties": false,
        },
        "annotations": {"readOnlyHint": false, "destructiveHint": false},
    })
}

#[cfg(test)]
mod tests {
    use super::{Availability, tally};
    use roster::Phase;

    #[test]
    fn what_is_listed_as_starting_is_counted_as_starting() {
        assert_eq!(Availability::of(&Phase::Starting), Availability::Starting);
        let down = Phase::Down { reason: String::new(), failures: 1 };
        assert_eq!(Availability::of(&down), Availability::Away);
        assert_eq!(
            [Phase::Up, Phase::Asleep].map(|phase| Availability::of(&phase)),
            [Availability::There; 2]
        );
    }

    #[test]
    fn what_is_still_starting_is_not_said_to_be_available() {
        for (all, away, starting, expected) in [
            (0, 0, 0, "No upstreams are configured."),
            (1, 0, 0, "The only upstream is available."),
            (22, 0, 0, "All 22 upstreams are available."),
            (22, 0, 1, "1 of 22 upstreams is still starting."),
            (1, 1, 0, "1 of 1 upstream is unavailable."),
            (3, 2, 1, "2 of 3 upstreams are unavailable, 1 is still starting."),
        ] {
            assert_eq!(tally(all, away, starting), expected);
        }
    }
}
