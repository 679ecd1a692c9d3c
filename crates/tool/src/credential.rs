//! The state of the credentials for a provider.

use std::fmt;

/// What can be done with a credential now, and by whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CredentialHealth {
    /// Nothing speaks against it.
    Fine,
    /// It is being renewed right now.
    Refreshing,
    /// Nothing works before somebody does this; one line.
    NeedsHuman { instruction: String },
    /// It cannot be renewed now, and is tried again by itself.
    Broken { reason: String },
}

impl CredentialHealth {
    /// One word for it.
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
            CredentialHealth::NeedsHuman { instruction: more }
            | CredentialHealth::Broken { reason: more } => {
                write!(f, "{}: {more}", self.as_str())
            }
        }
    }
}
