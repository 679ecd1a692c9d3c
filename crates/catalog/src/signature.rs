//! Writes the signature of a function in one line: names, types, required or not.

use tool::Prompt;
use tool::listing::PromptArgument;

use crate::{Contract, Parameter, index};

/// The most characters of a name. Real names are shorter.
const NAME: usize = 128;

/// The most characters of arguments that are shown because they are required or named by
/// a query, whatever the limit.
const NAMED: usize = 90;

/// Shown instead of arguments that a schema does not declare.
pub const UNDECLARED: &str = "arguments not declared";

/// `search(query: string, limit?: integer)`, at most `limit` characters; what
/// does not fit is left out from the end and marked with `…`.
pub fn one_line(name: &str, contract: &Contract, limit: usize) -> String {
    let parts = typed(contract, |parameter| parameter.kind.clone());
    let room = room_beside(name, limit);
    in_parentheses(name, &joined(&parts, room, |_| Priority::Other))
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

/// The signature for the reply to a search. Where not everything fits, required arguments
/// and those that the query names keep at least their names, also beyond `limit` where
/// these have up to [`NAMED`] characters; then come the types of required arguments, and
/// of the others as many names as fit. `stems` are the query's words, as [`index::terms`]
/// makes them.
pub fn for_query(name: &str, contract: &Contract, limit: usize, stems: &[String]) -> String {
    if let Some(text) = undeclared(name, contract).or_else(|| with_members(name, contract, limit)) {
        return text;
    }
    let priority: Vec<Priority> =
        contract.parameters.iter().map(|parameter| Priority::of(parameter, stems)).collect();
    in_parentheses(name, &fitted(contract, room_beside(name, limit), &priority))
}

/// The arguments of a prompt in parentheses, at most `limit` characters.
pub fn of_prompt(prompt: &Prompt, limit: usize) -> String {
    let part = |argument: &PromptArgument| {
        format!("{}{}: string", argument.name, if argument.required { "" } else { "?" })
    };
    let parts: Vec<String> = prompt.arguments.iter().map(part).collect();
    let priority = |at: usize| match prompt.arguments[at].required {
        true => Priority::Required,
        false => Priority::Other,
    };
    in_parentheses("", &joined(&parts, room_beside("", limit), priority))
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
    joined(&parts, limit, |at| Priority::of(&contract.parameters[at], &[]))
}

/// How important an argument is when not all of them fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Priority {
    Required,
    /// The query has all words of its name.
    Named,
    /// The query has a word of its name.
    Touched,
    Other,
}

impl Priority {
    fn of(parameter: &Parameter, stems: &[String]) -> Priority {
        if parameter.required {
            return Priority::Required;
        }
        if stems.is_empty() {
            return Priority::Other;
        }
        let words = index::terms(&parameter.name);
        match words.iter().filter(|word| stems.contains(word)).count() {
            0 => Priority::Other,
            n if n == words.len() => Priority::Named,
            _ => Priority::Touched,
        }
    }
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
    let text = joined(&parts, room_beside(name, limit), |_| Priority::Other);
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

/// The parts that fit into `room` characters, in their order, joined by commas; with `…`
/// at the end where some are left out. Parts of high priority are kept first.
fn joined(parts: &[String], room: usize, priority: impl Fn(usize) -> Priority) -> String {
    const COMMA: usize = 2;
    let length = |part: &String| part.chars().count() + COMMA;
    let all: usize = parts.iter().map(length).sum();
    if all <= room.saturating_add(COMMA) {
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

/// The arguments in `room` characters, in their order; with `…` at the end where names
/// are left out. What is required or named gets its name first, also beyond `room`.
fn fitted(contract: &Contract, room: usize, priority: &[Priority]) -> String {
    const COMMA: usize = 2;
    const CUT: usize = 1;
    let length = |part: &str| part.chars().count() + COMMA;
    let forms = forms(contract);
    let typed = |at: usize| forms[at].first().map_or("", String::as_str);
    let bare = |at: usize| forms[at].last().map_or("", String::as_str);
    let mut order: Vec<usize> = (0..forms.len()).collect();
    order.sort_by_key(|at| priority[*at]);
    let n_required = priority.iter().filter(|one| **one == Priority::Required).count();
    let n_important = priority.iter().filter(|one| **one != Priority::Other).count();
    let (required, important) = (&order[..n_required], &order[..n_important]);
    let names: usize = important.iter().map(|at| length(bare(*at))).sum();
    let least: usize = required.iter().map(|at| length(typed(*at))).sum::<usize>()
        + order[n_required..].iter().map(|at| length(bare(*at))).sum::<usize>();
    let mark = CUT + COMMA;
    let mut left = room.max(NAMED.min(names + mark)).saturating_add(COMMA);
    if left < least {
        left = left.saturating_sub(mark);
    }
    let mut written: Vec<Option<&str>> = vec![None; forms.len()];
    let mut write = |part: &[usize], form: &dyn Fn(usize, usize) -> Option<usize>| {
        for at in part {
            let before = written[*at].map_or(0, length);
            let room = left + before;
            let Some(widest) = form(*at, room) else { return false };
            written[*at] = Some(&forms[*at][widest]);
            left = room - length(&forms[*at][widest]);
        }
        true
    };
    let narrow = |at: usize, room: usize| {
        let last = forms[at].len() - 1;
        (length(&forms[at][last]) <= room).then_some(last)
    };
    let wide = |at: usize, room: usize| forms[at].iter().position(|form| length(form) <= room);
    // Names that matter, then types of what is required, then other names, then types.
    if write(important, &narrow) {
        write(required, &wide);
        write(&order[n_important..], &narrow);
        write(&order, &wide);
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
        // Required names and named ones stay in whatever room there is; types do not.
        assert_eq!(asked(due, 13), "f(content, priority?, due_string?, …)");
        assert_eq!(asked("add a task", 13), "f(content, …)");
    }

    #[test]
    fn names_without_end_are_kept_only_up_to_a_bound() {
        let properties: serde_json::Map<String, serde_json::Value> =
            (0..200).map(|n| (format!("label_{n}"), json!({"type": "string"}))).collect();
        let contract = Contract::parse(&Json::from(json!({"properties": properties})));
        let shown = |query: &str, limit| for_query("f", &contract, limit, &index::terms(query));
        let text = shown("the label 77", 40);
        assert!(text.starts_with("f(label_0?, label_1?, ") && text.ends_with(", …)"), "{text}");
        assert!(text.chars().count() <= 3 + NAMED, "{text}");
        assert!(shown("something else", 40).chars().count() <= 40);
    }

    #[test]
    fn a_name_that_the_query_has_whole_goes_before_one_that_shares_a_word() {
        let text = json!({"type": "string"});
        let filler = (0..12).map(|n| (format!("issue_number_{n}"), text.clone()));
        let mut properties: serde_json::Map<String, serde_json::Value> = filler.collect();
        properties.insert("priority".to_owned(), text.clone());
        let contract = Contract::parse(&Json::from(json!({"properties": properties})));
        let shown = for_query("f", &contract, 40, &index::terms("an issue with a priority"));
        assert!(shown.ends_with("priority?, …)"), "{shown}");
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
        assert_eq!(shown(32), "f(edits: {old, new}[], path, …)");
        assert_eq!(shown(28), "f(edits: object[], path, …)");
        assert_eq!(shown(16), "f(edits[], path, …)");
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
