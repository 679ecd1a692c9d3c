//! Renders the form for a tool's parameters, and converts a sent form to arguments.

use catalog::{Contract, Parameter};
use maud::{Markup, html};
use serde_json::{Map, Value};

use crate::request::Fields;

/// The prefix of the field name of every argument.
const PREFIX: &str = "argument.";

/// The kind of input field for a parameter.
enum InputKind {
    Text,
    Number,
    Choice(Vec<String>),
    Json,
}

/// Renders a field for each parameter, filled in with the values that were sent before.
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
            @match input_kind(parameter) {
                // Browsers drop the first line break in a text area.
                InputKind::Text => { textarea.line rows="1" id=(id) name=(name) aria-describedby=(hint) required[parameter.required] { "\n" (value) } }
                InputKind::Number => { input type="number" step="any" id=(id) name=(name) value=(value) aria-describedby=(hint) required[parameter.required]; }
                InputKind::Choice(choices) => {
                    select id=(id) name=(name) aria-describedby=(hint) required[parameter.required] {
                        option value="" { "–" }
                        @for choice in &choices { option value=(choice) selected[choice == value] { (choice) } }
                    }
                }
                InputKind::Json => { textarea id=(id) name=(name) aria-describedby=(hint) placeholder="JSON" { (value) } }
            }
        }
    }
}

fn input_kind(parameter: &Parameter) -> InputKind {
    match parameter.kind.trim_end_matches('?') {
        "string" => InputKind::Text,
        "integer" | "number" => InputKind::Number,
        "boolean" => InputKind::Choice(vec!["true".to_owned(), "false".to_owned()]),
        kind => {
            let choices: Option<Vec<String>> =
                kind.split('|').map(|choice| serde_json::from_str(choice.trim()).ok()).collect();
            choices.map_or(InputKind::Json, InputKind::Choice)
        }
    }
}

/// Converts a sent form to arguments. Empty fields are left out.
pub(crate) fn arguments(contract: &Contract, sent: &Fields) -> Result<Map<String, Value>, String> {
    let mut arguments = Map::new();
    for parameter in &contract.parameters {
        let text = sent.get(&format!("{PREFIX}{}", parameter.name));
        if text.is_empty() {
            continue;
        }
        let value = match input_kind(parameter) {
            InputKind::Text => Value::String(normalize_newlines(text)),
            // The gateway converts these to the types of the schema.
            InputKind::Number | InputKind::Choice(_) => Value::String(text.to_owned()),
            InputKind::Json => serde_json::from_str(text)
                .map_err(|error| format!("`{}` is not JSON: {error}", parameter.name))?,
        };
        arguments.insert(parameter.name.clone(), value);
    }
    Ok(arguments)
}

/// Converts the line ends of browsers, `\r\n`, to `\n`.
pub(crate) fn normalize_newlines(text: &str) -> String {
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
        let contract = Contract::parse(&schema.into());
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
