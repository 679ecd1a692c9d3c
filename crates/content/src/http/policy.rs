//! Authorizes requests: which scope a method requires, and which servers and tools are
//! allowed.

use std::collections::BTreeSet;

use super::envelope::Envelope;
use super::errors::Refusal;
use crate::pattern::matches;

/// For each scope, the patterns of the methods that require it; `*` matches any text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScopeMap(pub Vec<(String, Vec<String>)>);

/// Which servers and tools are allowed, for every caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Security {
    pub allow_servers: Vec<String>,
    pub deny_tools: Vec<String>,
    pub enable_write_tools: bool,
}

/// The scopes of methods that no configured map lists. Notifications and listings need
/// only `mcp:read`, because every ordinary client uses them when it starts.
const BUILT_IN: &[(&str, &[&str])] = &[
    (
        "mcp:read",
        &[
            "initialize",
            "ping",
            "notifications/*",
            "tools/list",
            "resources/list",
            "resources/templates/list",
            "resources/read",
            "prompts/list",
            "prompts/get",
            "completion/complete",
            "logging/setLevel",
        ],
    ),
    ("mcp:call", &["tools/call"]),
    ("mcp:admin", &["admin/*"]),
];

/// The notifications of MCP, each of which has a rate limit of its own.
const NOTIFICATIONS: &[&str] = &[
    "notifications/initialized",
    "notifications/cancelled",
    "notifications/progress",
    "notifications/roots/list_changed",
];

impl ScopeMap {
    /// The contract's global map.
    pub fn contract() -> ScopeMap {
        let owned = |methods: &[&str]| methods.iter().map(|&method| method.to_owned()).collect();
        ScopeMap(
            BUILT_IN.iter().map(|(scope, methods)| ((*scope).to_owned(), owned(methods))).collect(),
        )
    }

    /// Returns the scope that a method requires: by the server's map, else by this one, else
    /// by the built-in one. A method that none of them lists requires `mcp:admin`.
    pub(super) fn required_scope(&self, server: Option<&ScopeMap>, method: &str) -> String {
        let listed = server.into_iter().chain([self]).find_map(|map| map.find(method));
        let built_in = || {
            let lists = |methods: &[&str]| methods.iter().any(|pattern| matches(pattern, method));
            let found = BUILT_IN.iter().find(|(_, methods)| lists(methods));
            found.map_or("mcp:admin", |(scope, _)| scope).to_owned()
        };
        listed.map_or_else(built_in, str::to_owned)
    }

    /// Returns the name under which requests of a method are counted: the method if a map
    /// lists it, else the pattern that matches it, else `unknown`. Callers can invent
    /// methods, and must not get a rate limit for each.
    pub(super) fn rate_limit_name<'a>(
        &'a self,
        server: Option<&'a ScopeMap>,
        method: &str,
    ) -> &'a str {
        let built_in = BUILT_IN.iter().flat_map(|(_, methods)| methods.iter().copied());
        let written = server.into_iter().chain([self]).flat_map(|map| &map.0);
        let written = written.flat_map(|(_, methods)| methods.iter().map(String::as_str));
        let mut known = NOTIFICATIONS.iter().copied().chain(built_in).chain(written);
        let mut again = known.clone();
        let exact = known.find(|known| *known == method);
        exact.or_else(|| again.find(|pattern| matches(pattern, method))).unwrap_or("unknown")
    }

    fn find(&self, method: &str) -> Option<&str> {
        let lists = |methods: &[String]| methods.iter().any(|pattern| matches(pattern, method));
        self.0.iter().find(|(_, methods)| lists(methods)).map(|(scope, _)| scope.as_str())
    }
}

/// Returns whether the scopes of a caller include the required one.
pub(super) fn grants(scopes: &BTreeSet<String>, required: &str) -> bool {
    scopes.contains(required) || scopes.contains("*")
}

impl Security {
    pub fn contract() -> Security {
        Security {
            allow_servers: vec!["*".to_owned()],
            deny_tools: Vec::new(),
            enable_write_tools: false,
        }
    }

    pub(super) fn allow_server(&self, handle: &str) -> Result<(), Refusal> {
        let allowed = self.allow_servers.iter().any(|pattern| matches(pattern, handle));
        if allowed { Ok(()) } else { Err(Refusal::ServerDenied) }
    }

    pub(super) fn allow_tool(
        &self,
        denied_on_server: &[String],
        envelope: &Envelope,
    ) -> Result<(), Refusal> {
        let Some(tool) = envelope.tool() else { return Ok(()) };
        let mut denied = self.deny_tools.iter().chain(denied_on_server);
        let writes = tool.starts_with("evo.write.") && !self.enable_write_tools;
        if writes || denied.any(|pattern| matches(pattern, &tool)) {
            return Err(Refusal::ToolDenied);
        }
        Ok(())
    }
}
