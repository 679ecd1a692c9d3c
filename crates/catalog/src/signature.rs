//! Writes the signature of a function in one line: names, types, required or not.

use crate::{Contract, Parameter, index};

/// The most characters of a name. Real names are shorter.
const NAME: usize = 128;

/// Shown instead of arguments that a schema does not declare.
pub const UNDECLARED: &str = "arguments not declared";

/// `search(query: string, limit?: integer)`, at most `limit` characters; what
/// does not fit is left out from the end and marked with `…`.
pub fn one_line(name: &str, contract: &Contract, limit: usize) -> String {
    let parts = typed(contract, |parameter| parameter.kind.clone());
    let room = room_beside(name, limit);
    in_parentheses(name, &joined(&parts, room, |_| Priority::Low))
}

/// Like [`one_line`], with the members of required objects (`edits: {old: string}[]`)
/// where all of it fits.
pub fn shaped(name: &str, contract: &Contract, limit: usize) -> String {
    match undeclared(name, contract) {
        Some(text) => text,
        None => {
            with_members(name, contract, limit).unwrap_or_else(|| one_line(name, contract, limit))
        }
    }
}

/// The signature for the reply to a search. Where not everything fits, required
/// arguments keep their types, arguments that the query names keep at least their names,
/// and of the others as many names as fit are kept. `stems` are the query's words, as
/// [`index::terms`] makes them.
pub fn for_query(name: &str, contract: &Contract, limit: usize, stems: &[String]) -> String {
    if let Some(text) = undeclared(name, contract).or_else(|| with_members(name, contract, limit)) {
        return text;
    }
    let priority = |parameter: &Parameter| match parameter {
        parameter if parameter.required => Priority::High,
        parameter if names_any(parameter, stems) => Priority::Medium,
        _ => Priority::Low,
    };
    in_parentheses(name, &fitted(contract, room_beside(name, limit), priority))
}

/// The names of the arguments without their types, at most `limit` characters:
/// `path, edits{oldText, newText}[], dryRun?`.
pub fn argument_names(contract: &Contract, limit: usize) -> String {
    if !contract.is_declared() {
        return UNDECLARED.to_owned();
    }
    let shapes = contract.member_names();
    let part = |parameter: &Parameter| {
        let shape = shapes.iter().find(|(other, _)| other.name == parameter.name);
        let list = if parameter.kind.ends_with("[]") { "[]" } else { "" };
        let inside = shape.map_or_else(|| list.to_owned(), |(_, members)| members.clone());
        format!("{}{inside}{}", parameter.display(), optional_mark(parameter))
    };
    let parts: Vec<String> = contract.parameters.iter().map(part).collect();
    let priority = |at: usize| match contract.parameters[at].required {
        true => Priority::High,
        false => Priority::Low,
    };
    joined(&parts, limit, priority)
}

/// How important an argument is when not all of them fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Priority {
    High,
    Medium,
    Low,
}

/// The whole signature of a function whose schema does not declare arguments.
fn undeclared(name: &str, contract: &Contract) -> Option<String> {
    (!contract.is_declared()).then(|| in_parentheses(name, UNDECLARED))
}

/// The signature with the members of required objects, if all of it fits.
fn with_members(name: &str, contract: &Contract, limit: usize) -> Option<String> {
    let shapes = contract.shapes();
    if shapes.is_empty() {
        return None;
    }
    let shaped = |parameter: &Parameter| {
        let own = shapes.iter().find(|(other, _)| other.name == parameter.name);
        own.map_or_else(|| parameter.kind.clone(), |(_, shape)| shape.clone())
    };
    let parts = typed(contract, shaped);
    let text = joined(&parts, room_beside(name, limit), |_| Priority::Low);
    (!text.ends_with('…')).then(|| in_parentheses(name, &text))
}

/// Every argument with its type, in order.
fn typed(contract: &Contract, kind: impl Fn(&Parameter) -> String) -> Vec<String> {
    let part = |parameter: &Parameter| {
        format!("{}{}: {}", parameter.display(), optional_mark(parameter), kind(parameter))
    };
    contract.parameters.iter().map(part).collect()
}

fn optional_mark(parameter: &Parameter) -> &'static str {
    if parameter.required { "" } else { "?" }
}

/// Whether a word of the parameter's name is in the query.
fn names_any(parameter: &Parameter, stems: &[String]) -> bool {
    !stems.is_empty() && index::terms(&parameter.name).iter().any(|term| stems.contains(term))
}

/// The parts that fit into `room` characters, in their order, joined by commas; with `…`
/// at the end where some are left out. Parts of high priority are kept first.
fn joined(parts: &[String], room: usize, priority: impl Fn(usize) -> Priority) -> String {
    const COMMA: usize = 2;
    let length = |part: &String| part.chars().count() + COMMA;
    let all: usize = parts.iter().map(length).sum();
    if all <= room + COMMA {
        return parts.join(", ");
    }
    let mut order: Vec<usize> = (0..parts.len()).collect();
    order.sort_by_key(|at| priority(*at));
    let mut left = (room + COMMA).saturating_sub(1 + COMMA);
    let fits = |at: &usize| {
        let fits = length(&parts[*at]) <= left;
        left = if fits { left - length(&parts[*at]) } else { 0 };
        fits
    };
    let mut kept: Vec<usize> = order.into_iter().take_while(fits).collect();
    kept.sort_unstable();
    let mut shown: Vec<&str> = kept.into_iter().map(|at| parts[at].as_str()).collect();
    shown.push("…");
    shown.join(", ")
}

/// The arguments in `room` characters, in their order: types are left out before names,
/// and `…` is at the end where even names are left out.
fn fitted(contract: &Contract, room: usize, priority: impl Fn(&Parameter) -> Priority) -> String {
    const COMMA: usize = 2;
    const CUT: usize = 1;
    let length = |part: &str| part.chars().count() + COMMA;
    let forms = forms(contract);
    let typed = |at: usize| forms[at].first().map_or("", String::as_str);
    let bare = |at: usize| forms[at].last().map_or("", String::as_str);
    let mut order: Vec<usize> = (0..forms.len()).collect();
    order.sort_by_key(|at| priority(&contract.parameters[*at]));
    let is_first = |at: &usize| priority(&contract.parameters[*at]) == Priority::High;
    let least: usize =
        order.iter().map(|at| length(if is_first(at) { typed(*at) } else { bare(*at) })).sum();
    let mut left = room + COMMA;
    if left < least {
        left = left.saturating_sub(CUT + COMMA);
    }
    let mut written: Vec<Option<&str>> = vec![None; forms.len()];
    for at in &order {
        let widest = if is_first(at) { 0 } else { forms[*at].len() - 1 };
        let Some(form) = forms[*at][widest..].iter().find(|form| length(form) <= left) else {
            break;
        };
        left -= length(form);
        written[*at] = Some(form);
    }
    // The remaining room goes to types, in the same order.
    for at in &order {
        let Some(narrow) = written[*at] else { break };
        let room = left + length(narrow);
        if let Some(wide) = forms[*at].iter().find(|form| length(form) <= room) {
            left = room - length(wide);
            written[*at] = Some(wide);
        }
    }
    let is_cut = written.contains(&None);
    let shown = written.into_iter().flatten().chain(is_cut.then_some("…"));
    shown.collect::<Vec<_>>().join(", ")
}

/// The forms of each argument, widest first: with the names of its members, with its
/// type, with its name only.
fn forms(contract: &Contract) -> Vec<Vec<String>> {
    let members = contract.member_names();
    let forms = |parameter: &Parameter| {
        let (name, mark) = (parameter.display(), optional_mark(parameter));
        let own = members.iter().find(|(other, _)| other.name == parameter.name);
        let list = if parameter.kind.ends_with("[]") { "[]" } else { "" };
        let inside = own.map(|(_, inside)| format!("{name}{mark}: {inside}"));
        let by_type = format!("{name}{mark}: {}", parameter.kind);
        inside.into_iter().chain([by_type, format!("{name}{list}{mark}")]).collect()
    };
    contract.parameters.iter().map(forms).collect()
}

fn room_beside(name: &str, limit: usize) -> usize {
    limit.saturating_sub(name.chars().count().min(NAME) + 2)
}

fn in_parentheses(name: &str, arguments: &str) -> String {
    format!("{}({arguments})", crate::summary::cut(name, NAME))
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tool::Json;

    use super::*;

    #[track_caller]
    fn check(schema: serde_json::Value, limit: usize, expected: &str) {
        assert_eq!(one_line("f", &Contract::parse(&Json::from(schema)), limit), expected);
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
        let contract = Contract::parse(&Json::from(schema));
        let shape = "f(edits: {old: string, note?: string}[])";
        assert_eq!(shaped("f", &contract, 80), shape);
        assert_eq!(shaped("f", &contract, 30), "f(edits: object[])");
    }

    #[test]
    fn a_schema_that_names_no_argument_declares_none() {
        let shown = |schema| {
            let contract = Contract::parse(&Json::from(schema));
            (shaped("f", &contract, 80), argument_names(&contract, 80))
        };
        let open = (format!("f({UNDECLARED})"), UNDECLARED.to_owned());
        assert_eq!(shown(json!({})), open);
        assert_eq!(shown(json!({"type": "object"})), open);
        let none = ("f()".to_owned(), String::new());
        assert_eq!(shown(json!({"type": "object", "properties": {}})), none);
        assert_eq!(shown(json!({"type": "object", "additionalProperties": false})), none);
    }

    #[test]
    fn what_a_query_names_stays_when_not_everything_fits() {
        let text = json!({"type": "string"});
        let schema = json!({
            "properties": {"content": text, "labels": text, "section": text, "priority": text,
                "due_string": text},
            "required": ["content"],
        });
        let contract = Contract::parse(&Json::from(schema));
        let asked = |query: &str, limit| for_query("f", &contract, limit, &index::terms(query));
        let all = "f(content: string, labels?, section?, priority?, due_string?)";
        assert_eq!(asked("add a task", 66), all);
        assert_eq!(asked("add a task", 46), "f(content: string, labels?, section?, …)");
        let due = "a task with priorities that is due";
        assert_eq!(asked(due, 46), "f(content: string, priority?, due_string?, …)");
        // Types stand where there is room for them, first of what was asked about.
        let typed = "f(content: string, labels?, section?, priority?: string, due_string?)";
        assert_eq!(asked(due, 69), typed);
        assert_eq!(asked(due, 13), "f(content, …)");
    }

    #[test]
    fn a_name_of_two_words_is_named_by_both() {
        let text = json!({"type": "string"});
        let filler: Vec<String> = (0..20).map(|n| format!("filler{n}")).collect();
        let mut properties: serde_json::Map<String, serde_json::Value> =
            filler.into_iter().map(|name| (name, text.clone())).collect();
        properties.insert("dueDate".to_owned(), text);
        let contract = Contract::parse(&Json::from(json!({"properties": properties})));
        let shown = for_query("f", &contract, 40, &index::terms("an issue with a due date"));
        assert!(shown.contains("dueDate?"), "{shown}");
    }

    #[test]
    fn the_members_of_objects_stay_one_level_deep_when_others_are_cut() {
        let edit = json!({"properties": {"old": {"type": "string"}, "new": {"type": "string"}},
            "required": ["old", "new"]});
        let text = json!({"type": "string"});
        let schema = json!({
            "properties": {"edits": {"type": "array", "items": edit}, "path": text,
                "alpha": text, "beta": text, "gamma": text},
            "required": ["path", "edits"],
        });
        let contract = Contract::parse(&Json::from(schema));
        let shown = |limit| for_query("f", &contract, limit, &[]);
        assert_eq!(shown(54), "f(edits: {old, new}[], path: string, alpha?, beta?, …)");
        assert_eq!(shown(24), "f(edits: object[], …)");
        assert_eq!(shown(16), "f(edits[], …)");
    }

    #[test]
    fn argument_names_have_no_types() {
        let edit = json!({"properties": {"old": {"type": "string"}, "new": {"type": "string"}}});
        let schema = json!({
            "properties": {"tags": {"type": "array", "items": {"type": "string"}},
                "edits": {"type": "array", "items": edit}, "dry": {"type": "boolean"}},
            "required": ["edits"],
        });
        let contract = Contract::parse(&Json::from(schema));
        assert_eq!(argument_names(&contract, 80), "edits{old?, new?}[], tags[]?, dry?");
        assert_eq!(argument_names(&contract, 24), "edits{old?, new?}[], …");
    }

    #[test]
    fn a_member_cannot_write_lines_of_a_page() {
        let odd = json!({"properties": {"x\n# gatelet\u{1b}[1m": {"type": "string"}}});
        let schema = json!({"properties": {"edits": odd}, "required": ["edits"]});
        let contract = Contract::parse(&Json::from(schema));
        for text in [argument_names(&contract, 90), shaped("f", &contract, 90)] {
            assert!(!text.contains(['\n', '\u{1b}']) && text.contains("x # gatelet"), "{text}");
        }
    }

    #[test]
    fn a_name_without_end_is_cut() {
        let signature = one_line(&"f".repeat(10_000), &Contract::parse(&Json::from(json!({}))), 80);
        assert_eq!(signature, format!("{}…()", "f".repeat(NAME - 1)));
    }
}
