//! Hints that were written for a model, as a person types them.

use std::sync::LazyLock;

use regex::{Captures, Regex};
use serde_json::{Map, Value};

/// A verb with its arguments, as models write one.
static VERB: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"`(help|call|skill)\(([^`]*)\)`").expect("it is well formed"));

/// Where a long list goes on.
static PAGE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"`page` (\d+), or search with `query`").expect("it is well formed")
});

/// What `help` understands.
static ARGUMENTS: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?m)^Supported arguments \(in kwargs\): .*$").expect("it is well formed")
});

const FLAGS: &str = "Flags: `--query` (search all functions), `--limit` (of a search), `--full` and \
                     `--examples` (of a function), `--page` (of a long list).";

/// The text with its hints as commands. What cannot be said so stays.
pub(super) fn typed(text: &str) -> String {
    let text = PAGE.replace_all(text, "`--page $1`, or search with `--query`");
    let text = ARGUMENTS.replace(&text, FLAGS);
    let command = |found: &Captures<'_>| {
        command(&found[1], &found[2])
            .map_or_else(|| found[0].to_owned(), |typed| format!("`{typed}`"))
    };
    VERB.replace_all(&text, command).into_owned()
}

fn command(verb: &str, written: &str) -> Option<String> {
    let mut given = arguments(written)?;
    let mut text = |key: &str| {
        let word = given.get(key)?.as_str().filter(|text| is_a_word(text))?.to_owned();
        given.remove(key);
        Some(word)
    };
    let thing = if verb == "skill" { "skillname" } else { "function" };
    let (namespace, thing) = (text("namespace"), text(thing));
    let names = [namespace, thing].into_iter().flatten().filter(|name| !name.is_empty());
    let between = if verb == "skill" { " " } else { "." };
    let names = names.collect::<Vec<_>>().join(between);
    let rest = match given.remove("kwargs") {
        Some(Value::Object(kwargs)) => flags(verb, &kwargs)?,
        Some(_) => return None,
        None => String::new(),
    };
    let command = format!("gatelet {verb} {names}");
    given.is_empty().then(|| format!("{}{rest}", command.trim_end()))
}

/// `a="x", b={…}` as an object.
fn arguments(written: &str) -> Option<Map<String, Value>> {
    let mut rest = written.trim();
    let mut all = Map::new();
    while !rest.is_empty() {
        let (key, after) = rest.split_once('=')?;
        let mut values = serde_json::Deserializer::from_str(after).into_iter::<Value>();
        let value = values.next()?.ok()?;
        all.insert(key.trim().to_owned(), value);
        rest = after[values.byte_offset()..].trim_start_matches([',', ' ']);
    }
    Some(all)
}

fn flags(verb: &str, kwargs: &Map<String, Value>) -> Option<String> {
    if verb == "call" {
        let object = Value::Object(kwargs.clone()).to_string();
        return (!object.contains('\'')).then(|| format!(" '{object}'"));
    }
    let flag = |(key, value): (&String, &Value)| match (key.as_str(), value) {
        ("query", Value::String(words)) if !words.contains(['"', '$', '`']) => {
            Some(format!(" --query \"{words}\""))
        }
        ("page" | "limit", Value::Number(number)) => Some(format!(" --{key} {number}")),
        ("params", _) => Some(" --full".to_owned()),
        ("examples", _) => Some(" --examples".to_owned()),
        _ => None,
    };
    kwargs.iter().map(flag).collect()
}

fn is_a_word(text: &str) -> bool {
    text.chars().all(|c| c.is_alphanumeric() || matches!(c, '.' | '_' | '-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(typed(text), expected);
    }

    #[test]
    fn hints_are_given_as_commands() {
        check("Use `help()`.", "Use `gatelet help`.");
        check("`help(namespace=\"a.b\")`", "`gatelet help a.b`");
        check("`help(namespace=\"a\", function=\"b\")`", "`gatelet help a.b`");
        check("`help(kwargs={\"query\": \"send mail\"})`", "`gatelet help --query \"send mail\"`");
        check("`skill(namespace=\"a\", skillname=\"b\")`", "`gatelet skill a b`");
        check(
            "`call(namespace=\"a\", function=\"b\", kwargs={\"x\": 1})`",
            "`gatelet call a.b '{\"x\":1}'`",
        );
        check(
            "250 more: `page` 2, or search with `query`.",
            "250 more: `--page 2`, or search with `--query`.",
        );
    }

    #[test]
    fn arguments_are_given_as_flags() {
        let text = "a\n\nSupported arguments (in kwargs): query (search), page.\n";
        assert_eq!(typed(text), format!("a\n\n{FLAGS}\n"));
    }

    #[test]
    fn what_cannot_be_typed_stays_as_it_is() {
        for text in
            ["`help(x)`", "`call(function=\"a b\")`", "help()", "`skill(kwargs={\"a\": 1})`"]
        {
            check(text, text);
        }
    }
}
