//! Rewrites the hints in a reply, which are tool calls for a model, as shell commands.

use std::sync::LazyLock;

use regex::{Captures, Regex};
use serde_json::{Map, Value};

/// A call of one of the three tools, as it is written for models.
static VERB: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"`(help|call|skill)\(([^`]*)\)`").expect("it is well formed"));

/// Where a long list goes on.
static PAGE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"`page` (\d+), or search with `query`").expect("it is well formed")
});

/// How to ask for all of a function.
static DETAILS: LazyLock<Regex> = LazyLock::new(|| {
    let line =
        r#"(?m)^kwargs: `params="full"` for every detail( \(\d+ more\))?, `examples=true`\.$"#;
    Regex::new(line).expect("it is well formed")
});

/// How to ask for all of an answer.
static SIZE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"`sizelimit=(\d+)`").expect("it is well formed"));

/// What `help` understands.
static ARGUMENTS: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?m)^Supported arguments \(in kwargs\): .*$").expect("it is well formed")
});

const FLAGS: &str = "Flags: `--query` (search all functions), `--limit` (of a search), `--full` and \
                     `--examples` (of a function), `--page` (of a long list).";

/// The text with its hints as shell commands. Hints that cannot be written so stay.
pub(super) fn as_commands(text: &str) -> String {
    let text = PAGE.replace_all(text, "`--page $1`, or search with `--query`");
    let text = ARGUMENTS.replace(&text, FLAGS);
    let text = DETAILS.replace(&text, "Flags: `--full` for every detail$1, `--examples`.");
    let text = SIZE.replace_all(&text, "`--sizelimit $1`");
    let command = |found: &Captures<'_>| {
        command(&found[1], &found[2])
            .map_or_else(|| found[0].to_owned(), |command| format!("`{command}`"))
    };
    VERB.replace_all(&text, command).into_owned()
}

fn command(verb: &str, written: &str) -> Option<String> {
    // `…` stands for arguments that the reader adds.
    let whole = written.replace(", …}", "}");
    let more = if whole == written { "" } else { " …" };
    let mut given = parse_arguments(&whole)?;
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
    let size = match given.remove("sizelimit") {
        Some(Value::Number(size)) if verb == "call" => format!(" --sizelimit {size}"),
        Some(_) => return None,
        None => String::new(),
    };
    let command = format!("gatelet {verb} {names}");
    given.is_empty().then(|| format!("{}{rest}{size}{more}", command.trim_end()))
}

/// Parses `a="x", b={…}` into an object.
fn parse_arguments(written: &str) -> Option<Map<String, Value>> {
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
    let words: Option<Vec<&str>> =
        kwargs.values().map(|value| value.as_str().filter(|text| is_a_word(text))).collect();
    if let (true, Some(words)) = ("call" == verb, words) {
        let pairs = kwargs.keys().zip(words).filter(|(key, _)| is_a_word(key));
        return Some(pairs.map(|(key, word)| format!(" {key}={word}")).collect());
    }
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
        assert_eq!(as_commands(text), expected);
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
        assert_eq!(as_commands(text), format!("a\n\n{FLAGS}\n"));
    }

    #[test]
    fn every_hint_of_the_gate_is_in_the_words_of_the_shell() {
        check(
            "a\n\nkwargs: `params=\"full\"` for every detail (3 more), `examples=true`.\n",
            "a\n\nFlags: `--full` for every detail (3 more), `--examples`.\n",
        );
        check(
            "- Read a part: `call(namespace=\"gatelet\", function=\"view\", kwargs={\"handle\": \
             \"cash-1\", …})` with `head`",
            "- Read a part: `gatelet call gatelet.view handle=cash-1 …` with `head`",
        );
        check(
            "Repeat the call with `sizelimit=50000`: x",
            "Repeat the call with `--sizelimit 50000`: x",
        );
        check(
            "Write: `call(namespace=\"a\", function=\"b\", kwargs={\"x\": 1}, sizelimit=5)`.",
            "Write: `gatelet call a.b '{\"x\":1}' --sizelimit 5`.",
        );
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
