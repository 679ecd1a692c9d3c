//! Skills of CaSH servers behind gatelet, with their references to functions rewritten.
//!
//! Such a server fills in the placeholders of a skill itself. Its text refers to functions
//! by their namespace on that server; at gatelet they are below the server's label, so the
//! label is inserted. That works through any number of gatelets in a row.

use tool::reply::ToolResult;
use tool::{Json, Listing, Object};

use super::{MAX_SKILLS, at_upstream, bounded};
use crate::route::Route;
use crate::skill::{Content, Form, Skill};
use crate::{reference, strip};

/// The extension of a provider that answers [`LIST`] and [`READ`].
pub const EXTENSION: &str = "gatelet/cash";
/// The method that returns `{"skills": [{"namespace", "name", "description"}]}`.
pub const LIST: &str = "cash/skills";
pub use policy::call::SKILL as READ;

/// How many levels of a namespace on a server are used.
const MAX_DEPTH: usize = 8;

/// Returns whether a listing is that of a CaSH server. The extension alone does not make
/// it one, because any server could claim it.
pub fn offers(listing: &Listing) -> bool {
    listing.is_nested && super::has_extension(&listing.server, EXTENSION)
}

/// Parses the skills that a server lists.
pub fn from_list(label: &str, list: &Json) -> Vec<Skill> {
    let entries: Vec<Json> = list.member_as("skills").unwrap_or_default();
    entries.iter().take(MAX_SKILLS).filter_map(|entry| from_entry(label, entry)).collect()
}

fn from_entry(label: &str, entry: &Json) -> Option<Skill> {
    let text = |key: &str| entry.member_as::<String>(key);
    let (namespace, name) = (text("namespace").unwrap_or_default(), text("name")?);
    let levels = namespace.split('.').filter(|level| !level.is_empty()).take(MAX_DEPTH);
    let levels = levels.map(catalog::name::alias);
    let here = std::iter::once(label.to_owned()).chain(levels).collect::<Vec<_>>().join(".");
    let route = Route::Cash { namespace, name: name.clone() };
    let words = text("description").unwrap_or_default();
    Some(at_upstream(label, here, &name, &words, route))
}

/// Returns the arguments for `skill` on that server. Of the given values, those that
/// address the skill are not values for its placeholders.
pub fn arguments(namespace: &str, name: &str, given: &[(&str, &Json)]) -> Object {
    let mut kwargs = Object::new();
    for (key, value) in
        given.iter().filter(|(key, _)| !ADDRESS_ARGUMENTS.iter().any(|one| one == key))
    {
        kwargs.push(*key, (*value).clone());
    }
    Object::from_iter([
        ("namespace".to_owned(), Json::encode(namespace)),
        ("skillname".to_owned(), Json::encode(name)),
        ("kwargs".to_owned(), kwargs.to_json()),
    ])
}

const ADDRESS_ARGUMENTS: [&str; 4] = ["namespace", "skillname", "name", "skill"];

/// Returns the skill with the text that was fetched. `is_here` returns whether the reader
/// sees a namespace at gatelet.
pub fn from_result(
    skill: &Skill,
    label: &str,
    result: &ToolResult,
    is_here: &dyn Fn(&str) -> bool,
) -> Result<Skill, String> {
    let text = result_text(result);
    bounded(&text)?;
    let (body, _) = strip::executable(text.trim());
    let body = relocated(&body, label, is_here);
    let functions = reference::mentioned(&body);
    Ok(Skill { functions, content: Content::Text { body, form: Form::Plain }, ..skill.clone() })
}

/// Returns the text of a result. Blocks that are not text are replaced by a note.
pub fn result_text(result: &ToolResult) -> String {
    let block = |block: &Json| {
        block.member_as::<String>("text").unwrap_or_else(|| {
            let kind: String = block.member_as("type").unwrap_or_default();
            format!("[{} omitted]", catalog::summary::cut(&kind, 20))
        })
    };
    result.content.iter().map(block).collect::<Vec<_>>().join("\n")
}

/// Puts the namespaces in `call(…)`, `help(…)` and `skill(…)` of a text below `label`. A
/// namespace that does not exist there is left as it is.
fn relocated(text: &str, label: &str, is_here: &dyn Fn(&str) -> bool) -> String {
    let (mut relocated, mut copied) = (String::with_capacity(text.len()), 0);
    for (at, _) in text.match_indices('(') {
        let after = at + 1;
        let Some(verb) = verb(&text[..at]) else { continue };
        let arguments = reference::arguments(&text[after..]);
        if let Some((offset, insertion)) = insertion(verb, arguments, label, is_here) {
            relocated.push_str(&text[copied..after + offset]);
            relocated.push_str(&insertion);
            copied = after + offset;
        }
    }
    relocated.push_str(&text[copied..]);
    relocated
}

/// Returns which of the three tools a text ends with.
fn verb(before: &str) -> Option<&'static str> {
    let is_whole = |verb: &&str| {
        let rest = before.strip_suffix(*verb);
        rest.is_some_and(|rest| !rest.ends_with(|c: char| c.is_alphanumeric() || c == '_'))
    };
    ["call", "help", "skill"].into_iter().find(is_whole)
}

/// Returns the offset in the arguments where a text has to be inserted, and that text.
fn insertion(
    verb: &str,
    arguments: &str,
    label: &str,
    is_here: &dyn Fn(&str) -> bool,
) -> Option<(usize, String)> {
    match reference::argument(arguments, "namespace") {
        Some(namespace) if is_here(&format!("{label}.{namespace}")) => {
            let offset = namespace.as_ptr() as usize - arguments.as_ptr() as usize;
            Some((offset, format!("{label}.")))
        }
        Some(_) => None,
        // A skill can be found without its namespace.
        None if verb == "skill" => None,
        None if reference::argument(arguments, "function").is_some() => {
            Some((0, format!("namespace=\"{label}\", ")))
        }
        None if verb == "help" && arguments.is_empty() => {
            Some((0, format!("namespace=\"{label}\"")))
        }
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let is_here = |namespace: &str| ["shop.orders", "shop.a.b"].contains(&namespace);
        assert_eq!(relocated(text, "shop", &is_here), expected);
    }

    #[test]
    fn what_a_text_calls_is_called_where_it_stands_here() {
        check(
            "Use `call(namespace=\"orders\", function=\"create\", kwargs={})`, then go.",
            "Use `call(namespace=\"shop.orders\", function=\"create\", kwargs={})`, then go.",
        );
        check(
            "call(function='f', namespace='a.b') and skill(namespace=\"orders\", skillname=\"s\")",
            "call(function='f', namespace='shop.a.b') and skill(namespace=\"shop.orders\", skillname=\"s\")",
        );
        check("call(function=\"f\")", "call(namespace=\"shop\", function=\"f\")");
        check("See `help()`.", "See `help(namespace=\"shop\")`.");
    }

    #[test]
    fn what_is_not_there_stays_as_it_is_written() {
        for text in [
            "call(namespace=\"elsewhere\", function=\"f\")",
            "call(namespace=\"{{ns}}\", function=\"f\")",
            "skill(skillname=\"other\")",
            "recall(namespace=\"orders\") and call (me)",
            "call(",
            "call(namespace=\"\", function=\"f\")",
        ] {
            check(text, text);
        }
    }

    #[test]
    fn a_list_is_read_below_the_label_and_odd_entries_are_left_out() {
        let list = serde_json::json!({"skills": [
            {"namespace": "orders.retail", "name": "refund", "description": "Refunds."},
            {"name": "steps"}, {"namespace": 3}, 4,
        ]});
        let skills = from_list("shop", &list.into());
        let paths: Vec<String> = skills.iter().map(Skill::path).collect();
        assert_eq!(paths, ["shop.orders.retail.refund", "shop.steps"]);
    }
}
