//! How one server is reached, alone, behind a sentinel or as the node of a cluster.

use std::time::Duration;

use redis::{ConnectionAddr, TlsCertificates};

use crate::address::{Address, Node, Tls};

/// How long connecting may take.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

pub(crate) fn node_address(address: &Address, node: &Node) -> ConnectionAddr {
    let (host, port) = (node.host.clone(), node.port);
    match address.tls {
        Tls::No => ConnectionAddr::Tcp(host, port),
        Tls::Yes => ConnectionAddr::TcpTls { host, port, insecure: false, tls_params: None },
    }
}

pub(crate) fn certificates(address: &Address) -> TlsCertificates {
    TlsCertificates { client_tls: None, root_cert: address.authority.clone() }
}
