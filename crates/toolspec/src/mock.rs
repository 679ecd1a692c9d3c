//! Serves the tools of a document before the real server exists.
//!
//! Arguments are validated against the documented schema. The reply is the
//! documented example, or one generated from the output schema.

use std::sync::Arc;

use async_trait::async_trait;
use futures::stream::{self, BoxStream, StreamExt};
use serde_json::{Value, json};
use tool::{Ask, Call, Context, Event, Failure, Listing, Provider, Reply, RpcError, Server};
use validator::Validator;

use crate::document::{Definition, Document, DocumentedTool, Field};
use crate::example::{compile, describe_error, problems, synthesise};
use crate::finding::{Finding, Position};

/// A provider of the tools that a document describes.
pub struct Mock {
    listing: Arc<Listing>,
    tools: Vec<MockTool>,
}

struct MockTool {
    name: String,
    validator: Validator,
    reply: MockReply,
}

/// The fixed reply to every call of a tool.
enum MockReply {
    Structured(Value),
    Text(String),
    /// No value that matches the schema could be generated.
    Missing,
}

impl Mock {
    /// Creates the provider. A finding reports each tool that cannot be served as
    /// documented.
    pub fn from_document(document: &Document) -> (Arc<Mock>, Vec<Finding>) {
        let (mut tools, mut listed, mut findings) = (Vec::new(), Vec::new(), Vec::new());
        for documented in &document.tools {
            let mut report = |code, place: Position, message: String| {
                findings.push(Finding::new(code, place, message).in_tool(&documented.name));
            };
            let mut definition = documented.definition();
            let validator = match input(&mut definition) {
                Ok(validator) => validator,
                Err(reason) => {
                    let message = format!("`{}` is not served: {reason}", definition.name);
                    report("E08", documented.heading.place, message);
                    continue;
                }
            };
            // Clients reject the whole list if the type of one output schema is not `object`.
            let is_object = |schema: &Value| schema.get("type") == Some(&Value::from("object"));
            if definition.output.take_if(|schema| !is_object(schema)).is_some() {
                let message = format!(
                    "the output schema of `{}` is not listed: its `type` is not `object`",
                    definition.name
                );
                report("E08", documented.heading.place, message);
            }
            let reply = choose_reply(documented, definition.output.is_some(), &mut report);
            tools.push(MockTool { name: definition.name.clone(), validator, reply });
            listed.push(definition.to_tool());
        }
        let name = document.title.as_ref().map_or("mock", |title| title.value.as_str());
        let version =
            document.metadata_value("version").map_or("0.0.0", |version| version.value.as_str());
        let server =
            Server::new(name, version.trim_start_matches('v'), json!({"tools": {}}).into());
        let listing = Listing { server, tools: listed, ..Listing::default() };
        (Arc::new(Mock { listing: Arc::new(listing), tools }), findings)
    }
}

/// Compiles the input schema and sets its `type` to `object`, as MCP requires.
fn input(definition: &mut Definition) -> Result<Validator, String> {
    let validator = compile(&definition.input)
        .map_err(|reason| format!("its input schema is invalid {reason}"))?;
    if let Some(members) = definition.input.as_object_mut() {
        members.entry("type").or_insert_with(|| Value::from("object"));
    }
    if definition.input.get("type") != Some(&Value::from("object")) {
        return Err("the `type` of its input schema is not `object`".to_owned());
    }
    Ok(validator)
}

/// The documented sample, else the examples of the fields, else a generated value.
fn choose_reply(
    tool: &DocumentedTool,
    promised: bool,
    report: &mut impl FnMut(&'static str, Position, String),
) -> MockReply {
    let schema = tool.output.effective();
    let misfit = |value: &Value| {
        schema.as_ref().and_then(|schema| problems(schema, value).into_iter().next())
    };
    let mut sample = None;
    for candidate in &tool.output.samples {
        match misfit(&candidate.value) {
            None => sample = sample.or_else(|| Some(candidate.value.clone())),
            Some(problem) => {
                let message =
                    format!("this example of `{}` does not fit its schema: {problem}", tool.name);
                report("E09", candidate.place, message);
            }
        }
    }
    let row = || examples(&tool.output.fields).filter(|row| misfit(row).is_none());
    let made_up = || synthesise(schema.as_ref()?);
    match sample.or_else(row).or_else(made_up) {
        Some(value) if value.is_object() => MockReply::Structured(value),
        Some(value) if !promised => MockReply::Text(value.to_string()),
        None if schema.is_none() => MockReply::Text("ok".to_owned()),
        Some(_) | None => {
            let message = format!("no reply of `{}` can be generated from its schema", tool.name);
            report("W10", tool.heading.place, message);
            MockReply::Missing
        }
    }
}

/// The maximum nesting of a value that is assembled from examples.
const MAX_DEPTH: usize = 32;

/// Assembles a value from the examples in a table.
fn examples(fields: &[Field]) -> Option<Value> {
    let mut whole = json!({});
    let mut told = false;
    for field in fields {
        let deep = MAX_DEPTH < field.path.matches(['.', '[']).count();
        if let Some(example) = example(field).filter(|_| !deep) {
            told = true;
            put(&mut whole, &field.path, example);
        }
    }
    told.then_some(whole)
}

/// Parses the example of a field. A string needs no quotes where the schema
/// expects a string.
fn example(field: &Field) -> Option<Value> {
    let text = field.example.as_ref()?;
    let fits = |value: &Value| problems(&field.schema, value).is_empty();
    let read = serde_json::from_str::<Value>(text).ok();
    read.filter(fits).or_else(|| Some(Value::from(text.as_str())).filter(fits))
}

/// Sets the value at a path such as `a.b` or `items[].x`.
fn put(node: &mut Value, path: &str, value: Value) {
    let (step, rest) = path.split_once('.').map_or((path, None), |(step, rest)| (step, Some(rest)));
    let name = step.trim_end_matches("[]");
    if !node.is_object() {
        *node = json!({});
    }
    let mut place = &mut node[name];
    for _ in 0..(step.len() - name.len()) / 2 {
        if place.as_array().is_none_or(Vec::is_empty) {
            *place = json!([null]);
        }
        place = &mut place[0];
    }
    match rest {
        Some(rest) => put(place, rest, value),
        // An earlier field may have set a part of it.
        None if place.is_null() => *place = value,
        None => {}
    }
}

#[async_trait]
impl Provider for Mock {
    fn listing(&self) -> Arc<Listing> {
        Arc::clone(&self.listing)
    }

    fn events(&self) -> BoxStream<'static, Event> {
        stream::pending().boxed()
    }

    async fn ask(&self, ask: Ask, _: &Context) -> Result<Reply, Failure> {
        match ask {
            Ask::Call(call) => Ok(self.call(&call)),
            Ask::ReadResource(_) | Ask::Prompt(_) | Ask::Complete(_) | Ask::Other { .. } => {
                Ok(Reply::Error(RpcError::new(-32601, "a mock serves only tools")))
            }
        }
    }
}

impl Mock {
    fn call(&self, call: &Call) -> Reply {
        let Some(tool) = self.tools.iter().find(|tool| tool.name == call.name) else {
            return Reply::Error(RpcError::new(
                -32602,
                format!("there is no tool `{}`", call.name),
            ));
        };
        let arguments = call.arguments.as_ref().map_or(Ok(json!({})), |json| json.to_value());
        let Ok(arguments) = arguments else {
            return Reply::Error(RpcError::new(-32602, "`arguments` cannot be parsed"));
        };
        let problems: Vec<String> =
            tool.validator.errors(&arguments, 8).iter().map(describe_error).collect();
        if !problems.is_empty() {
            let body = json!({
                "status": "failure",
                "error_type": "SchemaError",
                "error_message": format!("arguments for `{}` do not fit its schema", tool.name),
                "error_details": {"problems": problems},
            });
            return Reply::error_text(&body.to_string());
        }
        match &tool.reply {
            MockReply::Structured(value) => Reply::structured(value),
            MockReply::Text(text) => Reply::text(text),
            MockReply::Missing => Reply::error_text(&format!(
                "no reply of `{}` can be generated from its output schema; add an example to its \
                 document",
                tool.name
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::parse;
    use crate::rules::CLEAN;

    async fn call(name: &str, arguments: Value) -> Reply {
        let (mock, findings) = Mock::from_document(&parse(CLEAN).0);
        assert_eq!(findings, []);
        let ask = Ask::Call(Call::new(name, arguments.into()));
        mock.ask(ask, &Context::anonymous()).await.unwrap()
    }

    #[tokio::test]
    async fn the_documented_example_is_the_answer() {
        let reply = call("files.read_text", json!({"path": "a"})).await;
        let result = reply.tool_result().unwrap();
        assert_eq!(result.structured.unwrap().as_str(), r#"{"lines":["fn main() {}"]}"#);
    }

    #[tokio::test]
    async fn arguments_are_checked() {
        let reply = call("files.read_text", json!({"max_lines": "x"})).await;
        let result = reply.tool_result().unwrap();
        assert!(result.is_error && result.text().contains("SchemaError"));
        assert!(matches!(call("other", json!({})).await, Reply::Error(_)));
        let reply = call("files.read_text", json!({"path": "a", "max_lines": "x"})).await;
        assert!(reply.tool_result().unwrap().text().contains("at `/max_lines`"));
    }

    /// The listed schema, the reply and the findings of a tool with this output section.
    async fn output(section: &str) -> (Option<Value>, tool::reply::ToolResult, Vec<&'static str>) {
        let text =
            format!("# T\n\n## Tool: `t`\n\n### Parameters\n\nNone\n\n### Output\n\n{section}\n");
        let (mock, findings) = Mock::from_document(&parse(&text).0);
        let listed =
            mock.listing().tools[0].output_schema.as_ref().map(|json| json.to_value().unwrap());
        let ask = Ask::Call(Call::new("t", json!({}).into()));
        let reply = mock.ask(ask, &Context::anonymous()).await.unwrap();
        let codes = findings.iter().map(|finding| finding.code).collect();
        (listed, reply.tool_result().unwrap(), codes)
    }

    #[tokio::test]
    async fn examples_of_nested_fields_and_unquoted_text_are_answered() {
        let table = "| Field Name | Type | Description | Example Value |\n|---|---|---|---|\n\
                     | `a.b` | `string` | B. | `plain words` |\n\
                     | `l[].z` | `integer` | Z. | `7` |\n| `v` | `string` | V. | `1.0` |";
        let (_, result, codes) = output(table).await;
        let structured = result.structured.unwrap().to_value().unwrap();
        assert_eq!(structured, json!({"a": {"b": "plain words"}, "l": [{"z": 7}], "v": "1.0"}));
        assert_eq!(codes, [""; 0]);
    }

    #[tokio::test]
    async fn a_schema_that_clients_refuse_is_not_listed() {
        let (listed, result, codes) =
            output("```json\n{\"type\": \"array\", \"items\": {\"type\": \"string\"}}\n```").await;
        assert_eq!((listed, codes), (None, vec!["E08"]));
        assert!(!result.is_error && result.structured.is_none());
    }

    #[tokio::test]
    async fn a_reply_that_cannot_be_generated_is_an_error() {
        let schema = "```json\n{\"type\": \"object\", \"properties\": {\"a\": {\"type\": \"string\", \
                      \"pattern\": \"^q{17}w$\"}}, \"required\": [\"a\"]}\n```";
        let (listed, result, codes) = output(schema).await;
        assert!(listed.is_some() && result.is_error, "{}", result.text());
        assert_eq!(codes, ["W10"]);
    }

    #[tokio::test]
    async fn a_sample_that_contradicts_the_schema_is_not_answered() {
        let section = "```json\n{\"type\": \"object\", \"properties\": {\"n\": {\"type\": \"integer\"}}, \
                       \"required\": [\"n\"]}\n```\n\n```json\n{\"n\": \"many\"}\n```";
        let (_, result, codes) = output(section).await;
        assert_eq!(result.structured.unwrap().to_value().unwrap(), json!({"n": 1}));
        assert_eq!(codes, ["E09"]);
    }

    #[tokio::test]
    async fn a_refusal_names_the_argument_and_does_not_repeat_it() {
        let long = vec!["hunter2".repeat(1000); 3];
        let reply = call("files.read_text", json!({"path": "a", "max_lines": long})).await;
        let text = reply.tool_result().unwrap().text();
        assert!(text.contains("/max_lines"), "{text}");
        assert!(!text.contains("hunter2") && text.len() < 600, "{text}");
    }
}
