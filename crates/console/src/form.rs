//! A form made from what a tool asks for, and arguments made from a form.

use catalog::{Contract, Parameter};
use maud::{Markup, html};
use serde_json::{Map, Value};

use crate::request::Fields;

/// What the name of every field for an argument begins with.
const PREFIX: &str = "argument.";

/// What is typed into a field.
enum Input {
    Text,
    Number,
    Choice(Vec<String>),
    Json,
}

/// A field for each parameter, filled in with what was sent before.
pub(crate) fn fields(contract: &Contract, sent: &Fields) -> Markup {
    html! {
        @if contract.parameters.is_empty() { p.soft { "It takes no arguments." } }
        @for (at, parameter) in contract.parameters.iter().enumerate() { (field(at, parameter, sent)) }
    }
}

fn field(at: usize, parameter: &Parameter, sent: &Fields) -> Markup {
    let name = format!("{PREFIX}{}", parameter.name);
    let (id, hint) = (format!("argument-{at}"), format!("argument-{at}-hint"));
    let value = sent.get(&name);
    html! {
        div.field {
            label for=(id) { (parameter.name) @if parameter.required { span.soft { " (required)" } } }
            p.hint id=(hint) {
                code { (parameter.kind) }
                @if let Some(about) = &parameter.description { " " (about) }
                @if let Some(default) = &parameter.default { " Default: " code { (default) } "." }
            }
            @match input(parameter) {
                // A text may have several lines, and the first of an empty field is not lost.
                Input::Text => { textarea.line rows="1" id=(id) name=(name) aria-describedby=(hint) required[parameter.required] { "\n" (value) } }
                Input::Number => { input type="number" step="any" id=(id) name=(name) value=(value) aria-describedby=(hint) required[parameter.required]; }
                Input::Choice(choices) => {
                    select id=(id) name=(name) aria-describedby=(hint) required[parameter.required] {
                        option value="" { "–" }
                        @for choice in &choices { option value=(choice) selected[choice == value] { (choice) } }
                    }
                }
                Input::Json => { textarea id=(id) name=(name) aria-describedby=(hint) placeholder="JSON" { (value) } }
            }
        }
    }
}

fn input(parameter: &Parameter) -> Input {
    match parameter.kind.trim_end_matches('?') {
        "string" => Input::Text,
        "integer" | "number" => Input::Number,
        "boolean" => Input::Choice(vec!["true".to_owned(), "false".to_owned()]),
        kind => {
            let choices: Option<Vec<String>> =
                kind.split('|').map(|choice| serde_json::from_str(choice.trim()).ok()).collect();
            choices.map_or(Input::Json, Input::Choice)
        }
    }
}

/// The arguments that a form gives. What is left empty is left out; what is no
/// text is read as JSON.
pub(crate) fn arguments(contract: &Contract, sent: &Fields) -> Result<Map<String, Value>, String> {
    let mut arguments = Map::new();
    for parameter in &contract.parameters {
        let text = sent.get(&format!("{PREFIX}{}", parameter.name));
        if text.is_empty() {
            continue;
        }
        let value = match input(parameter) {
            Input::Text => Value::String(lines(text)),
            // The gate makes of these what the tool asks for.
            Input::Number | Input::Choice(_) => Value::String(text.to_owned()),
            Input::Json => serde_json::from_str(text)
                .map_err(|error| format!("`{}` is not JSON: {error}", parameter.name))?,
        };
        arguments.insert(parameter.name.clone(), value);
    }
    Ok(arguments)
}

/// Browsers send lines with two characters at their end.
pub(crate) fn lines(text: &str) -> String {
    text.replace("\r\n", "\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_form_has_a_field_for_every_parameter_and_gives_its_arguments() {
        let schema = json!({
            "type": "object", "required": ["path"],
            "properties": {
                "path": {"type": "string", "description": "<b>where</b>"},
                "depth": {"type": "integer"}, "all": {"type": "boolean"},
                "mode": {"enum": ["fast", "slow"]}, "tags": {"type": "array"},
            },
        });
        let contract = Contract::read(&schema.into());
        let sent = Fields::parse(
            b"argument.path=%2Ftmp%0D%0A&argument.mode=slow&argument.tags=%5B1%5D&argument.depth=3",
        );
        let form = fields(&contract, &sent).into_string();
        for part in [
            "argument.path",
            "argument.depth",
            "type=\"number\"",
            "<option value=\"slow\" selected>",
            "textarea",
        ] {
            assert!(form.contains(part), "no {part}: {form}");
        }
        assert!(form.contains("&lt;b&gt;where"), "what a server says is text: {form}");
        let given = arguments(&contract, &sent).unwrap();
        assert_eq!(
            Value::Object(given),
            json!({"path": "/tmp\n", "mode": "slow", "tags": [1], "depth": "3"})
        );
        let broken = Fields::parse(b"argument.tags=%5B");
        assert!(arguments(&contract, &broken).unwrap_err().contains("tags"));
    }
}
