//! The official conformance suite, through `serve(connect(x))`.
//!
//! What passes against a provider directly passes through a connection to it as
//! well, whatever the eras of client and upstream, over a pipe and over HTTP.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::BoxStream;
use mcp::connect::{self, KnownRevision, Program, Target, Upstream};
use mcp::revision::Revision;
use mcp::serve::http::{Endpoint, Options, at};
use serde_json::json;
use testkit::everything::{Everything, Style};
use tokio::net::TcpListener;
use tokio::sync::Mutex;
use tool::{Ask, Client, Context, Event, Failure, FixedProvider, Json, Listing, Provider, Reply};
use web::listen::listen_plain;

use crate::site::Site;
use crate::suite::{NAMELESS, Suite, check};
use crate::tools;

const LEGACY: Revision = Revision::LATEST_LEGACY;
const MODERN: Revision = Revision::LATEST;

#[tokio::test]
async fn the_stable_suite_through_a_pipe() {
    testkit::needs!(Tools);
    check(piped("asking", LEGACY).await, Suite::Stable, &[], 40).await;
}

#[tokio::test]
async fn an_older_client_and_an_older_upstream() {
    testkit::needs!(Tools);
    check(piped("asking", LEGACY).await, Suite::Next("2025-11-25"), &[], 80).await;
}

#[tokio::test]
async fn an_older_client_and_a_modern_upstream() {
    testkit::needs!(Tools);
    check(piped("requiring", MODERN).await, Suite::Next("2025-11-25"), &[], 80).await;
}

#[tokio::test]
async fn a_modern_client_and_a_modern_upstream() {
    testkit::needs!(Tools);
    check(piped("requiring", MODERN).await, Suite::Next("2026-07-28"), &[], 150).await;
}

#[tokio::test]
async fn a_modern_client_and_an_older_upstream() {
    testkit::needs!(Tools);
    check(piped("asking", LEGACY).await, Suite::Next("2026-07-28"), NAMELESS, 145).await;
}

#[tokio::test]
async fn an_older_client_and_an_older_upstream_over_http() {
    testkit::needs!(Tools);
    let upstream = reached(Style::Asking, LEGACY).await;
    check(upstream, Suite::Next("2025-11-25"), &[], 80).await;
}

#[tokio::test]
async fn an_older_client_and_a_modern_upstream_over_http() {
    testkit::needs!(Tools);
    let upstream = reached(Style::Requiring, MODERN).await;
    check(upstream, Suite::Next("2025-11-25"), &[], 80).await;
}

#[tokio::test]
async fn a_modern_client_and_a_modern_upstream_over_http() {
    testkit::needs!(Tools);
    let upstream = reached(Style::Requiring, MODERN).await;
    check(upstream, Suite::Next("2026-07-28"), &[], 150).await;
}

#[tokio::test]
async fn a_modern_client_and_an_older_upstream_over_http() {
    testkit::needs!(Tools);
    let upstream = reached(Style::Asking, LEGACY).await;
    check(upstream, Suite::Next("2026-07-28"), NAMELESS, 145).await;
}

#[tokio::test]
async fn what_a_gate_behind_a_gate_asks_of_a_modern_client_is_answered() {
    let inner = reached_over(Everything::new(Style::Asking), MODERN).await;
    let outer = Site::new(reached_over(inner, MODERN).await);
    let able = json!({"elicitation": {}});
    let name = "test_input_required_result_elicitation";
    let first = outer.modern("tools/call", json!({"name": name}), &able).await.json();
    assert_eq!(first["result"]["resultType"], "input_required", "{first}");
    let asked = first["result"]["inputRequests"].as_object().unwrap();
    let key = asked.keys().next().unwrap();
    let answer = json!({key: {"action": "accept", "content": {"name": "Ann"}}});
    let state = &first["result"]["requestState"];
    let again = json!({"name": name, "inputResponses": answer, "requestState": state});
    let last = outer.modern("tools/call", again, &able).await.json();
    assert_eq!(last["result"]["resultType"], "complete", "{last}");
}

/// An upstream at the other end of a pipe.
async fn piped(style: &str, revision: Revision) -> Arc<Tailored> {
    let args = ["stdio", style].map(str::to_owned).to_vec();
    let program = Program { command: tools::example("everything"), args, ..Program::default() };
    open(Target::Stdio(program), revision).await
}

/// An upstream that is reached over HTTP.
async fn reached(style: Style, revision: Revision) -> Arc<Tailored> {
    reached_over(Everything::new(style), revision).await
}

/// A provider that is reached over HTTP.
async fn reached_over(provider: Arc<dyn Provider>, revision: Revision) -> Arc<Tailored> {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let options = Options { stream_after: Duration::from_millis(50), ..Options::default() };
    let endpoint = Endpoint::new(Arc::new(FixedProvider(provider)), options);
    tokio::spawn(listen_plain(listener, at("/mcp", endpoint)));
    let target = connect::Endpoint { url, ..connect::Endpoint::default() };
    open(Target::Http(target), revision).await
}

/// Upstreams for clients that can do different things.
async fn open(target: Target, revision: Revision) -> Arc<Tailored> {
    let first = tailor(&target, revision, json!({}).into()).await;
    Arc::new(Tailored { target, revision, first, others: Mutex::default() })
}

async fn tailor(target: &Target, revision: Revision, capabilities: Json) -> Arc<Upstream> {
    let options = connect::Options {
        revision: KnownRevision::Pinned(revision),
        ..connect::Options::default()
    };
    let client = Client { capabilities, ..Client::named("through", revision.as_str()) };
    connect::connect(target, &options, &client).await.unwrap()
}

/// One upstream for each set of capabilities, as a gateway has it.
struct Tailored {
    target: Target,
    revision: Revision,
    first: Arc<Upstream>,
    others: Mutex<HashMap<String, Arc<Upstream>>>,
}

#[async_trait]
impl Provider for Tailored {
    fn listing(&self) -> Arc<Listing> {
        self.first.listing()
    }

    fn events(&self) -> BoxStream<'static, Event> {
        self.first.events()
    }

    async fn ask(&self, ask: Ask, context: &Context) -> Result<Reply, Failure> {
        let capabilities = &context.client.capabilities;
        // What is listened to is listened to on one of them.
        if capabilities.as_str() == "{}" || matches!(ask, Ask::Other { .. }) {
            return self.first.ask(ask, context).await;
        }
        let upstream = {
            let mut others = self.others.lock().await;
            let key = capabilities.to_string();
            match others.get(&key) {
                Some(upstream) => Arc::clone(upstream),
                None => {
                    let made = tailor(&self.target, self.revision, capabilities.clone()).await;
                    Arc::clone(others.entry(key).or_insert(made))
                }
            }
        };
        upstream.ask(ask, context).await
    }
}
