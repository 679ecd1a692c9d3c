//! The surface `gateway`: meta-tools to browse, execute and view, and four more for
//! resources and prompts if upstreams have them.

use std::sync::Arc;

use catalog::directory::{Entry, Section};
use catalog::{Directory, reply};
use tool::{Call, Context, Failure, Json, Listing, Object, Reply, RpcError};

use super::by_name::NameResolver;
use super::listed::{self, ClientKind};
use super::meta::{self, MAX_MAP_TOKENS, Meta, MetaTools, ReplyPart, call_text, listing, tools};
use super::provider::ToolSurface;
use crate::choice::Surface;
use crate::dispatch::Origin;
use policy::call::CallMode;
use policy::confirm::move_to_meta;
use policy::visibility::CallerView;
use roster::{Snapshot, UpstreamPool};

/// The origin of this surface's calls.
pub(crate) const ORIGIN: Origin = Origin { surface: Surface::Gateway, call_text };

/// The surface `gateway`, for clients with one set of capabilities.
pub struct Gateway {
    pub(crate) pool: Arc<UpstreamPool>,
    pub(crate) tools: MetaTools,
    pub(crate) client: ClientKind,
}

/// Returns the names of the meta-tools that are listed for what a caller sees.
pub(crate) fn names(
    directory: &Directory,
    runs_scripts: bool,
    seen: &dyn Fn(&Entry) -> bool,
) -> Vec<&'static str> {
    let mut names = vec!["tool_browse", "tool_execute", "tool_view"];
    names.extend(runs_scripts.then_some("tool_run"));
    let any = |section: &Section| section.entries().iter().any(seen);
    if any(&directory.resources) {
        names.extend(["resource_browse", "resource_read"]);
    }
    if any(&directory.prompts) {
        names.extend(["prompt_browse", "prompt_get"]);
    }
    names
}

impl ToolSurface for Gateway {
    fn listing(&self, snapshot: &Snapshot, visible: &CallerView<'_>) -> Listing {
        let catalog = &snapshot.catalog;
        let map =
            reply::map(catalog, MAX_MAP_TOKENS, &|slot| visible.shows_function(catalog, slot));
        let seen = |entry: &Entry| visible.shows_item(catalog, entry.item);
        let names = names(snapshot.directory(), self.tools.runs_scripts(), &seen);
        let tools = self.tools.with_hints(tools(&names, &map), &map);
        let mut listing = listing(Surface::Gateway, &self.tools, snapshot, tools, visible);
        let listed = self.tools.listed.listed(snapshot, self.client, visible);
        listing.tools.extend(listed.tools);
        listing.findings.extend(listed.findings);
        listing
    }

    fn client_kind(&self) -> ClientKind {
        self.client
    }

    async fn call(&self, call: Call, context: &Context) -> Result<Reply, Failure> {
        let Call { name, arguments, other_params } = move_to_meta(call);
        let live = &self.tools.pipeline.live;
        let listed = meta::listed_snapshot(live, &self.pool, arguments.as_ref(), context);
        let snapshot = Box::pin(listed).await;
        let meta = Meta::new(&self.tools, &self.pool, &snapshot, context, &other_params);
        if let Some(reply) = meta.answer(&name, arguments.as_ref()).await {
            return Ok(reply);
        }
        let by_name = self.call_by_name(&name, arguments, &other_params, context);
        if let Some(reply) = by_name.await {
            return Ok(reply);
        }
        let runs = self.tools.runs_scripts();
        let known = names(snapshot.directory(), runs, &|entry| meta.shows(entry)).join(", ");
        let name = catalog::summary::echo(&name);
        let message = format!("no tool `{name}`: there are {known}; run others with tool_execute");
        Ok(Reply::Error(RpcError::new(-32602, message)))
    }
}

impl Gateway {
    /// Calls a tool by the name under which it is listed, or could be; returns `None`
    /// if there is none.
    async fn call_by_name(
        &self,
        name: &str,
        arguments: Option<Json>,
        rest: &Object,
        context: &Context,
    ) -> Option<Reply> {
        if !self.tools.listed.lists_any(self.client) {
            return None;
        }
        let by_name = NameResolver { pool: &self.pool, live: &self.tools.pipeline.live };
        let (snapshot, found) = by_name.resolve(name, context).await;
        let slot = found?;
        // A user interface needs the whole answer.
        let shows = self.client.interfaces && listed::has_interface(snapshot.catalog.tool(slot));
        let mode = if shows { CallMode::PassThrough } else { CallMode::Strict };
        let meta = Meta::new(&self.tools, &self.pool, &snapshot, context, rest);
        let id = &snapshot.target(slot).callee.id;
        let ran = meta.execute_by_id(id, arguments, rest.clone(), ReplyPart::default(), mode).await;
        Some(meta.reply_and_record(ran))
    }
}

#[cfg(test)]
mod tests;
