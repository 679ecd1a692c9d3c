//! The state of the meta-tools and of one request to them, and helpers to parse arguments
//! and make errors.

use std::sync::Arc;

use arc_swap::ArcSwap;
use serde_json::{Map, Value};
use tool::{Context, Json, Object, Reply, Tool};

use super::super::about::About;
use super::super::hints::{self, HintContext};
use super::super::listed::ListedFunctions;
use super::super::tasks::Tasks;
use super::history::BrowseHistory;
use crate::dispatch::{Dispatcher, Origin};
use crate::error::{GatewayError, seconds};
use crate::search::{Search, SearchError};
use artifacts::view::Budget;
use policy::code::Code;
use policy::refusal::Refusal;
use policy::visibility::CallerView;
use roster::{Snapshot, UpstreamPool};
use skills::skill_index::SkillIndex;

/// The options of the gateway and proxy surfaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Cards per browse unless the caller asks for another number.
    pub top_k: usize,
    /// Whether arguments are repaired if the schema leaves no doubt.
    pub tolerant: bool,
    /// Whether repeated browses keep a stable beginning, for prompt caches.
    pub cache_stable: bool,
    /// Whether `tool_run` is offered on the gateway surface, where scripts are on.
    pub run_tool: bool,
    /// How much one view of an artifact may show.
    pub view: Budget,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            top_k: 10,
            tolerant: false,
            cache_stable: false,
            run_tool: false,
            view: Budget::default(),
        }
    }
}

/// How many similar ids the error for an unknown one suggests.
pub(crate) const MAX_SUGGESTIONS: usize = 5;

/// The most cards of one search.
pub(crate) const MAX_CARDS: usize = 50;

/// What the meta-tools of one surface work with.
#[derive(Clone)]
pub(crate) struct MetaTools {
    pub(crate) pipeline: Arc<Dispatcher>,
    pub(crate) search: Arc<Search>,
    pub(crate) tasks: Arc<Tasks>,
    pub(crate) about: Arc<About>,
    pub(crate) skills: Arc<SkillIndex>,
    /// Chooses the functions that are listed beside the meta-tools.
    pub(crate) listed: Arc<ListedFunctions>,
    pub(crate) config: Arc<ArcSwap<Config>>,
    pub(crate) origin: Origin,
}

impl MetaTools {
    /// Returns whether `tool_run` is listed.
    pub(crate) fn runs_scripts(&self) -> bool {
        self.config.load().run_tool && self.pipeline.scripting.is_some()
    }

    /// Adds the hints for hosts to tools; `map` is the names of the namespaces.
    pub(crate) fn with_hints(&self, tools: impl IntoIterator<Item = Tool>, map: &str) -> Vec<Tool> {
        let gate = &self.pipeline.gate.load();
        let view_chars = self.config.load().view.chars;
        let confirms = hints::confirms(&self.pipeline.live);
        let hints = HintContext { map, gate, view_chars, confirms };
        tools.into_iter().map(|tool| hints.with_hints(tool)).collect()
    }
}

/// One request to a meta-tool.
pub(crate) struct Meta<'a> {
    pub(super) tools: &'a MetaTools,
    pub(super) snapshot: &'a Arc<Snapshot>,
    pub(super) context: &'a Context,
    /// What the caller may see.
    pub(super) visible: CallerView<'a>,
    pub(super) history: &'a BrowseHistory,
    /// The parameters of the request beside its arguments.
    pub(super) rest: &'a Object,
}

pub(super) type Answer = Result<Reply, GatewayError>;

impl<'a> Meta<'a> {
    pub(crate) fn new(
        tools: &'a MetaTools,
        pool: &'a UpstreamPool,
        snapshot: &'a Arc<Snapshot>,
        context: &'a Context,
        rest: &'a Object,
    ) -> Meta<'a> {
        let visible = tools.pipeline.live.visible_to(&context.caller);
        let history = pool.derived(BrowseHistory::default);
        Meta { tools, snapshot, context, visible, history, rest }
    }
}

impl SearchError for GatewayError {
    fn from_refusal(refusal: Refusal) -> GatewayError {
        refusal_error(&refusal, "")
    }

    fn code(&self) -> Code {
        self.code
    }

    fn to_json(&self) -> Json {
        GatewayError::to_json(self)
    }
}

/// Parses the arguments of a meta-tool.
pub(super) fn parse_arguments(
    arguments: Option<&Json>,
) -> Result<Map<String, Value>, GatewayError> {
    let Some(arguments) = arguments else { return Ok(Map::new()) };
    match arguments.to_value() {
        Ok(Value::Object(members)) => Ok(members),
        Ok(Value::Null) => Ok(Map::new()),
        Ok(_) | Err(_) => Err(bad_argument("the arguments must be an object")),
    }
}

/// Returns the string argument `key`, if it is given.
pub(super) fn string_argument(
    arguments: &Map<String, Value>,
    key: &str,
) -> Result<Option<String>, GatewayError> {
    match arguments.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(bad_argument(&format!("`{key}` must be a string"))),
    }
}

pub(super) fn bad_argument(message: &str) -> GatewayError {
    GatewayError::new(Code::ArgsInvalid, message, "")
}

pub(super) fn missing_argument(key: &str) -> GatewayError {
    bad_argument(&format!("`{key}` is required"))
}

/// Makes the error for a refusal of the pipeline.
pub(super) fn refusal_error(refusal: &Refusal, path: &str) -> GatewayError {
    let code = refusal.code.code();
    // Waiting helps only where a time to wait is known.
    let error =
        GatewayError::new(code, &refusal.message, path).retryable(refusal.retry_after.is_some());
    let error = match code == Code::AuthRequired {
        true => error.detail("approval", "required"),
        false => error,
    };
    let scope = refusal.message.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')'));
    let error = match (code == Code::RateLimited, scope) {
        (true, Some(scope)) => error.detail("scope", scope),
        (true, None) | (false, _) => error,
    };
    match refusal.retry_after {
        Some(after) => error.detail("retry_after", seconds(after)),
        None => error,
    }
}
