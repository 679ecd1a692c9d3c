//! Every document under `tests/cases` has its reading beside it. To add a
//! case, add a document: the first run writes the reading, for you to check.

#![expect(clippy::disallowed_methods, reason = "golden files")]
#![expect(clippy::unwrap_used, reason = "tests")]

use std::fmt::Write;
use std::path::PathBuf;

use toolspec::document::{IoSpec, SectionMark};
use toolspec::{Document, Finding, LintContext, fix, lint};

fn cases() -> Vec<PathBuf> {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cases");
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    paths.sort();
    paths
}

fn reading(document: &Document, findings: &[Finding]) -> String {
    let mut out = String::new();
    let title = document.title.as_ref().map(|title| title.value.as_str());
    writeln!(out, "title {title:?}").unwrap();
    for (name, value) in &document.metadata {
        writeln!(out, "{name}: {}", value.value).unwrap();
    }
    if let Some(place) = document.says_no_tools {
        writeln!(out, "says in line {} that there are no tools", place.line).unwrap();
    }
    for tool in &document.tools {
        writeln!(out, "\ntool {} (line {})", tool.name, tool.heading.place.line).unwrap();
        if let Some(text) = &tool.description {
            writeln!(out, "  description {:?}", text.value).unwrap();
        }
        for section in &tool.sections {
            let form = match section.form {
                SectionMark::Heading(level) => format!("heading {level}"),
                SectionMark::Label => "label".to_owned(),
                SectionMark::Implied => "implied".to_owned(),
            };
            writeln!(out, "  {:?} by {form} in line {}", section.topic, section.place.line)
                .unwrap();
        }
        side(&mut out, "input", &tool.input);
        side(&mut out, "output", &tool.output);
        if let Some(value) = &tool.idempotency {
            writeln!(out, "  idempotent {:?}", value.value).unwrap();
        }
        for example in &tool.examples {
            match &example.call {
                Ok(call) => writeln!(out, "  example {} {}", call.tool, call.arguments).unwrap(),
                Err(reason) => writeln!(out, "  example unreadable: {reason}").unwrap(),
            }
        }
    }
    writeln!(out).unwrap();
    for finding in findings {
        let fix = if finding.fix.is_some() { " (fixable)" } else { "" };
        writeln!(out, "{} {}: {}{fix}", finding.code, finding.place.line, finding.message).unwrap();
    }
    out
}

fn side(out: &mut String, name: &str, side: &IoSpec) {
    if let Some(schema) = side.effective() {
        writeln!(out, "  {name} {schema}").unwrap();
    }
    for sample in &side.samples {
        writeln!(out, "  {name} sample {}", sample.value).unwrap();
    }
}

#[test]
fn every_case_is_read_as_written_beside_it() {
    let mut wrong = Vec::new();
    for path in cases() {
        let text = std::fs::read_to_string(&path).unwrap();
        let (document, findings) = lint(&text, &LintContext::default());
        let actual = reading(&document, &findings);
        let expected = path.with_extension("txt");
        if !expected.exists() {
            std::fs::write(&expected, &actual).unwrap();
            wrong.push(format!("{} was missing: check what was written", expected.display()));
        } else if std::fs::read_to_string(&expected).unwrap() != actual {
            wrong.push(format!("{} differs:\n{actual}", path.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn fixing_a_case_twice_is_fixing_it_once_and_no_prose_is_lost() {
    for path in cases() {
        let text = std::fs::read_to_string(&path).unwrap();
        let (fixed, _) = fix(&text);
        assert_eq!(fix(&fixed).0, fixed, "{}", path.display());
        let words = |text: &str| {
            text.split(|letter: char| !letter.is_alphanumeric())
                .filter(|word| 4 < word.len())
                .map(str::to_lowercase)
                .collect::<Vec<_>>()
        };
        let after = words(&fixed);
        let titles = [
            "parameters",
            "arguments",
            "schema",
            "returns",
            "response",
            "description",
            "example",
            "purpose",
            "error",
            "cases",
            "default",
            "field",
            "contract",
            "usage",
        ];
        let lost: Vec<String> = words(&text)
            .into_iter()
            .filter(|word| !after.contains(word) && !titles.contains(&word.as_str()))
            .filter(|word| !["required", "optional", "false"].contains(&word.as_str()))
            .collect();
        assert_eq!(lost, [""; 0], "{}\n{fixed}", path.display());
    }
}

#[test]
fn fixing_never_adds_an_error() {
    for path in cases() {
        let text = std::fs::read_to_string(&path).unwrap();
        let errors = |text: &str| {
            let (_, findings) = lint(text, &LintContext::default());
            findings.iter().filter(|f| f.severity == tool::Severity::Error).count()
        };
        assert!(errors(&fix(&text).0) <= errors(&text), "{}", path.display());
    }
}
