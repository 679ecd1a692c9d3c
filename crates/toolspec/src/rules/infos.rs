//! The lint rules of severity info: facts that are good to know.

use super::rule::{CLEAN, Example, Rule, changed};
use crate::finding::{Finding, Position};
use crate::rule_input::RuleInput;

pub(super) static RULES: &[Rule] = &[
    Rule {
        code: "I01",
        title: "how much there is",
        explanation: "How many tools the document has, how long it is, and about how many tokens a \
                      model pays to read it.",
        fixable: false,
        example: clean,
        check: check_size,
    },
    Rule {
        code: "I02",
        title: "how the tools would be called through the gate",
        explanation: "The namespace and the functions that gatelet's default surface would show for \
                      these tools, so that a prefix can be chosen that reads well there.",
        fixable: false,
        example: clean,
        check: check_alias,
    },
    Rule {
        code: "I03",
        title: "what the machine can repair",
        explanation: "How many of the findings `gatelet spec fix` repairs without touching prose, \
                      and which rules they are of.",
        fixable: false,
        example: || changed("### 3. Input Schema (Parameters)", "### Parameters"),
        check: check_repairable,
    },
];

fn clean() -> Example {
    Example { text: CLEAN.to_owned(), ..Example::default() }
}

fn check_size(subject: &RuleInput<'_>, findings: &mut Vec<Finding>) {
    let letters: usize = subject.lines.iter().map(|line| line.chars().count() + 1).sum();
    let n_tools = subject.document.tools.len();
    let message = format!("{n_tools} tools, {letters} characters, about {} tokens", letters / 4);
    findings.push(Finding::new("I01", Position::line(1), message));
}

fn check_alias(subject: &RuleInput<'_>, findings: &mut Vec<Finding>) {
    let tools = &subject.document.tools;
    let Some(first) = tools.first() else { return };
    let namespace = match first.name.rsplit_once('.') {
        Some((prefix, _)) => prefix.to_owned(),
        None => {
            let title =
                subject.document.title.as_ref().map_or("tools", |title| title.value.as_str());
            title.split_whitespace().next().unwrap_or("tools").to_lowercase()
        }
    };
    let functions: Vec<&str> = tools
        .iter()
        .map(|tool| tool.name.rsplit('.').next().unwrap_or(&tool.name))
        .take(8)
        .collect();
    let message = format!("through the gate: `{namespace}` with `{}`", functions.join("`, `"));
    findings.push(Finding::new("I02", Position::line(1), message));
}

fn check_repairable(subject: &RuleInput<'_>, findings: &mut Vec<Finding>) {
    let fixable: Vec<&Finding> =
        subject.earlier_findings.iter().filter(|finding| finding.fix.is_some()).collect();
    if fixable.is_empty() {
        return;
    }
    let mut codes: Vec<&str> = fixable.iter().map(|finding| finding.code).collect();
    codes.sort_unstable();
    codes.dedup();
    let message = format!("{} findings can be repaired: {}", fixable.len(), codes.join(", "));
    findings.push(Finding::new("I03", Position::line(1), message).hint("run `gatelet spec fix`"));
}
