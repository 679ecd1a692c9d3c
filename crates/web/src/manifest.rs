//! The public card of a CaSH server: `/.well-known/cash-mcp.yaml`.
//!
//! One value is written as YAML, as JSON and as the `cash://server` resource,
//! so the three can never disagree. Reading is liberal (unknown fields are
//! ignored, hyphens in labels are folded with a note) but bounded: a hostile
//! manifest costs at most [`MAX_BYTES`] and gives every problem at once.

pub mod sign;

mod read;

pub use read::{MAX_BYTES, Problem, read};

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The version of the document that this program implements.
pub const CASH_VERSION: &str = "0.1.1";

/// How long a manifest may be kept when it does not say.
pub const DEFAULT_TTL: u64 = 3600;

/// What a server says of itself to anybody.
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
    pub namespaces: Vec<Suggested>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skills: Vec<Advertised>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signature: Option<sign::Signature>,
}

/// How a caller shows who it is.
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

/// A namespace that the server suggests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Suggested {
    pub suggested: String,
    pub description: String,
}

/// A skill that the server has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Advertised {
    pub name: String,
    pub description: String,
}

impl Manifest {
    /// How long this manifest may be kept, in seconds; never under a minute.
    pub fn ttl(&self) -> u64 {
        self.cache_ttl.unwrap_or(DEFAULT_TTL).max(60)
    }

    pub fn to_value(&self) -> Value {
        serde_json::to_value(self).expect("a manifest is made of strings and numbers")
    }

    pub fn to_json(&self) -> String {
        self.to_value().to_string()
    }

    /// The YAML form. Every string is quoted, so that no reader takes a date
    /// or a version for something else.
    pub fn to_yaml(&self) -> String {
        let mut text = String::new();
        write_yaml(&self.to_value(), 0, &mut text);
        text
    }

    /// The form that is signed: JSON without the signature, members sorted,
    /// no white space.
    pub fn canonical(&self) -> String {
        let unsigned = Manifest { signature: None, ..self.clone() };
        let mut text = String::new();
        write_canonical(&unsigned.to_value(), &mut text);
        text
    }
}

/// Writes a value of strings, numbers, lists and objects as block YAML.
fn write_yaml(value: &Value, depth: usize, text: &mut String) {
    let pad = "  ".repeat(depth);
    if let Some(members) = value.as_object() {
        for (key, value) in members {
            if value.is_object() || value.as_array().is_some_and(|list| !list.is_empty()) {
                text.push_str(&format!("{pad}{key}:\n"));
                write_yaml(value, depth + 1, text);
            } else {
                // JSON scalars are YAML scalars.
                text.push_str(&format!("{pad}{key}: {value}\n"));
            }
        }
    } else if let Some(list) = value.as_array() {
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
