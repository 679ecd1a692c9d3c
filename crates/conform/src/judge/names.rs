//! Checks of labels and identifiers.

use std::collections::BTreeMap;

use super::call::NO_TRIAL;
use super::observation::{Check, Observation, good_if, good_if_empty, not_visible};
use crate::survey::{Transcript, canonical};

pub(super) const CHECKS: &[(&str, Check)] = &[
    ("C056", labels_are_plain),
    ("C057", labels_are_normalised),
    ("C058", labels_are_unique),
    ("C059", display_forms),
    ("C060", no_dot_in_a_label),
    ("C061", every_level_is_a_label),
    ("C063", identifiers_are_plain),
    ("C064", identifiers_are_normalised),
    ("C065", arguments_are_normalised),
    ("C066", expressive_names),
    ("C073", labels_are_unique),
];

fn is_plain(label: &str) -> bool {
    let legal = |c: char| c.is_ascii_alphanumeric() || c == '_';
    label.chars().all(legal) && !canonical(label).is_empty()
}

fn labels(transcript: &Transcript) -> impl Iterator<Item = &str> {
    transcript.namespace_pages.iter().flat_map(|page| page.path.split('.'))
}

fn labels_are_plain(transcript: &Transcript) -> Observation {
    let wrong: Vec<String> = labels(transcript)
        .filter(|label| !is_plain(label))
        .map(|label| format!("`{label}` is no label"))
        .collect();
    good_if_empty(&wrong, "labels are letters, digits and underscores")
}

fn labels_are_normalised(transcript: &Transcript) -> Observation {
    if transcript.namespace_pages.is_empty() {
        return not_visible("there are no namespaces");
    }
    let wrong: Vec<String> = transcript
        .namespace_pages
        .iter()
        .filter(|page| page.respelled != page.answer)
        .map(|page| format!("`{}` in another spelling: {}", page.path, page.respelled.excerpt()))
        .collect();
    good_if_empty(&wrong, "another spelling of a namespace gives the same page")
}

fn labels_are_unique(transcript: &Transcript) -> Observation {
    let mut seen = BTreeMap::new();
    let mut wrong = Vec::new();
    for page in &transcript.namespace_pages {
        let folded: Vec<String> = page.path.split('.').map(canonical).collect();
        if let Some(other) = seen.insert(folded, &page.path) {
            wrong.push(format!("`{other}` and `{}` are the same label", page.path));
        }
    }
    good_if_empty(&wrong, "no two labels are the same")
}

fn display_forms(transcript: &Transcript) -> Observation {
    let fancy = labels(transcript).filter(|label| canonical(label) != *label).count();
    Observation::Good(format!("{fancy} labels are written with capitals or underscores"))
}

fn no_dot_in_a_label(transcript: &Transcript) -> Observation {
    let below = transcript.namespace_pages.iter().flat_map(|page| &page.outline.namespaces);
    let wrong: Vec<String> = transcript
        .root
        .namespaces
        .iter()
        .chain(below)
        .filter(|entry| entry.name.contains('.'))
        .map(|entry| format!("`{}` is listed as one label", entry.name))
        .collect();
    good_if_empty(&wrong, "no label holds a dot")
}

fn every_level_is_a_label(transcript: &Transcript) -> Observation {
    if transcript.help_bad_paths.is_empty() {
        return not_visible("there are no namespaces");
    }
    let wrong: Vec<String> = transcript
        .help_bad_paths
        .iter()
        .filter(|(_, answer)| !answer.is_error)
        .map(|(path, _)| format!("`{path}` is accepted"))
        .collect();
    good_if_empty(&wrong, "empty levels are refused")
}

fn identifiers_are_plain(transcript: &Transcript) -> Observation {
    let functions = transcript.namespace_pages.iter().flat_map(|page| &page.outline.functions);
    let functions = functions.map(|entry| entry.name.as_str());
    let skills = transcript.skill_pages.iter().map(|lesson| lesson.name.as_str());
    let wrong: Vec<String> = functions
        .chain(skills)
        .filter(|name| !is_plain(name))
        .map(|name| format!("`{name}` is no identifier"))
        .collect();
    good_if_empty(&wrong, "functions and skills are letters, digits and underscores")
}

fn identifiers_are_normalised(transcript: &Transcript) -> Observation {
    let Some(tried) = &transcript.tried else { return not_visible(NO_TRIAL) };
    good_if(
        !tried.respelled.is_error,
        format!("{} answers in another spelling", tried.name),
        format!("{} in another spelling: {}", tried.name, tried.respelled.excerpt()),
    )
}

fn arguments_are_normalised(transcript: &Transcript) -> Observation {
    let Some((exact, respelled)) = &transcript.respelled_arguments else {
        return not_visible("the trial has no arguments");
    };
    good_if(
        exact == respelled,
        "another spelling of the arguments gives the same answer",
        format!("another spelling of the arguments: {}", respelled.excerpt()),
    )
}

fn expressive_names(transcript: &Transcript) -> Observation {
    const BARE: &[&str] = &["do", "run", "exec", "action", "handle", "process"];
    let wrong: Vec<String> = transcript
        .namespace_pages
        .iter()
        .flat_map(|page| page.outline.functions.iter().map(move |entry| (page, entry)))
        .filter(|(_, entry)| BARE.contains(&canonical(&entry.name).as_str()))
        .map(|(page, entry)| format!("`{}.{}` says little", page.path, entry.name))
        .collect();
    good_if_empty(&wrong, "names say what they do")
}
