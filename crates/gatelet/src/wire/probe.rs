//! One server, started or reached on its own, to see what it has.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mcp::connect::Shutdown;
use mcp::revision::{Revision, method};
use roster::{Connector, Profile};
use tool::{Ask, Context, Failure, Listing, Object};

use super::connector::Remote;
use super::credential;
use super::listing_store::ListingDirectory;
use config::Upstream;

/// What a server answered.
#[derive(Clone, Debug)]
pub(crate) struct Probed {
    pub(crate) listing: Arc<Listing>,
    /// How long it took to start and to list what it has.
    pub(crate) took: Duration,
    /// How long its smallest answer takes.
    pub(crate) ping: Option<Duration>,
}

/// How long a ping may take.
const PING: Duration = Duration::from_secs(5);

/// How long a server may take to end.
const GRACE: Duration = Duration::from_secs(3);

/// Connects as gatelet would, asks what there is, and ends it again.
pub(crate) async fn probe(upstream: &Upstream, state: &Path) -> Result<Probed, Failure> {
    let shutdown = Shutdown::default();
    let shelf = Arc::new(ListingDirectory::new(&state.join("listings"), None));
    let shown = credential::for_upstream(upstream, None, &credential::vault(state));
    let remote = Remote::new(upstream, shelf, shown, &shutdown);
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
            let listing = Arc::new(roster::readable::listing(&provider.listing()));
            let since = Instant::now();
            let context = Context { client: Arc::new(client), ..Context::anonymous() };
            let answer = provider.ask(smallest(&listing.server.protocol), &context);
            let answered =
                tokio::time::timeout(PING, answer).await.is_ok_and(|answer| answer.is_ok());
            Ok(Probed { listing, took, ping: answered.then(|| since.elapsed()) })
        }
        Err(failure) => Err(failure),
    };
    shutdown.end_all(GRACE).await;
    probed
}

/// The smallest question that a server answers itself. Servers of the newest
/// revision have no `ping`.
pub(crate) fn smallest(protocol: &str) -> Ask {
    let is_modern = Revision::LATEST.as_str() <= protocol;
    let method = if is_modern { method::DISCOVER } else { method::PING };
    Ask::Other { method: method.to_owned(), params: Object::new() }
}
