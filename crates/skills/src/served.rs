//! Skills in the form of the protocol's skills extension: entries with the digests
//! of what is served, and files under our own URIs.
//!
//! A skill that is here is served as its [`export`], so code that was left out
//! stays left out, and the digest says so. A skill of an upstream keeps its
//! entry, with every URI put below the upstream's label: within one server a URI
//! is a skill's identity, so two upstreams must not share one. What an upstream
//! serves is checked against what it listed before it goes out. Skills that are
//! made on request (prompts, other CaSH servers) are not served this way.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use tool::{Json, Object, hex};

use super::export::{self, Exported};
use super::read::is_strict;
use super::upstream::Route;
use super::{Content, Skill};

/// The scheme of every URI here.
pub const SCHEME: &str = "skill://";
/// The first segment of what is here; it is the label of the built-in namespace,
/// so no upstream has it.
const HERE: &str = roster::BUILTIN;
/// The file that makes a directory a skill.
const FILE: &str = "SKILL.md";
/// How many entries a page has.
const PAGE: usize = 50;
/// What every host takes of one skill.
const FILES: usize = 512;
const BYTES: u64 = 16 << 20;
/// How long an answer may be kept.
const LIFETIME_MS: u64 = 60_000;

/// Every skill that is served to a caller, by its URI.
#[derive(Debug, Default)]
pub struct Served(BTreeMap<String, Item>);

#[derive(Debug)]
struct Item {
    frontmatter: Value,
    files: Files,
}

#[derive(Debug)]
enum Files {
    /// One file, which is here.
    Here(String),
    /// The upstream's, by the URI here.
    Listed { label: String, files: BTreeMap<String, Original> },
    /// Whatever the upstream has below this directory.
    Dynamic { label: String, directory: String },
}

/// A file as its upstream has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Original {
    pub uri: String,
    digest: String,
    size: u64,
}

/// Where a file is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    Here { text: String },
    Upstream { label: String, uri: String, listed: Option<Original> },
}

impl Served {
    /// Those of these skills that can be served.
    pub fn new<'a>(skills: impl IntoIterator<Item = &'a Arc<Skill>>) -> Served {
        let mut served = Served::default();
        for skill in skills {
            let item = match &skill.content {
                Content::Text { .. } => served.here(skill),
                Content::Upstream { label, route: Route::Resource { entry, .. } } => {
                    of_upstream(label, entry)
                }
                Content::Upstream { route: Route::Prompt { .. } | Route::Cash { .. }, .. } => None,
            };
            if let Some((uri, item)) = item {
                // The first keeps it: nothing is put in another's place.
                served.0.entry(uri).or_insert(item);
            }
        }
        served
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The entries after those of the page before.
    pub fn list(&self, cursor: Option<&str>) -> Json {
        let after = cursor.unwrap_or_default();
        let mut rest = self.0.iter().filter(|(uri, _)| after < uri.as_str()).peekable();
        let page: Vec<(&String, &Item)> = rest.by_ref().take(PAGE).collect();
        let entries: Vec<Value> = page.iter().map(|(uri, item)| item.entry(uri)).collect();
        let mut result = json!({"skills": entries});
        if let (Some(_), Some((last, _))) = (rest.peek(), page.last()) {
            result["nextCursor"] = json!(last);
        }
        cacheable(result)
    }

    /// The entry of one skill.
    pub fn get(&self, uri: &str) -> Option<Json> {
        let item = self.0.get(uri)?;
        Some(cacheable(json!({"skill": item.entry(uri)})))
    }

    /// Returns where a file of a skill is.
    pub fn place(&self, uri: &str) -> Option<Place> {
        self.0.iter().find_map(|(own, item)| item.place(own, uri))
    }

    /// A skill that is here, under a URI that nobody has yet.
    fn here(&self, skill: &Skill) -> Option<(String, Item)> {
        let frontmatter = export::frontmatter(skill)?;
        let Exported { directory, text } = export::export(skill)?;
        let levels = skill.namespace.split('.').filter(|level| !level.is_empty());
        let mut path: Vec<&str> = std::iter::once(HERE).chain(levels).collect();
        let uri = |path: &[&str]| format!("{SCHEME}{}/{directory}/{FILE}", path.join("/"));
        // `a_b` and `a-b` are one directory.
        if self.0.contains_key(&uri(&path)) {
            path.push(&skill.name);
        }
        Some((uri(&path), Item { frontmatter, files: Files::Here(text) }))
    }
}

fn cacheable(mut result: Value) -> Json {
    result["ttlMs"] = json!(LIFETIME_MS);
    // Others may see other skills.
    result["cacheScope"] = json!("private");
    result.into()
}

impl Item {
    fn entry(&self, uri: &str) -> Value {
        let resources = match &self.files {
            Files::Here(text) => json!([{
                "uri": uri,
                "digest": digest(text.as_bytes()),
                "size": text.len(),
            }]),
            Files::Listed { files, .. } => {
                let file = |(uri, file): (&String, &Original)| json!({"uri": uri, "digest": file.digest, "size": file.size});
                files.iter().map(file).collect()
            }
            Files::Dynamic { .. } => json!("dynamic"),
        };
        json!({"uri": uri, "frontmatter": self.frontmatter, "resources": resources})
    }

    fn place(&self, own: &str, uri: &str) -> Option<Place> {
        let upstream = |label: &String, uri: String, listed| {
            Some(Place::Upstream { label: label.clone(), uri, listed })
        };
        match &self.files {
            Files::Here(text) => (own == uri).then(|| Place::Here { text: text.clone() }),
            Files::Listed { label, files } => {
                let file = files.get(uri)?;
                upstream(label, file.uri.clone(), Some(file.clone()))
            }
            Files::Dynamic { label, directory } => {
                let below = inside(own.strip_suffix(FILE)?, uri)?;
                upstream(label, format!("{directory}{below}"), None)
            }
        }
    }
}

/// Returns what a skill of an upstream is here. `None` where its entry breaks what
/// the extension demands: hosts would refuse it, or be led outside the skill.
fn of_upstream(label: &str, entry: &Json) -> Option<(String, Item)> {
    let uri: String = entry.member_as("uri")?;
    let frontmatter: Map<String, Value> = entry.member_as("frontmatter")?;
    let directory = uri.strip_suffix(FILE)?;
    let name = directory.strip_suffix('/')?.rsplit('/').next()?;
    let is_named = frontmatter.get("name").and_then(Value::as_str) == Some(name);
    let is_described = frontmatter.get("description").is_some_and(Value::is_string);
    if !is_named || !is_described || !is_strict(name) {
        return None;
    }
    let own = format!("{SCHEME}{label}/{}", path(directory)?);
    let files = match entry.member("resources")? {
        listed if listed.string_value().as_deref() == Some("dynamic") => {
            Files::Dynamic { label: label.to_owned(), directory: directory.to_owned() }
        }
        listed => {
            let listed: Vec<Json> = listed.parse_as().ok()?;
            let files = listed.iter().map(|file| {
                let original = Original {
                    uri: file.member_as("uri")?,
                    digest: file.member_as("digest").filter(|digest: &String| is_digest(digest))?,
                    size: file.member_as("size")?,
                };
                Some((format!("{own}{}", inside(directory, &original.uri)?), original))
            });
            let n_files = listed.len();
            let files: BTreeMap<String, Original> = files.collect::<Option<_>>()?;
            let bytes = files.values().map(|file| file.size).fold(0, u64::saturating_add);
            let whole = files.len() == n_files && files.contains_key(&format!("{own}{FILE}"));
            if !whole || FILES < n_files || BYTES < bytes {
                return None;
            }
            Files::Listed { label: label.to_owned(), files }
        }
    };
    Some((format!("{own}{FILE}"), Item { frontmatter: Value::Object(frontmatter), files }))
}

/// The path of a URI, with its scheme in it where that is not the usual one.
fn path(uri: &str) -> Option<String> {
    let (scheme, path) = uri.split_once("://")?;
    is_plain(path).then_some(())?;
    Some(if scheme == "skill" { path.to_owned() } else { format!("~{scheme}/{path}") })
}

/// Returns what of a URI is below a directory.
fn inside<'u>(directory: &str, uri: &'u str) -> Option<&'u str> {
    uri.strip_prefix(directory).filter(|below| !below.is_empty() && is_plain(below))
}

/// Returns whether a path leads nowhere else: no dots as segments, however written,
/// and nothing that ends a path.
fn is_plain(path: &str) -> bool {
    let lower = path.to_ascii_lowercase();
    let climbs = |segment: &str| matches!(segment.replace("%2e", ".").as_str(), "." | "..");
    !lower.split(['/', '\\']).any(climbs)
        && !lower.contains(['?', '#', '\\'])
        && !lower.contains("%2f")
        && !lower.contains("%5c")
        && !path.contains(|c: char| c.is_control() || c.is_whitespace())
}

fn is_digest(text: &str) -> bool {
    let hex = text.strip_prefix("sha256:").unwrap_or_default();
    hex.len() == 64 && hex.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", hex::encode(&Sha256::digest(bytes)))
}

/// Returns what reading a file that is here gives.
pub fn contents(uri: &str, text: &str) -> Json {
    let contents = json!([{"uri": uri, "mimeType": "text/markdown", "text": text}]);
    cacheable(json!({"contents": contents}))
}

/// Returns what an upstream gave for a file, under the URI that it has here; `None`
/// when that is not what was listed.
pub fn renamed(
    result: &Json,
    original: &str,
    uri: &str,
    listed: Option<&Original>,
) -> Option<Json> {
    let mut result = Object::parse(result).ok()?;
    let contents: Vec<Json> = result.get("contents")?.parse_as().ok()?;
    let mut all = Vec::new();
    for content in &contents {
        let mut content = Object::parse(content).ok()?;
        let own = content.get("uri").and_then(Json::string_value);
        if own.as_deref() != Some(original) {
            continue;
        }
        if let Some(listed) = listed {
            let bytes = bytes(&content)?;
            let as_listed = bytes.len() as u64 == listed.size && digest(&bytes) == listed.digest;
            as_listed.then_some(())?;
        }
        content.set("uri", Json::encode(uri));
        all.push(content.to_json());
    }
    (!all.is_empty()).then_some(())?;
    result.set("contents", Json::array(&all));
    Some(result.to_json())
}

fn bytes(content: &Object) -> Option<Vec<u8>> {
    if let Some(text) = content.get("text") {
        return text.string_value().map(String::into_bytes);
    }
    let blob = content.get("blob")?.string_value()?;
    base64::engine::general_purpose::STANDARD.decode(blob).ok()
}

#[cfg(test)]
mod tests;
