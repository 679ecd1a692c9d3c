//! The state of the credentials for a provider.

use std::fmt;

/// Whether a credential works, and who has to act if it does not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CredentialHealth {
    /// It works, as far as is known.
    Fine,
    /// It is being renewed right now.
    Refreshing,
    /// It does not work until a person follows the instruction, which is one line.
    NeedsHuman { instruction: String },
    /// Renewing it failed; it is tried again automatically.
    Broken { reason: String },
}

impl CredentialHealth {
    /// Returns the state without its details.
    pub fn as_str(&self) -> &'static str {
        match self {
            CredentialHealth::Fine => "fine",
            CredentialHealth::Refreshing => "refreshing",
            CredentialHealth::NeedsHuman { .. } => "needs a human",
            CredentialHealth::Broken { .. } => "broken",
        }
    }
}

impl fmt::Display for CredentialHealth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CredentialHealth::Fine | CredentialHealth::Refreshing => f.write_str(self.as_str()),
            CredentialHealth::NeedsHuman { instruction: details }
            | CredentialHealth::Broken { reason: details } => {
                write!(f, "{}: {details}", self.as_str())
            }
        }
    }
}
