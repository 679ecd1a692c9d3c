//! A finding of `gatelet doctor`, and the report of all of them.

use serde_json::{Value, json};

use crate::code::{Code, Severity};

/// One problem, or something worth knowing.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    pub code: &'static Code,
    /// What it is about: an upstream, a file, a host.
    pub subject: String,
    /// What was seen. It may contain text from upstreams.
    pub detail: String,
    /// The command that fixes it, ready to be copied.
    pub fix: Option<String>,
}

impl Finding {
    /// Creates a finding about `subject`, with the fix that the code has.
    pub fn new(code: &'static Code, subject: &str, detail: impl Into<String>) -> Finding {
        let fix = code.fix.map(|fix| fix.replace("{}", &shell_word(subject)));
        Finding { code, subject: subject.to_owned(), detail: detail.into(), fix }
    }

    #[must_use]
    pub fn with_fix(self, fix: impl Into<String>) -> Finding {
        Finding { fix: Some(fix.into()), ..self }
    }

    pub fn to_json(&self) -> Value {
        json!({
            "code": self.code.code,
            "severity": self.code.severity.word(),
            "area": self.code.area.word(),
            "subject": self.subject,
            "title": self.code.title,
            "detail": self.detail,
            "who": self.code.who.word(),
            "fix": self.fix,
            "fixable": self.code.is_fixable,
        })
    }
}

/// Returns the text as one word of a shell command; a text that would need quotes
/// becomes a placeholder.
fn shell_word(text: &str) -> String {
    tool::shell::word(text).unwrap_or_else(|| "NAME".to_owned())
}

/// All findings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    pub findings: Vec<Finding>,
}

impl Report {
    /// The worst first; within a severity in the order in which they were found.
    pub fn new(mut findings: Vec<Finding>) -> Report {
        findings.sort_by_key(|finding| finding.code.severity);
        Report { findings }
    }

    pub fn has_errors(&self) -> bool {
        self.findings.iter().any(|finding| finding.code.severity == Severity::Error)
    }

    pub fn count(&self, severity: Severity) -> usize {
        self.findings.iter().filter(|finding| finding.code.severity == severity).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code;

    #[test]
    fn the_worst_comes_first_and_a_name_that_is_not_plain_is_not_pasted() {
        let warning = Finding::new(&code::UPSTREAM_SLOW_START, "a", "");
        let error = Finding::new(&code::UPSTREAM_LOGIN, "x; rm -rf /", "");
        let report = Report::new(vec![warning, error]);
        assert_eq!(report.findings[0].code, &code::UPSTREAM_LOGIN);
        let fix = report.findings[0].fix.clone().unwrap();
        assert!(fix.contains('"') || fix.ends_with("NAME"), "{fix}");
        assert!(report.has_errors() && report.count(Severity::Warning) == 1);
    }
}
