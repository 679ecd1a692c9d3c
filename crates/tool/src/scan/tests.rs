use proptest::prelude::*;

use super::*;

/// Returns what a parser finds, if it takes the text for an object.
fn parsed(text: &str) -> Option<Vec<(String, String)>> {
    struct Found(Vec<(String, String)>);
    impl<'de> serde::Deserialize<'de> for Found {
        fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Found, D::Error> {
            struct All;
            impl<'de> serde::de::Visitor<'de> for All {
                type Value = Found;

                fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                    f.write_str("an object")
                }

                fn visit_map<A: serde::de::MapAccess<'de>>(
                    self,
                    mut map: A,
                ) -> Result<Found, A::Error> {
                    let mut found = Vec::new();
                    while let Some((name, raw)) = map.next_entry::<String, &RawValue>()? {
                        found.push((name, raw.get().to_owned()));
                    }
                    Ok(Found(found))
                }
            }
            deserializer.deserialize_map(All)
        }
    }
    serde_json::from_str::<Found>(text).ok().map(|found| found.0)
}

fn scanned(text: &str) -> Option<Vec<(String, String)>> {
    let mut found = Vec::new();
    scan_members(text, |name, part| found.push((name.to_owned(), part.as_str().to_owned())))?;
    Some(found)
}

/// Whatever the scan finds the parser finds, and what has no escapes in its
/// names and is not deep the scan finds, too.
#[track_caller]
fn check(text: &str) {
    let (scanned, parsed) = (scanned(text), parsed(text));
    if scanned.is_some() {
        assert_eq!(scanned, parsed, "{text}");
    } else if let Some(parsed) = parsed {
        let is_odd = parsed.iter().any(|(name, _)| name.contains(['"', '\\']) || !name.is_ascii());
        let may_be_deep = 64 < text.bytes().filter(|byte| matches!(byte, b'[' | b'{')).count();
        assert!(is_odd || may_be_deep || text.contains("\\u"), "{text} is not found");
    }
    let raw = serde_json::from_str::<&RawValue>(text).ok();
    if let Some(part) = scan_value(text) {
        assert_eq!(Some(part.as_str()), raw.map(RawValue::get), "{text}");
    }
}

#[test]
fn what_is_an_object_is_taken_apart() {
    for text in [
        "{}",
        " { } ",
        r#"{"a":1}"#,
        "\t{ \"a\" : 1 ,\r\n\"b\":[ ] }\n",
        r#"{"a":{"b":[{"c":[[],{}]},1,"x"]},"a":null}"#,
        r#"{"text":"with \"quotes\", \\ and \u00e9 and é and 😀"}"#,
        r#"{"n":[0,-0,10,1.5,-1.25e+10,1E400,1e-9,18446744073709551617]}"#,
        r#"{"t":true,"f":false,"n":null}"#,
        r#"{"":""}"#,
        r#"{"longer than eight bytes":"and its value is, too"}"#,
    ] {
        assert!(scanned(text).is_some(), "{text}");
        check(text);
    }
}

#[test]
fn what_is_none_is_not() {
    for text in [
        "",
        "{",
        "}",
        "{]",
        "[]",
        "[1}",
        "{}x",
        "{,}",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{\"a\":1 \"b\":2}",
        "{\"a\":01}",
        "{\"a\":1.}",
        "{\"a\":.5}",
        "{\"a\":+1}",
        "{\"a\":-}",
        "{\"a\":1e}",
        "{\"a\":tru}",
        "{\"a\":truex}",
        "{\"a\":nul",
        "{\"a\":\"}",
        "{\"a\":\"\n\"}",
        "{\"a\":\"\\x\"}",
        "{\"a\":\"\\u12g4\"}",
        "{\"a\":\"\\u12",
        "{a:1}",
        "{\"a\":[1,]}",
        "{\"a\":[,1]}",
        "{\"a\":[1 2]}",
        "{\"a\":{\"b\":1,}}",
        "{\"a\":{\"b\"}}",
        "{\"a\":[1}}",
        "{\"a\":{\"b\":1]}",
        "{\"a\u{1}\":1}",
        "\u{feff}{}",
        "{\"a\":1}{",
        "nul",
        "{\u{a0}}",
    ] {
        assert_eq!(scanned(text), None, "{text}");
        assert_eq!(parsed(text), None, "{text}");
        check(text);
    }
}

#[test]
fn what_a_parser_has_to_look_at_is_left_to_it() {
    let deep = |n: usize| format!("{{\"a\":{}{}}}", "[".repeat(n), "]".repeat(n));
    // An empty array is no level.
    assert!(scanned(&deep(65)).is_some());
    for text in [deep(66), r#"{"\u0061":1}"#.to_owned(), r#"{"a\"":1}"#.to_owned()] {
        assert_eq!(scanned(&text), None, "{text}");
        assert!(parsed(&text).is_some(), "{text}");
    }
}

#[test]
fn a_string_ends_where_it_ends_wherever_that_is() {
    for special in ["\"", "\\", "\u{0}", "\u{1f}", "\n"] {
        for before in 0..40 {
            let text = format!("{}{special}{}", "é".repeat(before), "\" \\ z".repeat(3));
            assert_eq!(n_bytes_without_special(text.as_bytes()), 2 * before, "{text:?}");
        }
    }
    for plain in ["", "a", "\u{7f}\u{80} !#[]", "twenty plain bytes !!"] {
        assert_eq!(n_bytes_without_special(plain.as_bytes()), plain.len(), "{plain:?}");
    }
}

proptest! {
    #[test]
    fn the_scan_and_the_parser_agree_about_text_that_is_nearly_json(
        text in r#"\{("[a-z\\"u0é]{0,9}" ?: ?([\[\]{}",:\\a-f0-9.eE+\- \n\ttrufalsn]{0,24}),? ?){0,3}\}"#
    ) {
        check(&text);
    }

    #[test]
    fn the_scan_and_the_parser_agree_about_damaged_json(
        value in value(),
        at in any::<prop::sample::Index>(),
        instead in prop::sample::select(vec!["", "\"", "\\", "{", "]", ",", ":", "0", "-", "\n", "é"]),
    ) {
        let text = format!("{{\"a\":{value},\"bc\":{value}}}");
        check(&text);
        let places: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
        let at = places[at.index(places.len())];
        let rest = text[at..].chars().next().map_or(0, char::len_utf8);
        check(&format!("{}{instead}{}", &text[..at], &text[at + rest..]));
        check(&text[..at]);
    }
}

fn value() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        any::<f64>().prop_map(Into::into),
        ".{0,20}".prop_map(Into::into),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Into::into),
            prop::collection::vec((".{0,9}", inner), 0..4)
                .prop_map(|members| serde_json::Value::Object(members.into_iter().collect())),
        ]
    })
}
