//! Makes a provider of every surface.
//!
//! Surfaces differ in the tools that they list and in how those are called. All the
//! rest is the same for all of them and is here: cached listings, events, bounds on
//! names, and requests that are not tool calls.

use std::sync::Arc;

use async_trait::async_trait;
use futures::stream::BoxStream;
use tool::{Ask, Call, Context, Event, Failure, Identity, Listing, Provider, Reply, Resource};

use super::listed::ClientKind;
use super::other_requests::OtherRequests;
use super::{listings, names};
use policy::visibility::CallerView;
use roster::Snapshot;

/// What surfaces differ in.
pub(crate) trait ToolSurface: Send + Sync {
    /// Returns what clients see of a snapshot. The result is cached by snapshot,
    /// visibility and client kind.
    fn listing(&self, snapshot: &Snapshot, visible: &CallerView<'_>) -> Listing;

    /// Returns what the listing depends on beside the snapshot and the caller.
    fn client_kind(&self) -> ClientKind {
        ClientKind::default()
    }

    /// Answers `tools/call`.
    fn call(
        &self,
        call: Call,
        context: &Context,
    ) -> impl Future<Output = Result<Reply, Failure>> + Send;
}

/// A surface as the provider of one session.
pub(crate) struct SurfaceProvider<S> {
    pub(crate) surface: S,
    /// The identity that the session belongs to.
    pub(crate) caller: Arc<Identity>,
    /// Answers everything that is not a tool call.
    pub(crate) other_requests: OtherRequests,
}

#[async_trait]
impl<S: ToolSurface> Provider for SurfaceProvider<S> {
    fn listing(&self) -> Arc<Listing> {
        let OtherRequests { pool, pipeline, listed, origin, .. } = &self.other_requests;
        let snapshot = pool.snapshot();
        let visible = pipeline.live.visible_to(&self.caller);
        let variant = listed.variant(self.surface.client_kind());
        listings::get_or_make(&snapshot, origin.surface, variant, visible.key(), || {
            self.surface.listing(&snapshot, &visible)
        })
    }

    fn events(&self) -> BoxStream<'static, Event> {
        self.other_requests.events(&self.caller)
    }

    async fn resources_for(&self, context: &Context) -> Vec<Resource> {
        self.other_requests.resources(context).await
    }

    async fn ask(&self, ask: Ask, context: &Context) -> Result<Reply, Failure> {
        let OtherRequests { pipeline, origin, .. } = &self.other_requests;
        if let Some(reply) = names::refused(&ask, pipeline, *origin, context) {
            return Ok(reply);
        }
        match ask {
            Ask::Call(call) => self.surface.call(call, context).await,
            Ask::ReadResource(_) | Ask::Prompt(_) | Ask::Complete(_) | Ask::Other { .. } => {
                // Boxed, so that calls do not carry room for it.
                Box::pin(self.other_requests.ask(ask, context)).await
            }
        }
    }
}
