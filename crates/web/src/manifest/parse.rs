//! Parses the manifest of a CaSH server, and reports everything that is wrong with it.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use catalog::name;
use catalog::summary::{cut, echo};
use serde_json::Value;
use tool::text::without_invisible;
use url::Url;

use super::signature::Signature;
use super::{AdvertisedSkill, Authentication, Manifest, Scheme, SuggestedNamespace};

/// The size of the largest manifest that is parsed.
pub const MAX_BYTES: usize = 256 * 1024;

/// The most namespaces or skills that one manifest may name.
const MAX_ENTRIES: usize = 1000;

/// The length of the longest text, in characters; addresses are texts, too.
const MAX_TEXT: usize = 2048;

/// The length of the longest label, between two dots.
pub(crate) const MAX_LABEL: usize = 64;

/// An error or a warning about one field of a manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    pub field: String,
    pub message: String,
    pub severity: tool::Severity,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` {}", self.field, self.message)
    }
}

/// Parses a manifest in YAML or JSON (which is YAML).
///
/// Returns the manifest with its warnings, or all problems.
pub fn parse(text: &str) -> Result<(Manifest, Vec<Problem>), Vec<Problem>> {
    let mut parser = ManifestParser::default();
    let manifest = match parse_yaml(text) {
        Ok(tree) => parser.manifest(&tree).map(|parsed| {
            let whole = Some(tree).filter(|tree| *tree != parsed.to_value());
            Manifest { whole, ..parsed }
        }),
        Err(problem) => {
            parser.problems.push(problem);
            None
        }
    };
    let failed = parser.problems.iter().any(|problem| problem.severity == tool::Severity::Error);
    match manifest {
        Some(manifest) if !failed => Ok((manifest, parser.problems)),
        Some(_) | None => Err(parser.problems),
    }
}

fn parse_yaml(text: &str) -> Result<Value, Problem> {
    let whole = |message: String| Problem {
        field: "manifest".to_owned(),
        message,
        severity: tool::Severity::Error,
    };
    if MAX_BYTES < text.len() {
        return Err(whole(format!("is larger than {MAX_BYTES} bytes")));
    }
    // A manifest needs no anchors, and without them it cannot expand without bounds.
    let budget = serde_saphyr::budget! { max_aliases: 0, max_anchors: 0, max_depth: 8 };
    let options = serde_saphyr::options! { budget: budget };
    let tree: Value = serde_saphyr::from_str_with_options(text, options)
        .map_err(|error| whole(format!("is not YAML: {error}")))?;
    if tree.is_object() { Ok(tree) } else { Err(whole("must be a mapping".to_owned())) }
}

/// Returns whether a text of the form `YYYY-MM-DD` is a date of the calendar.
fn is_day(text: &str) -> bool {
    let number = |range: std::ops::Range<usize>| text.get(range)?.parse::<u32>().ok();
    let (Some(year), Some(month), Some(day)) = (number(0..4), number(5..7), number(8..10)) else {
        return false;
    };
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let last = match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => 0,
    };
    (1..=last).contains(&day)
}

/// Parses the fields of a manifest, and collects the problems.
#[derive(Default)]
struct ManifestParser {
    problems: Vec<Problem>,
}

impl ManifestParser {
    fn error(&mut self, field: &str, message: impl Into<String>) {
        let (field, message) = (field.to_owned(), message.into());
        self.problems.push(Problem { field, message, severity: tool::Severity::Error });
    }

    fn warn(&mut self, field: &str, message: impl Into<String>) {
        let (field, message) = (field.to_owned(), message.into());
        self.problems.push(Problem { field, message, severity: tool::Severity::Warning });
    }

    fn manifest(&mut self, tree: &Value) -> Option<Manifest> {
        let cash_version = self.text(tree, "cash_version");
        let last_updated = self.date(tree);
        let publisher = self.text(tree, "publisher");
        let endpoint = self.endpoint(tree);
        let namespaces = self.entries(tree, "namespaces", "suggested");
        let skills = self.entries(tree, "skills", "name");
        if namespaces.is_empty() && tree["namespaces"].as_array().is_none_or(Vec::is_empty) {
            self.error("namespaces", "needs at least one entry");
        }
        let suggested = |(suggested, description)| SuggestedNamespace { suggested, description };
        let advertised = |(name, description)| AdvertisedSkill { name, description };
        Some(Manifest {
            copyright: self.optional_text(tree, "copyright"),
            cache_ttl: self.seconds(tree),
            authentication: self.authentication(tree),
            signature: self.signature(tree),
            namespaces: namespaces.into_iter().map(suggested).collect(),
            skills: skills.into_iter().map(advertised).collect(),
            cash_version: cash_version?,
            last_updated: last_updated?,
            publisher: publisher?,
            endpoint: endpoint?,
            whole: None,
        })
    }

    fn text(&mut self, tree: &Value, field: &str) -> Option<String> {
        let text = self.readable(field, tree[field].as_str().unwrap_or_default());
        match text.as_str() {
            "" => {
                self.error(field, "must be a non-empty string");
                None
            }
            _ => Some(text),
        }
    }

    /// Returns a text as models, people and terminals may read it: on one line, of limited
    /// length and without characters that nobody sees.
    fn readable(&mut self, field: &str, text: &str) -> String {
        let plain = without_invisible(text);
        if matches!(plain, Cow::Owned(_)) {
            self.warn(field, "has control or unseen characters, which are left out");
        }
        cut(&plain.split_whitespace().collect::<Vec<_>>().join(" "), MAX_TEXT)
    }

    fn optional_text(&mut self, tree: &Value, field: &str) -> Option<String> {
        if tree[field].is_null() { None } else { self.text(tree, field) }
    }

    fn date(&mut self, tree: &Value) -> Option<String> {
        let text = self.text(tree, "last_updated")?;
        let day = text.get(..10).unwrap_or_default();
        let shape = |(at, c): (usize, char)| match at {
            4 | 7 => c == '-',
            _ => c.is_ascii_digit(),
        };
        if day.len() == 10 && day.chars().enumerate().all(shape) && is_day(day) {
            return Some(day.to_owned());
        }
        self.error("last_updated", format!("must be an ISO 8601 date, not `{text}`"));
        None
    }

    fn endpoint(&mut self, tree: &Value) -> Option<String> {
        let text = self.text(tree, "endpoint")?;
        let http = ["https://", "http://"].iter().any(|scheme| text.starts_with(scheme));
        let is_as_written = tree["endpoint"].as_str().is_some_and(|raw| raw.trim() == text);
        if http && is_as_written && 8 < text.len() {
            return Some(text);
        }
        // A command in a fetched manifest would be remote code execution.
        self.error("endpoint", format!("must be an http(s) URL, not `{text}`"));
        None
    }

    fn seconds(&mut self, tree: &Value) -> Option<u64> {
        let value = &tree["cache_ttl"];
        if !value.is_null() && value.as_u64().is_none() {
            self.error("cache_ttl", format!("must be a whole number of seconds, not {value}"));
        }
        value.as_u64()
    }

    fn authentication(&mut self, tree: &Value) -> Option<Authentication> {
        let block = &tree["authentication"];
        if block.is_null() {
            return None;
        }
        if !block.is_object() {
            self.error("authentication", "must be a mapping");
            return None;
        }
        let Ok(scheme) = serde_json::from_value::<Scheme>(block["scheme"].clone()) else {
            let message = "must be one of none, bearer, apikey, oauth2";
            self.error("authentication.scheme", message);
            return None;
        };
        let docs_url = self.optional_text(block, "docs_url");
        let is_web = |url: &String| {
            Url::parse(url).is_ok_and(|url| matches!(url.scheme(), "https" | "http"))
        };
        if let Some(url) = docs_url.as_ref().filter(|url| !is_web(url)) {
            self.warn("authentication.docs_url", format!("should be an http(s) URL, not `{url}`"));
        }
        Some(Authentication { scheme, docs_url })
    }

    fn signature(&mut self, tree: &Value) -> Option<Signature> {
        let block = &tree["signature"];
        if block.is_null() {
            return None;
        }
        let signature = serde_json::from_value(block.clone());
        if signature.is_err() {
            self.error("signature", "needs `key`, `algorithm` and `value` as strings");
        }
        signature.ok()
    }

    /// Parses the entries of a list, as pairs of a label (the member `key`) and a description.
    fn entries(&mut self, tree: &Value, list: &str, key: &str) -> Vec<(String, String)> {
        let value = &tree[list];
        if value.is_null() {
            return Vec::new();
        }
        let Some(entries) = value.as_array() else {
            self.error(list, "must be a list");
            return Vec::new();
        };
        if MAX_ENTRIES < entries.len() {
            self.error(list, format!("has more than {MAX_ENTRIES} entries"));
            return Vec::new();
        }
        let (mut found, mut seen) = (Vec::new(), HashSet::new());
        for (at, entry) in entries.iter().enumerate() {
            let place = |member: &str| format!("{list}[{at}].{member}");
            let label = entry[key].as_str().unwrap_or_default();
            let written = entry["description"].as_str().unwrap_or_default();
            let description = self.readable(&place("description"), written);
            let folded: String = label.chars().filter(|c| *c != '-').collect();
            let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.');
            if folded.is_empty() || !folded.chars().all(legal) {
                self.error(&place(key), format!("is no label: `{}`", echo(label)));
                continue;
            }
            if folded.split('.').any(|level| MAX_LABEL < level.len()) {
                self.error(&place(key), format!("is longer than {MAX_LABEL} characters"));
                continue;
            }
            if folded != label {
                self.warn(&place(key), format!("has hyphens; read as `{folded}`"));
            }
            if description.is_empty() {
                self.error(&place("description"), "must be a non-empty string");
                continue;
            }
            if written.trim().contains('\n') {
                self.warn(&place("description"), "should be a single line");
            }
            if !seen.insert(name::canonical(&folded)) {
                self.warn(&place(key), "is there already, as labels are read");
            }
            found.push((folded, description));
        }
        found
    }
}
