//! The meta-tools and one request to them, as data, and how their arguments and
//! errors are read and written.

use std::sync::Arc;

use arc_swap::ArcSwap;
use serde_json::{Map, Value};
use tool::{Context, Json, Object, Reply, Tool};

use super::super::about::About;
use super::super::hints::Facts;
use super::super::listed::Live;
use super::super::tasks::Tasks;
use super::history::BrowseHistory;
use crate::dispatch::{Dispatcher, Origin};
use crate::error::{GatewayError, seconds};
use crate::search::{Search, SearchError};
use artifacts::view::Budget;
use policy::code::Code;
use policy::refusal::Refusal;
use policy::visibility::Visible;
use roster::{Snapshot, UpstreamPool};
use skills::skill_index::SkillIndex;

/// How the gateway and proxy surfaces behave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Cards per browse unless the caller asks for another number.
    pub top_k: usize,
    /// Whether arguments are repaired where the schema leaves no doubt.
    pub tolerant: bool,
    /// Whether repeated browses keep a stable beginning, for prompt caches.
    pub cache_stable: bool,
    /// Whether `tool_run` is offered on the gateway surface, where scripts are on.
    pub run_tool: bool,
    /// How much one look into an artifact may show.
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

/// How many likely meanings of an unknown id are given.
pub(crate) const NEAR: usize = 5;

/// No browse returns more cards by query.
pub(crate) const MAX_CARDS: usize = 50;

/// What answers meta-tools, for one surface.
#[derive(Clone)]
pub(crate) struct MetaTools {
    pub(crate) pipeline: Arc<Dispatcher>,
    pub(crate) search: Arc<Search>,
    pub(crate) tasks: Arc<Tasks>,
    pub(crate) about: Arc<About>,
    pub(crate) skills: Arc<SkillIndex>,
    /// What is listed beside the meta-tools.
    pub(crate) listed: Arc<Live>,
    pub(crate) config: Arc<ArcSwap<Config>>,
    pub(crate) origin: Origin,
}

impl MetaTools {
    /// Whether `tool_run` is offered.
    pub(crate) fn runs_scripts(&self) -> bool {
        self.config.load().run_tool && self.pipeline.scripting.is_some()
    }

    /// Tools as hosts are to see them; `map` names the namespaces that there are.
    pub(crate) fn hinted(&self, tools: impl IntoIterator<Item = Tool>, map: &str) -> Vec<Tool> {
        let gate = &self.pipeline.gate.load();
        let facts = Facts { map, gate, view_chars: self.config.load().view.chars };
        tools.into_iter().map(|tool| facts.hinted(tool)).collect()
    }
}

/// One request to a meta-tool, and what its caller may see.
pub(crate) struct Meta<'a> {
    pub(super) tools: &'a MetaTools,
    pub(super) snapshot: &'a Arc<Snapshot>,
    pub(super) context: &'a Context,
    /// What the caller sees.
    pub(super) visible: Visible<'a>,
    pub(super) history: &'a BrowseHistory,
    /// What came with the request beside its arguments.
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
    fn refused(refusal: Refusal) -> GatewayError {
        refused(&refusal, "")
    }

    fn code(&self) -> Code {
        self.code
    }

    fn to_json(&self) -> Json {
        GatewayError::to_json(self)
    }
}

/// The arguments of a meta-tool.
pub(super) fn members(arguments: Option<&Json>) -> Result<Map<String, Value>, GatewayError> {
    let Some(arguments) = arguments else { return Ok(Map::new()) };
    match arguments.to_value() {
        Ok(Value::Object(members)) => Ok(members),
        Ok(Value::Null) => Ok(Map::new()),
        Ok(_) | Err(_) => Err(bad("the arguments must be an object")),
    }
}

pub(super) fn text(
    members: &Map<String, Value>,
    key: &str,
) -> Result<Option<String>, GatewayError> {
    match members.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(bad(&format!("`{key}` must be a string"))),
    }
}

pub(super) fn bad(message: &str) -> GatewayError {
    GatewayError::new(Code::ArgsInvalid, message, "")
}

pub(super) fn missing(key: &str) -> GatewayError {
    bad(&format!("`{key}` is required"))
}

/// A refusal of the pipeline in the specification's shape.
pub(super) fn refused(refusal: &Refusal, path: &str) -> GatewayError {
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
