//! What only the program can do for an operator.

use async_trait::async_trait;
use policy::approval::QueuedRequest;
use serde::Serialize;
use tool::Identity;

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

/// The program behind the console. What is refused is refused with a sentence for
/// the operator.
#[async_trait]
pub trait Operator: Send + Sync {
    /// Writes down what was done. Never blocks for long.
    async fn audit(&self, entry: AuditEntry);

    /// The last lines of the log.
    fn log(&self, n_lines: usize) -> Vec<String>;

    /// Stops an upstream and starts it again.
    async fn restart(&self, label: &str) -> Result<(), String>;

    /// The rule that a request for approval would become, as TOML.
    fn remembered_rule(&self, request: &QueuedRequest) -> Result<String, String>;

    /// Adds to the configuration the rule that a request for approval becomes.
    async fn remember(&self, request: &QueuedRequest) -> Result<(), String>;
}

/// Whether an identity may use the console.
pub fn may_enter(identity: &Identity) -> bool {
    identity.roles.contains(ROLE) || identity.scopes.contains(SCOPE)
}

/// The role that lets an identity in.
pub const ROLE: &str = "operator";

/// The scope that lets an identity in: that of operators on this machine.
pub const SCOPE: &str = "admin";
