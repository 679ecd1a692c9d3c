//! A session with an upstream, with a span around every question.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::BoxStream;
use tool::{Ask, Context, Event, Failure, Listing, Provider, Reply, Resource};

use super::open::{OpenOperation, Origin, put_span};
use super::operation::Session;
use super::peer::Peer;
use super::tracer::Tracer;
use crate::semantics::Side;

struct Asked {
    tracer: Tracer,
    provider: Arc<dyn Provider>,
    peer: Arc<Peer>,
    since: Duration,
}

/// A session with an upstream, with a span around every question.
pub fn asking(tracer: &Tracer, provider: Arc<dyn Provider>, peer: Peer) -> Arc<dyn Provider> {
    let (tracer, since) = (tracer.clone(), tracer.elapsed());
    Arc::new(Asked { tracer, provider, peer: Arc::new(peer), since })
}

#[async_trait]
impl Provider for Asked {
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
            put_span(&mut ask, span);
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

impl Drop for Asked {
    fn drop(&mut self) {
        self.tracer.push_session(Session {
            side: Side::Client,
            protocol: self.provider.listing().server.protocol.clone(),
            peer: Arc::clone(&self.peer),
            took: self.tracer.elapsed().saturating_sub(self.since),
        });
    }
}
