//! How the other end of a question is reached.

/// How the other end is reached.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Peer {
    /// `pipe` or `tcp`; empty for what is in this process.
    pub transport: &'static str,
    /// Where a server is, where it has an address.
    pub address: Option<(String, u16)>,
    /// The operator's label for an upstream.
    pub upstream: Option<String>,
}
