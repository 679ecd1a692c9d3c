//! Connects to a single server outside of any gateway, to see what it lists and how fast
//! it answers.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mcp::connect::Shutdown;
use mcp::revision::{Revision, method};
use roster::{Connector, Profile};
use tool::{Ask, Context, Failure, Listing, Object};

use super::connector::RemoteConnector;
use super::credential;
use super::listing_store::ListingDirectory;
use config::Upstream;

/// What a probe of a server found.
#[derive(Clone, Debug)]
pub(crate) struct Probed {
    pub(crate) listing: Arc<Listing>,
    /// How long connecting and listing took.
    pub(crate) took: Duration,
    /// The round trip of the cheapest request; `None` if it was not answered.
    pub(crate) ping: Option<Duration>,
}

/// How long a ping may take.
const PING_TIMEOUT: Duration = Duration::from_secs(5);

/// How long the server may take to end.
const END_TIMEOUT: Duration = Duration::from_secs(3);

/// Connects as a gateway would, lists what the server has, pings it, and ends it again.
pub(crate) async fn probe(upstream: &Upstream, state: &Path) -> Result<Probed, Failure> {
    let shutdown = Shutdown::default();
    let listings = Arc::new(ListingDirectory::new(&state.join("listings"), None));
    let credential = credential::for_upstream(upstream, None, &credential::vault(state));
    let remote = RemoteConnector::new(upstream, listings, credential, &shutdown);
    let since = Instant::now();
    let client = Profile::default().client();
    let connected = tokio::time::timeout(upstream.start_timeout, remote.connect(&client));
    let connected = connected.await.unwrap_or_else(|_| {
        let reason = format!(
            "it did not start within {:?} (`start_timeout` of its entry)",
            upstream.start_timeout
        );
        Err(Failure::Unavailable { reason })
    });
    let took = since.elapsed();
    let probed = match connected {
        Ok(provider) => {
            let listing =
                Arc::new(roster::readable::published_form(&upstream.label, &provider.listing()));
            let since = Instant::now();
            let context = Context { client: Arc::new(client), ..Context::anonymous() };
            let answer = provider.ask(cheapest_ask(&listing.server.protocol), &context);
            let answered =
                tokio::time::timeout(PING_TIMEOUT, answer).await.is_ok_and(|answer| answer.is_ok());
            Ok(Probed { listing, took, ping: answered.then(|| since.elapsed()) })
        }
        Err(failure) => Err(failure),
    };
    shutdown.end_all(END_TIMEOUT).await;
    probed
}

/// The cheapest request that a server of this protocol revision answers: `ping`, which
/// the newest revision does not have any more.
pub(crate) fn cheapest_ask(protocol: &str) -> Ask {
    let is_modern = Revision::LATEST.as_str() <= protocol;
    let method = if is_modern { method::DISCOVER } else { method::PING };
    Ask::Other { method: method.to_owned(), params: Object::new() }
}
