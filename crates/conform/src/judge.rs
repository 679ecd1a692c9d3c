//! Decides every item of the checklist from a transcript.
//!
//! A check is a function from the transcript to an observation. Whether a breach
//! fails or warns follows from the level of the item, so no check decides that.
//! Items without a check cannot be observed from outside; the table says why.

mod call;
mod gate;
mod help;
mod manifest;
mod names;
mod observation;
mod skill;

use serde::Serialize;

use crate::checklist::{Item, Level};
use crate::survey::{Role, Transcript};
use observation::{Check, Observation};

/// The result of one item in the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Verdict {
    Pass,
    Warn,
    Fail,
    Skip,
}

/// One item with its verdict and the evidence for it.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    pub id: String,
    pub verdict: Verdict,
    pub level: String,
    pub requirement: String,
    pub evidence: String,
}

/// Returns all checks by the ids of their items, in the order of the document.
fn checks() -> impl Iterator<Item = &'static (&'static str, Check)> {
    [call::CHECKS, help::CHECKS, skill::CHECKS, names::CHECKS, manifest::CHECKS, gate::CHECKS]
        .into_iter()
        .flatten()
}

/// Items that a client cannot check, and why.
const NOT_VISIBLE: &[(&str, &str)] = &[
    ("C008", "needs an upstream whose raw answers are known"),
    ("C038", "needs two identities"),
    ("C049", "needs a skill that declares arguments"),
    ("C051", "where the text comes from cannot be seen from outside"),
    ("C052", "needs the SKILL.md sources; C043 and C054 look at what is served"),
    ("C068", "needs the request logs of two upstreams"),
    ("C070", "needs two upstreams with a skill of the same name"),
    ("C072", "needs the operator's configuration"),
    ("C075", "needs a watch on outbound connections; C069 looks at what is listed"),
    ("C076", "a recommendation to operators"),
    ("C077", "needs a manifest URL that the server is told to fetch"),
    ("C078", "needs a manifest URL that the server is told to fetch"),
    ("C079", "needs a manifest URL that the server is told to fetch"),
    ("C080", "needs a manifest host that can be stopped"),
    ("C081", "needs a manifest host that can be stopped"),
    ("C102", "binds hosts, not servers"),
    ("C109", "needs a function that returns multi-byte text of a known length"),
    ("C110", "needs a function that returns text of a chosen length"),
    ("C123", "results of tools/call are not streamed in MCP"),
    ("C124", "needs two identities"),
];

/// Decides every item from the transcript.
pub fn judge(items: &[Item], transcript: &Transcript) -> Vec<Outcome> {
    items.iter().map(|item| decide(item, transcript)).collect()
}

fn decide(item: &Item, transcript: &Transcript) -> Outcome {
    let check = checks().find(|(id, _)| *id == item.id).map(|(_, check)| check);
    let missing = tool_of_item(&item.id).filter(|name| call::schema(transcript, name).is_none());
    let seen = match check {
        Some(_) if !applies_to_role(item, transcript) => {
            Observation::NotVisible(format!("binds a {}", item.applies))
        }
        Some(check) => check(transcript),
        None => Observation::NotVisible(why_not_visible(&item.id)),
    };
    // A server without `help` does not break its rules, but does not pass them either.
    let seen = match (seen, missing) {
        (Observation::Good(_), Some(name)) => {
            Observation::NotVisible(format!("the server has no `{name}`"))
        }
        (seen, _) => seen,
    };
    let (verdict, evidence) = match (seen, item.strength()) {
        (Observation::Good(evidence), _) => (Verdict::Pass, evidence),
        (Observation::Bad(evidence), Level::Must) => (Verdict::Fail, evidence),
        (Observation::Bad(evidence), Level::Should) => (Verdict::Warn, evidence),
        (Observation::NotVisible(why), _) => (Verdict::Skip, why),
    };
    Outcome {
        id: item.id.clone(),
        verdict,
        level: item.level.clone(),
        requirement: item.requirement.clone(),
        evidence,
    }
}

/// Returns the tool that an item is about, if it is about one.
fn tool_of_item(id: &str) -> Option<&'static str> {
    let groups = [
        ("call", call::CHECKS),
        ("call", gate::CHECKS),
        ("help", help::CHECKS),
        ("help", names::CHECKS),
        ("skill", skill::CHECKS),
    ];
    let within = |checks: &[(&str, Check)]| checks.iter().any(|(known, _)| *known == id);
    groups.into_iter().find(|(_, checks)| within(checks)).map(|(name, _)| name)
}

fn applies_to_role(item: &Item, transcript: &Transcript) -> bool {
    match item.applies.as_str() {
        "aggregator" => transcript.role != Some(Role::Server),
        "dynamic-aggregator" => transcript.role == Some(Role::DynamicAggregator),
        _ => true,
    }
}

fn why_not_visible(id: &str) -> String {
    let known = NOT_VISIBLE.iter().find(|(not_visible, _)| *not_visible == id);
    known.map_or_else(|| "not visible from outside".to_owned(), |(_, why)| (*why).to_owned())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::checklist::items;

    #[test]
    fn every_item_has_a_check_or_a_reason_and_never_both() {
        let checked: Vec<&str> = checks().map(|(id, _)| *id).collect();
        let not_visible: Vec<&str> = NOT_VISIBLE.iter().map(|(id, _)| *id).collect();
        let all: BTreeSet<&str> = checked.iter().chain(&not_visible).copied().collect();
        assert_eq!(all.len(), checked.len() + not_visible.len(), "an item is decided twice");
        for item in items() {
            assert!(all.contains(item.id.as_str()), "{} has neither", item.id);
        }
    }
}
