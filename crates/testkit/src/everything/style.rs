//! How a provider gets input from a client.

/// How the provider gets input from the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// It asks while the call runs.
    Asking,
    /// It answers that input is required, and is called again.
    Requiring,
    /// Each tool in the way that its name says.
    Mixed,
}
