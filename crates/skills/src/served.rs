//! Serves skills by MCP's skills extension: entries with digests, and files under our URIs.
//!
//! A skill of gatelet's own is served as its [`export`], without the code that was removed.
//! A skill of an upstream keeps its entry, but every URI is put below the upstream's label,
//! because a URI must be unique within a server. A file of an upstream is checked against
//! the listed digest before it is served. Skills whose text is generated on request
//! (prompts, other CaSH servers) are not served this way.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use tool::{Json, Object, hex};

use super::export::{self, Exported};
use super::parse::is_strict;
use super::upstream::Route;
use super::{Content, Skill};

/// The scheme of all URIs of skills.
pub const SCHEME: &str = "skill://";
/// The first path segment of gatelet's own skills: the label of the built-in namespace,
/// which no upstream can have.
const OWN_LABEL: &str = roster::BUILTIN;
/// The file that makes a directory a skill.
const FILE: &str = "SKILL.md";
/// How many entries a page has.
const PAGE: usize = 50;
/// The limits of one skill that every host accepts.
const MAX_FILES: usize = 512;
const MAX_BYTES: u64 = 16 << 20;
/// How long clients may cache an answer.
const LIFETIME_MS: u64 = 60_000;

/// The skills that are served to a caller, by the URI of their `SKILL.md`.
#[derive(Debug, Default)]
pub struct SkillEntries(BTreeMap<String, Item>);

#[derive(Debug)]
struct Item {
    frontmatter: Value,
    files: Files,
}

/// The files of a skill.
#[derive(Debug)]
enum Files {
    /// The text of the `SKILL.md`, the only file of a skill of our own.
    Own(String),
    /// The files that an upstream lists, by our URI.
    Listed { label: String, files: BTreeMap<String, ListedFile> },
    /// The files that an upstream has below this directory, which it does not list.
    Dynamic { label: String, directory: String },
}

/// A file as its upstream lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedFile {
    pub uri: String,
    digest: String,
    size: u64,
}

/// Where the content of a file comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileLocation {
    /// From us; this is the text.
    Here { text: String },
    /// From an upstream, by its URI there, and as it is listed there.
    Upstream { label: String, uri: String, listed: Option<ListedFile> },
}

impl SkillEntries {
    /// Keeps those of these skills that can be served.
    pub fn new<'a>(skills: impl IntoIterator<Item = &'a Arc<Skill>>) -> SkillEntries {
        let mut served = SkillEntries::default();
        for skill in skills {
            let item = match &skill.content {
                Content::Text { .. } => served.own_item(skill),
                Content::Upstream { label, route: Route::Resource { entry, .. } } => {
                    upstream_item(label, entry)
                }
                Content::Upstream { route: Route::Prompt { .. } | Route::Cash { .. }, .. } => None,
            };
            if let Some((uri, item)) = item {
                // The first skill keeps a URI, so that none can replace another.
                served.0.entry(uri).or_insert(item);
            }
        }
        served
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Renders a page of entries, after the cursor.
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

    /// Renders the entry of one skill.
    pub fn get(&self, uri: &str) -> Option<Json> {
        let item = self.0.get(uri)?;
        Some(cacheable(json!({"skill": item.entry(uri)})))
    }

    /// Returns where the content of a file comes from.
    pub fn locate(&self, uri: &str) -> Option<FileLocation> {
        self.0.iter().find_map(|(own, item)| item.locate(own, uri))
    }

    /// Makes the item of a skill of our own, under a URI that is free.
    fn own_item(&self, skill: &Skill) -> Option<(String, Item)> {
        let frontmatter = export::frontmatter(skill)?;
        let Exported { directory, text } = export::export(skill)?;
        let levels = skill.namespace.split('.').filter(|level| !level.is_empty());
        let mut path: Vec<&str> = std::iter::once(OWN_LABEL).chain(levels).collect();
        let uri = |path: &[&str]| format!("{SCHEME}{}/{directory}/{FILE}", path.join("/"));
        // `a_b` and `a-b` give the same directory.
        if self.0.contains_key(&uri(&path)) {
            path.push(&skill.name);
        }
        Some((uri(&path), Item { frontmatter, files: Files::Own(text) }))
    }
}

fn cacheable(mut result: Value) -> Json {
    result["ttlMs"] = json!(LIFETIME_MS);
    // Other callers may see other skills.
    result["cacheScope"] = json!("private");
    result.into()
}

impl Item {
    fn entry(&self, uri: &str) -> Value {
        let resources = match &self.files {
            Files::Own(text) => json!([{
                "uri": uri,
                "digest": digest(text.as_bytes()),
                "size": text.len(),
            }]),
            Files::Listed { files, .. } => {
                let file = |(uri, file): (&String, &ListedFile)| json!({"uri": uri, "digest": file.digest, "size": file.size});
                files.iter().map(file).collect()
            }
            Files::Dynamic { .. } => json!("dynamic"),
        };
        json!({"uri": uri, "frontmatter": self.frontmatter, "resources": resources})
    }

    fn locate(&self, own: &str, uri: &str) -> Option<FileLocation> {
        let upstream = |label: &String, uri: String, listed| {
            Some(FileLocation::Upstream { label: label.clone(), uri, listed })
        };
        match &self.files {
            Files::Own(text) => (own == uri).then(|| FileLocation::Here { text: text.clone() }),
            Files::Listed { label, files } => {
                let file = files.get(uri)?;
                upstream(label, file.uri.clone(), Some(file.clone()))
            }
            Files::Dynamic { label, directory } => {
                let below = path_below(own.strip_suffix(FILE)?, uri)?;
                upstream(label, format!("{directory}{below}"), None)
            }
        }
    }
}

/// Makes the item of an upstream's skill, with our URI. Returns `None` for an entry that
/// breaks the rules of the extension: hosts would refuse it, or read outside the skill.
fn upstream_item(label: &str, entry: &Json) -> Option<(String, Item)> {
    let uri: String = entry.member_as("uri")?;
    let frontmatter: Map<String, Value> = entry.member_as("frontmatter")?;
    let directory = uri.strip_suffix(FILE)?;
    let name = directory.strip_suffix('/')?.rsplit('/').next()?;
    let is_named = frontmatter.get("name").and_then(Value::as_str) == Some(name);
    let is_described = frontmatter.get("description").is_some_and(Value::is_string);
    if !is_named || !is_described || !is_strict(name) {
        return None;
    }
    let own = format!("{SCHEME}{label}/{}", uri_path(directory)?);
    let files = match entry.member("resources")? {
        listed if listed.string_value().as_deref() == Some("dynamic") => {
            Files::Dynamic { label: label.to_owned(), directory: directory.to_owned() }
        }
        listed => {
            let listed: Vec<Json> = listed.parse_as().ok()?;
            let files = listed.iter().map(|file| {
                let original = ListedFile {
                    uri: file.member_as("uri")?,
                    digest: file.member_as("digest").filter(|digest: &String| is_digest(digest))?,
                    size: file.member_as("size")?,
                };
                Some((format!("{own}{}", path_below(directory, &original.uri)?), original))
            });
            let n_files = listed.len();
            let files: BTreeMap<String, ListedFile> = files.collect::<Option<_>>()?;
            let bytes = files.values().map(|file| file.size).fold(0, u64::saturating_add);
            let whole = files.len() == n_files && files.contains_key(&format!("{own}{FILE}"));
            if !whole || MAX_FILES < n_files || MAX_BYTES < bytes {
                return None;
            }
            Files::Listed { label: label.to_owned(), files }
        }
    };
    Some((format!("{own}{FILE}"), Item { frontmatter: Value::Object(frontmatter), files }))
}

/// Returns the path of a URI, with the scheme as its first segment if it is not `skill`.
fn uri_path(uri: &str) -> Option<String> {
    let (scheme, path) = uri.split_once("://")?;
    is_plain(path).then_some(())?;
    Some(if scheme == "skill" { path.to_owned() } else { format!("~{scheme}/{path}") })
}

/// Returns the part of a URI below a directory; `None` if it is not below it.
fn path_below<'u>(directory: &str, uri: &'u str) -> Option<&'u str> {
    uri.strip_prefix(directory).filter(|below| !below.is_empty() && is_plain(below))
}

/// Returns whether a path stays below its directory: it has no segments `.` and `..`, in
/// any encoding, and nothing that ends a path.
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

/// Renders the result of `resources/read` for a file of our own.
pub fn contents(uri: &str, text: &str) -> Json {
    let contents = json!([{"uri": uri, "mimeType": "text/markdown", "text": text}]);
    cacheable(json!({"contents": contents}))
}

/// Returns an upstream's result of `resources/read` with our URI in place of the original
/// one; `None` if the content is not what the upstream listed.
pub fn with_own_uri(
    result: &Json,
    original: &str,
    uri: &str,
    listed: Option<&ListedFile>,
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
