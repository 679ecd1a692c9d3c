//! The parsed form of a specification document, and the tool definitions it amounts to.

use serde::Serialize;
use serde_json::{Map, Value, json};
use tool::{Json, Listing, Tool};

pub use crate::section::{TOPICS, Topic};

use crate::finding::Position;

/// A tool as a server defines it; made from a document or from a listing.
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

/// A parsed specification document.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Document {
    pub title: Option<Located<String>>,
    /// `Version`, `Status`, `Last Updated`, … as written.
    pub metadata: Vec<(String, Located<String>)>,
    /// The place where the document says that there are no tools.
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
    /// The invocation name, or else the name in the heading.
    pub name: String,
    pub heading: Heading,
    /// The first line after the tool (one-based).
    pub end: usize,
    /// The invocation name, if the document gives one.
    pub invocation: Option<Located<String>>,
    pub version: Option<Located<String>>,
    pub title: Option<String>,
    pub annotations: Option<Value>,
    pub description: Option<Located<String>>,
    pub sections: Vec<Section>,
    pub input: IoSpec,
    pub output: IoSpec,
    pub idempotency: Option<Located<String>>,
    /// The JSON values in the section about errors.
    pub error_samples: Vec<Located<Value>>,
    pub examples: Vec<Example>,
}

/// The heading, table row or bullet that introduces a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct Heading {
    pub place: Position,
    /// The level of the heading; 0 for a table row or a bullet.
    pub level: usize,
    pub text: String,
    /// The names of the tools; several tools may share a heading.
    pub names: Vec<String>,
}

/// One section of a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct Section {
    pub topic: Topic,
    pub form: SectionMark,
    /// The title as it is written.
    pub title: String,
    pub place: Position,
    /// The first line after the section (one-based).
    pub end: usize,
    /// Its prose, without fences and tables.
    pub text: String,
}

/// How a section is marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SectionMark {
    /// A heading of this level.
    Heading(usize),
    /// A bold label, or a bullet that starts with the section's name.
    Label,
    /// No mark; the section is recognised by its position and content.
    Implied,
}

/// What the document says about the input of a tool, or about its output.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct IoSpec {
    pub fields: Vec<Field>,
    pub tables: Vec<TableShape>,
    /// The JSON Schema, if the document gives one.
    pub schema: Option<Located<Value>>,
    /// Example values in place of a schema.
    pub samples: Vec<Located<Value>>,
    /// Whether the document says that there is no input, or no output.
    pub nothing: bool,
}

/// One row of a table of parameters, or one bullet of a list of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// The path of the parameter: `a`, `a.b` or `items[].x`.
    pub path: String,
    /// The type as it is written.
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
    /// Under a condition: "Yes (if …)", "Conditional".
    Conditional,
}

/// The position of a table, and the titles of its columns.
#[derive(Clone, Debug, PartialEq)]
pub struct TableShape {
    pub place: Position,
    /// The first line after the table (one-based).
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
    /// Returns a value of the metadata, such as `Version`, by name.
    pub fn metadata_value(&self, name: &str) -> Option<&Located<String>> {
        self.metadata.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// The tools as a server would define them.
    pub fn definitions(&self) -> Vec<Definition> {
        self.tools.iter().map(DocumentedTool::definition).collect()
    }

    /// Returns the tool with this name.
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

    /// Returns the first section about a topic.
    pub fn section(&self, topic: Topic) -> Option<&Section> {
        self.sections.iter().find(|section| section.topic == topic)
    }

    /// Returns the value of an annotation, such as `readOnlyHint`.
    pub(crate) fn hint(&self, key: &str) -> Option<bool> {
        self.annotations.as_ref()?.get(key)?.as_bool()
    }
}

impl IoSpec {
    /// Returns the schema that the document gives, or else the one built from its fields.
    pub fn effective(&self) -> Option<Value> {
        match &self.schema {
            Some(schema) => Some(schema.value.clone()),
            None if self.fields.is_empty() && !self.nothing => None,
            None => Some(schema_of_fields(&self.fields)),
        }
    }
}

/// How many levels a path such as `a.b[].c` may have. Each becomes a level of the schema,
/// and of the stack of its parsers.
pub(crate) const MAX_DEPTH: usize = 32;

impl Field {
    /// Returns whether the path has too many levels, so that it counts as one name.
    pub(crate) fn is_too_deep(&self) -> bool {
        MAX_DEPTH < self.path.matches(['.', '[']).count()
    }
}

/// Builds an object schema; paths such as `a.b` and `items[].x` become nested schemas.
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

/// Splits a path: `a[].b` into `a`, `[]`, `b`.
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

/// Adds type, description and default of a field to its schema, where they are missing.
fn fill(node: &mut Value, field: &Field) {
    let schema = field.schema.as_object().cloned().unwrap_or_default();
    let Some(members) = node.as_object_mut() else { return };
    for (key, value) in schema {
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
    /// Converts a tool of a listing. A schema that cannot be parsed (nested deeper than
    /// 128 levels, say) is replaced by one that allows anything.
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

    /// Converts all tools of a listing.
    pub fn all(listing: &Listing) -> Vec<Definition> {
        listing.tools.iter().map(Definition::from_tool).collect()
    }

    /// Converts the definition to a tool as MCP lists it.
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
    use crate::lint::{LintContext, lint};
    use crate::rules::CLEAN;

    #[test]
    fn a_name_of_too_many_levels_is_one_name_and_told() {
        for deep in [vec!["a"; 60_000].join("."), format!("a{}", "[]".repeat(60_000))] {
            let from = CLEAN.find("```json").unwrap();
            let to = CLEAN.find("### 4.").unwrap();
            let text = CLEAN.replacen(&CLEAN[from..to], "", 1);
            let text =
                text.replacen("`max_lines` | `integer`", &format!("`{deep}` | `integer`"), 1);
            let (document, findings) = lint(&text, &LintContext::default());
            let input = &document.definitions()[0].input;
            assert_eq!(input["properties"][&deep]["type"], "integer");
            let told = findings.iter().any(|finding| finding.message.contains("32 levels"));
            assert!(told, "{findings:?}");
        }
    }
}
