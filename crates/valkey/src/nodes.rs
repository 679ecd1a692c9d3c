//! Requests to the nodes of a cluster, each of which is carried out at most once.
//!
//! The driver can repeat requests by itself, also those whose connection was lost after
//! a node carried them out. So it is told not to. What a node refuses, because a slot
//! lies elsewhere or because it is not ready, it has not carried out, and only that is
//! sent again here.

use std::time::Duration;

use redis::aio::ConnectionLike;
use redis::cluster::ClusterClientBuilder;
use redis::cluster_async::ClusterConnection;
use redis::cluster_routing::SingleNodeRoutingInfo;
use redis::{
    Cmd, ErrorKind, IntoConnectionInfo, Pipeline, RedisError, RedisResult, ServerErrorKind,
    TlsMode, Value,
};
use tool::Backoff;

use crate::address::{Address, Node, Tls};
use crate::endpoint::{CONNECT_TIMEOUT, certificates, node_address};

/// How often a request is sent that is refused each time.
const MAX_TRIES: usize = 6;
/// The pauses between them, in which the driver reads anew which slots lie where.
const PAUSES: Backoff = Backoff::doubling(Duration::from_millis(10), Duration::from_millis(160));

pub(crate) fn client(
    address: &Address,
    nodes: &[Node],
) -> RedisResult<redis::cluster::ClusterClient> {
    let addresses = nodes.iter().map(|node| node_address(address, node).into_connection_info());
    let addresses = addresses.collect::<RedisResult<Vec<_>>>()?;
    let mut builder =
        ClusterClientBuilder::new(addresses).connection_timeout(CONNECT_TIMEOUT).retries(0);
    if address.tls == Tls::Yes {
        builder = builder.tls(TlsMode::Secure).certs(certificates(address));
    }
    if let Some(user) = &address.user {
        builder = builder.username(user);
    }
    if let Some(password) = &address.password {
        builder = builder.password(password);
    }
    builder.build()
}

/// Sends a request to the node that has its keys.
pub(crate) async fn send(cluster: &mut ClusterConnection, request: &Cmd) -> RedisResult<Value> {
    let mut pauses = PAUSES;
    let mut answer = cluster.req_packed_command(request).await;
    for _ in 1..MAX_TRIES {
        let Some(refusal) = answer.as_ref().err().and_then(Refusal::of) else { break };
        answer = match refusal {
            Refusal::AskAt(node) => send_asking(cluster, request, node).await,
            Refusal::NotNow => {
                tokio::time::sleep(pauses.fail()).await;
                cluster.req_packed_command(request).await
            }
        };
    }
    answer
}

/// Sends a request to the node to which its slot is just moving.
async fn send_asking(
    cluster: &mut ClusterConnection,
    request: &Cmd,
    node: SingleNodeRoutingInfo,
) -> RedisResult<Value> {
    let mut both = Pipeline::new();
    both.cmd("ASKING").add_command(request.clone());
    let answers = cluster.route_pipeline(both, 1, 1, node).await?;
    let last = answers.into_iter().next_back();
    last.ok_or_else(|| RedisError::from((ErrorKind::Client, "no answer")))?.extract_error()
}

/// Why a node has not carried out a request.
enum Refusal {
    /// The slot is just moving to this node.
    AskAt(SingleNodeRoutingInfo),
    /// The slot lies elsewhere, or the node is not ready.
    NotNow,
}

impl Refusal {
    /// `None` if the request may have been carried out, or never will be.
    fn of(error: &RedisError) -> Option<Refusal> {
        let ErrorKind::Server(kind) = error.kind() else { return None };
        match kind {
            ServerErrorKind::Ask => {
                let place = error.redirect_node().and_then(|(node, _)| node.rsplit_once(':'));
                let place = place.filter(|(host, _)| !host.is_empty());
                let node = place.and_then(|(host, port)| {
                    let (host, port) = (host.to_owned(), port.parse().ok()?);
                    Some(SingleNodeRoutingInfo::ByAddress { host, port })
                });
                Some(node.map_or(Refusal::NotNow, Refusal::AskAt))
            }
            ServerErrorKind::Moved
            | ServerErrorKind::TryAgain
            | ServerErrorKind::ClusterDown
            | ServerErrorKind::MasterDown
            | ServerErrorKind::BusyLoading
            | ServerErrorKind::ReadOnly => Some(Refusal::NotNow),
            ServerErrorKind::ResponseError
            | ServerErrorKind::ExecAbort
            | ServerErrorKind::NoScript
            | ServerErrorKind::CrossSlot
            | ServerErrorKind::NotBusy
            | ServerErrorKind::NoSub
            | ServerErrorKind::NoPerm
            | _ => None,
        }
    }
}
