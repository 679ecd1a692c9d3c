//! The trait by which the console controls the running program, and the values that it
//! exchanges with it.

use async_trait::async_trait;
use policy::approval::QueuedRequest;
use serde::Serialize;
use telemetry::figures::Overview;
use tool::{Identity, Tool};

/// An entry of the audit log: something that an operator did in the console.
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

/// An API key of a caller, without its secret.
#[derive(Clone, Debug)]
pub struct KeyRow {
    pub name: String,
    pub roles: Vec<String>,
    pub scopes: Vec<String>,
    pub groups: Vec<String>,
    /// Whether it is valid: neither revoked nor expired.
    pub is_good: bool,
}

/// The text of the configuration file.
#[derive(Clone, Debug)]
pub struct ConfigText {
    pub file: String,
    pub text: String,
}

/// A setting of the configuration that is in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingRow {
    /// As in the file: `serve.listen`.
    pub key: String,
    /// The value in force; of a secret only whether it is set.
    pub value: String,
    pub source: SettingSource,
    /// The value that the file has by now, if it takes a restart to apply that.
    pub after_restart: Option<String>,
    pub needs_restart: bool,
}

/// Where the value of a setting comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingSource {
    Default,
    File,
    CommandLine,
}

/// The result of checking a configuration.
#[derive(Clone, Debug)]
pub struct ConfigCheck {
    pub is_valid: bool,
    /// Errors and warnings as text for a person; empty when there are none.
    pub problems: String,
    /// The sections that differ from what is in force and need a restart.
    pub restart_for: Vec<String>,
}

/// The program behind the console. Errors are sentences for the operator.
#[async_trait]
pub trait ProgramControl: Send + Sync {
    /// Writes an entry to the audit log. Never blocks for long.
    async fn audit(&self, entry: AuditEntry);

    /// Returns the last lines of the program's log that are about an upstream.
    fn log_of(&self, label: &str, n_lines: usize) -> Vec<String>;

    /// Returns the figures of the last hour. Those that take long to compute are missing
    /// until they are ready.
    async fn overview(&self) -> Overview;

    /// Stops an upstream and starts it again.
    async fn restart(&self, label: &str) -> Result<(), String>;

    /// Switches an upstream on or off in the configuration.
    async fn set_enabled(&self, label: &str, enabled: bool) -> Result<(), String>;

    /// Returns the upstreams that are switched off in the configuration.
    fn switched_off(&self) -> Vec<String>;

    /// Begins a login to an upstream; returns the URL that `who` has to open in a browser on
    /// this machine. The program completes and audits the login by itself.
    async fn begin_login(&self, label: &str, who: &str) -> Result<String, String>;

    /// Returns whether somebody vouched for a tool (`upstream/tool`) exactly as it is now.
    fn vouches(&self, path: &str, tool: &Tool) -> bool;

    /// Vouches for a tool (`upstream/tool`) as it is now.
    async fn accept(&self, path: &str, tool: &Tool) -> Result<(), String>;

    /// Returns the API keys of callers.
    fn keys(&self) -> Vec<KeyRow>;

    /// Returns the configuration file; `None` when there is none.
    fn config(&self) -> Option<ConfigText>;

    /// Returns the settings that are in force, whatever the file says by now.
    fn settings(&self) -> Vec<SettingRow>;

    /// Checks a configuration without saving it.
    fn check_config(&self, text: &str) -> ConfigCheck;

    /// Saves a configuration, unless the file is no longer the text in `before`.
    async fn save_config(&self, text: &str, before: &str) -> Result<(), String>;

    /// Verifies that a message comes from the service that decides about requests for
    /// approval, by its id, timestamp and signature, and that it comes for the first time.
    async fn verify_message(
        &self,
        id: &str,
        timestamp: &str,
        signature: &str,
        body: &[u8],
    ) -> Result<(), String>;

    /// Renders the rule that would approve calls like this one, as TOML.
    fn remembered_rule(&self, request: &QueuedRequest) -> Result<String, String>;

    /// Adds the rule that approves calls like this one to the configuration.
    async fn remember(&self, request: &QueuedRequest) -> Result<(), String>;
}

/// Returns whether an identity may use the console.
pub fn may_use_console(identity: &Identity) -> bool {
    identity.roles.contains(ROLE)
}

/// The role that an identity needs. Scopes do not count, because they are for programs.
pub const ROLE: &str = "operator";
