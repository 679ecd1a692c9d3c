use proptest::prelude::*;
use serde_json::json;

use super::*;

mod made_up;

use made_up::Writer;

fn entry() -> Json {
    json!({"command": "/opt/gate", "args": ["serve", "--stdio"], "env": {"A B": "x\ty\u{7f}"}})
}

const KEYS: &[&str] = &["servers", "gate"];

/// A small entry is put in, the result is as expected, and it is taken out again.
#[track_caller]
fn check(format: Format, before: &str, after: &str) {
    let set = set(before, format, KEYS, &json!({"url": "u"})).unwrap();
    assert_eq!(set.text, after);
    assert_eq!(remove(after, format, KEYS, set.n_created).unwrap(), before);
}

#[test]
fn json_is_laid_out_like_its_neighbours() {
    check(
        Format::Json,
        "{\n\t\"a\": 1, // one\n\t\"servers\": {\n\t\t\"x\": {} // mine\n\t}\n}\n",
        "{\n\t\"a\": 1, // one\n\t\"servers\": {\n\t\t\"x\": {}, // mine\n\t\t\"gate\": {\n\t\t\t\"url\": \"u\"\n\t\t}\n\t}\n}\n",
    );
    check(Format::Json, r#"{"servers":{"x":1}}"#, r#"{"servers":{"x":1,"gate":{"url":"u"}}}"#);
    check(
        Format::Json,
        r#"{"servers": {"x": 1,}}"#,
        r#"{"servers": {"x": 1, "gate": {"url": "u"},}}"#,
    );
    check(
        Format::Json,
        "{\r\n  \"servers\": {}\r\n}",
        "{\r\n  \"servers\": {\r\n    \"gate\": {\r\n      \"url\": \"u\"\r\n    }\r\n  }\r\n}",
    );
    check(
        Format::Json,
        "\u{feff}{\n  \"a\": 1\n}\n",
        "\u{feff}{\n  \"a\": 1,\n  \"servers\": {\n    \"gate\": {\n      \"url\": \"u\"\n    }\n  }\n}\n",
    );
    check(
        Format::Json,
        "{\n  // nothing yet\n}\n",
        "{\n  // nothing yet\n  \"servers\": {\n    \"gate\": {\n      \"url\": \"u\"\n    }\n  }\n}\n",
    );
}

#[test]
fn toml_gets_a_table_at_the_end() {
    check(Format::Toml, "", "[servers.gate]\nurl = \"u\"\n");
    check(
        Format::Toml,
        "# mine\r\na = 1\r\n[servers.x]\r\nb = '''\r\n[servers.gate]\r\n'''\r\n",
        "# mine\r\na = 1\r\n[servers.x]\r\nb = '''\r\n[servers.gate]\r\n'''\r\n\r\n[servers.gate]\r\nurl = \"u\"\r\n",
    );
    check(Format::Toml, "a = 1", "a = 1\n\n[servers.gate]\nurl = \"u\"");
    check(
        Format::Toml,
        "servers = { x = { a = 1 } } # inline\n",
        "servers = { x = { a = 1 }, gate = { url = \"u\" } } # inline\n",
    );
    check(Format::Toml, "servers = {}\n", "servers = { gate = { url = \"u\" } }\n");
}

#[test]
fn yaml_is_indented_like_its_neighbours() {
    check(Format::Yaml, "", "servers:\n  gate:\n    url: u\n");
    check(
        Format::Yaml,
        "a: 1 # one\nservers: # mine\n    x:\n        y: |\n            text\n\n# end\nb: 2\n",
        "a: 1 # one\nservers: # mine\n    x:\n        y: |\n            text\n    gate:\n      url: u\n\n# end\nb: 2\n",
    );
    check(Format::Yaml, "servers: {}\n", "servers: {\"gate\": {\"url\": \"u\"}}\n");
    check(
        Format::Yaml,
        "servers: {x: 1, y: {z: 'q'}} # c\n",
        "servers: {x: 1, y: {z: 'q'}, \"gate\": {\"url\": \"u\"}} # c\n",
    );
    check(Format::Yaml, "a: 1", "a: 1\nservers:\n  gate:\n    url: u");
}

#[test]
fn a_value_that_is_there_is_replaced_in_its_place() {
    let replaced = |format, text: &str| set(text, format, KEYS, &json!({"url": "u"})).unwrap().text;
    assert_eq!(
        replaced(
            Format::Json,
            "{\n  \"servers\": {\n    \"gate\": {\"old\": 1}, // c\n    \"x\": 2\n  }\n}"
        ),
        "{\n  \"servers\": {\n    \"gate\": {\n      \"url\": \"u\"\n    }, // c\n    \"x\": 2\n  }\n}"
    );
    assert_eq!(
        replaced(Format::Json, r#"{"servers":{"gate":null}}"#),
        r#"{"servers":{"gate":{"url":"u"}}}"#
    );
    assert_eq!(
        replaced(Format::Toml, "[servers.gate]\nold = 1\n[servers.gate.env]\nA = \"b\"\n\n[x]\n"),
        "[servers.gate]\nurl = \"u\"\n\n[x]\n"
    );
    assert_eq!(
        replaced(Format::Toml, "[servers]\ngate = { a = 1 } # c\nx = 1\n"),
        "[servers]\ngate = { url = \"u\" } # c\nx = 1\n"
    );
    assert_eq!(
        replaced(Format::Toml, "[servers]\ngate.a = 1\nx = 1\n"),
        "[servers]\nx = 1\n\n[servers.gate]\nurl = \"u\"\n"
    );
    assert_eq!(
        replaced(Format::Yaml, "servers:\n  gate:\n    old: 1 # c\n  x: 1\n"),
        "servers:\n  gate:\n    url: u # c\n  x: 1\n"
    );
}

#[test]
fn the_first_and_the_middle_one_can_be_taken_out() {
    let out = |format, text: &str| remove(text, format, KEYS, 0).unwrap();
    assert_eq!(
        out(Format::Json, "{\n  \"servers\": {\n    \"gate\": 1,\n    \"x\": 2\n  }\n}"),
        "{\n  \"servers\": {\n    \"x\": 2\n  }\n}"
    );
    assert_eq!(
        out(Format::Json, r#"{"servers": {"gate": 1, "x": 2}}"#),
        r#"{"servers": {"x": 2}}"#
    );
    assert_eq!(
        out(Format::Json, r#"{"servers": {"a": 0, "gate": 1, "x": 2}}"#),
        r#"{"servers": {"a": 0, "x": 2}}"#
    );
    assert_eq!(out(Format::Json, r#"{"servers": {"gate": 1}}"#), r#"{"servers": {}}"#);
    assert_eq!(out(Format::Yaml, "servers:\n  gate: 1\n  x: 2\n"), "servers:\n  x: 2\n");
    assert_eq!(out(Format::Yaml, "servers:\n  gate: 1\n"), "servers: {}\n");
    assert_eq!(out(Format::Yaml, "servers: {gate: 1, x: 2}\n"), "servers: {x: 2}\n");
    assert_eq!(out(Format::Toml, "servers = { gate = 1, x = 2 }\n"), "servers = { x = 2 }\n");
    assert_eq!(
        out(Format::Toml, "[servers.gate]\na = 1 # c\n# of gate\nb = 2\n\n# of x\n[servers.x]\n"),
        "\n# of x\n[servers.x]\n"
    );
}

#[test]
fn what_is_damaged_or_odd_is_refused_with_its_place() {
    let why = |format, text: &str| set(text, format, KEYS, &json!({})).unwrap_err().to_string();
    assert_eq!(why(Format::Json, "{\n  \"a\" 1\n}"), "line 2, column 7: `:` should be here");
    assert_eq!(why(Format::Json, "[]"), "`the document` is not a table");
    assert_eq!(why(Format::Json, r#"{"servers": []}"#), "`servers` is not a table");
    assert_eq!(
        why(Format::Json, r#"{"servers": {}, "servers": {}}"#),
        "line 1, column 17: \"servers\" stands here twice"
    );
    assert!(why(Format::Toml, "a = 1\na = 2\n").starts_with("line 2"));
    assert_eq!(why(Format::Toml, "[[servers]]\na = 1\n"), "`servers` is not a table");
    assert!(why(Format::Yaml, "a: [1\n").starts_with("line "));
    assert_eq!(why(Format::Yaml, "base: &x\n  a: 1\nservers: *x\n"), "`servers` is not a table");
    assert_eq!(
        why(Format::Yaml, "a: 1\n...\n# c\n---\nb: 1\n"),
        "line 4, column 1: there is more than one document in this file"
    );
    assert!(matches!(remove("{}", Format::Json, KEYS, 0), Err(EditError::Absent(_))));
}

/// What is put in and taken out again leaves the text as it was, and in
/// between everything else stands in the text as before.
fn check_made_up(format: Format, text: &str) -> Result<(), TestCaseError> {
    let before = crate::parse(text, format);
    let before =
        before.map_err(|error| TestCaseError::fail(format!("{error}: {text:?}")))?.to_json();
    let set = set(text, format, KEYS, &entry());
    let set = set.map_err(|error| TestCaseError::fail(format!("{error}: {text:?}")))?;
    let mut rest = set.text.chars();
    for (at, c) in text.char_indices() {
        prop_assert!(rest.any(|other| other == c), "{at} {text:?} {:?}", set.text);
    }
    let mut after = crate::parse(&set.text, format).unwrap().to_json();
    prop_assert_eq!(&after["servers"]["gate"], &entry());
    after["servers"].as_object_mut().unwrap().shift_remove("gate");
    if before.get("servers").is_none_or(Json::is_null) {
        after.as_object_mut().unwrap().shift_remove("servers");
    }
    let before = if before.is_null() { json!({}) } else { before };
    prop_assert_eq!(without_empty(after, KEYS), without_empty(before, KEYS));
    let again = remove(&set.text, format, KEYS, set.n_created);
    let again = again.map_err(|error| TestCaseError::fail(format!("{error}: {:?}", set.text)))?;
    prop_assert_eq!(again, text, "{}", set.text);
    Ok(())
}

/// The members of `servers` that `gone` names are taken out and come back: `after` is the
/// text then.
#[track_caller]
fn check_back(format: Format, before: &str, gone: &[&str], after: &str) {
    let servers = crate::parse(before, format).unwrap();
    let servers = servers.get("servers").unwrap().members();
    let mut text = before.to_owned();
    for key in gone {
        text = remove(&text, format, &["servers", key], 0).unwrap();
    }
    for key in gone.iter().rev() {
        let at = servers.iter().position(|member| member.key == *key).unwrap();
        let preceding: Vec<&str> = servers[..at].iter().map(|m| m.key.as_str()).collect();
        let value = servers[at].node.to_json();
        text = insert(&text, format, &["servers", key], &value, &preceding).unwrap().text;
    }
    assert_eq!(text, after);
}

#[test]
fn what_comes_back_stands_where_it_stood() {
    let json = "{\n  \"servers\": {\n    \"a\": 1, // one\n    // two\n    \"b\": 2,\n    \"c\": 3\n  }\n}\n";
    for gone in [["b"], ["c"]] {
        let moved = json.replace("// two\n    \"b\": 2,", "\"b\": 2,\n    // two");
        let after = if gone.contains(&"b") { &moved } else { json };
        // A comment above stays where it is.
        check_back(Format::Json, json, &gone, after);
    }
    let dense = r#"{"servers":{"a":1,"b":2,"c":3}}"#;
    let yaml =
        "servers:\n  # mine\n  a:\n    x: 1\n  b:\n    x: 2 # two\n  c:\n    x: 3\nmore: true\n";
    let flow = "servers: {a: 1, b: 2, c: 3}\n";
    let toml = "[servers.a]\nx = 1\n\n[servers.b]\nx = 2\n\n[servers.c]\nx = 3\n\n# about more\n[more]\ny = 1\n";
    let braces = "servers = {a = 1, b = 2, c = 3}\n";
    for gone in [&["a"][..], &["a", "b"], &["c"], &["a", "c"]] {
        check_back(Format::Json, dense, gone, dense);
        check_back(Format::Toml, braces, gone, braces);
        check_back(Format::Toml, toml, gone, toml);
        let no_note = yaml.replace(" # two", "");
        check_back(Format::Yaml, yaml, gone, if gone.contains(&"b") { &no_note } else { yaml });
        let quoted = |key: &&str| (format!("{key}: "), format!("\"{key}\": "));
        let flow_after = gone
            .iter()
            .map(quoted)
            .fold(flow.to_owned(), |text, (plain, quoted)| text.replacen(&plain, &quoted, 1));
        check_back(Format::Yaml, flow, gone, &flow_after);
    }
}

#[test]
fn a_table_does_not_come_between_the_keys_of_another() {
    let text = "[servers]\nb = { x = 2 }\nc = { x = 3 }\n";
    let set = insert(text, Format::Toml, &["servers", "a"], &json!({"x": 1}), &[]).unwrap();
    assert_eq!(set.text, format!("{text}\n[servers.a]\nx = 1\n"));
}

/// Some members of some table go and come back: the document means the same, in the same order.
fn check_order(format: Format, text: &str, mask: u8) -> Result<(), TestCaseError> {
    let root = crate::parse(text, format).unwrap();
    let Some(table) = root.members().iter().find(|member| member.node.members().len() > 1) else {
        return Ok(());
    };
    let members = table.node.members();
    let mut changed = text.to_owned();
    let mut gone = Vec::new();
    for (at, member) in members.iter().enumerate().filter(|(at, _)| mask & (1 << (at % 8)) != 0) {
        let Ok(left) = remove(&changed, format, &[&table.key, &member.key], 0) else { continue };
        changed = left;
        gone.push((at, member));
    }
    for (at, member) in gone.into_iter().rev() {
        let preceding: Vec<&str> = members[..at].iter().map(|m| m.key.as_str()).collect();
        let keys = [table.key.as_str(), member.key.as_str()];
        let back = insert(&changed, format, &keys, &member.node.to_json(), &preceding);
        let Ok(back) = back else { return Ok(()) };
        changed = back.text;
    }
    let after = crate::parse(&changed, format).unwrap();
    prop_assert_eq!(after.to_json(), root.to_json(), "{}", changed);
    if format != Format::Toml {
        let order = |node: &Node| -> Vec<String> {
            let table = node.get(&table.key).unwrap();
            table.members().iter().map(|member| member.key.clone()).collect()
        };
        prop_assert_eq!(order(&after), order(&root), "{}", changed);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, ..ProptestConfig::default() })]

    #[test]
    fn json_is_the_same_after_in_and_out(choices in made_up::choices()) {
        check_made_up(Format::Json, &Writer::new(choices).json())?;
    }

    #[test]
    fn toml_is_the_same_after_in_and_out(choices in made_up::choices()) {
        check_made_up(Format::Toml, &Writer::new(choices).toml())?;
    }

    #[test]
    fn yaml_is_the_same_after_in_and_out(choices in made_up::choices()) {
        check_made_up(Format::Yaml, &Writer::new(choices).yaml())?;
    }

    #[test]
    fn what_went_comes_back_in_its_order(choices in made_up::choices(), mask in any::<u8>()) {
        check_order(Format::Json, &Writer::new(choices.clone()).json(), mask)?;
        check_order(Format::Toml, &Writer::new(choices.clone()).toml(), mask)?;
        check_order(Format::Yaml, &Writer::new(choices).yaml(), mask)?;
    }

    /// Whatever is in the text, it is changed as it should be or refused.
    #[test]
    fn nothing_makes_an_editor_stumble(text in "[\\[\\]{}:,\"'a#/*=.\r\n \\-|&>\u{feff}é]{0,60}") {
        for format in [Format::Json, Format::Toml, Format::Yaml] {
            if let Ok(set) = set(&text, format, KEYS, &entry()) {
                let after = crate::parse(&set.text, format).unwrap().to_json();
                prop_assert_eq!(&after["servers"]["gate"], &entry());
                let _ = remove(&set.text, format, KEYS, set.n_created);
            }
            let _ = remove(&text, format, &["a"], 0);
            let _ = set(&text, format, &["a"], &json!(1));
        }
    }
}

#[test]
fn a_second_byte_order_mark_is_refused() {
    for format in [Format::Json, Format::Toml, Format::Yaml] {
        assert!(set("\u{feff}\u{feff}", format, KEYS, &entry()).is_err(), "{format:?}");
    }
}

#[test]
fn a_huge_document_is_changed_in_one_go() {
    let members: String = (0..30_000).map(|n| format!("  \"k{n}\": {{\"a\": [{n}]}},\n")).collect();
    let text = format!("{{\n{members}  \"last\": 1\n}}\n");
    let set = set(&text, Format::Json, KEYS, &entry()).unwrap();
    assert_eq!(remove(&set.text, Format::Json, KEYS, set.n_created).unwrap(), text);
}

#[test]
fn what_is_nested_without_end_is_refused() {
    for (format, open) in [(Format::Json, "{\"a\":"), (Format::Toml, "a = ["), (Format::Yaml, "[")]
    {
        let text = format!("{open}{}", "[".repeat(100_000));
        assert!(
            matches!(set(&text, format, KEYS, &entry()), Err(EditError::Syntax(_))),
            "{format:?}"
        );
    }
}
