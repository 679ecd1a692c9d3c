//! Renders findings about documents as text, JSON, SARIF and GitHub workflow commands.

use std::fmt::Write;

use serde_json::{Value, json};
use tool::Severity;
use toolspec::Finding;

use crate::terminal::{BAD, DIM, HEADING, PLACE, WARNING, paint};

/// How findings are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    #[value(alias = "human")]
    Text,
    Json,
    /// For code scanning
    Sarif,
    /// As commands of a GitHub workflow
    Github,
}

/// The findings in one document.
pub(super) struct Report {
    pub(super) path: String,
    pub(super) text: String,
    pub(super) findings: Vec<Finding>,
}

pub(super) fn write(reports: &[Report], format: Format) -> String {
    match format {
        Format::Text => human(reports),
        Format::Json => pretty(&as_json(reports)),
        Format::Sarif => pretty(&sarif(reports)),
        Format::Github => github(reports),
    }
}

fn pretty(value: &Value) -> String {
    crate::terminal::json_text(value).unwrap_or_else(|_| value.to_string())
}

fn human(reports: &[Report]) -> String {
    let mut text = String::new();
    for report in reports {
        let lines: Vec<&str> = report.text.lines().collect();
        for finding in &report.findings {
            write_finding(&mut text, &report.path, &lines, finding);
        }
    }
    let count = |severity: Severity| {
        let all = reports.iter().flat_map(|report| &report.findings);
        all.filter(|finding| finding.severity == severity).count()
    };
    let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
    let _ = write!(text, "{} documents, {errors} errors, {warnings} warnings", reports.len());
    text
}

fn write_finding(text: &mut String, path: &str, lines: &[&str], finding: &Finding) {
    let (style, word) = match finding.severity {
        Severity::Error => (BAD, "error"),
        Severity::Warning => (WARNING, "warning"),
        Severity::Info => (HEADING, "info"),
    };
    let head = paint(style, format!("{word}[{}]", finding.code));
    let (line, column) = (finding.place.line, finding.place.column);
    let gutter = " ".repeat(line.to_string().len());
    let _ = writeln!(text, "{head}: {}", finding.message);
    let _ = writeln!(text, "{gutter}{} {path}:{line}:{column}", paint(PLACE, "-->"));
    let source = line.checked_sub(1).and_then(|at| lines.get(at)).copied();
    if let Some(source) = source.filter(|_| finding.severity != Severity::Info) {
        let (shown, mark) = marked(source, finding);
        let bar = paint(PLACE, "|");
        let _ = writeln!(text, "{gutter} {bar}");
        let _ = writeln!(text, "{} {bar} {shown}", paint(PLACE, line));
        let _ = writeln!(text, "{gutter} {bar} {}", paint(style, mark));
    }
    if let Some(hint) = &finding.hint {
        let _ = writeln!(text, "{gutter} {} {hint}", paint(PLACE, "= hint:"));
    }
    if finding.fix.is_some() {
        let _ = writeln!(text, "{gutter} {}", paint(DIM, "= `gatelet spec fix` repairs this"));
    }
    text.push('\n');
}

/// How many characters of a line are shown.
const MAX_WIDTH: usize = 110;

/// The line, shortened, and the marks under it.
fn marked(source: &str, finding: &Finding) -> (String, String) {
    let clean: String =
        source.chars().map(|letter| if letter == '\t' { ' ' } else { letter }).collect();
    let blanks = clean.chars().take_while(|letter| letter.is_whitespace()).count();
    let whole = clean.chars().count();
    let (from, length) = match finding.place.length {
        0 => (blanks, whole.saturating_sub(blanks)),
        length => (finding.place.column.saturating_sub(1).max(blanks), length),
    };
    let shown: String = clean.chars().take(MAX_WIDTH).collect();
    let shown = if MAX_WIDTH < whole { format!("{shown}…") } else { shown };
    let length = length.min(MAX_WIDTH.saturating_sub(from)).max(1);
    (shown, format!("{}{}", " ".repeat(from.min(MAX_WIDTH)), "^".repeat(length)))
}

fn as_json(reports: &[Report]) -> Value {
    let each = |report: &Report| json!({"path": report.path, "findings": report.findings});
    reports.iter().map(each).collect()
}

fn sarif(reports: &[Report]) -> Value {
    let rules: Vec<Value> = toolspec::rules::all()
        .map(|rule| {
            json!({
                "id": rule.code,
                "shortDescription": {"text": rule.title},
                "fullDescription": {"text": rule.explanation},
                "defaultConfiguration": {"level": level(rule.severity())},
            })
        })
        .collect();
    let mut results = Vec::new();
    for report in reports {
        for finding in &report.findings {
            results.push(json!({
                "ruleId": finding.code,
                "level": level(finding.severity),
                "message": {"text": finding.message},
                "locations": [{"physicalLocation": {
                    "artifactLocation": {"uri": report.path},
                    "region": {
                        "startLine": finding.place.line.max(1),
                        "startColumn": finding.place.column.max(1),
                    },
                }}],
            }));
        }
    }
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "gatelet",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": rules,
            }},
            "results": results,
        }],
    })
}

fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info => "note",
    }
}

fn github(reports: &[Report]) -> String {
    let mut text = String::new();
    for report in reports {
        for finding in &report.findings {
            let command = match finding.severity {
                Severity::Error => "error",
                Severity::Warning => "warning",
                Severity::Info => "notice",
            };
            let message = escape(&finding.message);
            let _ = writeln!(
                text,
                "::{command} file={},line={},col={},title={}::{message}",
                report.path, finding.place.line, finding.place.column, finding.code,
            );
        }
    }
    text
}

/// Escapes a message for a workflow command.
fn escape(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        let text = "# T\n\n## Tool: `a`\n".to_owned();
        let findings = toolspec::lint(&text, &toolspec::LintContext::default()).1;
        let findings = findings.into_iter().filter(|f| f.code == "E05").collect();
        Report { path: "x.md".to_owned(), text, findings }
    }

    #[test]
    fn a_finding_is_shown_with_its_line_and_a_mark_under_it() {
        let text = anstream::adapter::strip_str(&write(&[report()], Format::Text)).to_string();
        let expected = "error[E05]: `a` does not say what goes in\n --> x.md:3:1\n  |\n\
                        3 | ## Tool: `a`\n  | ^^^^^^^^^^^^\n";
        assert!(text.starts_with(expected), "{text}");
        assert!(text.ends_with("1 documents, 1 errors, 0 warnings"), "{text}");
    }

    #[test]
    fn machines_get_the_same_in_their_own_words() {
        let github = write(&[report()], Format::Github);
        assert_eq!(
            github,
            "::error file=x.md,line=3,col=1,title=E05::`a` does not say what goes in\n"
        );
        let sarif: Value = serde_json::from_str(&write(&[report()], Format::Sarif)).unwrap();
        assert_eq!(sarif["runs"][0]["results"][0]["ruleId"], "E05");
        assert_eq!(sarif["runs"][0]["tool"]["driver"]["rules"].as_array().unwrap().len(), 35);
        let json: Value = serde_json::from_str(&write(&[report()], Format::Json)).unwrap();
        assert_eq!(json[0]["findings"][0]["place"]["line"], 3);
    }
}
