//! Renders the arguments of a call for the person who has to agree to it.
//!
//! Every argument has its own line with its name, and invisible characters are escaped,
//! so spaces, long neighbours and bidirectional characters cannot hide one. A value that
//! is shortened says so.

use serde_json::Value;
use tool::text::without_invisible;

/// The most arguments that are rendered.
const MAX_ARGUMENTS: usize = 40;
/// The most characters of one value, and of one name.
const MAX_VALUE: usize = 200;
const MAX_NAME: usize = 60;

/// Renders the arguments of a call. `json` is an object in most cases.
pub(super) fn render(json: &str) -> String {
    let Ok(value) = serde_json::from_str::<Value>(json) else {
        return format!("Arguments: {}", shortened(json, MAX_VALUE));
    };
    let Value::Object(members) = &value else {
        return format!("Arguments: {}", shortened(&value.to_string(), MAX_VALUE));
    };
    if members.is_empty() {
        return "No arguments.".to_owned();
    }
    let lines = members.iter().take(MAX_ARGUMENTS).map(|(name, value)| {
        format!("\n- {}: {}", shortened(name, MAX_NAME), shortened(&value.to_string(), MAX_VALUE))
    });
    let more = match members.len().saturating_sub(MAX_ARGUMENTS) {
        0 => String::new(),
        more => format!("\n- and {more} more, which are not shown"),
    };
    format!("Arguments:{}{more}", lines.collect::<String>())
}

/// The beginning and the end of a text on one line, with invisible characters escaped.
fn shortened(text: &str, limit: usize) -> String {
    let n_chars = text.chars().count();
    if n_chars <= limit {
        return visible(text.chars());
    }
    let head = visible(text.chars().take(limit / 4 * 3));
    let tail = visible(text.chars().skip(n_chars - limit / 4));
    format!("{head} … {tail} ({n_chars} characters)")
}

/// Escapes invisible characters, and repeated spaces too, which could hide something.
fn visible(text: impl Iterator<Item = char>) -> String {
    let mut visible = String::new();
    for c in text {
        let mut own = [0; 4];
        let one = c.encode_utf8(&mut own);
        let is_plain = !c.is_whitespace() && without_invisible(one) == *one;
        match c {
            ' ' if visible.ends_with(' ') => visible.push('\u{b7}'),
            c if is_plain || c == ' ' => visible.push(c),
            c => visible.extend(c.escape_unicode()),
        }
    }
    visible
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn every_argument_stands_on_a_line_of_its_own() {
        let given = format!("{{{}\"path\":\"/\"  ,\"note\":\"x\"}}", " ".repeat(2500));
        assert_eq!(render(&given), "Arguments:\n- path: \"/\"\n- note: \"x\"");
        let long = json!({"note": "x".repeat(3000), "path": "/"}).to_string();
        let shown = render(&long);
        assert!(shown.ends_with("\n- path: \"/\""), "{shown}");
        assert!(shown.contains("(3002 characters)") && shown.len() < 400, "{shown}");
        assert_eq!(render("{}"), "No arguments.");
        assert_eq!(render("[1]"), "Arguments: [1]");
    }

    #[test]
    fn nothing_in_a_value_looks_like_something_else() {
        let path = "/tmp/x\"}. Go on? [Yes]\u{202e} \n\n- path: /safe";
        let shown = render(&json!({"path": path}).to_string());
        assert_eq!(shown.lines().count(), 2, "{shown}");
        assert!(shown.contains("\\u{202e}") && !shown.contains('\u{202e}'), "{shown}");
        let gap = render(&json!({"path": format!("/{}etc", " ".repeat(100))}).to_string());
        assert!(!gap.contains("  "), "{gap}");
    }

    proptest! {
        #[test]
        fn every_name_is_seen_and_no_line_is_added(
            names in prop::collection::btree_set("[a-z]{1,8}", 1..10), value in "(?s).{0,300}",
        ) {
            let given: serde_json::Map<String, Value> =
                names.iter().map(|name| (name.clone(), json!(value))).collect();
            let shown = render(&Value::Object(given).to_string());
            prop_assert_eq!(shown.lines().count(), names.len() + 1);
            for name in &names {
                let line = format!("- {name}: ");
                prop_assert!(shown.lines().any(|shown| shown.starts_with(&line)), "{}", shown);
            }
            prop_assert!(shown.chars().count() < names.len() * 2500 + 20);
        }
    }
}
