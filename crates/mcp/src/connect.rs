//! Connects to a server and makes it a provider.
//!
//! [`connect`] starts or reaches a server, finds out which revision of the
//! protocol it speaks, opens a session with the given client's capabilities and
//! reads everything it lists. What it gives back is an [`Upstream`]: a
//! [`tool::Provider`] that keeps the listing fresh and carries questions there
//! and answers back, byte for byte. When the server is gone, so is the
//! upstream: starting another is the caller's business.

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
mod question;
mod relay;

pub mod credential;
mod headers;
mod params;

mod delivery;
mod http;
mod legacy;
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

/// Connects to a server, for a client.
///
/// The session is opened with that client's capabilities, so the server offers
/// what this client can serve. Whoever shares an upstream between clients
/// shares it between clients that can do the same.
pub async fn connect(
    target: &Target,
    options: &Options,
    client: &Client,
) -> Result<Arc<Upstream>, ConnectError> {
    let client = Arc::new(client.clone());
    let steps = Steps::default();
    // Pinned here, so that what it waits for is still known when it is late.
    let mut opened = std::pin::pin!(open(target, options, &client, &steps));
    match tokio::time::timeout(options.opening, &mut opened).await {
        Ok(Err(ConnectError::Silent { step, after, .. })) => {
            Err(ConnectError::Silent { step, after, stderr: steps.stderr.end() })
        }
        Ok(opened) => opened,
        Err(_) => {
            let (step, after, stderr) = (steps.open(), options.opening, steps.stderr.end());
            Err(ConnectError::Silent { step, after, stderr })
        }
    }
}

/// Opens the target, and once more in an older way where the first way is what
/// an older server may stumble over.
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
        // The probe may have killed it.
        (Target::Stdio(_), ConnectError::Ended { .. }) if options.revision.probes() => {
            let revision = KnownRevision::Remembered(Revision::LATEST_LEGACY);
            opening::open(target, &Options { revision, ..options.clone() }, client, steps).await
        }
        // The address may be that of an event stream.
        (Target::Http(endpoint), ConnectError::Unreachable { status: Some(404 | 405), .. }) => {
            let older = Target::Sse(endpoint.clone());
            opening::open(&older, options, client, steps).await.map_err(|_| error)
        }
        _ => Err(error),
    }
}
