//! Finds names that occur twice in one JSON object.
//!
//! Most parsers take the last of two members with one name, and some take the
//! first. A policy might check one value while the upstream uses the other, so
//! such a text is better refused. Names are compared without their escapes:
//! `"p\u0061th"` is `path`.

use std::borrow::Cow;

use super::{ValueText, scan_members};

/// The largest number of members that are compared without an allocation.
const MAX_COMPARED_PAIRWISE: usize = 8;

/// Returns a name that occurs twice in one object of `text`, at any depth.
///
/// `text` has to be well-formed, as a [`Json`](crate::Json) is.
pub fn duplicate_key(text: &str) -> Option<String> {
    match in_small_object(text) {
        Some(found) => found,
        None => at_any_depth(text),
    }
}

/// Checks an object of a few members that are neither arrays nor objects, as most
/// arguments are. The outer `None` means that `text` is something else.
fn in_small_object(text: &str) -> Option<Option<String>> {
    let (mut names, mut n_names, mut is_plain) = ([""; MAX_COMPARED_PAIRWISE], 0, true);
    let mut twice = None;
    scan_members(text, |name, part: ValueText<'_>| {
        is_plain &= n_names < MAX_COMPARED_PAIRWISE && !part.as_str().starts_with(['{', '[']);
        if is_plain {
            if names[..n_names].contains(&name) {
                twice = Some(name);
            }
            names[n_names] = name;
            n_names += 1;
        }
    })?;
    is_plain.then(|| twice.map(str::to_owned))
}

/// A bracket that is not closed yet.
enum OpenBracket {
    Array,
    /// The index of the object's first name in the list of all names.
    Object(usize),
}

fn at_any_depth(text: &str) -> Option<String> {
    let (mut open, mut names) = (Vec::new(), Vec::new());
    let mut is_name = false;
    let mut at = 0;
    let bytes = text.as_bytes();
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'{' => {
                open.push(OpenBracket::Object(names.len()));
                is_name = true;
            }
            b'[' => {
                open.push(OpenBracket::Array);
                is_name = false;
            }
            b']' => drop(open.pop()),
            b'}' => {
                if let Some(OpenBracket::Object(first)) = open.pop() {
                    if let Some(twice) = first_repeated(&mut names[first..]) {
                        return Some(twice);
                    }
                    names.truncate(first);
                }
            }
            b',' => is_name = matches!(open.last(), Some(OpenBracket::Object(_))),
            b'"' => {
                let end = at + 1 + n_bytes_before_quote(bytes.get(at + 1..)?)?;
                if is_name {
                    names.push(unescape(text.get(at..=end)?));
                    is_name = false;
                }
                at = end;
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// Returns how many bytes of a string come before the quote that ends it.
fn n_bytes_before_quote(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        at += super::n_bytes_without_special(bytes.get(at..)?);
        match bytes.get(at)? {
            b'"' => return Some(at),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

/// Removes the quotes and escapes of a name. A name with invalid escapes stays as
/// it is.
fn unescape(escaped: &str) -> Cow<'_, str> {
    let plain = &escaped[1..escaped.len() - 1];
    match plain.contains('\\') {
        true => serde_json::from_str(escaped).map_or(Cow::Borrowed(plain), Cow::Owned),
        false => Cow::Borrowed(plain),
    }
}

/// Returns the first name that occurs twice. Sorts the names, so that many cost
/// little more than few.
fn first_repeated(names: &mut [Cow<'_, str>]) -> Option<String> {
    names.sort_unstable();
    names.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0].clone().into_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    #[test]
    fn a_name_that_stands_twice_is_found_wherever_and_however_it_is_written() {
        for (text, expected) in [
            (r#"{"path":"/etc","path":"/tmp/x"}"#, Some("path")),
            (r#"{ "path" : 1 , "p\u0061th" : 2 }"#, Some("path")),
            (r#"{"a":{"b":[{"c":1},{"c":1,"d":2,"c":3}]}}"#, Some("c")),
            (r#"{"a":1,"b":{"a":1},"c":[{"a":1},{"a":1}]}"#, None),
            (r#"{"a":"{\"a\":1,\"a\":2}","b":"a","c":"\\"}"#, None),
            (r#"{"":1,"":2}"#, Some("")),
            (r#"{"\ud800":1,"\ud800":2}"#, Some("\\ud800")),
            (r#"[[],{},"x",1,{"a":1,"a":1}]"#, Some("a")),
            ("{}", None),
            ("7", None),
        ] {
            assert_eq!(duplicate_key(text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn depth_and_length_cost_no_stack_and_little_time() {
        for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
            let deep =
                format!("{}{{\"b\":1,\"b\":2}}{}", open.repeat(100_000), close.repeat(100_000));
            assert_eq!(duplicate_key(&deep).as_deref(), Some("b"));
        }
        let many: Vec<String> = (0..100_000).map(|n| format!("\"{n}\":0")).collect();
        assert_eq!(duplicate_key(&format!("{{{}}}", many.join(","))), None);
        assert_eq!(duplicate_key(&format!("{{{},\"7\":0}}", many.join(","))).as_deref(), Some("7"));
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<i32>().prop_map(Value::from),
            "[\\PC\"\\\\{}\\[\\],:]{0,6}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::btree_map("[\\PC\"\\\\]{0,3}", inner, 0..12)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_a_map_wrote_holds_no_name_twice_until_one_is_written_again(value in value()) {
            let text = value.to_string();
            prop_assert_eq!(duplicate_key(&text), None);
            if let Some((name, _)) = value.as_object().and_then(|members| members.iter().next()) {
                let again = format!("{{{}:1,{}", Value::from(name.as_str()), &text[1..]);
                prop_assert_eq!(duplicate_key(&again), Some(name.clone()));
            }
        }
    }
}
