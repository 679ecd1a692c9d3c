//! Connects to an MCP server and makes it a provider.
//!
//! [`connect`] starts or reaches a server, finds out which revision of the protocol it
//! speaks, opens a session with the given client's capabilities and fetches its lists. It
//! returns an [`Upstream`]: a [`tool::Provider`] that keeps the listing fresh and carries
//! requests to the server and replies back, byte for byte. When the server is gone, the
//! upstream is over: reconnecting is up to the caller.

mod error;
mod options;
mod upstream;

mod connection;

mod opening;
mod stderr;
mod steps;

mod listen;
mod lists;
mod refresh;
mod stale;
mod subscriptions;

pub mod address;
pub mod certificates;

mod calls;
mod relay;
mod server_request;

pub mod credential;
mod headers;
mod params;

mod delivery;
mod http;
mod legacy_sse;
mod request;
mod sse;
mod transport;

mod child;
pub mod environment;
pub mod launch;
pub mod launcher;
mod pipe;
mod platform;
mod reaper;
pub mod shutdown;

use std::sync::Arc;

use tool::Client;

use crate::revision::Revision;
use steps::Steps;

pub use certificates::Certificates;
pub use credential::{Credential, Refusal};
pub use environment::Inherit;
pub use error::ConnectError;
pub use launcher::Launcher;
pub use options::{
    Attribution, Endpoint, KnownRevision, ListLimits, Options, Pipes, Program, Target,
};
pub use shutdown::Shutdown;
pub use upstream::Upstream;

/// Connects to a server on behalf of a client.
///
/// The session announces this client's capabilities, so an upstream may only be shared
/// between clients with the same capabilities.
pub async fn connect(
    target: &Target,
    options: &Options,
    client: &Client,
) -> Result<Arc<Upstream>, ConnectError> {
    let client = Arc::new(client.clone());
    let steps = Steps::default();
    // Pinned here, so that the open steps are still known after a timeout.
    let mut opened = std::pin::pin!(open(target, options, &client, &steps));
    match tokio::time::timeout(options.opening_timeout, &mut opened).await {
        Ok(Err(ConnectError::Silent { step, after, .. })) => {
            Err(ConnectError::Silent { step, after, stderr: steps.stderr.last_lines() })
        }
        Ok(opened) => opened,
        Err(_) => {
            let (step, after, stderr) =
                (steps.describe_open(), options.opening_timeout, steps.stderr.last_lines());
            Err(ConnectError::Silent { step, after, stderr })
        }
    }
}

/// Opens the target, and tries once more with an older protocol if the failure looks like
/// that of an older server.
async fn open(
    target: &Target,
    options: &Options,
    client: &Arc<Client>,
    steps: &Steps,
) -> Result<Arc<Upstream>, ConnectError> {
    let error = match opening::open(target, options, client, steps).await {
        Ok(upstream) => return Ok(upstream),
        Err(error) => error,
    };
    match (target, &error) {
        // The request `server/discover` may have crashed it.
        (Target::Stdio(_), ConnectError::Ended { .. }) if options.revision.probes() => {
            let revision = KnownRevision::Remembered(Revision::LATEST_LEGACY);
            opening::open(target, &Options { revision, ..options.clone() }, client, steps).await
        }
        // The URL may be that of the older SSE transport.
        (Target::Http(endpoint), ConnectError::Unreachable { status: Some(404 | 405), .. }) => {
            let older = Target::Sse(endpoint.clone());
            opening::open(&older, options, client, steps).await.map_err(|_| error)
        }
        _ => Err(error),
    }
}
