//! What the built-in tools answer.

use tool::{Ask, Call, Context, Identity, Reply};

use super::*;

/// Calls `label.name` with JSON arguments; errors start with `error:`.
fn answer(state: &Path, function: &str, arguments: &serde_json::Value) -> String {
    answer_to("", state, function, arguments)
}

/// The same for a caller with a name.
fn answer_to(subject: &str, state: &Path, function: &str, arguments: &serde_json::Value) -> String {
    let (label, name) = function.split_once('.').unwrap();
    let group = groups(state).into_iter().find(|group| group.label == label).unwrap();
    let ask = Ask::Call(Call::new(name, arguments.clone().into()));
    let caller = Arc::new(Identity { subject: subject.to_owned(), ..Identity::default() });
    let context = Context { caller, ..Context::anonymous() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let reply = runtime.block_on(group.provider.ask(ask, &context)).unwrap();
    match &reply {
        Reply::Error(error) => format!("error: {}", error.message),
        Reply::Result(_) => {
            let result = reply.tool_result().unwrap();
            let error = if result.is_error { "error: " } else { "" };
            format!("{error}{}", result.text())
        }
    }
}

#[track_caller]
fn check(function: &str, arguments: &serde_json::Value, expected: &str) {
    let state = tempfile::tempdir().unwrap();
    let found = answer(state.path(), function, arguments);
    assert!(found.contains(expected), "`{function}` said: {found}");
}

use serde_json::json;

#[test]
fn every_tool_is_registered_and_described() {
    let state = tempfile::tempdir().unwrap();
    let mut n_tools = 0;
    for group in groups(state.path()) {
        let listing = group.provider.listing();
        assert!(!listing.tools.is_empty(), "{} has no tools", group.label);
        for tool in &listing.tools {
            assert!(tool.description.is_some(), "{}.{}", group.label, tool.name);
        }
        n_tools += listing.tools.len();
    }
    assert_eq!(n_tools, 22);
}

#[test]
fn a_time_is_told_in_another_zone() {
    let winter = json!({"time": "2026-01-15T09:00", "from": "Europe/Berlin", "to": "Asia/Tokyo"});
    check("time.convert", &winter, "2026-01-15T17:00:00+09:00");
    check("time.convert", &json!({"time": "1700000000", "to": "UTC"}), "2023-11-14T22:13:20");
    check("time.convert", &json!({"time": "soon", "to": "UTC"}), "write it like");
    check("time.now", &json!({"timezone": "Mars/Olympus"}), "no time zone is called");
    check("time.now", &json!({}), "unix");
}

#[test]
fn dates_are_added_up() {
    check("time.add", &json!({"time": "2026-01-31", "span": "1 month"}), "2026-02-28T00:00:00");
    check("time.add", &json!({"time": "2026-01-31", "span": "a while"}), "write it like");
    let both = json!({"start": "2026-01-01", "end": "2026-03-02T06:00"});
    check("time.between", &both, "\"total_seconds\":5205600.0");
    check("time.between", &both, "2mo 1d 6h");
}

#[test]
fn text_is_counted_searched_and_changed() {
    check("text.count", &json!({"text": "één  twee\ndrie"}), "\"words\":3");
    let find = json!({"text": "a1\nb22", "pattern": r"([a-z])(\d+)"});
    check("text.find", &find, r#"{"line":2,"text":"b22","groups":["b","22"]}"#);
    check("text.find", &json!({"text": "", "pattern": "("}), "InvalidPattern");
    let swap = json!({"text": "ab", "pattern": "(a)(b)", "with": "$2$1"});
    check("text.replace", &swap, "ba");
    let lines = json!({"text": "b\na\n\nb", "steps": ["compact", "unique", "sort"]});
    check("text.lines", &lines, "a\nb");
    check("text.case", &json!({"text": "fooBar baz", "to": "snake"}), "foo_bar_baz");
    check("text.case", &json!({"text": "foo-bar", "to": "pascal"}), "FooBar");
}

#[test]
fn text_is_encoded_and_decoded() {
    check("text.encode", &json!({"text": "hé?", "encoding": "url"}), "h%C3%A9%3F");
    check("text.decode", &json!({"text": "h%C3%A9+x", "encoding": "url"}), "hé x");
    check("text.decode", &json!({"text": "aGk=", "encoding": "base64"}), "hi");
    check("text.decode", &json!({"text": "6869", "encoding": "hex"}), "hi");
    check("text.decode", &json!({"text": "zz", "encoding": "hex"}), "InvalidEncoding");
    check("text.hash", &json!({"text": "abc"}), "ba7816bf8f01cfea");
}

#[test]
fn documents_are_laid_out_and_converted() {
    let messy = json!({"text": "{\"b\":1,\"a\":12345678901234567890}", "style": "compact", "sort_keys": true});
    check("json.format", &messy, r#"{"a":12345678901234567890,"b":1}"#);
    check("json.format", &json!({"text": "{"}), "not JSON");
    check("json.convert", &json!({"text": "a: [1, x]", "from": "yaml", "to": "json"}), "\"x\"");
    check(
        "json.convert",
        &json!({"text": "{\"a\":{\"b\":1}}", "from": "json", "to": "toml"}),
        "[a]\nb = 1",
    );
}

#[test]
fn quantities_are_converted() {
    check("units.convert", &json!({"value": 26.2, "from": "miles", "to": "km"}), "42.1648128");
    check("units.convert", &json!({"value": 212, "from": "F", "to": "celsius"}), "\"value\":100.0");
    check("units.convert", &json!({"value": 1, "from": "GiB", "to": "MB"}), "1073.741824");
    check("units.convert", &json!({"value": 1, "from": "kg", "to": "m"}), "cannot be converted");
    check("units.convert", &json!({"value": 1, "from": "furlong", "to": "m"}), "units.list");
}

#[test]
fn a_unit_is_folded_only_where_it_has_no_other_reading() {
    let convert = |from: &str, to: &str, expected: &str| {
        check("units.convert", &json!({"value": 1, "from": from, "to": to}), expected);
    };
    convert("KM", "Meters", "\"value\":1000.0");
    convert("KB", "b", "\"value\":8000.0");
    convert("mL", "L", "\"value\":0.001");
    convert("MIB", "KiB", "\"value\":1024.0");
    convert("c", "f", "33.8");
    convert("Mm", "m", "`Mm` is a megameter, which is not known; `mm` is");
    convert("Ms", "s", "`Ms` is a megasecond, which is not known; `ms` is");
    convert("mS", "s", "a millisiemens");
    convert("Nm", "m", "a newton meter");
    convert("NM", "m", "a nautical mile; write `nmi`");
    convert("Mb", "B", "a megabit; write `Mbit`, or `MB`");
    convert("mb", "B", "write `Mbit`, or `MB`");
    convert("gb", "B", "write `Gbit`, or `GB`");
    convert("Cal", "J", "a kilocalorie; write `kcal`, or `cal`");
    convert("A", "s", "an ampere, which is not known; `year` is");
}

#[test]
fn a_quantity_too_large_is_said_to_be() {
    let large = json!({"value": 1e308, "from": "ly", "to": "nm"});
    check("units.convert", &large, "OutOfRange");
    check("units.convert", &large, "too large");
}

#[test]
fn what_was_given_is_not_repeated_at_length() {
    let state = tempfile::tempdir().unwrap();
    let long = "x".repeat(1 << 20);
    for (function, arguments) in [
        ("time.now", json!({"timezone": long})),
        ("time.convert", json!({"time": long, "to": "UTC"})),
        ("time.add", json!({"time": "2026-01-01", "span": long})),
        ("units.convert", json!({"value": 1, "from": long, "to": "m"})),
        ("text.find", json!({"text": "", "pattern": format!("({long}")})),
        ("json.query", json!({"json": 1, "filter": format!("{long} |")})),
        ("json.convert", json!({"text": format!("{long}: [{long}"), "from": "yaml", "to": "json"})),
        ("json.convert", json!({"text": long, "from": "toml", "to": "json"})),
        ("memory.read", json!({"key": long})),
        (&format!("memory.{long}"), json!({})),
    ] {
        let said = answer(state.path(), function, &arguments);
        assert!(said.starts_with("error:"), "{function:.20}");
        assert!(said.len() < 10_000, "`{function:.20}` said {} bytes", said.len());
    }
    let said = answer(state.path(), "time.now", &json!({"timezone": long}));
    assert!(said.contains("write it like"), "{said}");
}

#[test]
fn a_note_is_kept_until_it_is_deleted() {
    let state = tempfile::tempdir().unwrap();
    let say = |function: &str, arguments| answer(state.path(), function, &arguments);
    assert_eq!(say("memory.write", json!({"key": "plan", "text": "buy milk"})), "kept `plan`");
    assert_eq!(say("memory.write", json!({"key": "plan", "text": "buy tea"})), "replaced `plan`");
    assert_eq!(say("memory.read", json!({"key": "plan"})), "buy tea");
    assert!(say("memory.search", json!({"query": "TEA"})).contains("plan"));
    assert!(say("memory.list", json!({"prefix": "x"})).starts_with("[]"));
    assert_eq!(say("memory.delete", json!({"key": "plan"})), "forgot `plan`");
    assert!(say("memory.read", json!({"key": "plan"})).contains("memory.list"));
}

#[test]
fn nobody_reads_finds_or_deletes_what_another_identity_keeps() {
    let state = tempfile::tempdir().unwrap();
    let names = ["", "ann", "bob", "../ann", "memory", "ann.json"];
    let say = |name: &str, function: &str, arguments: serde_json::Value| {
        answer_to(name, state.path(), function, &arguments)
    };
    for name in names {
        let text = format!("of <{name}>");
        assert_eq!(say(name, "memory.write", json!({"key": "pw", "text": text})), "kept `pw`");
    }
    for name in names {
        assert_eq!(say(name, "memory.read", json!({"key": "pw"})), format!("of <{name}>"));
        for (function, arguments) in
            [("memory.list", json!({})), ("memory.search", json!({"query": "of"}))]
        {
            let shown = say(name, function, arguments);
            assert_eq!(shown.matches("of <").count(), 1, "{shown}");
        }
    }
    assert_eq!(say("bob", "memory.delete", json!({"key": "pw"})), "forgot `pw`");
    assert_eq!(say("ann", "memory.read", json!({"key": "pw"})), "of <ann>");
}

#[test]
fn one_identity_keeps_so_much_and_others_do_not_notice() {
    let state = tempfile::tempdir().unwrap();
    let write = |name: &str, key: usize| {
        let note = json!({"key": key.to_string(), "text": "x".repeat(64 << 10)});
        answer_to(name, state.path(), "memory.write", &note)
    };
    let full = (0..100).map(|key| write("ann", key)).find(|said| !said.starts_with("kept"));
    assert!(full.as_ref().is_some_and(|said| said.contains("delete some first")), "{full:?}");
    assert_eq!(write("ann", 0), "replaced `0`");
    assert_eq!(write("bob", 0), "kept `0`");
}

#[test]
fn no_answer_grows_beyond_what_is_read() {
    let many = "x".repeat(50_000);
    let too_long = "would be longer than 4 MiB";
    let replace =
        |pattern: &str, with: &str| json!({"text": many, "pattern": pattern, "with": with});
    check("text.replace", &replace("x", &many), too_long);
    check("text.replace", &replace(".*", &"$0".repeat(50_000)), too_long);
    let groups = format!("{}.*{}", "(".repeat(200), ")".repeat(200));
    check("text.find", &json!({"text": many, "pattern": groups}), too_long);
    let lines = json!({"text": "\n".repeat(400_000), "steps": ["number", "number"]});
    check("text.lines", &lines, too_long);
    let steps = json!({"text": "a", "steps": vec!["number"; 1_000]});
    check("text.lines", &steps, "at `/steps`");
    check("memory.search", &json!({"query": "a ".repeat(1_000)}), "at `/query`");
}

#[test]
fn a_replacement_names_groups_in_every_way() {
    let replace = |with: &str, expected: &str| {
        let arguments = json!({"text": "-ab-ab", "pattern": "(?P<one>a)(b)", "with": with});
        check("text.replace", &arguments, expected);
    };
    replace("${2}x$one.", "-bxa.-bxa.");
    replace("$$1$2", "-$1b-$1b");
    replace("${no}$2$", "-b$-b$");
    replace("é$2${", "-éb${-éb${");
}

#[test]
fn no_document_grows_beyond_what_is_read() {
    let many = "x".repeat(50_000);
    let too_long = "would be longer than 4 MiB";
    let deep = |item: &str| format!("{}{item}{}", "[".repeat(100), "]".repeat(100));
    check("json.format", &json!({"text": deep(&vec!["1"; 50_000].join(","))}), too_long);
    for to in ["json", "yaml"] {
        let text = deep(&vec!["1"; 50_000].join(","));
        check("json.convert", &json!({"text": text, "from": "json", "to": to}), too_long);
    }
    let tables: Vec<String> = (0..1_000).map(|at| format!("\"{at}\":{{}}")).collect();
    let text = format!("{{\"{many}\":{{{}}}}}", tables.join(","));
    check("json.convert", &json!({"text": text, "from": "json", "to": "toml"}), too_long);
    let text = format!("a: &a {many}\nb: &b [{0}]\nc: [{0}]", vec!["*a"; 50].join(","));
    let text = format!("{text}\nd: [{}]", vec!["*b"; 40].join(","));
    check("json.convert", &json!({"text": text, "from": "yaml", "to": "json"}), too_long);
}

#[track_caller]
fn check_conversion(text: &str, from: &str, to: &str, expected: &str) {
    check("json.convert", &json!({"text": text, "from": from, "to": to}), expected);
}

#[test]
fn a_conversion_keeps_every_value_or_says_why_not() {
    check_conversion(
        "at = 1979-05-27T07:32:00Z",
        "toml",
        "json",
        r#""at": "1979-05-27T07:32:00Z""#,
    );
    check_conversion("at = 07:32:00", "toml", "yaml", "at: ");
    check_conversion("at = 1979-05-27", "toml", "toml", "at = 1979-05-27\n");
    check_conversion("a = nan\nb = 1", "toml", "json", "JSON has neither nan nor infinity: `a`");
    check_conversion("a = -inf", "toml", "yaml", "a: -.inf");
    check_conversion("a: .inf", "yaml", "toml", "a = inf");
    let nulls = r#"{"a": {"b": null}, "c": [1, null], "d": 2}"#;
    check_conversion(nulls, "json", "toml", "TOML has no null: `a.b`, `c[1]`");
    check_conversion(nulls, "json", "yaml", "b: null");
    let twice = r#"{"a": [1.5, {"b": 1, "b": 2}]}"#;
    check_conversion(twice, "json", "yaml", "`b` stands twice in one object at line 1");
    check_conversion("[1]", "json", "toml", "a TOML document is a table, not a list");
}

#[test]
fn a_conversion_keeps_every_digit_or_says_why_not() {
    let wide = "123456789012345678901234567890";
    let json = format!("{{\"a\": {wide}}}");
    check_conversion(&json, "json", "yaml", &format!("a: {wide}"));
    check_conversion(&json, "json", "toml", "integers have 64 bits: `a`");
    check_conversion(&json, "json", "json", wide);
    check_conversion(&format!("a: {wide}"), "yaml", "json", wide);
    check_conversion(&format!("a: &x -{wide}\nb: *x"), "yaml", "json", &format!("\"b\": -{wide}"));
    check_conversion("{\"a\": 18446744073709551615}", "json", "yaml", "a: 18446744073709551615");
    let wider = format!("{{\"a\": [{wide}{wide}]}}");
    check_conversion(&wider, "json", "yaml", "up to 128 bits: `a[0]`");
    check_conversion(r#"{"a": 3.14159265358979323846}"#, "json", "toml", "as many digits: `a`");
    check_conversion("a: 3.14159265358979323846", "yaml", "json", "3.14159265358979323846");
    check_conversion(r#"{"a": 1e400}"#, "json", "toml", "as many digits: `a`");
    for (json, toml) in [("0.1", "0.1"), ("1.50", "1.5"), ("1E5", "100000.0"), ("-0.0", "-0.0")] {
        check_conversion(&format!("{{\"a\": {json}}}"), "json", "toml", &format!("a = {toml}\n"));
    }
}

#[test]
fn yaml_is_read_by_its_newer_rules_or_not_at_all() {
    check_conversion(
        "mode: 010",
        "yaml",
        "json",
        "`010` is a decimal number in YAML 1.2 and an octal",
    );
    check_conversion("mode: \"010\"", "yaml", "json", "\"010\"");
    check_conversion("mode: 0o10", "yaml", "json", "\"mode\": 8");
    check_conversion("country: no", "yaml", "json", "\"no\"");
    check_conversion("é: [.5, +1, 2.0]", "yaml", "json", "[\n    0.5,\n    1,\n    2.0\n  ]");
    check_conversion("key: !Ref thing", "yaml", "json", "error: ");
    check_conversion("when: 2026-01-01", "yaml", "json", "\"2026-01-01\"");
}

static DOCUMENTS: testkit::fuzz::Dictionary = testkit::fuzz::Dictionary {
    seeds: &[
        "{\"a\": [1, 2.5, null]}",
        "a: [1, *b]\nc: &b 1\n",
        "[a]\nb = 1979-05-27\n",
        ".a[]|tojson",
    ],
    words: &[
        "{", "}", "[", "]", "\"", ": ", "- ", "\n", "&a ", "*a", "<<: ", " = ", "[[", "(", ")",
        "|", "..", "recurse", "fromjson", "\\", "(a|", "{9}", "$", "?",
    ],
};

#[test]
fn fuzz_builtin_documents() {
    let state = tempfile::tempdir().unwrap();
    testkit::fuzz::run("builtin_documents", &DOCUMENTS, move |bytes| {
        let text = String::from_utf8_lossy(bytes);
        for from in ["json", "yaml", "toml"] {
            let arguments = serde_json::json!({"text": text, "from": from, "to": "json"});
            answer(state.path(), "json.convert", &arguments);
        }
        answer(state.path(), "json.format", &serde_json::json!({"text": text}));
        let query = serde_json::json!({"text": "[[1]]", "filter": text});
        answer(state.path(), "json.query", &query);
        let find = serde_json::json!({"text": "aaaa bbbb", "pattern": text});
        answer(state.path(), "text.find", &find);
    });
}

/// A document in the format, nested so deeply.
fn nested(format: &str, depth: usize) -> String {
    match format {
        "toml" => format!("a = {}{}", "[".repeat(depth), "]".repeat(depth)),
        "block" => (0..depth.min(3_000)).map(|n| format!("{}a:\n", " ".repeat(n))).collect(),
        _ => "[".repeat(depth) + &"]".repeat(depth),
    }
}

/// Nothing that is nested, however deeply, ends the process: it is read, or
/// refused with a word.
#[test]
fn a_document_of_any_depth_is_read_or_refused() {
    for depth in [10, 100, 1_000, 20_000, 200_000] {
        for (from, shape) in
            [("json", "json"), ("yaml", "yaml"), ("yaml", "block"), ("toml", "toml")]
        {
            for to in ["json", "yaml", "toml"] {
                let arguments = json!({"text": nested(shape, depth), "from": from, "to": to});
                check("json.convert", &arguments, "");
                if 200 < depth && shape != "block" {
                    check("json.convert", &arguments, "error: ");
                }
            }
        }
        check("json.format", &json!({"text": nested("json", depth)}), "");
        check("json.query", &json!({"json": nested("json", depth), "filter": "."}), "");
    }
    let filter = "(\"[\" * 200000) + (\"]\" * 200000) | fromjson";
    check("json.query", &json!({"json": null, "filter": filter}), "error: ");
    for pattern in ["(".repeat(200_000), "(".repeat(200_000) + &")".repeat(200_000)] {
        check("text.find", &json!({"text": "a", "pattern": pattern}), "error: ");
        check("text.replace", &json!({"text": "a", "pattern": pattern, "with": ""}), "error: ");
    }
}
