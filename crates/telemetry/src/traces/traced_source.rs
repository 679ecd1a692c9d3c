//! Wraps the providers that clients see so that every request of a client is a server span.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::BoxStream;
use sha2::{Digest, Sha256};
use tool::{
    Ask, Client, Context, Event, Failure, Identity, Listing, Provider, ProviderSource, Reply,
    RequestObserver, Resource, hex,
};

use super::open_operation::{OpenOperation, Origin, span_in_meta};
use super::operation::Session;
use super::peer::Peer;
use super::tracer::Tracer;
use crate::semantics::Side;

/// The first protocol revision without sessions; there every request has its own provider.
const WITHOUT_SESSIONS: &str = "2026-07-28";

struct TracedSource {
    tracer: Tracer,
    source: Arc<dyn ProviderSource>,
    peer: Arc<Peer>,
}

struct TracedProvider {
    tracer: Tracer,
    provider: Arc<dyn Provider>,
    peer: Arc<Peer>,
    protocol: String,
    /// When the session began, by the tracer's clock.
    since: Duration,
}

/// Wraps a source of providers so that every request of a client is a server span.
pub fn traced_source(
    tracer: &Tracer,
    source: Arc<dyn ProviderSource>,
    peer: Peer,
) -> Arc<dyn ProviderSource> {
    Arc::new(TracedSource { tracer: tracer.clone(), source, peer: Arc::new(peer) })
}

impl ProviderSource for TracedSource {
    fn provider_for(&self, client: &Arc<Client>, caller: &Arc<Identity>) -> Arc<dyn Provider> {
        Arc::new(TracedProvider {
            tracer: self.tracer.clone(),
            provider: self.source.provider_for(client, caller),
            peer: Arc::clone(&self.peer),
            protocol: client.protocol.clone(),
            since: self.tracer.elapsed(),
        })
    }
}

#[async_trait]
impl Provider for TracedProvider {
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

    fn observe(&self, ask: &Ask, context: &Context) -> Option<Box<dyn RequestObserver>> {
        let origin = origin(ask, context);
        let open = OpenOperation::new(&self.tracer, Side::Server, ask, &self.peer, origin);
        Some(Box::new(open))
    }

    fn enforces_timeout(&self) -> bool {
        self.provider.enforces_timeout()
    }
}

impl Drop for TracedProvider {
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

/// Returns where a request comes from. The span in its `_meta` is the parent; a different
/// one from the transport becomes a link.
fn origin(ask: &Ask, context: &Context) -> Origin {
    let from_transport = context.trace.as_ref().and_then(|trace| trace.span.clone());
    let from_meta = span_in_meta(ask);
    let link =
        from_transport.clone().filter(|span| from_meta.as_ref().is_some_and(|own| own != span));
    Origin {
        parent: from_meta.or(from_transport),
        link,
        session_id: context.has_session().then(|| session_digest(&context.session)),
        protocol: context.client.protocol.clone(),
        request_id: context.trace.as_ref().and_then(|trace| trace.request_id().map(str::to_owned)),
    }
}

/// Returns a digest of a session id. The id itself is a credential for the session and
/// must not be exported.
fn session_digest(session: &str) -> String {
    hex::encode(&Sha256::digest(session.as_bytes())[..8])
}
