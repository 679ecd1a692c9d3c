//! The surface and one request to it, as data.
//!
//! What the tools do with a request stands beside this, one file each.

use std::sync::Arc;

use catalog::Catalog;
use tool::{Context, Identity};

use super::super::about::About;
use super::super::listed::{ClientKind, Live};
use super::super::other_requests::OtherRequests;
use super::super::tasks::Tasks;
use crate::choice::Surface;
use crate::dispatch::{Dispatcher, Origin, repeated_arguments};
use crate::search::Search;
use policy::call::What;
use policy::validate::ValidCall;
use policy::visibility::Visible;
use roster::{Snapshot, UpstreamPool};
use skills::skill_index::SkillIndex;

/// The origin of this surface's calls.
pub(crate) const ORIGIN: Origin = Origin { surface: Surface::Cash, call_text };

/// A call as a client of this surface writes it.
fn call_text(catalog: &Catalog, call: &ValidCall) -> String {
    match &call.what {
        What::Tool(slot) => format!(
            "call(namespace=\"{}\", function=\"{}\", kwargs={}",
            catalog.path(*slot),
            catalog.function(*slot).name,
            repeated_arguments(call),
        ),
        What::Resource { .. }
        | What::Prompt { .. }
        | What::Skill { .. }
        | What::Task { .. }
        | What::Help { .. }
        | What::Completion { .. }
        | What::Subscription { .. } => String::new(),
    }
}

/// The surface, for clients with one set of capabilities.
pub struct Cash {
    pub(crate) pool: Arc<UpstreamPool>,
    /// Whose session it is.
    pub(crate) caller: Arc<Identity>,
    pub(crate) pipeline: Arc<Dispatcher>,
    pub(crate) skills: Arc<SkillIndex>,
    pub(crate) search: Arc<Search>,
    pub(crate) tasks: Arc<Tasks>,
    pub(crate) about: Arc<About>,
    /// What is listed beside the three tools.
    pub(crate) listed: Arc<Live>,
    pub(crate) client: ClientKind,
    /// Answers everything that is not a tool call.
    pub(crate) other_requests: OtherRequests,
}

/// One request to the surface, and what its caller may see.
pub(super) struct CashRequest<'a> {
    pub(super) cash: &'a Cash,
    pub(super) snapshot: &'a Arc<Snapshot>,
    pub(super) context: &'a Context,
    /// What the caller sees.
    pub(super) visible: Visible<'a>,
}

/// Which functions a call may run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    All,
    Reading,
}

impl Cash {
    /// One request, with what its caller may see.
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
