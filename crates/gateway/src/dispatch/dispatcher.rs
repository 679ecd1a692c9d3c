//! The [`Dispatcher`]: everything that the stages of a call need, in one struct.
//!
//! Each stage adds its methods in its own file; `pipeline.rs` lists them in order.

use std::sync::Arc;

use arc_swap::ArcSwap;

use crate::dispatch::picking::DefaultPicks;
use crate::dispatch::script_runner::ScriptRunner;
use crate::recipes::{RecipeStore, Recipes};
use crate::record::Recorder;
use artifacts::gate;
use policy::live::LiveStages;
use redact::Scrubber;

/// Runs calls through the pipeline.
pub(crate) struct Dispatcher {
    pub(crate) scrubber: Arc<Scrubber>,
    pub(crate) live: Arc<LiveStages>,
    pub(crate) gate: ArcSwap<gate::Config>,
    /// Which part of an answer goes out where the caller does not say.
    pub(crate) default_picks: ArcSwap<DefaultPicks>,
    pub(crate) artifacts: Arc<dyn artifacts::Store>,
    /// Whether artifacts are stored with their unscrubbed result as well.
    pub(crate) raw: artifacts::RawResults,
    /// Runs scripts; `None` when scripts are switched off.
    pub(crate) scripting: Option<Arc<ScriptRunner>>,
    /// Scripts that are listed as functions.
    pub(crate) recipes: Arc<ArcSwap<Recipes>>,
    /// Where models save recipes; `None` when they may not.
    pub(crate) recipe_store: Option<Arc<dyn RecipeStore>>,
    pub(crate) recorder: Arc<Recorder>,
}
