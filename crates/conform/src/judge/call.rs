//! Checks of the list of tools, and of `call`.

use serde_json::Value;
use tool::Tool;

use super::observation::{Check, Observation, good_if, good_if_empty, not_visible};
use crate::answer::Answer;
use crate::survey::Transcript;

pub(super) const CHECKS: &[(&str, Check)] = &[
    ("C001", only_three),
    ("C002", all_three),
    ("C003", only_three),
    ("C004", call_parameters),
    ("C005", empty_namespace_is_root),
    ("C006", omitted_kwargs),
    ("C007", functions_are_no_tools),
    ("C009", unknown_namespace),
    ("C010", unknown_function),
    ("C011", valid_call),
    ("C012", missing_function),
    ("C013", bad_arguments),
    ("C014", normalised_before_routing),
    ("C055", errors_use_the_channel),
    ("C062", function_is_separate),
    ("C067", all_three),
    ("C069", merged_help),
    ("C071", extra_tools),
    ("C074", only_three),
];

const NAMES: [&str; 3] = ["call", "help", "skill"];

pub(super) fn schema(transcript: &Transcript, name: &str) -> Option<Value> {
    let tool = transcript.tools.iter().find(|tool| tool.name == name)?;
    tool.input_schema.to_value().ok()
}

fn extra_tool_names(transcript: &Transcript) -> Vec<&str> {
    let name = |tool: &'_ Tool| !NAMES.contains(&tool.name.as_str());
    transcript.tools.iter().filter(|tool| name(tool)).map(|tool| tool.name.as_str()).collect()
}

fn only_three(transcript: &Transcript) -> Observation {
    let extras = extra_tool_names(transcript);
    good_if(
        extras.is_empty() && transcript.tools.len() <= 3,
        format!("{} tools", transcript.tools.len()),
        format!("more tools than call, help and skill: {}", extras.join(", ")),
    )
}

fn extra_tools(transcript: &Transcript) -> Observation {
    Observation::Good(format!("{} extra tools", extra_tool_names(transcript).len()))
}

fn all_three(transcript: &Transcript) -> Observation {
    let wrong: Vec<String> = NAMES
        .iter()
        .filter_map(|name| match schema(transcript, name) {
            None => Some(format!("no tool `{name}`")),
            Some(schema) if schema["type"] != "object" => {
                Some(format!("`{name}` has no object inputSchema"))
            }
            Some(_) => None,
        })
        .collect();
    good_if_empty(&wrong, "call, help and skill are registered")
}

/// Checks that a tool's schema has the `wanted` parameters, which are `(name, type)`
/// pairs, and one of the allowed lists of `required` ones.
pub(super) fn check_parameters(
    schema: &Value,
    wanted: &[(&str, &str)],
    required: &[&[&str]],
) -> Observation {
    let mut wrong = Vec::new();
    for (name, kind) in wanted {
        let property = &schema["properties"][name];
        let kinds: Vec<&str> = match property["type"].as_array() {
            Some(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
            None => property["type"].as_str().into_iter().collect(),
        };
        if property.is_null() {
            wrong.push(format!("no parameter `{name}`"));
        } else if !kinds.is_empty() && !kinds.contains(kind) {
            wrong.push(format!("`{name}` is {kinds:?}, not {kind}"));
        }
        if *kind == "object" && property["additionalProperties"] == false {
            wrong.push(format!("`{name}` takes no free members"));
        }
    }
    let found: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if !required.contains(&found.as_slice()) {
        wrong.push(format!("required is {found:?}"));
    }
    good_if_empty(&wrong, "parameters are as the document says")
}

fn call_parameters(transcript: &Transcript) -> Observation {
    let Some(schema) = schema(transcript, "call") else {
        return Observation::Bad("no `call`".into());
    };
    let wanted = [
        ("namespace", "string"),
        ("function", "string"),
        ("kwargs", "object"),
        ("sizelimit", "integer"),
    ];
    check_parameters(&schema, &wanted, &[&["function"]])
}

fn empty_namespace_is_root(transcript: &Transcript) -> Observation {
    let (omitted, empty) = (&transcript.root_function, &transcript.root_function_empty);
    good_if(
        omitted == empty,
        format!("both answer: {}", omitted.excerpt()),
        format!("omitted: {} / empty: {}", omitted.excerpt(), empty.excerpt()),
    )
}

fn omitted_kwargs(transcript: &Transcript) -> Observation {
    let Some((without, null)) = &transcript.bare else {
        return not_visible("no harmless function without required arguments");
    };
    good_if(
        !without.is_error && !null.is_error,
        "a function that needs nothing answers without kwargs",
        format!("without kwargs: {}; with null: {}", without.excerpt(), null.excerpt()),
    )
}

pub(super) const NO_TRIAL: &str = "no harmless function to try: name one with --trial";

fn functions_are_no_tools(transcript: &Transcript) -> Observation {
    let listed = transcript.namespace_pages.iter().flat_map(|page| &page.outline.functions);
    let wrong: Vec<String> = listed
        .filter(|entry| extra_tool_names(transcript).contains(&entry.name.as_str()))
        .map(|entry| format!("`{}` is a tool of its own", entry.name))
        .collect();
    good_if_empty(&wrong, "no listed function is a tool")
}

/// Checks that a reply is an error that contains `names` and mentions `points_to`.
fn check_error_text(answer: &Answer, names: &str, points_to: &str) -> Observation {
    let text = answer.text.to_ascii_lowercase();
    let problem = if !answer.is_error {
        "not reported as an error"
    } else if !text.contains(names) {
        "does not name what is unknown"
    } else if !text.contains(points_to) {
        "does not say where to look"
    } else {
        return Observation::Good(answer.excerpt());
    };
    Observation::Bad(format!("{problem}: {}", answer.excerpt()))
}

fn unknown_namespace(transcript: &Transcript) -> Observation {
    check_error_text(&transcript.unknown_namespace, "zzznope", "help")
}

fn unknown_function(transcript: &Transcript) -> Observation {
    match &transcript.unknown_function {
        Some(answer) => check_error_text(answer, "zzznope", "help"),
        None => not_visible("no namespace is listed"),
    }
}

fn valid_call(transcript: &Transcript) -> Observation {
    let Some(tried) = &transcript.tried else { return not_visible(NO_TRIAL) };
    good_if(
        !tried.plain.is_error && 0 < tried.plain.blocks,
        format!("{}: {}", tried.name, tried.plain.excerpt()),
        format!("{} fails: {}", tried.name, tried.plain.excerpt()),
    )
}

fn missing_function(transcript: &Transcript) -> Observation {
    let both = [&transcript.no_function, &transcript.empty_function];
    let wrong: Vec<String> =
        both.iter().filter(|a| !a.is_error).map(|a| format!("answered: {}", a.excerpt())).collect();
    good_if_empty(&wrong, both[0].excerpt())
}

fn bad_arguments(transcript: &Transcript) -> Observation {
    let Some((parameter, answer)) = &transcript.bad_arguments else {
        return not_visible("no function that reads has a required parameter");
    };
    let named = answer.text.contains(&parameter.name);
    good_if(
        answer.is_error && named,
        answer.excerpt(),
        format!("missing `{}` is not named as an error: {}", parameter.name, answer.excerpt()),
    )
}

fn normalised_before_routing(transcript: &Transcript) -> Observation {
    let Some(tried) = &transcript.tried else { return not_visible(NO_TRIAL) };
    good_if(
        !tried.respelled.is_error,
        "another spelling of namespace and function is routed alike",
        format!("another spelling fails: {}", tried.respelled.excerpt()),
    )
}

fn errors_use_the_channel(transcript: &Transcript) -> Observation {
    let errors = [
        ("unknown namespace", Some(&transcript.unknown_namespace)),
        ("unknown function", transcript.unknown_function.as_ref()),
        ("unknown skill", Some(&transcript.skill_unknown)),
    ];
    let silent = |(what, answer): &(&str, Option<&Answer>)| {
        answer.filter(|answer| !answer.is_error).map(|_| format!("{what} is no error"))
    };
    let wrong: Vec<String> = errors.iter().filter_map(silent).collect();
    good_if_empty(&wrong, "unknown names are errors")
}

fn function_is_separate(transcript: &Transcript) -> Observation {
    let Some(tried) = &transcript.tried else { return not_visible(NO_TRIAL) };
    good_if(
        tried.dotted.is_error,
        "a dotted path in `function` is refused",
        "a dotted path in `function` is accepted",
    )
}

fn merged_help(transcript: &Transcript) -> Observation {
    let n = transcript.root.namespaces.len();
    good_if(0 < n, format!("help() lists {n} namespaces"), "help() lists no namespace")
}
