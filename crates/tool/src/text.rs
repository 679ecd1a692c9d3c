//! Shortens text, and makes upstream text safe to display.
//!
//! Models, people and terminals read the text of upstreams beside text of
//! gatelet. [`without_invisible`] removes characters that move, hide or colour
//! other text, [`escape_invisible`] makes them visible, and [`quoted`] marks every
//! line as a quotation. None of them knows what the text means.

use std::borrow::Cow;
use std::str::Chars;

use serde_json::Value;

use crate::Json;

/// Cuts `text` at a word to at most `limit` characters; a text that was cut ends
/// with `…`.
pub fn cut(text: &str, limit: usize) -> String {
    if text.chars().count() <= limit {
        return text.to_owned();
    }
    let kept: String = text.chars().take(limit.saturating_sub(1)).collect();
    let at_word = kept.rfind(' ').filter(|at| kept.len() / 2 < *at).unwrap_or(kept.len());
    format!("{}…", kept[..at_word].trim_end_matches([' ', ',', ';', ':']))
}

/// Removes control characters, marks of direction and invisible characters. Line
/// breaks of every kind become `\n`; joiners that some scripts and emoji need stay.
pub fn without_invisible(text: &str) -> Cow<'_, str> {
    if text.is_ascii() && !text.bytes().any(|byte| is_control(byte.into())) {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    let mut changed = false;
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        let before = plain.chars().next_back();
        match c {
            '\r' if rest.clone().next() == Some('\n') => changed = true,
            '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}' => {
                plain.push('\n');
                changed = true;
            }
            c if is_kept(c, before, rest.clone()) => plain.push(c),
            _ => changed = true,
        }
    }
    if changed { Cow::Owned(plain) } else { Cow::Borrowed(text) }
}

/// Removes invisible characters and line breaks outside of ASCII, and keeps those
/// of ASCII: in a value, such as the name of a line ending, they may be meant. JSON
/// text stays JSON, because JSON escapes the control characters of ASCII.
pub fn without_invisible_non_ascii(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        let before = plain.chars().next_back();
        let is_break = matches!(c, '\u{2028}' | '\u{2029}');
        if c.is_ascii() || !is_break && is_kept(c, before, rest.clone()) {
            plain.push(c);
        }
    }
    if plain.len() == text.len() { Cow::Borrowed(text) } else { Cow::Owned(plain) }
}

/// Applies [`without_invisible`] to every string and member name of a JSON value;
/// `None` if nothing changes or the value is nested too deeply to be parsed.
pub fn json_without_invisible(json: &Json) -> Option<Json> {
    // In JSON, a control character is always escaped.
    if json.as_str().is_ascii() && !json.as_str().contains('\\') {
        return None;
    }
    let mut value = json.to_value().ok()?;
    value_without_invisible(&mut value).then(|| value.into())
}

/// Applies [`without_invisible`] in place; returns whether anything changed.
fn value_without_invisible(value: &mut Value) -> bool {
    match value {
        Value::String(text) => match without_invisible(text) {
            Cow::Owned(clean) => {
                *text = clean;
                true
            }
            Cow::Borrowed(_) => false,
        },
        Value::Array(items) => {
            items.iter_mut().map(value_without_invisible).filter(|is_changed| *is_changed).count()
                > 0
        }
        Value::Object(members) => {
            let is_odd = members.keys().any(|key| matches!(without_invisible(key), Cow::Owned(_)));
            if is_odd {
                let odd = std::mem::take(members).into_iter();
                *members =
                    odd.map(|(key, it)| (without_invisible(&key).into_owned(), it)).collect();
            }
            members
                .values_mut()
                .fold(is_odd, |changed, member| value_without_invisible(member) || changed)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Returns whether a character is visible behind what was kept `before` it and in front of
/// the rest, or changes how they look.
fn is_kept(c: char, before: Option<char>, rest: Chars<'_>) -> bool {
    let is_shaped =
        |near: Option<char>| near.is_some_and(|near| !near.is_ascii() && !is_joiner(near));
    match c {
        '\n' | '\t' => true,
        // They join or separate letters of scripts that need it, and parts of emoji.
        c if is_joiner(c) => is_shaped(before) && is_shaped(next_visible(rest)),
        // One variation selector chooses how a character looks; a row of them can
        // hide a message.
        '\u{fe00}'..='\u{fe0f}' => {
            let is_keycap = before.is_some_and(|c| matches!(c, '0'..='9' | '#' | '*'));
            let is_row = before.is_some_and(|c| matches!(c, '\u{fe00}'..='\u{fe0f}'));
            (is_keycap || is_shaped(before)) && !is_row
        }
        c => !is_invisible(c) && !is_control(c),
    }
}

fn is_joiner(c: char) -> bool {
    matches!(c, '\u{200c}' | '\u{200d}')
}

/// The first character that will be kept whatever stands before it, or a joiner. What a
/// joiner joins has to be known as it will be, or it would go only the next time.
fn next_visible(mut rest: Chars<'_>) -> Option<char> {
    rest.find_map(|c| match c {
        '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}' => Some('\n'),
        '\u{fe00}'..='\u{fe0f}' => None,
        c => (is_joiner(c) || !(is_invisible(c) || is_control(c))).then_some(c),
    })
}

fn is_control(c: char) -> bool {
    c.is_control() && !matches!(c, '\n' | '\t')
}

/// Returns whether a character is a mark of direction or has no width.
pub fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'
            | '\u{1160}'
            | '\u{17b4}'
            | '\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

/// Writes characters that are invisible, change the direction of writing or
/// control a terminal as escapes such as `\u{202e}`, for a person who decides by
/// this text. Line ends and tabs stay.
pub fn escape_invisible(text: &str) -> Cow<'_, str> {
    if !text.contains(is_control_or_invisible) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for c in text.replace("\r\n", "\n").chars() {
        match is_control_or_invisible(c) {
            true => escaped.extend(c.escape_unicode()),
            false => escaped.push(c),
        }
    }
    Cow::Owned(escaped)
}

/// Does what [`escape_invisible`] does, and escapes line ends and tabs too, so that
/// no text can imitate a line of gatelet's own.
pub fn escape_invisible_line(text: &str) -> Cow<'_, str> {
    match text.contains(['\n', '\t']) {
        true => {
            let one_line = text.replace('\n', "\\n").replace('\t', "\\t");
            Cow::Owned(escape_invisible(&one_line).into_owned())
        }
        false => escape_invisible(text),
    }
}

/// Returns whether a character is invisible or controls a terminal. Line ends and
/// tabs are neither.
pub fn is_control_or_invisible(c: char) -> bool {
    is_control(c) || is_invisible(c) || matches!(c, '\u{2028}' | '\u{2029}')
}

/// Makes a Markdown quotation of at most `limit` characters of a foreign text.
/// Headings and fences in the text cannot end the quotation.
pub fn quoted(text: &str, limit: usize) -> String {
    let text = without_invisible(text.trim());
    let (text, is_cut) = match text.char_indices().nth(limit) {
        Some((at, _)) => (text[..at].trim_end(), true),
        None => (text.trim_end(), false),
    };
    let lines = text.lines().map(|line| match line.trim_end() {
        "" => ">".to_owned(),
        line => format!("> {line}"),
    });
    let mut quoted = lines.collect::<Vec<_>>().join("\n");
    if is_cut {
        quoted.push_str(if quoted.is_empty() { "> …" } else { "…" });
    }
    quoted
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_cannot_be_seen_is_spelt_out_for_who_decides() {
        for c in "\u{1b}\u{7f}\u{9b}\u{200b}\u{202e}\u{2066}\u{2028}\u{feff}\u{e0041}\r".chars() {
            let text = format!("a{c}b");
            assert_eq!(escape_invisible(&text), format!("a{}b", c.escape_unicode()));
        }
        assert_eq!(escape_invisible("a\n\tb é"), "a\n\tb é");
        assert_eq!(escape_invisible_line("evil)\nstate\tallowed"), "evil)\\nstate\\tallowed");
    }

    #[test]
    fn what_moves_hides_or_colours_text_is_taken_out() {
        for (text, expected) in [
            ("plain", "plain"),
            ("a\u{1b}[31mred\u{1b}[0m", "a[31mred[0m"),
            ("bell\u{7} nul\u{0} del\u{7f} c1\u{9b}2J", "bell nul del c12J"),
            ("\u{202e}txt\u{202c}\u{2066}x\u{2069}", "txtx"),
            ("pass\u{200b}word\u{2060}\u{feff}\u{ad}", "password"),
            ("a\u{e0049}\u{e0067}b", "ab"),
            ("x\u{fe0f}\u{fe01}\u{fe02}y", "xy"),
            ("☁\u{fe0f}\u{fe01}\u{fe02}", "☁\u{fe0f}"),
            ("one\r\ntwo\rthree\u{2028}four\u{85}five", "one\ntwo\nthree\nfour\nfive"),
            ("a\u{200d}b \u{200c}c", "ab c"),
        ] {
            assert_eq!(without_invisible(text), expected, "{text:?}");
        }
    }

    #[test]
    fn a_value_keeps_what_json_escapes_and_loses_what_nobody_sees() {
        for (text, expected) in [
            ("\r\n", "\r\n"),
            ("tab\t\u{1b}", "tab\t\u{1b}"),
            ("a\u{202e}b\u{200b}\u{e0041}\u{2028}c\u{9b}", "abc"),
            ("é\u{200d}é", "é\u{200d}é"),
        ] {
            assert_eq!(without_invisible_non_ascii(text), expected, "{text:?}");
        }
    }

    #[test]
    fn every_text_of_a_json_value_is_cleaned_and_a_clean_one_stays() {
        let odd = serde_json::json!({"a\u{202e}": ["x\u{200b}", {"b": "\u{1b}[2J"}], "n": 1});
        let clean = json_without_invisible(&odd.into()).unwrap();
        let expected = serde_json::json!({"a": ["x", {"b": "[2J"}], "n": 1});
        assert_eq!(clean.to_value().unwrap(), expected);
        let plain = Json::parse(r#"{ "a":"\u00e9\n", "n":1e400}"#).unwrap();
        assert_eq!(json_without_invisible(&plain), None);
    }

    #[test]
    fn other_scripts_and_emoji_stay_as_they_are() {
        for text in [
            "naïve",
            "نمی\u{200c}خواهم",
            "क्\u{200d}ष",
            "👨\u{200d}👩\u{200d}👧",
            "☁\u{fe0f}",
            "1\u{fe0f}\u{20e3}",
            "日本\t語\n",
        ] {
            assert!(matches!(without_invisible(text), Cow::Borrowed(_)), "{text:?}");
        }
    }

    #[test]
    fn every_line_of_a_quotation_is_marked() {
        assert_eq!(quoted("  # A\n\n```\r**Error:** x\n ", 100), "> # A\n>\n> ```\n> **Error:** x");
        assert_eq!(quoted("abcdef", 3), "> abc…");
        assert_eq!(quoted("", 3), "");
    }

    proptest! {
        /// What was cleaned once stays as it is.
        #[test]
        fn cleaning_twice_is_cleaning_once(
            text in prop::collection::vec(prop::sample::select(
                "\u{200c}\u{200d}\u{200b}\u{fe0f}\u{fe00}\u{2028}\u{85}\r\n\u{1b}aé👩❤#\u{202e}\u{e0041}".chars().collect::<Vec<_>>(),
            ), 0..12),
        ) {
            let text: String = text.into_iter().collect();
            for clean in [without_invisible, without_invisible_non_ascii] {
                let once = clean(&text).into_owned();
                prop_assert_eq!(clean(&once), once.as_str(), "{:?}", text);
            }
        }

        #[test]
        fn nothing_that_is_obeyed_passes(text in "\\PC{0,8}[\\u{0}-\\u{a0}\\u{200b}-\\u{206f}\\u{fe00}-\\u{fe0f}\\u{e0000}-\\u{e01ef}a-c]{0,20}\\PC{0,8}") {
            let shown = without_invisible(&text);
            prop_assert!(!shown.chars().any(is_control), "{:?}", shown);
            prop_assert!(!shown.chars().any(|c| is_invisible(c) && !matches!(c, '\u{200c}' | '\u{200d}')), "hidden");
            // Once is enough.
            prop_assert_eq!(without_invisible(&shown), &*shown);
        }

        #[test]
        fn no_line_of_a_quotation_is_without_its_mark(text in "(?s).{0,60}", limit in 0usize..80) {
            let shown = quoted(&text, limit);
            prop_assert!(shown.is_empty() || shown.lines().all(|line| line.starts_with('>')), "{:?}", shown);
            prop_assert!(shown.chars().filter(|c| *c != '>' && *c != ' ').count() <= limit + 1);
        }
    }
}
