//! The surface `proxy`: every upstream tool with a stripped definition, for hosts that
//! search definitions themselves but pay for each.
//!
//! A stripped tool has a name that every host accepts, a short description and no
//! schema. `tool_hydrate` returns the whole definition and `tool_execute` runs it.

use std::sync::Arc;

use catalog::Catalog;
use tool::{Call, Context, Failure, Json, Listing, Reply, RpcError};

use super::meta::{
    self, Meta, MetaTools, NamedUpstream, ReplyPart, ids_of_calls, listing, wait_for_listing,
};
use super::provider::ToolSurface;
use super::stripped::{META_TOOLS, StrippedTools};
use crate::choice::Surface;
use crate::dispatch::Origin;
use policy::call::CallMode;
use policy::confirm::move_to_meta;
use policy::validate::ValidCall;
use policy::visibility::CallerView;
use roster::{Snapshot, UpstreamPool};

/// The origin of this surface's calls.
pub(crate) const ORIGIN: Origin = Origin { surface: Surface::Proxy, call_text };

/// Renders a call as a client of this surface writes it: only tools have such a form.
fn call_text(catalog: &Catalog, call: &ValidCall) -> String {
    call.slot().map(|_| meta::call_text(catalog, call)).unwrap_or_default()
}

/// The surface `proxy`, for clients with one set of capabilities.
pub struct Proxy {
    pub(crate) pool: Arc<UpstreamPool>,
    pub(crate) tools: MetaTools,
}

impl ToolSurface for Proxy {
    fn listing(&self, snapshot: &Snapshot, visible: &CallerView<'_>) -> Listing {
        let sees = |slot| visible.shows_function(&snapshot.catalog, slot);
        let stripped = StrippedTools::of(snapshot);
        let seen = stripped.tools.iter().filter(|(slot, _)| slot.is_none_or(sees));
        let member = |(slot, tool): &(_, _)| self.tools.listed.with_group(snapshot, *slot, tool);
        let tools = self.tools.with_hints(seen.map(member), "");
        let mut listing = listing(Surface::Proxy, &self.tools, snapshot, tools, visible);
        listing.findings.extend(stripped.findings.iter().cloned());
        listing
    }

    async fn call(&self, call: Call, context: &Context) -> Result<Reply, Failure> {
        let Call { name, arguments, other_params: rest } = move_to_meta(call);
        let listed = self.listed_snapshot(&name, arguments.as_ref(), context);
        let snapshot = Box::pin(listed).await;
        let meta = Meta::new(&self.tools, &self.pool, &snapshot, context, &rest);
        if META_TOOLS.contains(&name.as_str())
            && let Some(reply) = meta.answer(&name, arguments.as_ref()).await
        {
            return Ok(reply);
        }
        if meta::names().any(|other| other == name) {
            let message = format!(
                "no tool `{name}` here: all tools are in tools/list; tool_hydrate(tool_id) shows \
                 what one takes, tool_execute(tool_id, args) runs it"
            );
            return Ok(Reply::Error(RpcError::new(-32602, message)));
        }
        // A stripped tool may also be called by its name.
        let Some(id) = StrippedTools::of(&snapshot).id_of_name(&name) else {
            let name = catalog::summary::echo(&name);
            let message = format!("no tool `{name}`; names are those of tools/list");
            return Ok(Reply::Error(RpcError::new(-32602, message)));
        };
        let ran = meta
            .execute_by_id(&id, arguments, rest.clone(), ReplyPart::default(), CallMode::Strict)
            .await;
        Ok(meta.reply_and_record(ran))
    }
}

impl Proxy {
    /// Returns the snapshot to answer from, after waiting until the upstreams that the
    /// call names are listed.
    async fn listed_snapshot(
        &self,
        name: &str,
        arguments: Option<&Json>,
        context: &Context,
    ) -> Arc<Snapshot> {
        let mut snapshot = self.pool.snapshot();
        let given = || arguments.and_then(|given| given.member_as::<String>("tool_id"));
        let given = if META_TOOLS.contains(&name) { given() } else { Some(name.to_owned()) };
        for given in ids_of_calls(arguments).into_iter().chain(given) {
            let id = StrippedTools::of(&snapshot).id_of_name(&given).unwrap_or(given);
            let (live, named) = (&self.tools.pipeline.live, NamedUpstream::by_id(&id));
            snapshot = wait_for_listing(live, &self.pool, snapshot, &named, context).await;
        }
        snapshot
    }
}
