//! What was noticed in a document, and where.

use serde::Serialize;
use tool::Severity;

/// Where something stands: one-based line and column, and how many characters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Position {
    pub line: usize,
    pub column: usize,
    pub length: usize,
}

/// One thing that breaks a rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The rule, such as `E09`.
    pub code: &'static str,
    pub severity: Severity,
    pub place: Position,
    /// The tool it is about, if it is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    pub message: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// What would repair it without touching prose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<Edit>,
}

/// Lines to replace. An empty range inserts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Edit {
    /// One-based, first line to replace.
    pub from: usize,
    /// One-based, first line to keep.
    pub to: usize,
    /// What stands there afterwards, without the last line break.
    pub text: String,
}

impl Position {
    /// The whole of a line.
    pub fn line(line: usize) -> Position {
        Position { line, column: 1, length: 0 }
    }
}

impl Finding {
    pub(crate) fn new(code: &'static str, place: Position, message: impl Into<String>) -> Finding {
        let severity = match code.as_bytes().first() {
            Some(b'E') => Severity::Error,
            Some(b'W') => Severity::Warning,
            Some(_) | None => Severity::Info,
        };
        let message = message.into();
        Finding { code, severity, place, tool: None, message, hint: None, fix: None }
    }

    pub(crate) fn in_tool(mut self, tool: &str) -> Finding {
        self.tool = Some(tool.to_owned());
        self
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Finding {
        self.hint = Some(hint.into());
        self
    }

    pub(crate) fn fix(mut self, fix: Option<Edit>) -> Finding {
        self.fix = fix;
        self
    }
}
