//! Every upstream tool, stripped, for hosts that search definitions
//! themselves but pay for each.
//!
//! An entry has a name that every host accepts, a short description and no
//! schema. `tool_hydrate` returns the whole definition and `tool_execute` runs it.

use std::sync::Arc;

use async_trait::async_trait;
use catalog::Catalog;
use futures::stream::BoxStream;
use tool::{
    Ask, Call, Context, Event, Failure, Identity, Json, Listing, Provider, Reply, Resource,
    RpcError,
};

use super::listed::ClientKind;
use super::listings;
use super::meta::{
    self, Meta, MetaTools, Named, WantedPart, ids_of_calls, listing, wait_for_listing,
};
use super::names;
use super::other_requests::OtherRequests;
use super::stripped::{OWN, Stripped};
use crate::choice::Surface;
use crate::dispatch::Origin;
use policy::call::Mode;
use policy::confirm::lift;
use policy::validate::ValidCall;
use roster::{Snapshot, UpstreamPool};

/// The origin of this surface's calls.
pub(crate) const ORIGIN: Origin = Origin { surface: Surface::Proxy, call_text };

/// A call as a client of this surface writes it: only tools have such a form.
fn call_text(catalog: &Catalog, call: &ValidCall) -> String {
    call.slot().map(|_| meta::call_text(catalog, call)).unwrap_or_default()
}

/// The surface, for clients with one set of capabilities.
pub struct Proxy {
    pub(crate) pool: Arc<UpstreamPool>,
    /// Whose session it is.
    pub(crate) caller: Arc<Identity>,
    pub(crate) tools: MetaTools,
    /// Answers everything that is not a tool call.
    pub(crate) other_requests: OtherRequests,
}

#[async_trait]
impl Provider for Proxy {
    fn listing(&self) -> Arc<Listing> {
        let snapshot = self.pool.snapshot();
        let visible = self.tools.pipeline.live.visible_to(&self.caller);
        let sees = |slot| visible.shows_function(&snapshot.catalog, slot);
        let variant = self.tools.listed.variant(ClientKind::default());
        listings::listing(&snapshot, Surface::Proxy, variant, visible.key(), || {
            let stripped = &Stripped::of(&snapshot).tools;
            let seen = stripped.iter().filter(|(slot, _)| slot.is_none_or(sees));
            let tools = self.tools.hinted(
                seen.map(|(slot, tool)| self.tools.listed.member(&snapshot, *slot, tool)),
                "",
            );
            let mut listing = listing(Surface::Proxy, &self.tools, &snapshot, tools, &visible);
            listing.findings.extend(Stripped::of(&snapshot).findings.iter().cloned());
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
        if let Some(reply) = names::refused(&ask, &self.tools.pipeline, ORIGIN, context) {
            return Ok(reply);
        }
        match ask {
            Ask::Call(call) => Ok(self.call(call, context).await),
            Ask::ReadResource(_) | Ask::Prompt(_) | Ask::Complete(_) | Ask::Other { .. } => {
                self.other_requests.ask(ask, context).await
            }
        }
    }
}

impl Proxy {
    async fn call(&self, call: Call, context: &Context) -> Reply {
        let Call { name, arguments, other_params: rest } = lift(call);
        let asked = self.asked(&name, arguments.as_ref(), context);
        let snapshot = Box::pin(asked).await;
        let meta = Meta::new(&self.tools, &self.pool, &snapshot, context, &rest);
        if OWN.contains(&name.as_str())
            && let Some(reply) = meta.answer(&name, arguments.as_ref()).await
        {
            return reply;
        }
        // A stripped entry that is called by its name is run all the same.
        let Some(id) = Stripped::of(&snapshot).id(&name) else {
            let name = catalog::summary::echo(&name);
            let message = format!("no tool `{name}`; names are those of tools/list");
            return Reply::Error(RpcError::new(-32602, message));
        };
        let ran = meta.run(&id, arguments, rest.clone(), WantedPart::default(), Mode::Strict).await;
        meta.settled(ran)
    }

    /// The snapshot to answer from, once the named upstream is listed.
    async fn asked(
        &self,
        name: &str,
        arguments: Option<&Json>,
        context: &Context,
    ) -> Arc<Snapshot> {
        let mut snapshot = self.pool.snapshot();
        let given = || arguments.and_then(|given| given.member_as::<String>("tool_id"));
        let given = if OWN.contains(&name) { given() } else { Some(name.to_owned()) };
        for given in ids_of_calls(arguments).into_iter().chain(given) {
            let id = Stripped::of(&snapshot).id(&given).unwrap_or(given);
            let (live, named) = (&self.tools.pipeline.live, Named::by_id(&id));
            snapshot = wait_for_listing(live, &self.pool, snapshot, &named, context).await;
        }
        snapshot
    }
}
