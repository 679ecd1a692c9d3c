//! How the conformance provider gets input from a client.

/// How the provider gets input from the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// It sends requests to the client during the call.
    Asking,
    /// It answers `input_required`, and is called again with the input.
    Requiring,
    /// Depends on the name of the tool.
    Mixed,
}
