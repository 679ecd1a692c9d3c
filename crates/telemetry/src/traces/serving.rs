//! What clients see, with a span around every question.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::BoxStream;
use sha2::{Digest, Sha256};
use tool::{
    Ask, Client, Context, Event, Failure, Identity, Listing, Provider, ProviderSource, Reply,
    Resource, hex,
};

use super::open::{OpenOperation, Origin, span_in};
use super::operation::Session;
use super::peer::Peer;
use super::tracer::Tracer;
use crate::semantics::Side;

/// The first revision without sessions: there every request has a provider.
const WITHOUT_SESSIONS: &str = "2026-07-28";

struct TracedSource {
    tracer: Tracer,
    source: Arc<dyn ProviderSource>,
    peer: Arc<Peer>,
}

struct Served {
    tracer: Tracer,
    provider: Arc<dyn Provider>,
    peer: Arc<Peer>,
    protocol: String,
    since: Duration,
}

/// What clients see, with a span around every question.
pub fn serving(
    tracer: &Tracer,
    source: Arc<dyn ProviderSource>,
    peer: Peer,
) -> Arc<dyn ProviderSource> {
    Arc::new(TracedSource { tracer: tracer.clone(), source, peer: Arc::new(peer) })
}

impl ProviderSource for TracedSource {
    fn provider_for(&self, client: &Arc<Client>, caller: &Arc<Identity>) -> Arc<dyn Provider> {
        Arc::new(Served {
            tracer: self.tracer.clone(),
            provider: self.source.provider_for(client, caller),
            peer: Arc::clone(&self.peer),
            protocol: client.protocol.clone(),
            since: self.tracer.elapsed(),
        })
    }
}

#[async_trait]
impl Provider for Served {
    fn listing(&self) -> Arc<Listing> {
        self.provider.listing()
    }

    fn events(&self) -> BoxStream<'static, Event> {
        self.provider.events()
    }

    async fn ask(&self, ask: Ask, context: &Context) -> Result<Reply, Failure> {
        let open =
            OpenOperation::new(&self.tracer, Side::Server, &ask, &self.peer, origin(&ask, context));
        let context = Context { trace: open.trace().cloned(), ..context.clone() };
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

impl Drop for Served {
    fn drop(&mut self) {
        if self.protocol.as_str() < WITHOUT_SESSIONS {
            self.tracer.push_session(Session {
                side: Side::Server,
                protocol: std::mem::take(&mut self.protocol),
                peer: Arc::clone(&self.peer),
                took: self.tracer.elapsed().saturating_sub(self.since),
            });
        }
    }
}

/// What a question came with. Its own word on its span counts before that of the
/// transport, which is linked.
fn origin(ask: &Ask, context: &Context) -> Origin {
    let carried = context.trace.as_ref().and_then(|trace| trace.span.clone());
    let own = span_in(ask);
    let link = carried.clone().filter(|carried| own.as_ref().is_some_and(|own| own != carried));
    Origin {
        parent: own.or(carried),
        link,
        session_id: context.has_session().then(|| shown(&context.session)),
        protocol: context.client.protocol.clone(),
        request_id: context.trace.as_ref().and_then(|trace| trace.request_id().map(str::to_owned)),
    }
}

/// Tells sessions apart without giving away the id, by which whoever knows it may
/// speak in the session.
fn shown(session: &str) -> String {
    hex::encode(&Sha256::digest(session.as_bytes())[..8])
}
