//! An endpoint and how a test talks to it.

use std::net::IpAddr;
use std::sync::Arc;

use ::http::{Method, Request, Response, StatusCode};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use mcp::serve::http::{Body, Endpoint, Options, PeerAddress};
use serde_json::{Value, json};
use tool::{FixedProvider, Identity, Provider};

const REVISION: &str = "2026-07-28";

/// An endpoint that serves one provider.
pub(crate) struct Site {
    pub(crate) endpoint: Endpoint,
    caller: Option<Arc<Identity>>,
    address: Option<IpAddr>,
}

/// An open session.
pub(crate) struct Session {
    pub(crate) id: String,
    pub(crate) result: Value,
}

/// A response, whole or still flowing.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    headers: ::http::HeaderMap,
    whole: Option<Vec<u8>>,
    body: Option<Body>,
}

impl Site {
    pub(crate) fn new(provider: Arc<dyn Provider>) -> Site {
        Site::with(provider, Options::default())
    }

    pub(crate) fn with(provider: Arc<dyn Provider>, options: Options) -> Site {
        Site {
            endpoint: Endpoint::new(Arc::new(FixedProvider(provider)), options),
            caller: None,
            address: None,
        }
    }

    /// The same endpoint, seen by somebody with a name.
    pub(crate) fn as_caller(&self, subject: &str) -> Site {
        self.with_roles(subject, &[])
    }

    pub(crate) fn with_roles(&self, subject: &str, roles: &[&str]) -> Site {
        let roles = roles.iter().map(|&role| role.to_owned()).collect();
        let caller = Identity { subject: subject.to_owned(), roles, ..Identity::default() };
        Site {
            endpoint: self.endpoint.clone(),
            caller: Some(Arc::new(caller)),
            address: self.address,
        }
    }

    /// The same endpoint and caller, from somewhere.
    pub(crate) fn at_address(&self, address: &str) -> Site {
        let (endpoint, caller) = (self.endpoint.clone(), self.caller.clone());
        Site { endpoint, caller, address: Some(address.parse().unwrap()) }
    }

    pub(crate) async fn send(
        &self,
        method: Method,
        headers: &[(&str, &str)],
        body: &Value,
    ) -> Answer {
        self.send_text(method, headers, body.to_string()).await
    }

    pub(crate) async fn send_text(
        &self,
        method: Method,
        headers: &[(&str, &str)],
        body: String,
    ) -> Answer {
        let mut request = Request::builder().method(method).uri("/mcp");
        let usual = [
            ("host", "localhost"),
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
        ];
        for (name, value) in usual {
            if !headers.iter().any(|(given, _)| *given == name) {
                request = request.header(name, value);
            }
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let mut request = request.body(Full::new(Bytes::from(body))).unwrap();
        if let Some(caller) = &self.caller {
            request.extensions_mut().insert(Arc::clone(caller));
        }
        if let Some(address) = self.address {
            request.extensions_mut().insert(PeerAddress(address));
        }
        Answer::read(self.endpoint.respond(request).await).await
    }

    pub(crate) async fn initialize(&self, revision: &str, capabilities: Value) -> Session {
        let params = json!({
            "protocolVersion": revision, "capabilities": capabilities,
            "clientInfo": {"name": "test", "version": "1"},
        });
        let body = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        let answer = self.send(Method::POST, &[], &body).await;
        let id = answer.headers["mcp-session-id"].to_str().unwrap().to_owned();
        Session { id, result: answer.json()["result"].clone() }
    }

    pub(crate) async fn post(&self, session: &Session, body: &Value) -> Answer {
        self.send(Method::POST, &[("mcp-session-id", &session.id)], body).await
    }

    pub(crate) async fn in_session(
        &self,
        session: &Session,
        method: &str,
        params: Value,
    ) -> Answer {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        self.post(session, &body).await
    }

    pub(crate) async fn call(&self, session: &Session, name: &str, arguments: Value) -> Answer {
        self.in_session(session, "tools/call", json!({"name": name, "arguments": arguments})).await
    }

    pub(crate) async fn listen(&self, session: &Session) -> Answer {
        let headers = [("mcp-session-id", session.id.as_str()), ("accept", "text/event-stream")];
        self.send(Method::GET, &headers, &json!(null)).await
    }

    pub(crate) async fn delete(&self, session: &Session) -> Answer {
        self.send(Method::DELETE, &[("mcp-session-id", &session.id)], &json!(null)).await
    }

    /// A request that stands alone.
    pub(crate) async fn modern(&self, method: &str, params: Value, capabilities: &Value) -> Answer {
        let body = modern(method, params, capabilities);
        let name = body["params"]["name"].as_str().or(body["params"]["uri"].as_str());
        let mut headers = vec![("mcp-protocol-version", REVISION), ("mcp-method", method)];
        headers.extend(name.map(|name| ("mcp-name", name)));
        self.send(Method::POST, &headers, &body).await
    }
}

/// A modern request with its envelope.
pub(crate) fn modern(method: &str, mut params: Value, capabilities: &Value) -> Value {
    let about = &mut params["_meta"];
    about["io.modelcontextprotocol/protocolVersion"] = json!(REVISION);
    about["io.modelcontextprotocol/clientCapabilities"] = capabilities.clone();
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}

impl Answer {
    pub(crate) async fn read(response: Response<Body>) -> Answer {
        let (head, body) = response.into_parts();
        let streams =
            head.headers.get("content-type").is_some_and(|kind| kind == "text/event-stream");
        let (whole, body) = match streams {
            true => (None, Some(body)),
            false => (Some(body.collect().await.unwrap().to_bytes().to_vec()), None),
        };
        Answer { status: head.status, headers: head.headers, whole, body }
    }

    pub(crate) fn media_type(&self) -> &str {
        self.headers.get("content-type").map_or("", |kind| kind.to_str().unwrap())
    }

    pub(crate) fn header(&self, name: &str) -> String {
        self.headers[name].to_str().unwrap().to_owned()
    }

    /// The answer, in whichever form it comes.
    pub(crate) async fn all_or_json(self) -> Value {
        match self.whole {
            Some(_) => self.json(),
            None => self.all().await.pop().expect("the stream has an answer"),
        }
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        let whole = self.whole.as_ref().expect("the answer is no stream");
        serde_json::from_slice(whole).unwrap_or(Value::Null)
    }

    /// The next event, as it stands on the wire.
    pub(crate) async fn event(&mut self) -> String {
        let frame = self.body.as_mut().expect("the answer is a stream").frame().await;
        let data = frame.expect("the stream goes on").unwrap().into_data().unwrap();
        String::from_utf8(data.to_vec()).unwrap()
    }

    /// The next message.
    pub(crate) async fn next(&mut self) -> Value {
        for _ in 0..100 {
            let event = self.event().await;
            if let Some(message) = read(&event) {
                return message;
            }
        }
        panic!("the stream is alive but says nothing");
    }

    /// Whether the stream ends, with nothing more on it.
    pub(crate) async fn ended(&mut self) -> bool {
        self.body.as_mut().expect("the answer is a stream").frame().await.is_none()
    }

    /// Everything up to the end of the stream, as it stands on the wire.
    pub(crate) async fn text(self) -> String {
        let body = self.body.expect("the answer is a stream").collect().await.unwrap();
        String::from_utf8(body.to_bytes().to_vec()).unwrap()
    }

    /// All messages up to the end of the stream.
    pub(crate) async fn all(mut self) -> Vec<Value> {
        let mut messages = Vec::new();
        while let Some(frame) = self.body.as_mut().expect("the answer is a stream").frame().await {
            let data = frame.unwrap().into_data().unwrap();
            messages.extend(read(std::str::from_utf8(&data).unwrap()));
        }
        messages
    }
}

fn read(event: &str) -> Option<Value> {
    let data = event.lines().find_map(|line| line.strip_prefix("data: "))?;
    serde_json::from_str(data).ok()
}
