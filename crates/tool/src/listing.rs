//! A listing: the tools, resources, resource templates and prompts of a provider.
//!
//! Every item keeps its definition as it came (`raw`) beside the few fields
//! that are parsed here, so a listing that nobody changes goes out as it came in.

use serde::{Deserialize, Serialize};

use crate::{Finding, Json, Kind, Object, Severity};

/// Everything one provider offers, at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Listing {
    pub server: Server,
    pub tools: Vec<Tool>,
    pub resources: Vec<Resource>,
    pub templates: Vec<Template>,
    pub prompts: Vec<Prompt>,
    /// What was damaged or left out when the listing was fetched.
    #[serde(default)]
    pub findings: Vec<Finding>,
    /// The lists that could not be fetched; their fields above are incomplete.
    #[serde(default, rename = "unread", skip_serializing_if = "Vec::is_empty")]
    pub failed_lists: Vec<Kind>,
    /// How long each list may be cached, where the provider says so.
    #[serde(default)]
    pub lifetimes: Lifetimes,
    /// Whether gatelet made this listing from the functions of a CaSH server. No
    /// server can claim it for itself.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_nested: bool,
}

impl Listing {
    /// Returns a copy in which the lists that could not be fetched are those of an
    /// `earlier` listing.
    pub fn with_failed_lists_from(&self, earlier: &Listing) -> Listing {
        let mut listing = self.clone();
        for kind in &self.failed_lists {
            match kind {
                Kind::Tools => keep_if_empty(&mut listing.tools, &earlier.tools),
                Kind::Resources => keep_if_empty(&mut listing.resources, &earlier.resources),
                Kind::Templates => keep_if_empty(&mut listing.templates, &earlier.templates),
                Kind::Prompts => keep_if_empty(&mut listing.prompts, &earlier.prompts),
            }
        }
        listing
    }
}

/// Takes the `earlier` list where nothing was fetched. What was fetched before on
/// the same connection is newer and stays.
fn keep_if_empty<T: Clone>(list: &mut Vec<T>, earlier: &[T]) {
    if list.is_empty() {
        *list = earlier.to_vec();
    }
}

/// How long the lists of a provider may be cached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lifetimes {
    pub tools: Option<Lifetime>,
    pub resources: Option<Lifetime>,
    pub templates: Option<Lifetime>,
    pub prompts: Option<Lifetime>,
}

/// How long an answer may be cached, and for whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lifetime {
    pub milliseconds: u64,
    /// Whether what one caller got may be shown to another.
    pub is_public: bool,
}

impl Lifetime {
    /// Returns the lifetime of two answers that are cached as one: the shorter, and
    /// public only if both are.
    pub fn shortest(self, other: Lifetime) -> Lifetime {
        Lifetime {
            milliseconds: self.milliseconds.min(other.milliseconds),
            is_public: self.is_public && other.is_public,
        }
    }
}

/// A provider's description of itself and its capabilities.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Server {
    pub name: String,
    pub version: String,
    /// The whole `serverInfo`.
    pub raw: Json,
    pub capabilities: Json,
    pub instructions: Option<String>,
    /// The protocol revision that was negotiated, empty for a provider in this
    /// process.
    #[serde(default)]
    pub protocol: String,
}

impl Server {
    /// Creates the description of a provider in this process.
    pub fn new(name: &str, version: &str, capabilities: Json) -> Server {
        let raw = Json::encode(&serde_json::json!({"name": name, "version": version}));
        Server {
            name: name.to_owned(),
            version: version.to_owned(),
            raw,
            capabilities,
            instructions: None,
            protocol: String::new(),
        }
    }
}

impl Default for Server {
    fn default() -> Server {
        Server::new("", "", Json::empty_object())
    }
}

/// The author's hints about the effects of a tool. Never proof.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Annotations {
    pub read_only: Option<bool>,
    pub destructive: Option<bool>,
    pub idempotent: Option<bool>,
    pub open_world: Option<bool>,
}

/// One tool.
#[derive(Clone, Debug, PartialEq)]
pub struct Tool {
    pub name: String,
    pub title: Option<String>,
    pub description: Option<String>,
    pub input_schema: Json,
    pub output_schema: Option<Json>,
    pub annotations: Annotations,
    /// The definition as it came.
    pub raw: Json,
}

/// One resource.
#[derive(Clone, Debug, PartialEq)]
pub struct Resource {
    pub uri: String,
    pub name: String,
    pub title: Option<String>,
    pub description: Option<String>,
    pub media_type: Option<String>,
    pub raw: Json,
}

/// A family of resources, addressed by a URI template.
#[derive(Clone, Debug, PartialEq)]
pub struct Template {
    pub uri_template: String,
    pub name: String,
    pub title: Option<String>,
    pub description: Option<String>,
    pub media_type: Option<String>,
    pub raw: Json,
}

/// One prompt.
#[derive(Clone, Debug, PartialEq)]
pub struct Prompt {
    pub name: String,
    pub title: Option<String>,
    pub description: Option<String>,
    pub arguments: Vec<PromptArgument>,
    pub raw: Json,
}

/// One argument of a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptArgument {
    pub name: String,
    pub description: Option<String>,
    pub required: bool,
}

impl Tool {
    /// Parses a definition. Only the name is required; any other member that is
    /// malformed counts as absent and stays in `raw`.
    pub fn parse(raw: Json) -> Result<Tool, Finding> {
        let fields = Fields::parse(&raw, "tool")?;
        let name = fields.required_string("name")?;
        let hints = fields.json("annotations").and_then(|hints| Object::parse(&hints).ok());
        let hints = hints.unwrap_or_default();
        let hint = |key: &str| hints.get(key)?.parse_as::<bool>().ok();
        let annotations = Annotations {
            read_only: hint("readOnlyHint"),
            destructive: hint("destructiveHint"),
            idempotent: hint("idempotentHint"),
            open_world: hint("openWorldHint"),
        };
        Ok(Tool {
            name,
            title: fields.string("title").or_else(|| hints.get("title")?.parse_as().ok()),
            description: fields.string("description"),
            input_schema: fields.json("inputSchema").unwrap_or_else(Json::empty_object),
            output_schema: fields.json("outputSchema"),
            annotations,
            raw,
        })
    }
}

impl Resource {
    pub fn parse(raw: Json) -> Result<Resource, Finding> {
        let fields = Fields::parse(&raw, "resource")?;
        let uri = fields.required_string("uri")?;
        Ok(Resource {
            name: fields.string("name").unwrap_or_else(|| uri.clone()),
            uri,
            title: fields.string("title"),
            description: fields.string("description"),
            media_type: fields.string("mimeType"),
            raw,
        })
    }
}

impl Template {
    pub fn parse(raw: Json) -> Result<Template, Finding> {
        let fields = Fields::parse(&raw, "resource template")?;
        let uri_template = fields.required_string("uriTemplate")?;
        Ok(Template {
            name: fields.string("name").unwrap_or_else(|| uri_template.clone()),
            uri_template,
            title: fields.string("title"),
            description: fields.string("description"),
            media_type: fields.string("mimeType"),
            raw,
        })
    }
}

impl Prompt {
    pub fn parse(raw: Json) -> Result<Prompt, Finding> {
        let fields = Fields::parse(&raw, "prompt")?;
        let name = fields.required_string("name")?;
        let arguments = fields.json("arguments").and_then(|list| list.parse_as::<Vec<Json>>().ok());
        let argument = |raw: &Json| {
            Some(PromptArgument {
                name: raw.member_as("name")?,
                description: raw.member_as("description"),
                required: raw.member_as("required").unwrap_or(false),
            })
        };
        Ok(Prompt {
            name,
            title: fields.string("title"),
            description: fields.string("description"),
            arguments: arguments.unwrap_or_default().iter().filter_map(argument).collect(),
            raw,
        })
    }
}

/// The members of one definition, parsed leniently.
struct Fields<'a> {
    kind: &'static str,
    members: crate::Object,
    raw: &'a Json,
}

impl<'a> Fields<'a> {
    fn parse(raw: &'a Json, kind: &'static str) -> Result<Fields<'a>, Finding> {
        let members = crate::Object::parse(raw).map_err(|_| {
            damaged_finding(kind, raw, format!("a {kind} definition that is no object"))
        })?;
        Ok(Fields { kind, members, raw })
    }

    fn json(&self, key: &str) -> Option<Json> {
        self.members.get(key).filter(|value| !value.is_null()).cloned()
    }

    fn string(&self, key: &str) -> Option<String> {
        self.json(key)?.parse_as().ok()
    }

    fn required_string(&self, key: &str) -> Result<String, Finding> {
        let missing =
            || damaged_finding(self.kind, self.raw, format!("a {} without `{key}`", self.kind));
        self.string(key).ok_or_else(missing)
    }
}

fn damaged_finding(kind: &str, raw: &Json, message: String) -> Finding {
    let excerpt: String = raw.as_str().chars().take(60).collect();
    Finding::new(Severity::Error, "damaged-definition", format!("{kind} {excerpt}"), message)
}

/// Serialises an item as its raw definition, and parses it from there.
macro_rules! as_raw {
    ($($item:ty),+) => {$(
        impl Serialize for $item {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                self.raw.serialize(serializer)
            }
        }

        impl<'de> Deserialize<'de> for $item {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                <$item>::parse(Json::deserialize(deserializer)?).map_err(serde::de::Error::custom)
            }
        }
    )+};
}

as_raw!(Tool, Resource, Template, Prompt);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_keeps_what_it_does_not_understand() {
        let text = r#"{"name":"t","inputSchema":{"type":"object"},"x-vendor":{"big":1e400}}"#;
        let tool = Tool::parse(Json::parse(text).unwrap()).unwrap();
        let listing = Listing { tools: vec![tool], ..Listing::default() };
        let back: Listing = Json::encode(&listing).parse_as().unwrap();
        assert_eq!(back.tools[0].raw.as_str(), text);
        assert_eq!(back, listing);
    }

    #[test]
    fn a_tool_without_a_name_is_a_finding() {
        let finding = Tool::parse(Json::parse(r#"{"description":"?"}"#).unwrap()).unwrap_err();
        assert_eq!(finding.code, "damaged-definition");
        assert_eq!(finding.message, "a tool without `name`");
    }

    #[test]
    fn odd_fields_are_read_as_absent() {
        let text = r#"{"name":"t","description":5,"annotations":{"readOnlyHint":"yes"}}"#;
        let tool = Tool::parse(Json::parse(text).unwrap()).unwrap();
        assert_eq!((tool.description, tool.annotations.read_only), (None, None));
        assert_eq!(tool.input_schema.as_str(), "{}");
    }
}
