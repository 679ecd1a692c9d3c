//! The other end of a request: a client or an upstream.

/// The other end of a request, and how it is connected.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Peer {
    /// `pipe` or `tcp`; empty for a provider in this process.
    pub transport: &'static str,
    /// Host and port of a server, if it has an address.
    pub address: Option<(String, u16)>,
    /// The operator's label for an upstream.
    pub upstream: Option<String>,
}
