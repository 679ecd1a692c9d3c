//! The report: all verdicts, as text, JSON and Markdown.

use serde::Serialize;

use crate::checklist::items;
use crate::judge::{Outcome, Verdict, judge};
use crate::survey::Transcript;

/// Every item with its verdict.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    pub outcomes: Vec<Outcome>,
}

impl Report {
    pub fn new(transcript: &Transcript) -> Report {
        Report { outcomes: judge(&items(), transcript) }
    }

    pub fn count(&self, verdict: Verdict) -> usize {
        self.outcomes.iter().filter(|outcome| outcome.verdict == verdict).count()
    }

    /// Returns whether no item failed.
    pub fn conforms(&self) -> bool {
        self.count(Verdict::Fail) == 0
    }

    /// Renders one line with the counts of all verdicts.
    pub fn summary(&self) -> String {
        let n = |verdict| self.count(verdict);
        format!(
            "{} pass, {} warn, {} fail, {} skip",
            n(Verdict::Pass),
            n(Verdict::Warn),
            n(Verdict::Fail),
            n(Verdict::Skip)
        )
    }

    pub fn text(&self) -> String {
        let line = |outcome: &Outcome| {
            format!(
                "{} {} {}\n          {}\n",
                word(outcome.verdict),
                outcome.id,
                outcome.requirement,
                outcome.evidence
            )
        };
        self.outcomes.iter().map(line).collect::<String>() + &self.summary() + "\n"
    }

    pub fn markdown(&self) -> String {
        let cell = |text: &str| text.replace('|', "\\|").replace('\n', " ");
        let row = |outcome: &Outcome| {
            format!(
                "| {} | {} | {} | {} | {} |\n",
                outcome.id,
                word(outcome.verdict).trim(),
                outcome.level,
                cell(&outcome.requirement),
                cell(&outcome.evidence)
            )
        };
        let head = "| item | verdict | level | requirement | evidence |\n|---|---|---|---|---|\n";
        let rows: String = self.outcomes.iter().map(row).collect();
        format!("# CaSH conformance\n\n{}\n\n{head}{rows}", self.summary())
    }

    pub fn json(&self) -> String {
        let mut value = serde_json::to_value(self).expect("a report always serialises");
        value["summary"] = serde_json::json!({
            "pass": self.count(Verdict::Pass),
            "warn": self.count(Verdict::Warn),
            "fail": self.count(Verdict::Fail),
            "skip": self.count(Verdict::Skip),
        });
        value.to_string()
    }
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "PASS",
        Verdict::Warn => "WARN",
        Verdict::Fail => "FAIL",
        Verdict::Skip => "SKIP",
    }
}
