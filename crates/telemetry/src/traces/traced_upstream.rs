//! Wraps the session with an upstream so that every request to it is a client span.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::BoxStream;
use tool::{Ask, Context, Event, Failure, Listing, Provider, Reply, Resource};

use super::open_operation::{OpenOperation, Origin, put_span_in_meta};
use super::operation::Session;
use super::peer::Peer;
use super::tracer::Tracer;
use crate::semantics::Side;

struct TracedUpstream {
    tracer: Tracer,
    provider: Arc<dyn Provider>,
    peer: Arc<Peer>,
    /// When the session began, by the tracer's clock.
    since: Duration,
}

/// Wraps the session with an upstream so that every request to it is a client span.
pub fn traced_upstream(
    tracer: &Tracer,
    provider: Arc<dyn Provider>,
    peer: Peer,
) -> Arc<dyn Provider> {
    let (tracer, since) = (tracer.clone(), tracer.elapsed());
    Arc::new(TracedUpstream { tracer, provider, peer: Arc::new(peer), since })
}

#[async_trait]
impl Provider for TracedUpstream {
    fn listing(&self) -> Arc<Listing> {
        self.provider.listing()
    }

    fn events(&self) -> BoxStream<'static, Event> {
        self.provider.events()
    }

    async fn ask(&self, mut ask: Ask, context: &Context) -> Result<Reply, Failure> {
        let origin = Origin {
            parent: context.trace.as_ref().and_then(|trace| trace.span.clone()),
            link: None,
            session_id: None,
            protocol: self.provider.listing().server.protocol.clone(),
            request_id: None,
        };
        let open = OpenOperation::new(&self.tracer, Side::Client, &ask, &self.peer, origin);
        let Some(trace) = open.trace().cloned() else {
            let answer = self.provider.ask(ask, context).await;
            open.finish(&answer);
            return answer;
        };
        if let Some(span) = &trace.span {
            put_span_in_meta(&mut ask, span);
        }
        let context = Context { trace: Some(trace), ..context.clone() };
        let answer = self.provider.ask(ask, &context).await;
        open.finish(&answer);
        answer
    }

    async fn resources_for(&self, context: &Context) -> Vec<Resource> {
        self.provider.resources_for(context).await
    }

    fn enforces_timeout(&self) -> bool {
        self.provider.enforces_timeout()
    }
}

impl Drop for TracedUpstream {
    fn drop(&mut self) {
        self.tracer.push_session(Session {
            side: Side::Client,
            protocol: self.provider.listing().server.protocol.clone(),
            peer: Arc::clone(&self.peer),
            took: self.tracer.elapsed().saturating_sub(self.since),
        });
    }
}
