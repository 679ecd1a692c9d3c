//! Judges one upstream by what happened when it was tried.

use crate::code;
use crate::finding::Finding;

/// What was measured of one upstream.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    pub label: String,
    pub is_quarantined: bool,
    /// The package that its runner starts, if it has no version.
    pub unpinned: Option<String>,
    /// Its program, if it is found here.
    pub program: Option<String>,
    /// Who starts gatelet with a PATH in which the program is not.
    pub not_found_by: Vec<String>,
    pub outcome: Outcome,
}

/// What happened when the upstream was tried.
#[derive(Clone, Debug, Default)]
pub enum Outcome {
    /// It was not tried.
    #[default]
    Untried,
    /// Its entry refers to a variable or secret that is missing.
    Unset(String),
    /// Its program is not there.
    NoProgram(String),
    /// Its program did not start; the reason may be its last output.
    Failed(String),
    /// Its address did not answer.
    Unreachable(String),
    Unauthorized(String),
    Forbidden(String),
    /// The sandbox refused it something.
    Sandboxed(String),
    Up(Up),
}

impl Outcome {
    /// Returns what is known of an upstream that came up.
    pub fn up(&self) -> Option<&Up> {
        match self {
            Outcome::Up(up) => Some(up),
            Outcome::Untried
            | Outcome::Unset(_)
            | Outcome::NoProgram(_)
            | Outcome::Failed(_)
            | Outcome::Unreachable(_)
            | Outcome::Unauthorized(_)
            | Outcome::Forbidden(_)
            | Outcome::Sandboxed(_) => None,
        }
    }
}

/// An upstream that came up, and what was seen of it.
#[derive(Clone, Debug, Default)]
pub struct Up {
    pub server: String,
    pub protocol: String,
    pub start_millis: u64,
    pub ping_millis: Option<u64>,
    pub n_tools: usize,
    pub n_others: usize,
    /// What was skipped, renamed or damaged in its listing.
    pub findings: Vec<String>,
    /// Tools that changed since somebody vouched for them.
    pub drifted: Vec<String>,
    /// Names of tools and the length of their descriptions.
    pub tools: Vec<(String, usize)>,
}

/// What a host may wait for a server before its first turn.
const SLOW_START: u64 = 5_000;
const SLOW: u64 = 1_000;
/// Where Claude Code cuts descriptions.
const LONGEST_DESCRIPTION: usize = 2_048;
/// What hosts allow for `label__tool`.
const LONGEST_NAME: usize = 64;
/// The first revision; every other has more.
const OLD: &str = "2024-11-05";

/// Returns all problems of the upstream.
pub fn judge(facts: &Facts) -> Vec<Finding> {
    let new = |code, detail: &str| Finding::new(code, &facts.label, detail);
    if facts.is_quarantined {
        return vec![new(&code::UPSTREAM_QUARANTINED, "")];
    }
    let mut found = match &facts.outcome {
        Outcome::Untried => Vec::new(),
        Outcome::Unset(why) => vec![new(&code::UPSTREAM_UNSET, why)],
        Outcome::NoProgram(program) => {
            vec![new(&code::UPSTREAM_NO_PROGRAM, &format!("`{program}` is not found"))]
        }
        Outcome::Failed(why) => vec![new(&code::UPSTREAM_FAILED, why)],
        Outcome::Unreachable(why) => vec![new(&code::UPSTREAM_UNREACHABLE, why)],
        Outcome::Unauthorized(why) => vec![new(&code::UPSTREAM_LOGIN, why)],
        Outcome::Forbidden(why) => vec![new(&code::UPSTREAM_FORBIDDEN, why)],
        Outcome::Sandboxed(why) => vec![new(&code::UPSTREAM_SANDBOXED, why)],
        Outcome::Up(up) => up.judge(&facts.label),
    };
    if let Some(program) = facts.program.as_ref().filter(|_| !facts.not_found_by.is_empty()) {
        let detail =
            format!("`{program}` is not in the PATH of {}", first_few(&facts.not_found_by));
        found.push(new(&code::UPSTREAM_NO_PROGRAM_FOR_HOST, &detail));
    }
    if let Some(package) = &facts.unpinned {
        found.push(new(&code::UPSTREAM_UNPINNED, package));
    }
    found
}

impl Up {
    fn judge(&self, label: &str) -> Vec<Finding> {
        let new = |code, detail: String| Finding::new(code, label, detail);
        let mut found = Vec::new();
        if SLOW_START < self.start_millis {
            let seconds = self.start_millis / 1000;
            found.push(new(&code::UPSTREAM_SLOW_START, format!("it was ready after {seconds} s")));
        }
        if let Some(ping) = self.ping_millis.filter(|ping| SLOW < *ping) {
            found.push(new(&code::UPSTREAM_SLOW, format!("{ping} ms")));
        }
        if self.n_tools + self.n_others == 0 {
            found.push(new(&code::UPSTREAM_EMPTY, String::new()));
        }
        if let Some(first) = self.findings.first() {
            found.push(new(&code::UPSTREAM_FINDINGS, format!("{}: {first}", self.findings.len())));
        }
        if !self.drifted.is_empty() {
            found.push(new(&code::UPSTREAM_DRIFT, first_few(&self.drifted)));
        }
        let long = self.tools.iter().filter(|(_, length)| LONGEST_DESCRIPTION < *length);
        let long: Vec<String> = long.map(|(name, length)| format!("{name} ({length})")).collect();
        if !long.is_empty() {
            found.push(new(&code::UPSTREAM_LONG_DEFINITION, first_few(&long)));
        }
        let full = |name: &String| label.chars().count() + 2 + name.chars().count();
        let wide = self.tools.iter().filter(|(name, _)| LONGEST_NAME < full(name));
        let wide: Vec<String> = wide.map(|(name, _)| name.clone()).collect();
        if !wide.is_empty() {
            found.push(new(&code::UPSTREAM_LONG_NAME, first_few(&wide)));
        }
        if self.protocol == OLD {
            found.push(new(&code::UPSTREAM_OLD_PROTOCOL, self.protocol.clone()));
        }
        found
    }
}

/// Names the first few, and says how many more there are.
fn first_few(names: &[String]) -> String {
    let shown = names.iter().take(3).cloned().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(3) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(outcome: Outcome, expected: &[&str]) {
        let facts = Facts { label: "up".to_owned(), outcome, ..Facts::default() };
        let codes: Vec<&str> = judge(&facts).iter().map(|finding| finding.code.code).collect();
        assert_eq!(codes, expected);
    }

    fn up() -> Up {
        Up { protocol: "2025-11-25".to_owned(), n_tools: 1, ..Up::default() }
    }

    #[test]
    fn every_way_to_fail_has_its_code() {
        let why = || "x".to_owned();
        check(Outcome::Untried, &[]);
        check(Outcome::Unset(why()), &["upstream-unset"]);
        check(Outcome::NoProgram(why()), &["upstream-no-program"]);
        check(Outcome::Failed(why()), &["upstream-failed"]);
        check(Outcome::Unreachable(why()), &["upstream-unreachable"]);
        check(Outcome::Unauthorized(why()), &["upstream-login"]);
        check(Outcome::Forbidden(why()), &["upstream-forbidden"]);
        check(Outcome::Sandboxed(why()), &["upstream-sandboxed"]);
        check(Outcome::Up(up()), &[]);
    }

    #[test]
    fn a_program_that_hosts_do_not_find_is_told_with_their_names() {
        let mut facts = Facts {
            label: "up".to_owned(),
            program: Some("npx".to_owned()),
            outcome: Outcome::Up(up()),
            ..Facts::default()
        };
        assert_eq!(judge(&facts), []);
        facts.not_found_by = vec!["claude".to_owned(), "the service".to_owned()];
        let found = judge(&facts);
        assert_eq!(found[0].code.code, "upstream-no-program-for-host");
        assert_eq!(found[0].detail, "`npx` is not in the PATH of claude, the service");
    }

    #[test]
    fn what_came_up_may_be_slow_empty_changed_or_too_long_for_hosts() {
        check(Outcome::Up(Up { start_millis: 6_000, ..up() }), &["upstream-slow-start"]);
        check(Outcome::Up(Up { ping_millis: Some(1_500), ..up() }), &["upstream-slow"]);
        check(Outcome::Up(Up { n_tools: 0, ..up() }), &["upstream-empty"]);
        check(Outcome::Up(Up { findings: vec!["x".to_owned()], ..up() }), &["upstream-findings"]);
        check(Outcome::Up(Up { drifted: vec!["x".to_owned()], ..up() }), &["upstream-drift"]);
        let tools = |name: &str, length| vec![(name.to_owned(), length)];
        check(Outcome::Up(Up { tools: tools("a", 2_049), ..up() }), &["upstream-long-definition"]);
        check(Outcome::Up(Up { tools: tools("a", 2_048), ..up() }), &[]);
        check(
            Outcome::Up(Up { tools: tools(&"n".repeat(61), 1), ..up() }),
            &["upstream-long-name"],
        );
        check(Outcome::Up(Up { tools: tools(&"n".repeat(60), 1), ..up() }), &[]);
        check(
            Outcome::Up(Up { protocol: "2024-11-05".to_owned(), ..up() }),
            &["upstream-old-protocol"],
        );
    }
}
