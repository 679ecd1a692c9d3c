//! Adds tracing to the sessions with upstreams.

use std::sync::Arc;

use async_trait::async_trait;
use reqwest::Url;
use roster::Connector;
use telemetry::traces::{Peer, Tracer, traced_upstream};
use tool::{Client, CredentialHealth, Failure, Provider};

use config::Reach;

/// Opens sessions that make a span for every request.
struct TracedConnector {
    connector: Arc<dyn Connector>,
    tracer: Tracer,
    peer: Peer,
}

#[async_trait]
impl Connector for TracedConnector {
    async fn connect(&self, client: &Client) -> Result<Arc<dyn Provider>, Failure> {
        let session = self.connector.connect(client).await?;
        Ok(traced_upstream(&self.tracer, session, self.peer.clone()))
    }

    fn credential_health(&self) -> Option<CredentialHealth> {
        self.connector.credential_health()
    }
}

/// The connector with traced sessions, or unchanged where there is no tracer.
pub(super) fn trace_sessions(
    connector: Arc<dyn Connector>,
    tracer: Option<&Tracer>,
    label: &str,
    reach: &Reach,
) -> Arc<dyn Connector> {
    let Some(tracer) = tracer else { return connector };
    let (transport, address) = match reach {
        Reach::Program { .. } => ("pipe", None),
        Reach::Address { url, .. } => ("tcp", Url::parse(url).ok().as_ref().and_then(address)),
        Reach::Content { .. } | Reach::Nowhere { .. } => ("", None),
    };
    let peer = Peer { transport, address, upstream: Some(label.to_owned()) };
    Arc::new(TracedConnector { connector, tracer: tracer.clone(), peer })
}

/// Host and port.
fn address(url: &Url) -> Option<(String, u16)> {
    Some((url.host_str()?.to_owned(), url.port_or_known_default()?))
}
