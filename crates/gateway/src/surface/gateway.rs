//! Three tools to browse, execute and view; four more for resources and
//! prompts where upstreams have them.

use std::sync::Arc;

use async_trait::async_trait;
use catalog::directory::{Entry, Section};
use catalog::{Directory, reply};
use futures::stream::BoxStream;
use tool::{
    Ask, Call, Context, Event, Failure, Identity, Json, Listing, Object, Provider, Reply, Resource,
    RpcError,
};

use super::by_name::ByName;
use super::listed::{self, ClientKind};
use super::listings;
use super::meta::{self, MAP, Meta, MetaTools, WantedPart, call_text, listing, tools};
use super::names as named;
use super::other_requests::OtherRequests;
use crate::choice::Surface;
use crate::dispatch::Origin;
use policy::call::Mode;
use policy::confirm::lift;
use roster::UpstreamPool;

/// The origin of this surface's calls.
pub(crate) const ORIGIN: Origin = Origin { surface: Surface::Gateway, call_text };

/// The surface, for clients with one set of capabilities.
pub struct Gateway {
    pub(crate) pool: Arc<UpstreamPool>,
    /// Whose session it is.
    pub(crate) caller: Arc<Identity>,
    pub(crate) tools: MetaTools,
    pub(crate) client: ClientKind,
    /// Answers everything that is not a tool call.
    pub(crate) other_requests: OtherRequests,
}

/// The names of the meta-tools for what a caller sees of a catalog.
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

#[async_trait]
impl Provider for Gateway {
    fn listing(&self) -> Arc<Listing> {
        let snapshot = self.pool.snapshot();
        let visible = self.tools.pipeline.live.visible_to(&self.caller);
        let variant = self.tools.listed.variant(self.client);
        listings::listing(&snapshot, Surface::Gateway, variant, visible.key(), || {
            let catalog = &snapshot.catalog;
            let map = reply::map(catalog, MAP, &|slot| visible.shows_function(catalog, slot));
            let seen = |entry: &Entry| visible.shows_item(catalog, entry.item);
            let names = names(snapshot.directory(), self.tools.runs_scripts(), &seen);
            let tools = self.tools.hinted(tools(&names, &map), &map);
            let mut listing = listing(Surface::Gateway, &self.tools, &snapshot, tools, &visible);
            let listed = self.tools.listed.listed(&snapshot, self.client, &visible);
            listing.tools.extend(listed.tools);
            listing.findings.extend(listed.findings);
            listing
        })
    }

    fn events(&self) -> BoxStream<'static, Event> {
        self.other_requests.events(&self.caller)
    }

    async fn resources_for(&self, context: &Context) -> Vec<Resource> {
        self.other_requests.resources(context).await
    }

    async fn ask(&self, ask: Ask, context: &Context) -> Result<Reply, Failure> {
        if let Some(reply) = named::refused(&ask, &self.tools.pipeline, ORIGIN, context) {
            return Ok(reply);
        }
        match ask {
            Ask::Call(call) => {
                let Call { name, arguments, other_params } = lift(call);
                let asked = meta::snapshot(
                    &self.tools.pipeline.live,
                    &self.pool,
                    arguments.as_ref(),
                    context,
                );
                let snapshot = Box::pin(asked).await;
                let meta = Meta::new(&self.tools, &self.pool, &snapshot, context, &other_params);
                if let Some(reply) = meta.answer(&name, arguments.as_ref()).await {
                    return Ok(reply);
                }
                if let Some(reply) =
                    self.called_by_name(&name, arguments, &other_params, context).await
                {
                    return Ok(reply);
                }
                let unknown = || {
                    let runs = self.tools.runs_scripts();
                    let known = names(snapshot.directory(), runs, &|entry| meta.shows(entry));
                    let known = known.join(", ");
                    let name = catalog::summary::echo(&name);
                    let message = format!(
                        "no tool `{name}`: there are {known}; run others with tool_execute"
                    );
                    Reply::Error(RpcError::new(-32602, message))
                };
                Ok(unknown())
            }
            Ask::ReadResource(_) | Ask::Prompt(_) | Ask::Complete(_) | Ask::Other { .. } => {
                self.other_requests.ask(ask, context).await
            }
        }
    }
}

impl Gateway {
    /// A tool that is called by the name under which it is listed, or could be.
    async fn called_by_name(
        &self,
        name: &str,
        arguments: Option<Json>,
        rest: &Object,
        context: &Context,
    ) -> Option<Reply> {
        if !self.tools.listed.lists_any(self.client) {
            return None;
        }
        let by_name = ByName { pool: &self.pool, live: &self.tools.pipeline.live };
        let (snapshot, found) = by_name.resolve(name, context).await;
        let slot = found?;
        // An interface is made of the whole answer.
        let shows = self.client.interfaces && listed::has_interface(snapshot.catalog.tool(slot));
        let mode = if shows { Mode::Pass } else { Mode::Strict };
        let meta = Meta::new(&self.tools, &self.pool, &snapshot, context, rest);
        let id = &snapshot.target(slot).callee.id;
        let ran = meta.run(id, arguments, rest.clone(), WantedPart::default(), mode).await;
        Some(meta.settled(ran))
    }
}

#[cfg(test)]
mod tests;
