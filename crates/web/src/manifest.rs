//! The manifest of a CaSH server (`/.well-known/cash-mcp.yaml`): parsed, rendered, signed.
//!
//! One value is rendered as YAML, as JSON and as the `cash://server` resource, so that
//! the three agree. The parser is liberal (unknown members are ignored, hyphens are
//! removed from labels with a warning) but bounded by [`MAX_BYTES`], and reports all
//! problems at once. A signature covers the document as its publisher wrote it, with
//! members that we do not know.

pub mod sign;

mod parse;
mod signature;

pub(crate) use parse::MAX_LABEL;
pub use parse::{MAX_BYTES, Problem, parse};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use signature::Signature;

/// The version of the document that this program implements.
pub const CASH_VERSION: &str = "0.1.1";

/// The `cache_ttl` of a manifest without one, in seconds.
pub const DEFAULT_TTL: u64 = 3600;

/// The public description of a CaSH server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    pub cash_version: String,
    /// `YYYY-MM-DD`.
    pub last_updated: String,
    pub publisher: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub copyright: Option<String>,
    pub endpoint: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_ttl: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authentication: Option<Authentication>,
    pub namespaces: Vec<SuggestedNamespace>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skills: Vec<AdvertisedSkill>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signature: Option<Signature>,
    /// The document that this was parsed from, if it differs from what we would render.
    #[serde(skip)]
    pub whole: Option<Value>,
}

/// How callers authenticate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Authentication {
    pub scheme: Scheme,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub docs_url: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scheme {
    None,
    Bearer,
    ApiKey,
    OAuth2,
}

/// A namespace that the server suggests for its functions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SuggestedNamespace {
    pub suggested: String,
    pub description: String,
}

/// A skill that the server has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AdvertisedSkill {
    pub name: String,
    pub description: String,
}

impl Manifest {
    /// Returns how long this manifest may be cached, in seconds, at least a minute.
    pub fn ttl(&self) -> u64 {
        self.cache_ttl.unwrap_or(DEFAULT_TTL).max(60)
    }

    pub fn to_value(&self) -> Value {
        serde_json::to_value(self).expect("a manifest is made of strings and numbers")
    }

    pub fn to_json(&self) -> String {
        self.to_value().to_string()
    }

    /// Renders the manifest as YAML. Every string is quoted, so that no parser takes a date
    /// or a version for another type.
    pub fn to_yaml(&self) -> String {
        yaml(&self.to_value())
    }

    /// Returns the document as its publisher wrote it, with members that we do not know.
    pub fn document(&self) -> Value {
        self.whole.clone().unwrap_or_else(|| self.to_value())
    }

    /// Renders the form that is signed: the document as JSON without the signature, with
    /// sorted members and without white space.
    pub fn canonical(&self) -> String {
        let mut unsigned = self.document();
        if let Some(members) = unsigned.as_object_mut() {
            members.remove("signature");
        }
        let mut text = String::new();
        write_canonical(&unsigned, &mut text);
        text
    }
}

/// Renders a document as YAML.
pub fn yaml(document: &Value) -> String {
    let mut text = String::new();
    write_yaml(document, 0, &mut text);
    text
}

/// Writes a value as block YAML.
fn write_yaml(value: &Value, depth: usize, text: &mut String) {
    let pad = "  ".repeat(depth);
    if let Some(members) = value.as_object().filter(|members| !members.is_empty()) {
        for (key, value) in members {
            let key = yaml_key(key, &pad);
            if is_block(value) {
                text.push_str(&format!("{pad}{key}:\n"));
                write_yaml(value, depth + 1, text);
            } else {
                // JSON scalars are YAML scalars.
                text.push_str(&format!("{pad}{key}: {value}\n"));
            }
        }
    } else if let Some(list) = value.as_array().filter(|list| !list.is_empty()) {
        for item in list {
            let mut inner = String::new();
            write_yaml(item, depth + 1, &mut inner);
            let inner = inner.trim_start();
            text.push_str(&format!("{pad}- {inner}"));
        }
    } else {
        text.push_str(&format!("{value}\n"));
    }
}

/// Returns whether a value is written below its key, on lines of its own.
fn is_block(value: &Value) -> bool {
    value.as_object().is_some_and(|members| !members.is_empty())
        || value.as_array().is_some_and(|list| !list.is_empty())
}

/// Renders a key, quoted unless it is a plain word.
fn yaml_key(key: &str, pad: &str) -> String {
    let plain = |c: char| c.is_ascii_lowercase() || c == '_';
    let words = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    if (1..=64).contains(&key.len()) && key.chars().all(plain) && !words.contains(&key) {
        return key.to_owned();
    }
    let quoted = Value::from(key).to_string();
    // YAML allows at most 1024 characters before the colon; a longer key needs a `?`.
    if quoted.len() <= 1000 { quoted } else { format!("? {quoted}\n{pad}") }
}

fn write_canonical(value: &Value, text: &mut String) {
    if let Some(members) = value.as_object() {
        let mut keys: Vec<&String> = members.keys().collect();
        keys.sort();
        text.push('{');
        for (at, key) in keys.into_iter().enumerate() {
            if at != 0 {
                text.push(',');
            }
            text.push_str(&Value::from(key.as_str()).to_string());
            text.push(':');
            write_canonical(&members[key], text);
        }
        text.push('}');
    } else if let Some(list) = value.as_array() {
        text.push('[');
        for (at, item) in list.iter().enumerate() {
            if at != 0 {
                text.push(',');
            }
            write_canonical(item, text);
        }
        text.push(']');
    } else {
        text.push_str(&value.to_string());
    }
}

#[cfg(test)]
mod tests;
