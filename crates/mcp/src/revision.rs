//! The revisions of MCP, and its method names, `_meta` keys, error codes and headers.

use std::fmt;
use std::str::FromStr;

/// A published revision of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Revision {
    V2024_11_05,
    V2025_03_26,
    V2025_06_18,
    V2025_11_25,
    V2026_07_28,
}

/// A revision name that gatelet does not support.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no protocol revision known here; known are {known}", known = Revision::names())]
pub struct UnknownRevision(pub String);

impl Revision {
    /// Every revision, oldest first.
    pub const ALL: [Revision; 5] = [
        Revision::V2024_11_05,
        Revision::V2025_03_26,
        Revision::V2025_06_18,
        Revision::V2025_11_25,
        Revision::V2026_07_28,
    ];

    pub const LATEST: Revision = Revision::V2026_07_28;

    /// The newest revision that opens a session with `initialize`.
    pub const LATEST_LEGACY: Revision = Revision::V2025_11_25;

    pub fn as_str(self) -> &'static str {
        match self {
            Revision::V2024_11_05 => "2024-11-05",
            Revision::V2025_03_26 => "2025-03-26",
            Revision::V2025_06_18 => "2025-06-18",
            Revision::V2025_11_25 => "2025-11-25",
            Revision::V2026_07_28 => "2026-07-28",
        }
    }

    /// Returns whether requests are stateless, without a session. "Modern" means such a
    /// revision everywhere in this crate, "legacy" one with sessions.
    pub fn is_modern(self) -> bool {
        Revision::LATEST_LEGACY < self
    }

    /// Returns whether the revision allows batches.
    pub fn has_batches(self) -> bool {
        self == Revision::V2025_03_26
    }

    fn names() -> String {
        Revision::ALL.map(Revision::as_str).join(", ")
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Revision {
    type Err = UnknownRevision;

    fn from_str(text: &str) -> Result<Revision, UnknownRevision> {
        let known = Revision::ALL.into_iter().find(|revision| revision.as_str() == text);
        known.ok_or_else(|| UnknownRevision(text.to_owned()))
    }
}

/// Method names.
pub mod method {
    pub const INITIALIZE: &str = "initialize";
    pub const INITIALIZED: &str = "notifications/initialized";
    pub const DISCOVER: &str = "server/discover";
    pub const PING: &str = "ping";
    pub const CANCELLED: &str = "notifications/cancelled";
    pub const PROGRESS: &str = "notifications/progress";
    pub const MESSAGE: &str = "notifications/message";
    pub const SET_LEVEL: &str = "logging/setLevel";
    pub const COMPLETE: &str = "completion/complete";

    pub const TOOLS_LIST: &str = "tools/list";
    pub const TOOLS_CALL: &str = "tools/call";
    pub const TOOLS_CHANGED: &str = "notifications/tools/list_changed";
    pub const PROMPTS_LIST: &str = "prompts/list";
    pub const PROMPTS_GET: &str = "prompts/get";
    pub const PROMPTS_CHANGED: &str = "notifications/prompts/list_changed";
    pub const RESOURCES_LIST: &str = "resources/list";
    pub const TEMPLATES_LIST: &str = "resources/templates/list";
    pub const RESOURCES_READ: &str = "resources/read";
    pub const RESOURCES_CHANGED: &str = "notifications/resources/list_changed";
    pub const RESOURCES_UPDATED: &str = "notifications/resources/updated";
    pub const SUBSCRIBE: &str = "resources/subscribe";
    pub const UNSUBSCRIBE: &str = "resources/unsubscribe";
    pub const LISTEN: &str = "subscriptions/listen";
    pub const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";

    /// Returns whether a method is that of a notification.
    pub fn is_notification(method: &str) -> bool {
        method.starts_with("notifications/")
    }

    pub const SAMPLING: &str = "sampling/createMessage";
    pub const ELICITATION: &str = "elicitation/create";
    pub const ROOTS_LIST: &str = "roots/list";
    pub const ROOTS_CHANGED: &str = "notifications/roots/list_changed";
}

/// Keys of `_meta`.
pub mod meta {
    pub const PROGRESS_TOKEN: &str = "progressToken";
    pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
    pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
    pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
    pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
    pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
    pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
}

/// Error codes.
pub mod code {
    pub const PARSE: i64 = -32700;
    pub const INVALID_REQUEST: i64 = -32600;
    pub const METHOD_NOT_FOUND: i64 = -32601;
    pub const INVALID_PARAMS: i64 = -32602;
    pub const INTERNAL: i64 = -32603;
    /// The general error of servers of legacy revisions.
    pub const SERVER: i64 = -32000;
    /// A resource does not exist; used up to revision 2025-11-25.
    pub const RESOURCE_NOT_FOUND: i64 = -32002;
    pub const HEADER_MISMATCH: i64 = -32020;
    pub const MISSING_CAPABILITY: i64 = -32021;
    pub const UNSUPPORTED_VERSION: i64 = -32022;
}

/// HTTP header names, as constants of their type so that they need no parsing.
pub mod header {
    use http::HeaderName;

    pub const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
    pub const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
    pub const METHOD: HeaderName = HeaderName::from_static("mcp-method");
    pub const NAME: HeaderName = HeaderName::from_static("mcp-name");
    pub const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
    /// Prefix of the headers that mirror tool arguments; the name given by `x-mcp-header`
    /// follows.
    pub const PARAM_PREFIX: &str = "mcp-param-";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_revision_reads_back_from_its_name() {
        for revision in Revision::ALL {
            assert_eq!(revision.as_str().parse(), Ok(revision));
        }
        let error = "1999-01-01".parse::<Revision>().unwrap_err();
        assert!(error.to_string().contains("known are 2024-11-05, 2025-03-26"), "{error}");
    }

    #[test]
    fn only_the_last_revision_is_modern() {
        let modern: Vec<_> = Revision::ALL.into_iter().filter(|r| r.is_modern()).collect();
        assert_eq!(modern, [Revision::LATEST]);
    }
}
