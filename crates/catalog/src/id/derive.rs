//! Derives an id from a definition.
//!
//! The rules are the specification's. Where they give no legal id (a name with a
//! space, an upper-case namespace), illegal characters are replaced and
//! [`DerivedId::because`] says why: nothing is dropped for its name. A tool's hash
//! covers its original name, so two names that are equal after the repair still have
//! two ids.

use std::borrow::Cow;
use std::collections::HashMap;

use serde_json::Value;
use sha2::{Digest, Sha256};
use tool::{Json, Prompt, Resource, Tool, hex};

use super::parse::{is_name, is_name_byte, is_namespace, is_version};
use super::{InvalidId, Primitive, PrimitiveId, ToolId};

/// An id, and why it had to be repaired, if it had to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DerivedId {
    pub id: PrimitiveId,
    pub because: Option<InvalidId>,
}

/// The name from which a tool's id is derived: its own name behind the operator's label
/// for the upstream.
pub fn qualify<'a>(upstream: &str, name: &'a str) -> Cow<'a, str> {
    let already = name.strip_prefix(upstream).is_some_and(|rest| rest.starts_with('.'));
    match upstream.is_empty() || already {
        true => Cow::Borrowed(name),
        false => Cow::Owned(format!("{upstream}.{name}")),
    }
}

/// The namespace that is part of a tool's name; `mcp` where there is none.
pub fn namespace_of(name: &str) -> &str {
    let before = |separator| name.split_once(separator).map_or("", |(before, _)| before);
    let first_of_three = || match name.splitn(3, '_').count() {
        3 => before('_'),
        _ => "",
    };
    [before('.'), before('/'), first_of_three()]
        .into_iter()
        .find(|prefix| !prefix.is_empty())
        .unwrap_or("mcp")
}

/// The name without its namespace.
pub fn short_name(name: &str) -> &str {
    let after = |separator| {
        name.split_once(separator)
            .filter(|(before, after)| !before.is_empty() && !after.is_empty())
            .map(|(_, after)| after)
    };
    after('.').or_else(|| after('/')).unwrap_or(name)
}

/// The shape of an input schema that the hash covers: names of the top-level
/// properties and the required ones.
pub fn canonical_shape(schema: &Json) -> String {
    let schema = schema.to_value().unwrap_or(Value::Null);
    let properties = schema.get("properties").and_then(Value::as_object);
    let mut names: Vec<&str> =
        properties.map(|map| map.keys().map(String::as_str).collect()).unwrap_or_default();
    let required = schema.get("required").and_then(Value::as_array);
    let mut needed: Vec<&str> =
        required.map(|list| list.iter().filter_map(Value::as_str).collect()).unwrap_or_default();
    names.sort_unstable();
    needed.sort_unstable();
    format!("{{\"properties\":{},\"required\":{}}}", ascii_array(&names), ascii_array(&needed))
}

pub fn tool_hash(upstream_name: &str, schema: &Json) -> String {
    hash8(&format!("{upstream_name}\n{}", canonical_shape(schema)))
}

pub fn resource_hash(uri: &str) -> String {
    hash8(&format!("resource\n{uri}"))
}

pub fn prompt_hash(name: &str, arguments: &[&str]) -> String {
    let mut arguments = arguments.to_vec();
    arguments.sort_unstable();
    hash8(&format!("prompt\n{name}\n{}", ascii_array(&arguments)))
}

/// The id of a tool by the rules alone.
pub fn strict_tool(upstream_name: &str, tool: &Tool) -> Result<ToolId, InvalidId> {
    if upstream_name.is_empty() {
        return Err(InvalidId::Nameless("name"));
    }
    let version = declared_version(tool);
    let hash = version.is_none().then(|| tool_hash(upstream_name, &tool.input_schema));
    ToolId::new(
        namespace_of(upstream_name),
        short_name(upstream_name),
        version.as_deref(),
        hash.as_deref(),
    )
}

/// The id of a tool, repaired where the rules give no legal one.
pub fn of_tool(upstream_name: &str, tool: &Tool) -> DerivedId {
    let kind = Primitive::Tool;
    let because = match strict_tool(upstream_name, tool) {
        Ok(body) => return DerivedId { id: PrimitiveId { kind, body }, because: None },
        Err(because) => because,
    };
    let namespace = legal_namespace(namespace_of(upstream_name));
    let name = legal_name(short_name(upstream_name), "t_");
    let version = declared_version(tool).filter(|text| is_version(text));
    // A repaired name may meet another one, so it carries the hash even
    // beside a version.
    let hash = tool_hash(upstream_name, &tool.input_schema);
    let body = ToolId::new(&namespace, &name, version.as_deref(), Some(&hash))
        .expect("every part was made legal");
    DerivedId { id: PrimitiveId { kind, body }, because: Some(because) }
}

/// The id of a resource, by its URI and its name.
pub fn of_resource(resource: &Resource) -> DerivedId {
    let uri = &resource.uri;
    let declared = resource.raw.member_as::<String>("name").filter(|name| !name.is_empty());
    let name = legal_name(declared.as_deref().unwrap_or_else(|| last_segment(uri)), "r_");
    let hash = resource_hash(uri);
    let body = ToolId::new(&scheme_namespace(uri), &name, None, Some(&hash))
        .expect("every part was made legal");
    let because = uri.is_empty().then_some(InvalidId::Nameless("uri"));
    DerivedId { id: PrimitiveId { kind: Primitive::Resource, body }, because }
}

/// The id of a prompt by the rules alone: only its namespace can break them.
pub fn strict_prompt(upstream_name: &str, prompt: &Prompt) -> Result<ToolId, InvalidId> {
    if upstream_name.is_empty() {
        return Err(InvalidId::Nameless("name"));
    }
    let (name, hash) = named_prompt(upstream_name, prompt);
    ToolId::new(namespace_of(upstream_name), &name, None, Some(&hash))
}

/// The id of a prompt, repaired where the rules give no legal one.
pub fn of_prompt(upstream_name: &str, prompt: &Prompt) -> DerivedId {
    let kind = Primitive::Prompt;
    let because = match strict_prompt(upstream_name, prompt) {
        Ok(body) => return DerivedId { id: PrimitiveId { kind, body }, because: None },
        Err(because) => because,
    };
    let (name, hash) = named_prompt(upstream_name, prompt);
    let namespace = legal_namespace(namespace_of(upstream_name));
    let body =
        ToolId::new(&namespace, &name, None, Some(&hash)).expect("every part was made legal");
    DerivedId { id: PrimitiveId { kind, body }, because: Some(because) }
}

/// Makes ids unique: of equal ones the first keeps its id, the others get `~2`, `~3`, in
/// order. Such a key is opaque and does not parse as an id.
pub fn disambiguate<'a>(ids: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut seen: HashMap<&str, usize> = HashMap::new();
    let number = |id: &'a str| {
        let count = seen.entry(id).or_insert(0);
        *count += 1;
        match *count {
            1 => id.to_owned(),
            n => format!("{id}~{n}"),
        }
    };
    ids.into_iter().map(number).collect()
}

/// A prompt's legal name and its hash, which covers that name: two prompts
/// whose names become equal are told apart by [`disambiguate`].
fn named_prompt(upstream_name: &str, prompt: &Prompt) -> (String, String) {
    let name = legal_name(upstream_name, "r_");
    let arguments: Vec<&str> = prompt.arguments.iter().map(|a| a.name.as_str()).collect();
    let hash = prompt_hash(&name, &arguments);
    (name, hash)
}

fn declared_version(tool: &Tool) -> Option<String> {
    match tool.raw.member("_meta")?.member("version")?.to_value().ok()? {
        Value::String(text) => Some(text).filter(|text| !text.is_empty()),
        Value::Number(number) => {
            Some(number.to_string()).filter(|_| number.as_f64().is_none_or(|n| n != 0.0))
        }
        Value::Bool(true) => Some("True".to_owned()),
        Value::Null | Value::Bool(false) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// The scheme of a URI, as a namespace.
fn scheme_namespace(uri: &str) -> String {
    let scheme = uri.split_once("://").or_else(|| uri.split_once(':')).map_or("", |(s, _)| s);
    match scheme {
        "" => "mcp".to_owned(),
        scheme => legal_namespace(scheme),
    }
}

fn legal_namespace(text: &str) -> String {
    let text = text.to_lowercase();
    let keep = |c: char| match c {
        'a'..='z' | '0'..='9' | '_' | '-' => c,
        _ => '-',
    };
    let kept: String = text.chars().map(keep).collect();
    let trimmed = kept.trim_matches(['-', '_']);
    let named = match trimmed.chars().next() {
        None => "mcp".to_owned(),
        Some(first) if first.is_ascii_lowercase() => trimmed.to_owned(),
        Some(_) => format!("mcp-{trimmed}"),
    };
    let cut: String = named.chars().take(64).collect();
    debug_assert!(is_namespace(&cut), "{cut}");
    cut
}

fn legal_name(text: &str, prefix: &str) -> String {
    let keep = |c: char| if c.is_ascii() && is_name_byte(c as u8) { c } else { '_' };
    let kept: String = text.chars().map(keep).collect();
    let trimmed = kept.trim_matches(['.', '-']);
    let named = match trimmed.chars().next() {
        None => "item".to_owned(),
        Some(first) if first.is_ascii_alphabetic() || first == '_' => trimmed.to_owned(),
        Some(_) => format!("{prefix}{trimmed}"),
    };
    let cut: String = named.chars().take(128).collect();
    debug_assert!(is_name(&cut), "{cut}");
    cut
}

fn last_segment(uri: &str) -> &str {
    uri.trim_end_matches('/').rsplit('/').next().unwrap_or(uri)
}

fn hash8(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    hex::encode(&digest[..4])
}

/// A JSON array of strings in pure ASCII without white space.
fn ascii_array(texts: &[&str]) -> String {
    let items: Vec<String> = texts.iter().map(|text| ascii_string(text)).collect();
    format!("[{}]", items.join(","))
}

/// A JSON string in pure ASCII, with the escapes that the hash is defined by.
pub fn ascii_string(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            ' '..='~' => out.push(c),
            _ => {
                let mut units = [0; 2];
                for unit in c.encode_utf16(&mut units) {
                    out.push_str(&format!("\\u{unit:04x}"));
                }
            }
        }
    }
    out.push('"');
    out
}
