//! How a function is called, in one line: names, types, required or not.

use crate::Contract;

/// `search(query: string, limit?: integer)`, at most `limit` characters; what
/// does not fit is left out from the end and marked with `…`.
pub fn of(name: &str, contract: &Contract, limit: usize) -> String {
    let mut text = format!("{name}(");
    let room = limit.saturating_sub(4);
    for (at, parameter) in contract.parameters.iter().enumerate() {
        let mark = if parameter.required { "" } else { "?" };
        let comma = if at == 0 { "" } else { ", " };
        let part = format!("{comma}{}{mark}: {}", parameter.display(), parameter.kind);
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
        assert_eq!(of("f", &Contract::read(&Json::from(schema)), limit), expected);
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
}
