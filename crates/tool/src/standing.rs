//! How it stands with the credentials for a provider.

use std::fmt;

/// What can be done with a credential now, and by whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Nothing speaks against it.
    Fine,
    /// It is being renewed right now.
    Refreshing,
    /// Nothing works before somebody does this; one line.
    NeedsHuman { todo: String },
    /// It cannot be renewed now, and is tried again by itself.
    Broken { reason: String },
}

impl Standing {
    /// One word for it.
    pub fn word(&self) -> &'static str {
        match self {
            Standing::Fine => "fine",
            Standing::Refreshing => "refreshing",
            Standing::NeedsHuman { .. } => "needs a human",
            Standing::Broken { .. } => "broken",
        }
    }
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Standing::Fine | Standing::Refreshing => f.write_str(self.word()),
            Standing::NeedsHuman { todo: more } | Standing::Broken { reason: more } => {
                write!(f, "{}: {more}", self.word())
            }
        }
    }
}
