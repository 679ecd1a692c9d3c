//! The YAML at the head of a `SKILL.md`, read as far as it can be.

use serde_json::Value;
use tool::Severity;

/// What the head says.
#[derive(Debug, Default)]
pub(super) struct Front {
    pub(super) name: Option<String>,
    pub(super) description: Option<String>,
    /// What a reader should know: compatibility, licence.
    pub(super) notes: Vec<String>,
    pub(super) oddities: Vec<(Severity, String)>,
}

/// The fields that the format defines.
const KNOWN: [&str; 6] =
    ["name", "description", "license", "compatibility", "metadata", "allowed-tools"];

/// Splits a document into its head and its body. The marks are lines of their
/// own, so `---` inside a value does not end the head.
pub(super) fn split(text: &str) -> (Front, &str) {
    let text = text.trim_start_matches('\u{feff}');
    let Some(after) = text.strip_prefix("---").and_then(after_line) else {
        let oddity = (Severity::Warning, "has no frontmatter".to_owned());
        return (Front { oddities: vec![oddity], ..Front::default() }, text);
    };
    let mut end = 0;
    for line in after.split_inclusive('\n') {
        if line.trim_end() == "---" {
            return (read(&after[..end]), &after[end + line.len()..]);
        }
        end += line.len();
    }
    let oddity = (Severity::Warning, "has a frontmatter without an end".to_owned());
    (Front { oddities: vec![oddity], ..Front::default() }, text)
}

/// What follows a line of nothing but white space.
fn after_line(text: &str) -> Option<&str> {
    let (line, rest) = text.split_once('\n')?;
    line.trim().is_empty().then_some(rest)
}

fn read(yaml: &str) -> Front {
    let mut front = Front::default();
    let value = serde_saphyr::from_str::<Value>(yaml).ok().filter(Value::is_object);
    let fields = value.unwrap_or_else(|| {
        let oddity = "has a frontmatter that is no YAML: read line by line";
        front.oddities.push((Severity::Warning, oddity.to_owned()));
        by_line(yaml)
    });
    let text = |key: &str| match fields.get(key) {
        Some(Value::String(text)) => Some(text.trim().to_owned()).filter(|text| !text.is_empty()),
        Some(Value::Number(number)) => Some(number.to_string()),
        _ => None,
    };
    front.name = text("name");
    front.description = text("description");
    front.notes.extend(text("compatibility").map(|needs| format!("Needs: {needs}")));
    front.notes.extend(text("license").map(|license| format!("Licence: {license}")));
    for key in fields.as_object().into_iter().flat_map(|fields| fields.keys()) {
        if key == "allowed-tools" {
            let oddity = "`allowed-tools` is ignored: a skill grants nothing here";
            front.oddities.push((Severity::Info, oddity.to_owned()));
        } else if !KNOWN.contains(&key.as_str()) {
            front.oddities.push((Severity::Info, format!("`{key}` is no field of a skill")));
        }
    }
    front
}

/// `key: value` lines, for values that YAML trips over, such as a description
/// with a colon in it.
fn by_line(yaml: &str) -> Value {
    let pair = |line: &str| {
        let (key, value) = line.split_once(':')?;
        let value = value.trim().trim_matches(['"', '\'']);
        let plain = !key.starts_with([' ', '\t', '-', '#']) && !value.is_empty();
        plain.then(|| (key.trim().to_owned(), Value::String(value.to_owned())))
    };
    Value::Object(yaml.lines().filter_map(pair).collect())
}
