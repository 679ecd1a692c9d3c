//! Checks of `help`: the root, the pages of namespaces and the pages of functions.

use super::call::{check_parameters, schema};
use super::observation::{Check, Observation, good_if, good_if_empty, not_visible};
use crate::outline::Entry;
use crate::survey::{FunctionPage, Transcript, canonical};

pub(super) const CHECKS: &[(&str, Check)] = &[
    ("C016", help_parameters),
    ("C017", root_lists_namespaces),
    ("C018", namespaces_list_entries),
    ("C019", function_pages_document),
    ("C020", more_on_request),
    ("C021", detail_is_advertised_on_the_function_page),
    ("C022", layers_stay_apart),
    ("C023", namespace_lines),
    ("C024", function_lines),
    ("C025", empty_namespace),
    ("C026", root_is_one_kind),
    ("C027", mixed_namespaces),
    ("C028", shallow),
    ("C029", extra_arguments),
    ("C030", arguments_are_advertised),
    ("C031", unknown_arguments_never_fail),
    ("C032", unknown_arguments_are_ignored),
    ("C033", may_mention_ignored),
    ("C034", is_markdown),
    ("C035", other_formats),
    ("C036", is_markdown),
    ("C037", kinds_are_told_apart),
    ("C039", no_skills_in_help),
    ("C103", root_lists_namespaces),
    ("C104", root_shows_no_functions),
    ("C105", no_signatures_in_namespaces),
    ("C106", more_on_request),
    ("C107", layers_stay_apart),
    ("C127", everything_is_addressable),
];

fn help_parameters(transcript: &Transcript) -> Observation {
    let Some(schema) = schema(transcript, "help") else {
        return Observation::Bad("no `help`".into());
    };
    if schema["additionalProperties"] == false {
        return Observation::Bad(
            "a host would refuse unknown arguments before the server sees them".into(),
        );
    }
    let wanted = [("namespace", "string"), ("function", "string"), ("kwargs", "object")];
    check_parameters(&schema, &wanted, &[&[]])
}

fn root_lists_namespaces(transcript: &Transcript) -> Observation {
    if transcript.help.is_error {
        return Observation::Bad(format!("help() fails: {}", transcript.help.excerpt()));
    }
    let entries = transcript.root.namespaces.iter().chain(&transcript.root.functions);
    let wrong = bad_lines(entries.clone());
    match entries.count() {
        0 => Observation::Bad("help() lists nothing".into()),
        n => good_if_empty(&wrong, format!("{n} entries, one line each")),
    }
}

/// Returns the problems of entries without a description or with a very long line.
fn bad_lines<'a>(entries: impl Iterator<Item = &'a Entry>) -> Vec<String> {
    entries
        .filter_map(|entry| {
            if entry.description.is_empty() {
                Some(format!("`{}` has no description", entry.name))
            } else if 240 < entry.line.chars().count() {
                Some(format!("`{}` has a line of {} characters", entry.name, entry.line.len()))
            } else {
                None
            }
        })
        .collect()
}

fn namespaces_list_entries(transcript: &Transcript) -> Observation {
    if transcript.namespace_pages.is_empty() {
        return not_visible("there are no namespaces");
    }
    let wrong: Vec<String> = transcript
        .namespace_pages
        .iter()
        .filter_map(|page| {
            let empty = page.outline.namespaces.is_empty() && page.outline.functions.is_empty();
            let down = page.answer.text.to_ascii_lowercase().contains("unavailable");
            (page.answer.is_error || (empty && !down))
                .then(|| format!("`{}` lists nothing: {}", page.path, page.answer.excerpt()))
        })
        .collect();
    good_if_empty(
        &wrong,
        format!("{} namespaces list their entries", transcript.namespace_pages.len()),
    )
}

fn function_pages_document(transcript: &Transcript) -> Observation {
    if transcript.function_pages.is_empty() {
        return not_visible("no functions are listed");
    }
    let wrong: Vec<String> = transcript
        .function_pages
        .iter()
        .filter(|page| page.answer.is_error || page.answer.chars() < 10)
        .map(|page| format!("`{}` has no page: {}", name(page), page.answer.excerpt()))
        .collect();
    good_if_empty(&wrong, format!("{} functions have a page", transcript.function_pages.len()))
}

fn name(page: &FunctionPage) -> String {
    format!("{}.{}", page.namespace, page.function)
}

fn more_on_request(transcript: &Transcript) -> Observation {
    let shorter: Vec<String> = transcript
        .function_pages
        .iter()
        .filter(|page| page.answer.text.contains("params"))
        .filter(|page| page.full.chars() < page.answer.chars() / 2 || page.full.is_error)
        .map(|page| format!("`{}` says less with params=\"full\"", name(page)))
        .collect();
    good_if_empty(&shorter, "a full page never says less")
}

fn detail_is_advertised_on_the_function_page(transcript: &Transcript) -> Observation {
    let silent: Vec<String> = transcript
        .function_pages
        .iter()
        .filter(|page| page.full != page.answer && !page.answer.text.contains("params"))
        .map(|page| format!("`{}` honours `params` without saying so", name(page)))
        .collect();
    good_if_empty(&silent, "pages that have more say how to get it")
}

/// Returns a parameter whose type is shown in a text that should not show parameters.
fn leaked(transcript: &Transcript, text: &str) -> Option<String> {
    let lower = text.to_ascii_lowercase();
    transcript.function_pages.iter().flat_map(|page| &page.parameters).find_map(|parameter| {
        let pair = format!("{}: {}", parameter.name, parameter.kind).to_ascii_lowercase();
        let row = format!("| {} | {}", parameter.name, parameter.kind).to_ascii_lowercase();
        let leaks = !parameter.kind.is_empty() && (lower.contains(&pair) || lower.contains(&row));
        leaks.then(|| parameter.name.clone())
    })
}

fn no_signatures_in_namespaces(transcript: &Transcript) -> Observation {
    let mut wrong = Vec::new();
    for page in &transcript.namespace_pages {
        if let Some(parameter) = leaked(transcript, &page.answer.text) {
            wrong.push(format!("`{}` shows the type of `{parameter}`", page.path));
        }
        for entry in &page.outline.functions {
            if entry.line.contains(&format!("{}(", entry.name)) {
                wrong.push(format!("`{}` shows a signature: {}", page.path, entry.line));
            }
        }
        if page.answer.text.lines().any(|line| line.trim_start().starts_with('|')) {
            wrong.push(format!("`{}` has a table", page.path));
        }
    }
    good_if_empty(&wrong, "no listing shows parameters")
}

fn root_shows_no_functions(transcript: &Transcript) -> Observation {
    if transcript.root.namespaces.is_empty() {
        return not_visible("the root holds the functions themselves");
    }
    let listed: Vec<&str> =
        transcript.root.namespaces.iter().map(|entry| entry.name.as_str()).collect();
    let wrong: Vec<String> = transcript
        .namespace_pages
        .iter()
        .flat_map(|page| &page.outline.functions)
        .filter(|entry| 4 < entry.name.len() && !listed.contains(&entry.name.as_str()))
        .filter(|entry| {
            transcript.root.namespaces.iter().any(|page| {
                page.line.contains(&format!("`{}`", entry.name))
                    || page.line.contains(&format!("{}(", entry.name))
            })
        })
        .map(|entry| format!("help() names the function `{}`", entry.name))
        .collect();
    good_if_empty(&wrong, "help() names no function of a namespace")
}

fn layers_stay_apart(transcript: &Transcript) -> Observation {
    let namespace_pages = no_signatures_in_namespaces(transcript);
    if matches!(namespace_pages, Observation::Good(_)) {
        root_shows_no_functions(transcript)
    } else {
        namespace_pages
    }
}

fn namespace_lines(transcript: &Transcript) -> Observation {
    let below = transcript.namespace_pages.iter().flat_map(|page| &page.outline.namespaces);
    let wrong = bad_lines(transcript.root.namespaces.iter().chain(below));
    good_if_empty(&wrong, "namespaces have one descriptive line each")
}

fn function_lines(transcript: &Transcript) -> Observation {
    let wrong =
        bad_lines(transcript.namespace_pages.iter().flat_map(|page| &page.outline.functions));
    good_if_empty(&wrong, "functions have one descriptive line each")
}

fn empty_namespace(transcript: &Transcript) -> Observation {
    good_if(
        transcript.help_empty == transcript.help,
        "help(namespace=\"\") equals help()",
        format!("they differ: {}", transcript.help_empty.excerpt()),
    )
}

fn root_is_one_kind(transcript: &Transcript) -> Observation {
    let mixed = !transcript.root.namespaces.is_empty() && !transcript.root.functions.is_empty();
    good_if(!mixed, "the root holds one kind", "the root holds functions and namespaces")
}

fn mixed_namespaces(transcript: &Transcript) -> Observation {
    let mixed = transcript
        .namespace_pages
        .iter()
        .filter(|page| !page.outline.namespaces.is_empty() && !page.outline.functions.is_empty());
    Observation::Good(format!("{} namespaces hold both kinds", mixed.count()))
}

fn shallow(transcript: &Transcript) -> Observation {
    let depth = transcript
        .namespace_pages
        .iter()
        .map(|page| page.path.split('.').count())
        .max()
        .unwrap_or(0);
    good_if(depth <= 3, format!("depth {depth}"), format!("{depth} levels deep"))
}

/// Returns the optional arguments of `help` that change its answer.
fn honoured(transcript: &Transcript) -> Vec<&'static str> {
    let mut honoured = Vec::new();
    if transcript.help_json != transcript.help {
        honoured.push("format");
    }
    if transcript.function_pages.iter().any(|page| page.full != page.answer) {
        honoured.push("params");
    }
    honoured
}

fn extra_arguments(transcript: &Transcript) -> Observation {
    Observation::Good(format!("honours {:?}", honoured(transcript)))
}

fn arguments_are_advertised(transcript: &Transcript) -> Observation {
    let wrong: Vec<String> = honoured(transcript)
        .into_iter()
        .filter(|argument| !transcript.help.text.contains(argument))
        .map(|argument| format!("help() does not mention `{argument}`"))
        .collect();
    good_if_empty(&wrong, "help() names the arguments it honours")
}

fn unknown_arguments_never_fail(transcript: &Transcript) -> Observation {
    let answers = [&transcript.help_unknown, &transcript.help_unknown_flat];
    let names = transcript.root.namespaces.iter().map(|entry| entry.name.as_str());
    let names: Vec<&str> = names.collect();
    let wrong: Vec<String> = answers
        .iter()
        .filter(|answer| answer.is_error || !names.iter().all(|n| answer.text.contains(n)))
        .map(|answer| format!("an unknown argument gives: {}", answer.excerpt()))
        .collect();
    good_if_empty(&wrong, "unknown arguments do no harm")
}

fn unknown_arguments_are_ignored(transcript: &Transcript) -> Observation {
    let same = transcript.help_unknown.text.starts_with(transcript.help.text.trim_end());
    good_if(
        same || transcript.help_unknown.text.contains("zzz"),
        "the same text, apart from a note",
        format!("another text: {}", transcript.help_unknown.excerpt()),
    )
}

fn may_mention_ignored(transcript: &Transcript) -> Observation {
    let mentions = transcript.help_unknown.text.contains("zzz");
    Observation::Good(if mentions { "says what it ignored" } else { "ignores silently" }.to_owned())
}

fn is_markdown(transcript: &Transcript) -> Observation {
    let text = transcript.help.text.trim();
    let marked = text.lines().any(|line| line.starts_with('#') || line.starts_with("- "));
    let is_json = serde_json::from_str::<serde_json::Value>(text).is_ok();
    good_if(marked && !is_json, "Markdown", format!("not Markdown: {}", transcript.help.excerpt()))
}

fn other_formats(transcript: &Transcript) -> Observation {
    if !transcript.help.text.contains("format") {
        return not_visible("no other format is advertised");
    }
    let Ok(json) = serde_json::from_str::<serde_json::Value>(&transcript.help_json.text) else {
        return Observation::Bad(format!(
            "format=\"json\" gives: {}",
            transcript.help_json.excerpt()
        ));
    };
    let text = json.to_string();
    let missing: Vec<String> = transcript
        .root
        .namespaces
        .iter()
        .filter(|entry| !text.contains(&format!("\"{}\"", entry.name)))
        .map(|entry| format!("the JSON form lacks `{}`", entry.name))
        .collect();
    good_if_empty(&missing, "the JSON form has the same entries")
}

fn kinds_are_told_apart(transcript: &Transcript) -> Observation {
    let wrong: Vec<String> = transcript
        .namespace_pages
        .iter()
        .flat_map(|page| &page.mislabelled)
        .map(|path| format!("`{path}` is a namespace but stands among the functions"))
        .collect();
    good_if_empty(&wrong, "namespaces and functions stand under their own headings")
}

fn no_skills_in_help(transcript: &Transcript) -> Observation {
    let skills: Vec<String> = transcript
        .skill_pages
        .iter()
        .map(|lesson| canonical(&lesson.name.replace('-', "")))
        .filter(|name| 8 < name.len())
        .collect();
    let texts = std::iter::once(("help()", &transcript.help.text)).chain(
        transcript.namespace_pages.iter().map(|page| (page.path.as_str(), &page.answer.text)),
    );
    let wrong: Vec<String> = texts
        .filter(|(_, text)| {
            let lower = text.to_ascii_lowercase();
            lower.contains("skill(") || skills.iter().any(|skill| lower.contains(skill))
        })
        .map(|(place, _)| format!("{place} refers to a skill"))
        .collect();
    good_if_empty(&wrong, "help mentions no skill")
}

fn everything_is_addressable(transcript: &Transcript) -> Observation {
    let namespace_pages = transcript.namespace_pages.iter().filter(|page| page.answer.is_error);
    let function_pages = transcript.function_pages.iter().filter(|page| page.answer.is_error);
    let wrong: Vec<String> = namespace_pages
        .map(|page| page.path.clone())
        .chain(function_pages.map(name))
        .map(|place| format!("`{place}` is listed but help does not know it"))
        .collect();
    good_if_empty(&wrong, "every listed name can be asked for")
}
