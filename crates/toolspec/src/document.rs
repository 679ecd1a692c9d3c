//! The parsed form of a document, the same for every layout.

use serde::Serialize;
use serde_json::{Map, Value, json};
use tool::{Json, Listing, Tool};

pub use crate::section::{TOPICS, Topic};

use crate::finding::Position;

/// A tool as a server defines it: the common ground of documents and listings.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Definition {
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(rename = "inputSchema")]
    pub input: Value,
    #[serde(rename = "outputSchema", skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Value>,
    #[serde(skip)]
    pub version: Option<String>,
}

/// A document.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Document {
    pub title: Option<Located<String>>,
    /// `Version`, `Status`, `Last Updated`, … as written.
    pub metadata: Vec<(String, Located<String>)>,
    /// Where the document says that there are no tools.
    pub says_no_tools: Option<Position>,
    pub tools: Vec<DocumentedTool>,
}

/// A value, and its place in the document.
#[derive(Clone, Debug, PartialEq)]
pub struct Located<T> {
    pub value: T,
    pub place: Position,
}

/// One tool of a document.
#[derive(Clone, Debug, PartialEq)]
pub struct DocumentedTool {
    /// The name it is called by: the invocation name, or the heading's.
    pub name: String,
    pub heading: Heading,
    /// Last line of the tool (one-based, exclusive).
    pub end: usize,
    pub invocation: Option<Located<String>>,
    pub version: Option<Located<String>>,
    pub title: Option<String>,
    pub annotations: Option<Value>,
    pub description: Option<Located<String>>,
    pub sections: Vec<Section>,
    pub input: IoSpec,
    pub output: IoSpec,
    pub idempotency: Option<Located<String>>,
    /// JSON in the error section.
    pub error_samples: Vec<Located<Value>>,
    pub examples: Vec<Example>,
}

/// The heading, table row or bullet that introduces a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct Heading {
    pub place: Position,
    /// 0 where a row of a table or a bullet introduces it.
    pub level: usize,
    pub text: String,
    /// More than one where a heading is shared.
    pub names: Vec<String>,
}

/// One part of a tool's description.
#[derive(Clone, Debug, PartialEq)]
pub struct Section {
    pub topic: Topic,
    pub form: SectionMark,
    /// The title as written.
    pub title: String,
    pub place: Position,
    /// First line after it (one-based).
    pub end: usize,
    /// The prose in it, fences and tables left out.
    pub text: String,
}

/// How a section is marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SectionMark {
    /// A heading of this level.
    Heading(usize),
    /// A bold label, or a bullet that starts with the section's name.
    Label,
    /// No mark: the section is recognised by its place and content.
    Implied,
}

/// What the document says about the input of a tool, or about its output.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct IoSpec {
    pub fields: Vec<Field>,
    pub tables: Vec<TableShape>,
    /// A JSON Schema that the document gives.
    pub schema: Option<Located<Value>>,
    /// Example objects, where a schema was expected.
    pub samples: Vec<Located<Value>>,
    /// The document says that there is no input, or no output.
    pub nothing: bool,
}

/// One row of a table of parameters, or one bullet of a list of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// `a`, `a.b` or `items[].x`
    pub path: String,
    pub type_text: Option<String>,
    pub schema: Value,
    pub required: Option<Required>,
    pub default: Option<String>,
    pub description: String,
    pub example: Option<String>,
    pub place: Position,
}

/// Whether a parameter must be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Required {
    Yes,
    No,
    /// "Yes (if …)", "Conditional"
    Conditional,
}

/// Where a table stands and what its columns are called.
#[derive(Clone, Debug, PartialEq)]
pub struct TableShape {
    pub place: Position,
    /// First line after it (one-based).
    pub end: usize,
    pub columns: Vec<String>,
}

/// One usage example.
#[derive(Clone, Debug, PartialEq)]
pub struct Example {
    pub place: Position,
    /// The call, or why it cannot be parsed.
    pub call: Result<Call, String>,
}

/// A call in an example.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    pub tool: String,
    pub arguments: Value,
}

impl Document {
    /// The value of `**Version**` and the like, by name.
    pub fn metadata_value(&self, name: &str) -> Option<&Located<String>> {
        self.metadata.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// The tools as a server would define them.
    pub fn definitions(&self) -> Vec<Definition> {
        self.tools.iter().map(DocumentedTool::definition).collect()
    }

    pub fn tool(&self, name: &str) -> Option<&DocumentedTool> {
        self.tools.iter().find(|tool| tool.name == name)
    }
}

impl DocumentedTool {
    /// The tool as a server would define it.
    pub fn definition(&self) -> Definition {
        Definition {
            name: self.name.clone(),
            title: self.title.clone(),
            description: self.description.as_ref().map(|text| text.value.clone()),
            input: self.input.effective().unwrap_or_else(|| json!({"type": "object"})),
            output: self.output.effective(),
            annotations: self.annotations.clone(),
            version: self.version.as_ref().map(|version| version.value.clone()),
        }
    }

    pub fn section(&self, topic: Topic) -> Option<&Section> {
        self.sections.iter().find(|section| section.topic == topic)
    }

    /// Returns whether an annotation is set to true.
    pub(crate) fn hint(&self, key: &str) -> Option<bool> {
        self.annotations.as_ref()?.get(key)?.as_bool()
    }
}

impl IoSpec {
    /// The schema that the document gives, or the one its fields amount to.
    pub fn effective(&self) -> Option<Value> {
        match &self.schema {
            Some(schema) => Some(schema.value.clone()),
            None if self.fields.is_empty() && !self.nothing => None,
            None => Some(schema_of_fields(&self.fields)),
        }
    }
}

/// How many levels a name such as `a.b[].c` may have. Every level is one of the
/// schema, and of the stack of whoever reads it.
pub(crate) const DEEPEST: usize = 32;

impl Field {
    /// Returns whether the path has more levels than are told apart; it is one name
    /// then.
    pub(crate) fn is_too_deep(&self) -> bool {
        DEEPEST < self.path.matches(['.', '[']).count()
    }
}

/// Builds an object schema; paths such as `a.b` and `items[].x` nest.
pub(crate) fn schema_of_fields(fields: &[Field]) -> Value {
    let mut root = json!({"type": "object", "properties": {}});
    for field in fields {
        let steps = match field.is_too_deep() {
            true => vec![field.path.clone()],
            false => steps(&field.path),
        };
        insert(&mut root, &steps, field);
    }
    root
}

/// `a[].b` as `a`, `[]`, `b`.
fn steps(path: &str) -> Vec<String> {
    let mut steps = Vec::new();
    for part in path.split('.') {
        let name = part.trim_end_matches("[]");
        steps.push(name.to_owned());
        steps.extend((0..(part.len() - name.len()) / 2).map(|_| "[]".to_owned()));
    }
    steps.retain(|step| !step.is_empty());
    steps
}

fn insert(node: &mut Value, steps: &[String], field: &Field) {
    let Some((step, rest)) = steps.split_first() else {
        return fill(node, field);
    };
    if !node.is_object() {
        *node = json!({});
    }
    if step == "[]" {
        node["type"] = json!("array");
        if !node["items"].is_object() {
            node["items"] = json!({});
        }
        return insert(&mut node["items"], rest, field);
    }
    if node["type"] != "object" {
        node["type"] = json!("object");
    }
    if !node["properties"].is_object() {
        node["properties"] = json!({});
    }
    if rest.is_empty() && field.required == Some(Required::Yes) {
        require(node, step);
    }
    let properties = node["properties"].as_object_mut();
    let place = properties.map(|map| map.entry(step.clone()).or_insert_with(|| json!({})));
    if let Some(place) = place {
        insert(place, rest, field);
    }
}

fn require(node: &mut Value, name: &str) {
    if !node["required"].is_array() {
        node["required"] = json!([]);
    }
    if let Some(list) = node["required"].as_array_mut()
        && !list.iter().any(|known| known == name)
    {
        list.push(Value::from(name));
    }
}

/// Writes what a field says into its schema, and keeps what is there already.
fn fill(node: &mut Value, field: &Field) {
    let said = field.schema.as_object().cloned().unwrap_or_default();
    let Some(members) = node.as_object_mut() else { return };
    for (key, value) in said {
        members.entry(key).or_insert(value);
    }
    if !field.description.is_empty() {
        members.entry("description").or_insert_with(|| Value::from(field.description.as_str()));
    }
    if let Some(default) = &field.default
        && let Ok(value) = serde_json::from_str::<Value>(default)
    {
        members.entry("default").or_insert(value);
    }
}

impl Definition {
    /// Reads a tool of a listing. Schemas that cannot be understood (nested
    /// deeper than 128 levels, say) are left open.
    pub fn from_tool(tool: &Tool) -> Definition {
        let value = |json: &Json| json.to_value().ok();
        let about = tool.raw.member("_meta").and_then(|meta| meta.member("gatelet/tool"));
        Definition {
            name: tool.name.clone(),
            title: tool.raw.member_as("title"),
            description: tool.description.clone(),
            input: value(&tool.input_schema).unwrap_or_else(|| json!({"type": "object"})),
            output: tool.output_schema.as_ref().and_then(value),
            annotations: tool.raw.member("annotations").as_ref().and_then(value),
            version: about.and_then(|about| about.member_as("version")),
        }
    }

    /// All tools of a listing.
    pub fn all(listing: &Listing) -> Vec<Definition> {
        listing.tools.iter().map(Definition::from_tool).collect()
    }

    /// The definition as MCP lists it.
    pub fn to_tool(&self) -> Tool {
        let mut raw = serde_json::to_value(self).unwrap_or_else(|_| json!({}));
        if let Some(version) = &self.version {
            let mut about = Map::new();
            about.insert("version".to_owned(), Value::from(version.as_str()));
            raw["_meta"] = json!({"gatelet/tool": about});
        }
        Tool::parse(raw.into()).expect("a definition has a name")
    }
}

#[cfg(test)]
mod tests {
    use crate::lint::{Comparison, lint};
    use crate::rules::CLEAN;

    #[test]
    fn a_name_of_too_many_levels_is_one_name_and_told() {
        for deep in [vec!["a"; 60_000].join("."), format!("a{}", "[]".repeat(60_000))] {
            let from = CLEAN.find("```json").unwrap();
            let to = CLEAN.find("### 4.").unwrap();
            let text = CLEAN.replacen(&CLEAN[from..to], "", 1);
            let text =
                text.replacen("`max_lines` | `integer`", &format!("`{deep}` | `integer`"), 1);
            let (document, findings) = lint(&text, &Comparison::default());
            let input = &document.definitions()[0].input;
            assert_eq!(input["properties"][&deep]["type"], "integer");
            let told = findings.iter().any(|finding| finding.message.contains("32 levels"));
            assert!(told, "{findings:?}");
        }
    }
}
