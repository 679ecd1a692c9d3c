//! What is answered to what.

use std::collections::HashMap;
use std::io::Write;
use std::ops::ControlFlow;

use bytes::Bytes;
use mcp::message::{Message, Notification, Request, Response};
use serde_json::{Value, json};
use tool::{Json, Reply};

use crate::lists;

pub(crate) struct Script {
    mode: String,
    /// Calls that wait for the client to answer a question of ours.
    asked: HashMap<String, Json>,
    cancelled: Vec<Value>,
    /// The params of `initialize`.
    opening: Json,
    /// What the client last answered to `roots/list`.
    roots: Json,
    n_added: usize,
    /// The id of an open `subscriptions/listen`.
    listening: Option<Json>,
}

impl Script {
    pub(crate) fn new(mode: &str) -> Script {
        Script {
            mode: mode.to_owned(),
            asked: HashMap::new(),
            cancelled: Vec::new(),
            opening: Json::null(),
            roots: Json::null(),
            n_added: 0,
            listening: None,
        }
    }

    pub(crate) fn hear(&mut self, line: &str) -> ControlFlow<()> {
        match Message::parse(&Bytes::copy_from_slice(line.as_bytes())) {
            Ok(Message::Request(request)) => self.request(&request),
            Ok(Message::Notification(notification)) => {
                self.notification(&notification);
                ControlFlow::Continue(())
            }
            Ok(Message::Response(response)) => {
                self.response(&response);
                ControlFlow::Continue(())
            }
            Err(_) => ControlFlow::Break(()),
        }
    }

    fn notification(&mut self, notification: &Notification) {
        if notification.method == "notifications/cancelled"
            && let Some(params) = &notification.params
        {
            self.cancelled.extend(params.member("requestId").and_then(|id| id.to_value().ok()));
        }
        if notification.method == "notifications/roots/list_changed" {
            say(r#"{"jsonrpc":"2.0","id":"roots","method":"roots/list"}"#);
        }
    }

    /// The client answered: so can we.
    fn response(&mut self, response: &Response) {
        if response.id.as_str() == r#""roots""# {
            self.roots = match &response.reply {
                Reply::Result(result) => result.clone(),
                Reply::Error(error) => error.raw.clone(),
            };
        }
        if let Some(call) = self.asked.remove(response.id.as_str()) {
            let (kind, raw) = match &response.reply {
                Reply::Result(result) => ("result", result),
                Reply::Error(error) => ("error", &error.raw),
            };
            say(&format!(r#"{{"jsonrpc":"2.0","id":{call},"result":{{"{kind}":{raw}}}}}"#));
        }
    }

    fn request(&mut self, request: &Request) -> ControlFlow<()> {
        if self.mode == format!("hang-{}", request.method) {
            return ControlFlow::Continue(());
        }
        let params = request.params.clone().unwrap_or_else(Json::empty_object);
        let is_modern = self.mode == "modern";
        match request.method.as_str() {
            "server/discover" if is_modern => answer(&request.id, DISCOVERED),
            "server/discover" if self.mode == "silent" => {}
            "server/discover" if self.mode == "fragile" => return ControlFlow::Break(()),
            "initialize" if is_modern => refuse(&request.id, -32601, "modern only"),
            "initialize" => {
                self.opening = params.clone();
                let version = if self.mode == "old" { "2024-11-05" } else { "2025-11-25" };
                answer(&request.id, &INITIALIZED.replace("VERSION", version));
            }
            "tools/list" => {
                let cursor: Option<String> = params.member_as("cursor");
                answer(&request.id, &lists::tools(&self.mode, cursor.as_deref(), self.n_added));
            }
            "tools/call" => return self.call(&request.id, &params),
            "resources/list" => {
                answer(&request.id, r#"{"resources":[{"uri":"a://b","name":"b"}]}"#)
            }
            "prompts/list" => answer(&request.id, r#"{"prompts":[{"name":"p"}]}"#),
            "subscriptions/listen" => self.listen(&request.id, &params),
            "ping" | "resources/subscribe" | "resources/unsubscribe" => answer(&request.id, "{}"),
            "echo/params" => answer(&request.id, params.as_str()),
            other => refuse(&request.id, -32601, other),
        }
        ControlFlow::Continue(())
    }

    fn listen(&mut self, id: &Json, params: &Json) {
        self.listening = Some(id.clone());
        let wants = params.member("notifications").unwrap_or_else(Json::empty_object);
        say(&format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{{"notifications":{wants},"_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}}}}}}"#
        ));
    }

    fn call(&mut self, id: &Json, params: &Json) -> ControlFlow<()> {
        let name: String = params.member_as("name").unwrap_or_default();
        let arguments = params.member("arguments").unwrap_or_else(Json::empty_object);
        let text = |key: &str| arguments.member_as::<String>(key).unwrap_or_default();
        let count = |key: &str| arguments.member_as::<usize>(key).unwrap_or_default();
        match name.as_str() {
            "say" => answer(id, &text("result")),
            "fail" => say(&format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{}}}"#, text("error"))),
            "opening" => answer(id, self.opening.as_str()),
            "params" => answer(id, params.as_str()),
            "raw" => say(&text("line").replace("ID", id.as_str())),
            "hang" => {}
            "roots" => answer(id, self.roots.as_str()),
            "cancelled" => answer(id, &json!(self.cancelled).to_string()),
            "ask" => {
                let ours = format!("\"ask-{}\"", self.asked.len());
                let (method, params) = (text("method"), text("params"));
                say(&format!(
                    r#"{{"jsonrpc":"2.0","id":{ours},"method":"{method}","params":{params}}}"#
                ));
                self.asked.insert(ours, id.clone());
            }
            "progress" => {
                let token = params.member("_meta").and_then(|meta| meta.member("progressToken"));
                for n in 1..=2 {
                    let token = token.clone().unwrap_or_else(Json::null);
                    tell(
                        "notifications/progress",
                        &format!(r#"{{"progressToken":{token},"progress":{n},"x":1e400}}"#),
                    );
                }
                answer(id, "{}");
            }
            "tell" => {
                for _ in 0..count("times").max(1) {
                    tell(&text("method"), &text("params"));
                }
                answer(id, "{}");
            }
            "change" => {
                self.n_added += count("add");
                tell("notifications/tools/list_changed", "{}");
                answer(id, "{}");
            }
            "update" => {
                let tag = match &self.listening {
                    Some(id) => {
                        format!(r#","_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}}"#)
                    }
                    None => String::new(),
                };
                tell("notifications/resources/updated", &format!(r#"{{"uri":"a://b"{tag}}}"#));
                answer(id, "{}");
            }
            "huge" => answer(id, &format!(r#"{{"text":"{}"}}"#, "x".repeat(count("bytes")))),
            "half" => {
                print!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"con"#);
                std::io::stdout().flush().ok();
                return ControlFlow::Break(());
            }
            "die" => return ControlFlow::Break(()),
            "log" => {
                eprintln!("{}", text("text"));
                answer(id, "{}");
            }
            _ => refuse(id, -32602, "no such tool"),
        }
        ControlFlow::Continue(())
    }
}

const DISCOVERED: &str = r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true},"resources":{"subscribe":true}},"ttlMs":0,"cacheScope":"private","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"scripted","version":"2"}}}"#;

const INITIALIZED: &str = r#"{"protocolVersion":"VERSION","capabilities":{"tools":{"listChanged":true},"resources":{"subscribe":true},"prompts":{},"x-odd":{"n":1e400}},"serverInfo":{"name":"scripted","version":"1","x":1e400},"instructions":"be odd"}"#;

fn answer(id: &Json, result: &str) {
    say(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#));
}

fn refuse(id: &Json, code: i64, message: &str) {
    let error = json!({"code": code, "message": message});
    say(&format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#));
}

fn tell(method: &str, params: &str) {
    say(&format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#));
}

fn say(line: &str) {
    println!("{line}");
}
