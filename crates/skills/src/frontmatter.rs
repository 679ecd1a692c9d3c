//! Parses the YAML front matter of a `SKILL.md`, as far as it is valid.

use serde::Deserialize;
use serde_json::{Map, Value};
use tool::Severity;

/// The fields of the front matter, and what is wrong with it.
#[derive(Debug, Default)]
pub(super) struct Frontmatter {
    pub(super) name: Option<String>,
    pub(super) description: Option<String>,
    pub(super) version: Option<String>,
    /// The functions that the skill declares to need, as they are written.
    pub(super) functions: Vec<String>,
    pub(super) license: Option<String>,
    pub(super) compatibility: Option<String>,
    pub(super) problems: Vec<(Severity, String)>,
}

/// The fields that the format defines, and `version`, which is ours.
const FIELDS: [&str; 7] =
    ["name", "description", "license", "compatibility", "metadata", "allowed-tools", "version"];

/// The size of the largest front matter that is parsed.
const MAX_BYTES: usize = 64 << 10;
const MAX_COMPATIBILITY: usize = 500;
/// How many functions one skill may need.
const MAX_FUNCTIONS: usize = 64;
/// How many fields are checked for being unknown.
const MAX_CHECKED_FIELDS: usize = 20;

/// Splits a document into its front matter and its body. The delimiters are lines of their
/// own, so `---` inside a value does not end the front matter.
pub(super) fn split(text: &str) -> (Frontmatter, &str) {
    let text = text.trim_start_matches('\u{feff}');
    let none = |problem: &str| Frontmatter {
        problems: vec![(Severity::Warning, problem.to_owned())],
        ..Frontmatter::default()
    };
    let Some(after) = text.strip_prefix("---").and_then(after_line) else {
        return (none("has no frontmatter"), text);
    };
    let mut end = 0;
    for line in after.split_inclusive('\n') {
        if line.trim_end() == "---" {
            let body = &after[end + line.len()..];
            if MAX_BYTES < end {
                return (none("has a frontmatter of over 64 KiB: not read"), body);
            }
            return (parse(&after[..end]), body);
        }
        end += line.len();
    }
    (none("has a frontmatter without an end"), text)
}

/// Returns the text after the first line, if that line is blank.
fn after_line(text: &str) -> Option<&str> {
    let (line, rest) = text.split_once('\n')?;
    line.trim().is_empty().then_some(rest)
}

fn parse(yaml: &str) -> Frontmatter {
    let mut front = Frontmatter::default();
    let fields = match serde_saphyr::from_str_with_options::<Value>(yaml, options()) {
        Ok(Value::Object(fields)) => fields,
        Ok(_) | Err(_) => {
            let problem = "has a frontmatter that is no YAML: read line by line";
            front.problems.push((Severity::Warning, problem.to_owned()));
            parse_lines(yaml)
        }
    };
    let more = fields.get("metadata").and_then(Value::as_object).cloned().unwrap_or_default();
    let either = |key: &str| text(&fields, key).or_else(|| text(&more, key));
    let written: TextFields =
        serde_saphyr::from_str_with_options(yaml, options()).unwrap_or_default();
    let versions: Versions =
        serde_saphyr::from_str_with_options(yaml, options()).unwrap_or_default();
    let version = versions.version.or(versions.metadata.and_then(|more| more.version));
    front.name = tidy(written.name).or_else(|| text(&fields, "name"));
    front.description = tidy(written.description).or_else(|| text(&fields, "description"));
    front.version = tidy(version).or_else(|| either("version"));
    front.license = tidy(written.license).or_else(|| text(&fields, "license"));
    front.compatibility = tidy(written.compatibility).or_else(|| text(&fields, "compatibility"));
    let functions = either("functions").unwrap_or_default();
    let functions = functions.split([' ', ',', '\n']).filter(|function| !function.is_empty());
    front.functions = functions.take(MAX_FUNCTIONS).map(str::to_owned).collect();
    report_odd_fields(&fields, &mut front.problems);
    front
}

/// The text fields as they are written, also where YAML would take one for a number.
#[derive(Default, Deserialize)]
#[serde(default)]
struct TextFields {
    name: Option<String>,
    description: Option<String>,
    license: Option<String>,
    compatibility: Option<String>,
}

/// The version as it is written, because `1.10` is not `1.1`. Parsed separately, so that
/// an invalid field beside it does not matter.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Versions {
    version: Option<String>,
    metadata: Option<Metadata>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Metadata {
    version: Option<String>,
}

fn tidy(text: Option<String>) -> Option<String> {
    text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
}

fn options() -> serde_saphyr::Options {
    // Front matter needs no anchors, and without them it cannot expand without bounds.
    let budget = serde_saphyr::budget! { max_aliases: 0, max_anchors: 0, max_depth: 8 };
    serde_saphyr::options! { budget: budget }
}

/// Returns a field as text; the texts of a list are joined by spaces.
fn text(fields: &Map<String, Value>, key: &str) -> Option<String> {
    let text = match fields.get(key)? {
        Value::String(text) => text.trim().to_owned(),
        Value::Number(number) => number.to_string(),
        Value::Array(items) => items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" "),
        Value::Null | Value::Bool(_) | Value::Object(_) => return None,
    };
    Some(text).filter(|text| !text.is_empty())
}

/// Reports unknown, misplaced and invalid fields.
fn report_odd_fields(fields: &Map<String, Value>, problems: &mut Vec<(Severity, String)>) {
    let mut note = |severity, problem: String| problems.push((severity, problem));
    for key in fields.keys().take(MAX_CHECKED_FIELDS) {
        match key.as_str() {
            "allowed-tools" => {
                let problem = "`allowed-tools` is ignored: a skill grants nothing here";
                note(Severity::Info, problem.to_owned());
            }
            "version" => {
                let problem = "`version` belongs in `metadata`, where every reader takes it";
                note(Severity::Info, problem.to_owned());
            }
            known if FIELDS.contains(&known) => {}
            other => {
                let other = catalog::summary::cut(other, 60);
                note(Severity::Info, format!("`{other}` is no field of a skill"));
            }
        }
    }
    let long = |text: String| MAX_COMPATIBILITY < text.chars().count();
    if text(fields, "compatibility").is_some_and(long) {
        note(Severity::Warning, format!("`compatibility` is over {MAX_COMPATIBILITY} characters"));
    }
    let metadata = fields.get("metadata").filter(|metadata| !metadata.is_null());
    if metadata.is_some_and(|metadata| !metadata.is_object()) {
        note(Severity::Warning, "`metadata` is no mapping".to_owned());
    }
}

/// Parses `key: value` lines, for front matter that is not valid YAML, such as a
/// description with a colon in it.
fn parse_lines(yaml: &str) -> Map<String, Value> {
    let pair = |line: &str| {
        let (key, value) = line.split_once(':')?;
        let value = value.trim().trim_matches(['"', '\'']);
        let plain = !key.starts_with([' ', '\t', '-', '#']) && !value.is_empty();
        plain.then(|| (key.trim().to_owned(), Value::String(value.to_owned())))
    };
    yaml.lines().filter_map(pair).collect()
}
