use serde_json::{Value, json};

use super::*;

fn cut_out(bytes: &[u8], media_type: &str, selector: Value) -> Result<View, ViewError> {
    let selector = Selector::parse(&selector.into())?;
    view(
        bytes,
        media_type,
        &selector,
        &Budget { chars: 200, ..Budget::default() },
        &StopFlag::never(),
    )
}

#[track_caller]
fn check(text: &str, selector: Value, body: &str, footer: &str) {
    let view = cut_out(text.as_bytes(), "text/plain", selector).unwrap();
    assert_eq!((&view.body, view.footer().as_str()), (&Body::Text(body.to_owned()), footer));
}

#[track_caller]
fn refused(text: &str, selector: Value, expected: &str) {
    let error = cut_out(text.as_bytes(), "text/plain", selector).unwrap_err();
    assert_eq!(error.to_string(), expected);
}

#[test]
fn matching_lines_can_be_counted_without_being_shown() {
    let selector = json!({"type": "grep", "pattern": "a", "count": true});
    check("a\nb\na", selector, "2", "[2 matching lines from line 0 of 3]");
}

#[test]
fn pieces_are_those_of_the_vectors() {
    let text = include_str!("../../tests/vectors/contextweaver_tool_view.json");
    let vectors: Value = serde_json::from_str(text).unwrap();
    for case in vectors["cases"].as_array().unwrap() {
        let text = case["text"].as_str().unwrap();
        let made = cut_out(text.as_bytes(), "text/plain", case["selector"].clone());
        match case["out"].as_str() {
            Some(out) => assert_eq!(made.unwrap().body, Body::Text(out.to_owned()), "{case}"),
            None => assert!(matches!(made, Err(ViewError::Unknown(_))), "{case}"),
        }
    }
}

#[test]
fn every_answer_says_how_big_the_whole_is_and_how_to_go_on() {
    check(
        "abcdef",
        json!({"type": "head", "chars": 2}),
        "ab",
        r#"[chars 0-2 of 6; next: {"type":"head","start":2,"chars":2}]"#,
    );
    check("abcdef", json!({"type": "head", "chars": 4, "start": 2}), "cdef", "[chars 2-6 of 6]");
    check(
        "abcdef",
        json!({"type": "head", "chars": -2}),
        "abcd",
        r#"[chars 0-4 of 6; next: {"type":"head","start":4,"chars":4}]"#,
    );
    check(
        "abcdef",
        json!({"type": "tail", "chars": 2}),
        "ef",
        r#"[chars 4-6 of 6; next: {"type":"head","start":2,"chars":2}]"#,
    );
    check("a\nb\nc", json!({"type": "lines", "end": 2}), "a\nb", "[lines 0-2 of 3]");
    check(
        "abc",
        json!({"type": "bytes", "start": 1, "length": 1}),
        "Yg==",
        r#"[base64 of bytes 1-2 of 3; next: {"type":"bytes","start":2,"length":1}]"#,
    );
}

#[test]
fn nothing_comes_back_longer_than_the_limit() {
    let text = "a line of some length\n".repeat(1000);
    for selector in [
        json!({"type": "head", "chars": 1_000_000}),
        json!({"type": "tail", "chars": 1_000_000}),
        json!({"type": "lines"}),
        json!({"type": "rows"}),
        json!({"type": "grep", "pattern": "line"}),
        json!({"type": "bytes", "length": 1_000_000}),
    ] {
        let view = cut_out(text.as_bytes(), "text/plain", selector.clone()).unwrap();
        let Body::Text(body) = &view.body else { panic!("no text") };
        assert!(body.chars().count() <= 201, "{selector} {}", body.len());
        assert!(view.next.is_some() || selector["type"] == "tail", "{selector}");
    }
}

#[test]
fn going_on_reaches_everything_exactly_once() {
    let lines: Vec<String> = (0..300).map(|n| format!("line number {n}")).collect();
    let text = lines.join("\n");
    for kind in ["lines", "rows"] {
        let (mut selector, mut seen) = (json!({"type": kind}), Vec::new());
        loop {
            let view = cut_out(text.as_bytes(), "text/csv", selector).unwrap();
            let Body::Text(body) = view.body else { panic!("no text") };
            seen.extend(body.lines().map(str::to_owned));
            match view.next {
                Some(next) => selector = next.to_value().unwrap(),
                None => break,
            }
        }
        assert_eq!(seen, lines);
    }
}

#[test]
fn a_record_of_a_table_may_span_lines() {
    let table = "id,text\r\n1,\"two\nlines\"\r\n2,plain\r\n";
    let view =
        cut_out(table.as_bytes(), "text/csv; charset=utf-8", json!({"type": "rows", "start": 1}));
    let view = view.unwrap();
    assert_eq!(view.body, Body::Text("1,\"two\nlines\"\n2,plain".to_owned()));
    assert_eq!(view.note, "rows 1-3 of 3");
}

#[test]
fn a_match_names_the_file_that_it_is_in() {
    let diff = "diff --git a/src/one.rs b/src/one.rs\nindex 1..2\n--- a/src/one.rs\n\
        +++ b/src/one.rs\n@@ -1,2 +1,2 @@\n-let x = 1;\n+let x = 2;\n--- no header\n+++ either\n\
        +let x = 3;\ndiff --git a/old.rs b/old.rs\n--- a/old.rs\n+++ /dev/null\n@@ -1 +0,0 @@\n-let x = 4;";
    check(
        diff,
        json!({"type": "grep", "pattern": "^[+-]let"}),
        "[in src/one.rs]\n5:-let x = 1;\n6:+let x = 2;\n9:+let x = 3;\n[in old.rs]\n14:-let x = 4;",
        "[4 matching lines from line 0 of 15]",
    );
    // Also where the search goes on later, and not where the header is shown anyway.
    check(
        diff,
        json!({"type": "grep", "pattern": "x = 3", "start": 8}),
        "[in src/one.rs]\n9:+let x = 3;",
        "[1 matching lines from line 8 of 15]",
    );
    check(
        "==> a.log <==\nok\n\n==> b.log <==\nerror",
        json!({"type": "grep", "pattern": "error", "context": 1}),
        "3-==> b.log <==\n4:error",
        "[1 matching lines from line 0 of 5]",
    );
    check(
        "==> a.log <==\nok\n\n==> b.log <==\nwarning\nerror",
        json!({"type": "grep", "pattern": "error"}),
        "[in b.log]\n5:error",
        "[1 matching lines from line 0 of 6]",
    );
    let plain = "+++ a\n--- b\nerror";
    check(
        plain,
        json!({"type": "grep", "pattern": "error"}),
        "2:error",
        "[1 matching lines from line 0 of 3]",
    );
}

#[test]
fn matching_lines_come_with_numbers_and_surroundings() {
    let text = "alpha\nbeta\ngamma\nBETA";
    check(
        text,
        json!({"type": "grep", "pattern": "^b"}),
        "1:beta",
        "[1 matching lines from line 0 of 4]",
    );
    check(
        text,
        json!({"type": "grep", "pattern": "^b", "ignore_case": true, "context": 1}),
        "0-alpha\n1:beta\n2-gamma\n3:BETA",
        "[2 matching lines from line 0 of 4]",
    );
    refused(
        text,
        json!({"type": "grep", "pattern": "("}),
        "the pattern is not a regular expression: unclosed group",
    );
    let long = format!("{}needle{}", "x".repeat(5000), "y".repeat(5000));
    let view = cut_out(long.as_bytes(), "text/plain", json!({"type": "grep", "pattern": "needle"}));
    let Body::Text(body) = view.unwrap().body else { panic!("no text") };
    assert!(body.starts_with("0:…xxx") && body.len() < 700);
}

#[test]
fn arrays_are_sliced_where_they_are() {
    let text = r#"{"a":{"list":[1,{"b":"é"},3,4]}}"#;
    let slice = |path: &str, start: i64, end: i64| json!({"type": "slice", "path": path, "start": start, "end": end});
    check(text, slice("a.list", 1, 3), "{\"b\":\"é\"}\n3", "[elements 1-3 of 4]");
    check(text, slice("$.a.list", -1, 9), "4", "[elements 3-4 of 4]");
    refused(
        text,
        slice("a.nope", 0, 1),
        "the artifact has no `a.nope`; use `jq` with `paths` to list its paths",
    );
    refused(text, slice("a", 0, 1), "`a` is not an array; use `json_keys` or `jq`");
    refused(
        "no json",
        slice("", 0, 1),
        "the artifact is not JSON (text/plain); use `head`, `lines` or `grep`",
    );
}

#[test]
fn jq_filters_work() {
    let text = r#"{"items":[{"n":1,"t":"é"},{"n":2,"t":"b"}],"big":12345678901234567890}"#;
    let jq = |filter: &str| json!({"type": "jq", "filter": filter});
    check(text, jq(".items[] | select(.n > 1) | .t"), "\"b\"", "[1 results]");
    check(text, jq(".items | map(.n) | add, length"), "3\n2", "[2 results]");
    check(text, jq("[.items[].t] | join(\"-\")"), "\"é-b\"", "[1 results]");
    check(text, jq(".big"), "12345678901234567890", "[1 results]");
    check(text, jq("[paths | join(\".\")?] | length"), "8", "[1 results]");
    check(text, jq(".items[0].n |= . + 5 | .items[0].n"), "6", "[1 results]");
    check(text, jq("def twice: . * 2; .items | map(.n | twice)"), "[2,4]", "[1 results]");
    check(text, jq("reduce .items[] as $i (0; . + $i.n)"), "3", "[1 results]");
    check(text, jq("[limit(3; repeat(1))]"), "[1,1,1]", "[1 results]");
    check(text, jq("del(.items) | keys"), "[\"big\"]", "[1 results]");
    check(text, jq(".items | group_by(.t) | length"), "2", "[1 results]");
    check(text, jq("\"ab\" * 2"), "\"abab\"", "[1 results]");
    check(text, jq("{n: .items[].n}"), "{\"n\":1}\n{\"n\":2}", "[2 results]");
    check(text, jq("[\"a1b22\" | scan(\"[0-9]+\")]"), "[\"1\",\"22\"]", "[1 results]");
    check(
        text,
        jq("\"a1b22\" | [splits(\"[0-9]+\")], test(\"b\")"),
        "[\"a\",\"b\",\"\"]\ntrue",
        "[2 results]",
    );
    check(
        text,
        jq("\"a1b22\" | gsub(\"(?<d>[0-9])\"; \"<\\(.d)>\")"),
        "\"a<1>b<2><2>\"",
        "[1 results]",
    );
    check(text, jq("env"), "{}", "[1 results]");
    check(text, jq("[range(0; 10; 3)]"), "[0,3,6,9]", "[1 results]");
}

#[test]
fn jq_reads_a_text_that_is_not_json_as_one_string() {
    let jq = |filter: &str| json!({"type": "jq", "filter": filter});
    let log = "ok 1\nfailed [2]\nok {3\n";
    check(log, jq("[splits(\"\\n\") | select(startswith(\"ok\"))] | length"), "2", "[1 results]");
    let broken = cut_out(b"{1", "application/json", jq("."));
    assert!(matches!(broken, Err(ViewError::NotJson { .. })), "{broken:?}");
}

#[test]
fn jq_filters_that_fail_say_how() {
    let jq = |filter: &str| json!({"type": "jq", "filter": filter});
    refused("{}", jq(".a["), "this is not a jq filter: expected closing bracket at its end");
    refused("{}", jq(".a | | .b"), "this is not a jq filter: expected term at `|`");
    refused("{}", jq("nope(1)"), "this is not a jq filter: there is no nope");
    refused("[]", jq("halt"), "the filter failed: halt is not available here");
    refused("{}", json!({"type": "jq"}), "`jq` needs `filter`, such as \".items[0].name\"");
}

#[test]
fn no_filter_runs_for_ever_or_eats_all_memory() {
    let text = r#"[1,2,3,4,5,6,7,8,9,10]"#;
    for filter in [
        "def f: f; f",
        "def f: 1 + f; f",
        "def f: [f]; f",
        "def f: try f catch f; f",
        "[range(1; 1e18)] | length",
        "[repeat(1)] | length",
        "last(repeat(1))",
        "\"x\" * 1e12 | length",
        "reduce range(100) as $i (\"x\"; . + .) | length",
        "reduce range(100) as $i ([1]; [., .]) | tojson | length",
        "reduce range(100) as $i ({}; .a = . | .b = .) | tojson | length",
        "until(false; .)",
        "[recurse(.; true)] | length",
        "[.[]+.[]+.[]+.[]+.[]+.[]+.[]+.[]+.[]+.[]] | length",
        "[range(1000) | \"x\" * 100000] | length",
        "\"x\" * 50000 | [match(\"x\"; \"g\")] | length",
        "\"x\" * 9000 | [scan(\"((((((x))))))\")] | length",
        "\"x\" * 50000 | split(\"x\"; null) | length",
    ] {
        let selector = Selector::Jq { filter: filter.to_owned() };
        let budget = Budget { jq_steps: 200_000, ..Budget::default() };
        let seen =
            view(text.as_bytes(), "application/json", &selector, &budget, &StopFlag::never());
        assert_eq!(seen, Err(ViewError::StepLimit), "{filter}");
    }
    let endless =
        cut_out(text.as_bytes(), "application/json", json!({"type": "jq", "filter": "repeat(1)"}));
    assert!(endless.unwrap().note.starts_with("cut after 200 of at least"));
}

#[test]
fn wrong_parameters_are_named() {
    refused("", json!({"type": "head", "chars": "x"}), "`head` takes `chars` as an integer");
    refused("", json!({"type": "tail", "chars": -1}), "`tail` takes `chars` as a number from 0 on");
    refused(
        "",
        json!({"type": "json_keys", "keys": [1]}),
        "`json_keys` takes `keys` as an array of strings",
    );
    refused(
        "",
        json!([1]),
        "a selector must be an object such as {\"type\":\"head\",\"chars\":500}",
    );
}

#[test]
fn an_image_comes_back_as_an_image() {
    let view = cut_out(b"\x89PNG", "image/png", json!({"type": "image"})).unwrap();
    let result = view.to_result().to_value().unwrap();
    assert_eq!(
        result["content"][0],
        json!({"type": "image", "data": "iVBORw==", "mimeType": "image/png"})
    );
    assert_eq!(result["content"][1]["text"], "[image/png, 4 bytes]");
    assert!(matches!(cut_out(b"x", "text/plain", json!("image")), Err(ViewError::NoImage { .. })));
}

#[test]
fn what_is_cut_is_said_to_be_and_the_rest_can_be_had() {
    let text = format!("first\n{}\nlast", "y".repeat(500));
    let cut = cut_out(text.as_bytes(), "text/plain", json!({"type": "lines", "start": 1})).unwrap();
    assert_eq!(
        cut.footer(),
        r#"[lines 1 of 3, cut after 200 of its 500 chars; next: {"type":"head","start":206,"chars":200}]"#
    );
    let next = cut.next.unwrap().to_value().unwrap();
    let more = cut_out(text.as_bytes(), "text/plain", next).unwrap();
    assert_eq!(more.body, Body::Text("y".repeat(200)));
    let json = json!({"a": ["z".repeat(300), 2], "b": 1}).to_string();
    for (selector, total) in [
        (json!({"type": "slice", "path": "a"}), "200 of its 302 chars"),
        (json!({"type": "json_keys", "keys": ["a"]}), "200 of 3"),
        (json!({"type": "jq", "filter": ".a"}), "200 of at least 306 chars"),
    ] {
        let view = cut_out(json.as_bytes(), "application/json", selector).unwrap();
        assert!(view.footer().contains(total), "{}", view.footer());
    }
}

#[test]
fn rows_are_records_however_their_table_was_declared() {
    let text = "id,text\n1,\"two\nlines\"\n2,\"x, y\"\n3,z\n";
    for media_type in ["text/csv", "text/plain"] {
        let view =
            cut_out(text.as_bytes(), media_type, json!({"type": "rows", "start": 1, "end": 3}));
        let view = view.unwrap();
        assert_eq!(view.body, Body::Text("1,\"two\nlines\"\n2,\"x, y\"".to_owned()));
        assert_eq!(view.footer(), "[rows 1-3 of 4]");
    }
}

#[test]
fn no_number_in_a_selector_is_too_large() {
    let most = u64::MAX;
    check("abc", json!({"type": "head", "start": most, "chars": 9}), "", "[chars 3-3 of 3]");
    check(
        "abc",
        json!({"type": "bytes", "start": most, "length": most}),
        "",
        "[base64 of bytes 3-3 of 3]",
    );
    check(
        "a\nb",
        json!({"type": "grep", "pattern": "a", "context": most}),
        "0:a\n1-b",
        "[1 matching lines from line 0 of 2]",
    );
    let (least, large) = (i64::MIN, i64::MAX);
    for selector in [
        json!({"type": "grep", "pattern": "1", "start": most}),
        json!({"type": "tail", "chars": most}),
        json!({"type": "head", "chars": least}),
        json!({"type": "lines", "start": large, "end": large}),
        json!({"type": "rows", "start": least, "end": large}),
        json!({"type": "slice", "start": least, "end": least}),
    ] {
        let budget = Budget { first_line: 1, ..Budget::default() };
        let parsed = Selector::parse(&selector.clone().into()).unwrap();
        let seen = view(b"[1]", "application/json", &parsed, &budget, &StopFlag::never());
        assert!(seen.is_ok(), "{selector}: {seen:?}");
    }
}

/// Returns what a filter makes of `null`, or the reason why not.
fn filtered(filter: &str) -> Result<String, ViewError> {
    // A chain of closures is as long as there are steps; nothing else needs
    // all of them to become as deep as it can.
    let jq_steps = if filter.contains("f(g") { 20_000_000 } else { 600_000 };
    let budget = Budget { chars: 200, jq_steps, ..Budget::default() };
    jq(b"null", "application/json", filter, &budget, &StopFlag::never()).map(|made| made.text)
}

#[test]
fn no_filter_nests_deeper_than_the_stack_is_high() {
    let (open, close) = ("[".repeat(1900), "]".repeat(1900));
    let filters = [
        "(\"[\"*200000)+(\"]\"*200000)|fromjson".to_owned(),
        "(\"{\\\"a\\\":\"*200000)|fromjson".to_owned(),
        "(\"#\\\"\\n\" + \"[\"*200000)|fromjson".to_owned(),
        "(\"[\"*200000)|tonumber".to_owned(),
        "reduce range(1000000) as $i (0; [.])".to_owned(),
        "reduce range(1000000) as $i (0; {a: .}) | tojson".to_owned(),
        "reduce range(1000000) as $i (0; {(.|tojson): .})".to_owned(),
        "reduce range(1000000) as $i (0; {([.]): 1} | keys[0])".to_owned(),
        "setpath([range(1000000)|0]; 1)".to_owned(),
        "setpath([range(1000000)|\"a\"]; 1) | tojson".to_owned(),
        "(reduce range(1000000) as $i (.; .[0])) = 1".to_owned(),
        "try ((reduce range(1000000) as $i (.; .[0])) |= error(1)) catch 1".to_owned(),
        "path(reduce range(1000000) as $i (.; .[0])) | length".to_owned(),
        "[path(getpath([range(1000000)|\"a\"]))]".to_owned(),
        "[[[[0]]]] | until(false; .. |= [.])".to_owned(),
        "reduce range(100000) as $i (0; [.] | walk([.]))".to_owned(),
        "def f: [f]; f".to_owned(),
        "def f: (1, f) | .; [f]".to_owned(),
        "def f(g): f(g | .); f(.)".to_owned(),
        "def f(g; $n): if $n == 0 then g else f(g | . + 1; $n - 1) end; 0 | f(.; 1000000)"
            .to_owned(),
        "def f(g): def h: f(g | h); h; f(.)".to_owned(),
        "[recurse([.])]".to_owned(),
        "last(recurse([.]; true))".to_owned(),
        format!("{open}0{close} | tojson | fromjson"),
        "(".repeat(1990) + "0" + &")".repeat(1990),
        "-".repeat(3990) + "1",
        ".a|".repeat(1300) + ".",
        "try ".repeat(990) + "0",
        "[.[".repeat(990) + "0" + &"]]".repeat(990),
        "def f: ".repeat(480) + "1" + &"; 1".repeat(480),
        "if 1 then ".repeat(280) + "1" + &" end".repeat(280),
        ". as ".to_owned() + &"[".repeat(1901) + "$a" + &"]".repeat(1901) + " | $a",
        "\"\\(".repeat(990) + "0" + &")\"".repeat(990),
    ];
    for filter in filters {
        // Whatever comes of it, this process is still there to say it.
        let made = filtered(&filter);
        let shown: String = filter.chars().take(60).collect();
        let bounded = match &made {
            Ok(text) => text.chars().count() <= 200,
            Err(ViewError::StepLimit | ViewError::Jq(_) | ViewError::InvalidFilter(_)) => true,
            Err(_) => false,
        };
        assert!(bounded, "{shown}: {made:?}");
    }
}

#[test]
fn a_hostile_result_is_not_parsed_by_whoever_views_it() {
    for text in ["[".repeat(200_000), "{\"a\":".repeat(200_000), "9".repeat(3_000_000)] {
        for selector in [
            json!({"type": "jq", "filter": "."}),
            json!({"type": "json_keys", "keys": ["a"]}),
            json!({"type": "slice", "path": "a"}),
            json!({"type": "head"}),
            json!({"type": "rows"}),
            json!({"type": "grep", "pattern": "a"}),
        ] {
            let _ = cut_out(text.as_bytes(), "application/json", selector);
        }
        let jq = cut_out(text.as_bytes(), "application/json", json!({"type": "jq", "filter": "."}));
        assert!(matches!(jq, Err(ViewError::InputTooComplex(_))), "{jq:?}");
    }
}

#[test]
fn depth_that_fits_is_read_made_and_written() {
    let nested = "[".repeat(500) + &"]".repeat(500);
    let budget = Budget { chars: 2_000, ..Budget::default() };
    for filter in [".", "tojson | fromjson", ".. |= .", "[.]|.[0]", "if . == . then . else 1 end"] {
        let made = jq(nested.as_bytes(), "application/json", filter, &budget, &StopFlag::never());
        assert_eq!(made.unwrap().text, nested, "{filter}");
    }
}

#[test]
fn nothing_that_a_filter_makes_in_one_go_is_beyond_measure() {
    for filter in [
        "\"x\" | . *= 1000000000000",
        "{a: \"x\"} | .a *= 1000000000000",
        "{(\"x\" * 1000000000000): 1}",
        "{\"\\(\"x\" * 1000000000000)\"}",
        "{} as {(\"x\" * 1000000000000): $y} | $y",
        "reduce range(100) as $i (10; . * .)",
        "reduce range(100) as $i (10; . *= .)",
        "[range(100000)] | contains([range(100000)])",
        "\"a\" * 4000000 | indices(\"a\" * 2000000)",
        "\"a\" * 4000000 | test(\"[ab]*a[ab]{4000}c\")",
        "\"a\" * 4000000 | test(\"((a{30}){30}){30}c\")",
    ] {
        assert_eq!(filtered(filter), Err(ViewError::StepLimit), "{filter}");
    }
    let refused = filtered("\"7\" * 20000 | fromjson");
    assert!(matches!(refused, Err(ViewError::Jq(_))), "{refused:?}");
}

#[test]
fn what_is_guarded_means_what_it_meant() {
    for (filter, expected) in [
        ("[\"foobar\" | contains(\"bar\"), contains(\"x\")]", "[true,false]"),
        ("[[1, [2]], {a: \"xy\"}] | contains([{a: \"x\"}])", "true"),
        ("\"a,b, cd\" | indices(\",\"), index(\"b\")", "[1,3]\n2"),
        ("[0,1,2,1] | indices(1)", "[1,3]"),
        ("[1,[2]] | tojson | fromjson", "[1,[2]]"),
        ("\"12\" | tonumber", "12"),
        ("{a: 2} | .a *= 3", "{\"a\":6}"),
        ("[1,2] | .[] *= 2", "[2,4]"),
        ("\"ab\" | . *= 2", "\"abab\""),
        ("{a: {b: 1}} | . *= {a: {c: 2}}", "{\"a\":{\"b\":1,\"c\":2}}"),
        ("{(\"a\" + \"b\"): 1, c: 2, \"d\\(1)\": 3}", "{\"ab\":1,\"c\":2,\"d1\":3}"),
        ("{a: 1} as {a: $x} | {$x}", "{\"x\":1}"),
        ("{\"ab\": 1} as {(\"a\" + \"b\"): $x} | $x", "1"),
        ("{a: 1, b: 2} | {a, \"b\"}", "{\"a\":1,\"b\":2}"),
        ("def f(g): [g, g]; 1 | f(. + 1)", "[2,2]"),
    ] {
        assert_eq!(filtered(filter).as_deref(), Ok(expected), "{filter}");
    }
}

#[test]
fn whoever_is_told_to_stop_stops() {
    let stop = StopFlag::never();
    stop.set();
    let text = format!("{}\nx", "a".repeat(100_000));
    for selector in [
        json!({"type": "grep", "pattern": "[ab]*a[ab]{4000}c"}),
        json!({"type": "jq", "filter": "repeat(1)"}),
    ] {
        let selector = Selector::parse(&selector.into()).unwrap();
        let text = if selector.name() == "jq" { "1" } else { &text };
        let seen = view(text.as_bytes(), "text/plain", &selector, &Budget::default(), &stop);
        assert_eq!(seen, Err(ViewError::Stopped));
    }
}

#[test]
fn a_match_is_found_wherever_it_stands_in_a_long_line() {
    for at in [0, 1, 8_185, 8_192, 16_380, 16_384, 24_576, 99_990] {
        let line = format!("{}needle é{}", "é".repeat(at), "x".repeat(100));
        for pattern in ["needle", "(?i)NEEDLE", r"n\w+e\b", "éx+$", "^é*needle"] {
            let pattern = if pattern == "^é*needle" && at != 0 { "needle" } else { pattern };
            let seen = cut_out(line.as_bytes(), "", json!({"type": "grep", "pattern": pattern}));
            assert!(seen.unwrap().note.starts_with("1 matching"), "{pattern} at {at}");
        }
    }
}
