//! The findings of the parser and the linter: what is wrong, where, and how to repair it.

use serde::Serialize;
use tool::Severity;

/// A position in the document: one-based line and column, and a length in characters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Position {
    pub line: usize,
    pub column: usize,
    pub length: usize,
}

/// One violation of a rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The code of the rule, such as `E09`.
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
    /// The edit that would repair it without changing prose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<Edit>,
}

/// A replacement of lines. An empty range inserts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Edit {
    /// The first line to replace (one-based).
    pub from: usize,
    /// The first line after those to replace (one-based); equal to `from` to insert.
    #[serde(rename = "to")]
    pub end: usize,
    /// The new text, without the last line break.
    pub text: String,
}

impl Position {
    /// The position of a whole line.
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
