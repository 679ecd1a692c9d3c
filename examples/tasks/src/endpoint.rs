//! Models behind an address: Anthropic's messages, and what is compatible with OpenAI's
//! chat completions. Requests are made by `curl`, which is told address and key on its
//! standard input, so that neither stands in a list of processes.

use std::io::Write;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use crate::model::{Action, CallResult};

/// Whose words an endpoint understands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    Anthropic,
    OpenAi,
}

/// A conversation with a model behind an address.
pub(crate) struct Endpoint {
    pub(crate) dialect: Dialect,
    pub(crate) url: String,
    pub(crate) model: String,
    pub(crate) key: String,
    tools: Vec<Value>,
    messages: Vec<Value>,
}

/// How many tokens a model may write at once.
const MAX_TOKENS: u64 = 4096;

impl Endpoint {
    pub(crate) fn new(dialect: Dialect, url: String, model: String, key: String) -> Endpoint {
        Endpoint { dialect, url, model, key, tools: Vec::new(), messages: Vec::new() }
    }

    pub(crate) fn begin(&mut self, task: &str, tools: &[Value]) {
        let tool = |tool: &Value| match self.dialect {
            Dialect::Anthropic => json!({
                "name": tool["name"], "description": tool["description"], "input_schema": tool["inputSchema"],
            }),
            Dialect::OpenAi => json!({"type": "function", "function": {
                "name": tool["name"], "description": tool["description"], "parameters": tool["inputSchema"],
            }}),
        };
        self.tools = tools.iter().map(tool).collect();
        self.messages = vec![json!({"role": "user", "content": task})];
    }

    pub(crate) fn next(&mut self) -> Result<Vec<Action>> {
        let reply = self.post()?;
        match self.dialect {
            Dialect::Anthropic => self.anthropic(&reply),
            Dialect::OpenAi => self.openai(&reply),
        }
    }

    pub(crate) fn give(&mut self, results: &[CallResult]) {
        match self.dialect {
            Dialect::Anthropic => {
                let block = |result: &CallResult| {
                    json!({
                        "type": "tool_result", "tool_use_id": result.id, "content": result.text, "is_error": result.is_error,
                    })
                };
                let content: Vec<Value> = results.iter().map(block).collect();
                self.messages.push(json!({"role": "user", "content": content}));
            }
            Dialect::OpenAi => {
                let message = |result: &CallResult| json!({"role": "tool", "tool_call_id": result.id, "content": result.text});
                self.messages.extend(results.iter().map(message));
            }
        }
    }

    fn anthropic(&mut self, reply: &Value) -> Result<Vec<Action>> {
        let content =
            reply["content"].as_array().with_context(|| format!("no content: {reply}"))?;
        self.messages.push(json!({"role": "assistant", "content": content}));
        let calls =
            content.iter().filter(|block| block["type"] == "tool_use").map(|block| Action::Call {
                id: text(&block["id"]),
                name: text(&block["name"]),
                arguments: block["input"].clone(),
            });
        let calls: Vec<Action> = calls.collect();
        let words = content.iter().filter_map(|block| block["text"].as_str());
        Ok(if calls.is_empty() { vec![Action::Answer(words.collect())] } else { calls })
    }

    fn openai(&mut self, reply: &Value) -> Result<Vec<Action>> {
        let message = &reply["choices"][0]["message"];
        ensure!(message.is_object(), "no message: {reply}");
        self.messages.push(message.clone());
        let calls = message["tool_calls"].as_array().into_iter().flatten().map(|call| {
            let arguments = text(&call["function"]["arguments"]);
            Action::Call {
                id: text(&call["id"]),
                name: text(&call["function"]["name"]),
                // What is no JSON goes on as it is: the server says what is wrong.
                arguments: serde_json::from_str(&arguments).unwrap_or(Value::String(arguments)),
            }
        });
        let calls: Vec<Action> = calls.collect();
        Ok(if calls.is_empty() { vec![Action::Answer(text(&message["content"]))] } else { calls })
    }

    fn body(&self) -> Value {
        let limit = match self.dialect {
            Dialect::Anthropic => "max_tokens",
            Dialect::OpenAi => "max_completion_tokens",
        };
        json!({"model": self.model, limit: MAX_TOKENS, "tools": self.tools, "messages": self.messages})
    }

    fn post(&self) -> Result<Value> {
        let mut body = tempfile::NamedTempFile::new()?;
        body.write_all(self.body().to_string().as_bytes())?;
        let credential = match self.dialect {
            Dialect::Anthropic => format!("x-api-key: {}", self.key),
            Dialect::OpenAi => format!("authorization: Bearer {}", self.key),
        };
        let mut orders =
            format!("url = {}\nheader = {}\n", quoted(&self.url)?, quoted(&credential)?);
        orders += "header = \"content-type: application/json\"\nheader = \"anthropic-version: 2023-06-01\"\n";
        orders += &format!("data-binary = {}\n", quoted(&format!("@{}", body.path().display()))?);
        let mut curl = Command::new("curl")
            .args([
                "--silent",
                "--show-error",
                "--fail-with-body",
                "--max-time",
                "600",
                "--config",
                "-",
            ])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .context("curl")?;
        curl.stdin.take().context("piped")?.write_all(orders.as_bytes())?;
        let done = curl.wait_with_output()?;
        let said = String::from_utf8_lossy(&done.stdout);
        ensure!(
            done.status.success(),
            "{}: {}{said}",
            self.url,
            String::from_utf8_lossy(&done.stderr)
        );
        serde_json::from_str(&said).with_context(|| format!("not JSON: {said}"))
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// A value as a configuration of curl has it.
fn quoted(value: &str) -> Result<String> {
    if value.contains(['\n', '\r', '\0']) {
        bail!("an address or key has a line break");
    }
    Ok(format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\"")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(dialect: Dialect) -> Endpoint {
        Endpoint::new(dialect, "http://127.0.0.1:1/x".to_owned(), "m".to_owned(), "k".to_owned())
    }

    fn call() -> Vec<Action> {
        let arguments = json!({"a": 1});
        vec![Action::Call { id: "c1".to_owned(), name: "add".to_owned(), arguments }]
    }

    fn result() -> CallResult {
        CallResult { id: "c1".to_owned(), text: "2".to_owned(), is_error: false }
    }

    #[test]
    fn anthropics_messages_carry_calls_and_results() {
        let mut model = endpoint(Dialect::Anthropic);
        model.begin("add", &[json!({"name": "add", "inputSchema": {"type": "object"}})]);
        let reply = json!({"content": [{"type": "text", "text": "I add."},
            {"type": "tool_use", "id": "c1", "name": "add", "input": {"a": 1}}]});
        assert_eq!(model.anthropic(&reply).unwrap(), call());
        model.give(&[result()]);
        let body = model.body();
        assert_eq!(body["tools"][0]["input_schema"]["type"], "object");
        assert_eq!(body["messages"][2]["content"][0]["tool_use_id"], "c1");
        let last = json!({"content": [{"type": "text", "text": "2"}]});
        assert_eq!(model.anthropic(&last).unwrap(), [Action::Answer("2".to_owned())]);
        assert!(model.anthropic(&json!({"error": "no"})).is_err());
    }

    #[test]
    fn chat_completions_carry_calls_and_results() {
        let mut model = endpoint(Dialect::OpenAi);
        model.begin("add", &[json!({"name": "add", "inputSchema": {"type": "object"}})]);
        let function = json!({"name": "add", "arguments": "{\"a\": 1}"});
        let reply = json!({"choices": [{"message": {"role": "assistant", "content": null,
            "tool_calls": [{"id": "c1", "type": "function", "function": function}]}}]});
        assert_eq!(model.openai(&reply).unwrap(), call());
        model.give(&[result()]);
        let body = model.body();
        assert_eq!(body["tools"][0]["function"]["parameters"]["type"], "object");
        assert_eq!(
            body["messages"][2],
            json!({"role": "tool", "tool_call_id": "c1", "content": "2"})
        );
        assert!(model.openai(&json!({})).is_err());
    }

    #[test]
    fn a_key_cannot_give_orders_to_curl() {
        assert!(quoted("a\noutput = \"/etc/passwd\"").is_err());
        assert_eq!(quoted(r#"a"b\"#).unwrap(), r#""a\"b\\""#);
    }
}
