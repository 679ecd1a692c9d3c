//! Renders values as JSON, as TOML, and as YAML blocks.

use serde_json::Value as Json;

/// How JSON is laid out.
#[derive(Clone, Debug)]
pub(super) enum Layout {
    /// One member per line. `indent` is the current indentation, `unit` one more level.
    Lines { newline: &'static str, indent: String, unit: String },
    /// On one line, with a space after `:` and `,`.
    Spaced,
    /// On one line without spaces.
    Dense,
}

impl Layout {
    fn deeper(&self) -> Layout {
        match self {
            Layout::Lines { newline, indent, unit } => {
                Layout::Lines { newline, indent: format!("{indent}{unit}"), unit: unit.clone() }
            }
            Layout::Spaced => Layout::Spaced,
            Layout::Dense => Layout::Dense,
        }
    }

    pub(super) fn colon(&self) -> &'static str {
        match self {
            Layout::Lines { .. } | Layout::Spaced => ": ",
            Layout::Dense => ":",
        }
    }
}

/// Quotes a text so that JSON, TOML and YAML all parse it.
pub(super) fn quoted(text: &str) -> String {
    let json = Json::String(text.to_owned()).to_string();
    // Characters that JSON does not escape, and that TOML or YAML do not allow.
    let is_odd = |c: char| {
        matches!(
            c,
            '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}'
        )
    };
    if !json.contains(is_odd) {
        return json;
    }
    let escaped =
        |c: char| if is_odd(c) { format!("\\u{:04x}", u32::from(c)) } else { c.to_string() };
    json.chars().map(escaped).collect()
}

/// Renders a value as JSON. Lists stay on one line.
pub(super) fn json(value: &Json, layout: &Layout) -> String {
    match value {
        Json::Object(members) if members.is_empty() => "{}".to_owned(),
        Json::Object(members) => {
            let deeper = layout.deeper();
            let colon = layout.colon();
            let member = |(key, value): (&String, &Json)| {
                format!("{}{colon}{}", quoted(key), json(value, &deeper))
            };
            let members: Vec<String> = members.iter().map(member).collect();
            match (layout, &deeper) {
                (Layout::Lines { newline, indent, .. }, Layout::Lines { indent: inner, .. }) => {
                    let between = format!(",{newline}{inner}");
                    format!("{{{newline}{inner}{}{newline}{indent}}}", members.join(&between))
                }
                (Layout::Lines { .. } | Layout::Spaced, _) => format!("{{{}}}", members.join(", ")),
                (Layout::Dense, _) => format!("{{{}}}", members.join(",")),
            }
        }
        Json::Array(items) => {
            let between = if matches!(layout, Layout::Dense) { "," } else { ", " };
            let flat = if matches!(layout, Layout::Dense) { Layout::Dense } else { Layout::Spaced };
            let items: Vec<String> = items.iter().map(|item| json(item, &flat)).collect();
            format!("[{}]", items.join(between))
        }
        Json::String(text) => quoted(text),
        Json::Null | Json::Bool(_) | Json::Number(_) => value.to_string(),
    }
}

/// Renders a value on one line of TOML; `None` for null, which TOML does not have.
pub(super) fn toml(value: &Json) -> Option<String> {
    Some(match value {
        Json::Null => return None,
        Json::Bool(_) | Json::Number(_) => value.to_string(),
        Json::String(text) => quoted(text),
        Json::Array(items) => {
            let items: Option<Vec<String>> = items.iter().map(toml).collect();
            format!("[{}]", items?.join(", "))
        }
        Json::Object(members) if members.is_empty() => "{}".to_owned(),
        Json::Object(members) => {
            let member = |(key, value): (&String, &Json)| {
                Some(format!("{} = {}", toml_key(key), toml(value)?))
            };
            let members: Option<Vec<String>> = members.iter().map(member).collect();
            format!("{{ {} }}", members?.join(", "))
        }
    })
}

pub(super) fn toml_key(key: &str) -> String {
    let is_bare = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
    if !key.is_empty() && key.bytes().all(is_bare) { key.to_owned() } else { quoted(key) }
}

/// Renders a member as lines of YAML, the first without indentation and the last without a
/// line end.
pub(super) fn yaml(key: &str, value: &Json, indent: &str, newline: &str) -> String {
    let key = yaml_text(key);
    let Json::Object(members) = value else {
        return format!("{key}: {}", yaml_flow(value));
    };
    if members.is_empty() {
        return format!("{key}: {{}}");
    }
    let inner = format!("{indent}  ");
    let member = |(key, value): (&String, &Json)| {
        format!("{newline}{inner}{}", yaml(key, value, &inner, newline))
    };
    let members: String = members.iter().map(member).collect();
    format!("{key}:{members}")
}

fn yaml_flow(value: &Json) -> String {
    match value {
        Json::String(text) => yaml_text(text),
        // JSON is YAML, too.
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::Array(_) | Json::Object(_) => {
            json(value, &Layout::Spaced)
        }
    }
}

/// Renders a text, without quotes when every version of YAML reads it as the same text.
fn yaml_text(text: &str) -> String {
    let first = |b: u8| b.is_ascii_alphabetic() || b == b'/';
    let rest = |b: u8| b.is_ascii_alphanumeric() || b"_-/.".contains(&b);
    let means_more = ["true", "false", "yes", "no", "on", "off", "null", "y", "n"];
    let is_plain = text.bytes().next().is_some_and(first)
        && text.bytes().all(rest)
        && !means_more.contains(&text.to_ascii_lowercase().as_str());
    if is_plain { text.to_owned() } else { quoted(text) }
}
