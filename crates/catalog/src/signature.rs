//! Writes the signature of a function in one line: names, types, required or not.

use crate::{Contract, Parameter};

/// No name that anybody types is longer; whoever lists one buys no room with it.
const NAME: usize = 128;

/// The same with the members of required objects, `edits: {old: string}[]`,
/// where all of it fits.
pub fn shaped(name: &str, contract: &Contract, limit: usize) -> String {
    let shapes = contract.shapes();
    let shaped = |parameter: &Parameter| {
        let own = shapes.iter().find(|(other, _)| other.name == parameter.name);
        own.map_or_else(|| parameter.kind.clone(), |(_, shape)| shape.clone())
    };
    let text = written(name, contract, limit, shaped);
    match shapes.is_empty() || text.ends_with("…)") {
        true => one_line(name, contract, limit),
        false => text,
    }
}

/// `search(query: string, limit?: integer)`, at most `limit` characters; what
/// does not fit is left out from the end and marked with `…`.
pub fn one_line(name: &str, contract: &Contract, limit: usize) -> String {
    written(name, contract, limit, |parameter| parameter.kind.clone())
}

fn written(
    name: &str,
    contract: &Contract,
    limit: usize,
    kind: impl Fn(&Parameter) -> String,
) -> String {
    let mut text = format!("{}(", crate::summary::cut(name, NAME));
    let room = limit.saturating_sub(4);
    for (at, parameter) in contract.parameters.iter().enumerate() {
        let mark = if parameter.required { "" } else { "?" };
        let comma = if at == 0 { "" } else { ", " };
        let part = format!("{comma}{}{mark}: {}", parameter.display(), kind(parameter));
        if room < text.chars().count() + part.chars().count() {
            text.push_str(comma);
            text.push('…');
            break;
        }
        text.push_str(&part);
    }
    text.push(')');
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tool::Json;

    use super::*;

    #[track_caller]
    fn check(schema: serde_json::Value, limit: usize, expected: &str) {
        assert_eq!(one_line("f", &Contract::read(&Json::from(schema)), limit), expected);
    }

    #[test]
    fn required_arguments_come_first_and_optional_ones_are_marked() {
        let schema = json!({
            "properties": {"limit": {"type": "integer"}, "query": {"type": "string"}},
            "required": ["query"],
        });
        check(schema, 80, "f(query: string, limit?: integer)");
        check(json!({}), 80, "f()");
    }

    #[test]
    fn a_signature_that_is_too_long_ends_with_a_mark() {
        let schema =
            json!({"properties": {"alpha": {"type": "string"}, "beta": {"type": "string"}}});
        check(schema, 24, "f(alpha?: string, …)");
    }

    #[test]
    fn the_members_of_required_objects_are_told_where_they_fit() {
        let edit = json!({
            "properties": {"old": {"type": "string"}, "note": {"type": "string"}},
            "required": ["old"],
        });
        let edits = json!({"type": "array", "items": edit});
        let schema = json!({"properties": {"edits": edits}, "required": ["edits"]});
        let contract = Contract::read(&Json::from(schema));
        let shape = "f(edits: {old: string, note?: string}[])";
        assert_eq!(shaped("f", &contract, 80), shape);
        assert_eq!(shaped("f", &contract, 30), "f(edits: object[])");
    }

    #[test]
    fn a_name_without_end_is_cut() {
        let signature = one_line(&"f".repeat(10_000), &Contract::read(&Json::from(json!({}))), 80);
        assert_eq!(signature, format!("{}…()", "f".repeat(NAME - 1)));
    }
}
