//! Serves the tools of a document before the real server exists.
//!
//! Arguments are checked against the documented schema; the answer is the
//! documented example, or one made up from the output schema.

use std::sync::Arc;

use async_trait::async_trait;
use futures::stream::{self, BoxStream, StreamExt};
use jsonschema::Validator;
use serde_json::{Map, Value, json};
use tool::{Ask, Call, Context, Event, Failure, Listing, Provider, Reply, RpcError, Server};

use crate::document::{Document, Documented};
use crate::example::{compile, synthesise, tell};
use crate::finding::Finding;

/// A provider that does what a document says.
pub struct Mock {
    listing: Arc<Listing>,
    tools: Vec<Served>,
}

struct Served {
    name: String,
    validator: Validator,
    answer: Option<Value>,
}

/// Makes the provider. Tools that cannot be served (an invalid schema) are
/// left out and reported.
pub fn serve(document: &Document) -> (Arc<Mock>, Vec<Finding>) {
    let (mut tools, mut listed, mut findings) = (Vec::new(), Vec::new(), Vec::new());
    for documented in &document.tools {
        let definition = documented.definition();
        match compile(&definition.input) {
            Ok(validator) => {
                let answer = answer(documented);
                tools.push(Served { name: definition.name.clone(), validator, answer });
                listed.push(definition.to_tool());
            }
            Err(reason) => {
                let message = format!(
                    "`{}` is not served: its input schema is invalid {reason}",
                    definition.name
                );
                findings.push(
                    Finding::new("E08", documented.heading.place, message).of(&definition.name),
                );
            }
        }
    }
    let name = document.title.as_ref().map_or("mock", |title| title.value.as_str());
    let version = document.pair("version").map_or("0.0.0", |version| version.value.as_str());
    let server = Server::new(name, version.trim_start_matches('v'), json!({"tools": {}}).into());
    let listing = Listing { server, tools: listed, ..Listing::default() };
    (Arc::new(Mock { listing: Arc::new(listing), tools }), findings)
}

/// The documented sample, a row of examples, or something that fits.
fn answer(tool: &Documented) -> Option<Value> {
    if let Some(sample) = tool.output.samples.first() {
        return Some(sample.value.clone());
    }
    let mut members = Map::new();
    for field in &tool.output.fields {
        let example =
            field.example.as_ref().and_then(|text| serde_json::from_str::<Value>(text).ok());
        if let Some(example) = example.filter(|_| !field.path.contains(['.', '['])) {
            members.insert(field.path.clone(), example);
        }
    }
    let row = (!members.is_empty()).then_some(Value::Object(members));
    let schema = tool.output.effective();
    let fits = |value: &Value| {
        schema.as_ref().is_none_or(|schema| crate::example::problems(schema, value).is_empty())
    };
    row.filter(fits).or_else(|| synthesise(schema.as_ref()?))
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
            Ask::Read(_) | Ask::Prompt(_) | Ask::Complete(_) | Ask::Other { .. } => {
                Ok(Reply::Error(RpcError::new(-32601, "a mock has only tools")))
            }
        }
    }
}

impl Mock {
    fn call(&self, call: &Call) -> Reply {
        let Some(tool) = self.tools.iter().find(|tool| tool.name == call.name) else {
            return Reply::Error(RpcError::new(
                -32602,
                format!("no tool is called `{}`", call.name),
            ));
        };
        let arguments = call.arguments.as_ref().map_or(Ok(json!({})), |json| json.value());
        let Ok(arguments) = arguments else {
            return Reply::Error(RpcError::new(-32602, "`arguments` cannot be read"));
        };
        let problems: Vec<String> =
            tool.validator.iter_errors(&arguments).take(8).map(|error| tell(&error)).collect();
        if !problems.is_empty() {
            let body = json!({
                "status": "failure",
                "error_type": "SchemaError",
                "error_message": format!("arguments for `{}` do not fit its schema", tool.name),
                "error_details": {"problems": problems},
            });
            return Reply::error_text(&body.to_string());
        }
        match &tool.answer {
            Some(answer) if answer.is_object() => Reply::structured(answer),
            Some(answer) => Reply::text(&answer.to_string()),
            None => Reply::text("ok"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::parse;
    use crate::rules::CLEAN;

    async fn call(name: &str, arguments: Value) -> Reply {
        let (mock, findings) = serve(&parse(CLEAN).0);
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
