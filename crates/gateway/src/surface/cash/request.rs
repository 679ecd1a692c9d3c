//! The state of the surface, and of one request to it.
//!
//! Each tool adds its methods to [`CashRequest`] in a file of its own.

use std::sync::Arc;

use catalog::Catalog;
use tool::Context;

use super::super::about::About;
use super::super::listed::{ClientKind, ListedFunctions};
use super::super::tasks::Tasks;
use crate::choice::Surface;
use crate::dispatch::{Dispatcher, Origin};
use crate::search::Search;
use policy::call::TargetKind;
use policy::validate::ValidCall;
use policy::visibility::CallerView;
use roster::{Snapshot, UpstreamPool};
use skills::skill_index::SkillIndex;

/// The origin of this surface's calls.
pub(crate) const ORIGIN: Origin = Origin { surface: Surface::Cash, call_text };

/// Renders a call as a client of this surface writes it. The caller has its arguments
/// already, and they may be long.
fn call_text(catalog: &Catalog, call: &ValidCall) -> String {
    match &call.kind {
        TargetKind::Tool(slot) => format!(
            "call(namespace=\"{}\", function=\"{}\", kwargs=…",
            catalog.path(*slot),
            catalog.function(*slot).name,
        ),
        TargetKind::Resource { .. }
        | TargetKind::Prompt { .. }
        | TargetKind::Skill { .. }
        | TargetKind::Task { .. }
        | TargetKind::Help { .. }
        | TargetKind::Completion { .. }
        | TargetKind::Subscription { .. } => String::new(),
    }
}

/// The surface `cash`, for clients with one set of capabilities.
pub struct Cash {
    pub(crate) pool: Arc<UpstreamPool>,
    pub(crate) pipeline: Arc<Dispatcher>,
    pub(crate) skills: Arc<SkillIndex>,
    pub(crate) search: Arc<Search>,
    pub(crate) tasks: Arc<Tasks>,
    pub(crate) about: Arc<About>,
    /// Chooses the functions that are listed beside the three tools.
    pub(crate) listed: Arc<ListedFunctions>,
    pub(crate) client: ClientKind,
}

/// One request to the surface.
pub(super) struct CashRequest<'a> {
    pub(super) cash: &'a Cash,
    pub(super) snapshot: &'a Arc<Snapshot>,
    pub(super) context: &'a Context,
    /// What the caller may see.
    pub(super) visible: CallerView<'a>,
}

/// Which functions a call may run: all, or only those that only read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    All,
    ReadOnly,
}

impl Cash {
    /// Makes a request of this context, with what its caller may see.
    pub(super) fn request<'a>(
        &'a self,
        snapshot: &'a Arc<Snapshot>,
        context: &'a Context,
    ) -> CashRequest<'a> {
        CashRequest {
            cash: self,
            snapshot,
            context,
            visible: self.pipeline.live.visible_to(&context.caller),
        }
    }
}
