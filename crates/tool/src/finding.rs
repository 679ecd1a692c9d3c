//! A finding: something that an operator should know.
//!
//! Whatever is dropped, renamed, cut or looks wrong becomes a finding, so that
//! nothing is lost silently.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    Info,
    Warning,
    Error,
}

/// One problem or change that was noticed, where, and what it means.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    pub severity: Severity,
    /// A stable name for this kind of finding, such as `name-alias`.
    pub code: String,
    /// What it is about: `upstream`, `upstream/tool`, a path.
    pub subject: String,
    pub message: String,
}

impl Finding {
    pub fn new(
        severity: Severity,
        code: &str,
        subject: impl Into<String>,
        message: impl Into<String>,
    ) -> Finding {
        Finding {
            severity,
            code: code.to_owned(),
            subject: subject.into(),
            message: message.into(),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity {
            Severity::Info => "info",
            Severity::Warning => "warning",
            Severity::Error => "error",
        };
        write!(f, "{severity}[{}] {}: {}", self.code, self.subject, self.message)
    }
}
