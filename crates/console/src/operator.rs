//! What only the program can do for an operator.

use async_trait::async_trait;
use policy::approval::QueuedRequest;
use serde::Serialize;
use telemetry::figures::Overview;
use tool::{Identity, Tool};

/// Something that an operator did in the console.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AuditEntry {
    /// Milliseconds since 1970.
    pub at: u64,
    /// Who did it.
    pub who: String,
    /// A stable word for what was done, such as `approvals.allow`.
    pub action: &'static str,
    /// What it was done to.
    pub subject: String,
    /// How it ended.
    pub outcome: String,
}

/// A key that callers may show.
#[derive(Clone, Debug)]
pub struct KeyRow {
    pub name: String,
    pub roles: Vec<String>,
    pub scopes: Vec<String>,
    pub groups: Vec<String>,
    /// Whether it is neither revoked nor expired.
    pub is_good: bool,
}

/// The configuration as it is written.
#[derive(Clone, Debug)]
pub struct ConfigText {
    pub file: String,
    pub text: String,
}

/// What is to be said about a configuration.
#[derive(Clone, Debug)]
pub struct ConfigCheck {
    pub is_valid: bool,
    /// What is wrong or odd, for a person; empty when nothing is.
    pub problems: String,
    /// The sections that differ from what is in force and need a restart.
    pub restart_for: Vec<String>,
}

/// The program behind the console. What is refused is refused with a sentence for
/// the operator.
#[async_trait]
pub trait Operator: Send + Sync {
    /// Writes down what was done. Never blocks for long.
    async fn audit(&self, entry: AuditEntry);

    /// The last lines of the log.
    fn log(&self, n_lines: usize) -> Vec<String>;

    /// How the gate fares over the last hour. What takes long to count is left out
    /// until it is counted.
    async fn overview(&self) -> Overview;

    /// Stops an upstream and starts it again.
    async fn restart(&self, label: &str) -> Result<(), String>;

    /// Switches an upstream on or off in the configuration.
    async fn set_enabled(&self, label: &str, enabled: bool) -> Result<(), String>;

    /// The upstreams that are switched off in the configuration.
    fn switched_off(&self) -> Vec<String>;

    /// Begins to log in to an upstream; returns the address that `who` has to open
    /// in a browser on this machine. The login ends, and is audited, without us.
    async fn begin_login(&self, label: &str, who: &str) -> Result<String, String>;

    /// Whether somebody vouched for a tool (`upstream/tool`) exactly as it is now.
    fn vouches(&self, path: &str, tool: &Tool) -> bool;

    /// Vouches for a tool (`upstream/tool`) as it is now.
    async fn accept(&self, path: &str, tool: &Tool) -> Result<(), String>;

    /// The keys that callers may show.
    fn keys(&self) -> Vec<KeyRow>;

    /// The configuration file; `None` where there is none.
    fn config(&self) -> Option<ConfigText>;

    /// What would be wrong with a configuration, and what would need a restart.
    fn check_config(&self, text: &str) -> ConfigCheck;

    /// Puts a configuration in the place of what was there `before`.
    async fn save_config(&self, text: &str, before: &str) -> Result<(), String>;

    /// Whether a message comes from the service that decides about requests for
    /// approval, by its id, timestamp and signature.
    fn verify_message(
        &self,
        id: &str,
        timestamp: &str,
        signature: &str,
        body: &[u8],
    ) -> Result<(), String>;

    /// The rule that a request for approval would become, as TOML.
    fn remembered_rule(&self, request: &QueuedRequest) -> Result<String, String>;

    /// Adds to the configuration the rule that a request for approval becomes.
    async fn remember(&self, request: &QueuedRequest) -> Result<(), String>;
}

/// Returns whether an identity may use the console.
pub fn may_enter(identity: &Identity) -> bool {
    identity.roles.contains(ROLE)
}

/// The role that lets an identity in. No scope does: scopes are for programs.
pub const ROLE: &str = "operator";
