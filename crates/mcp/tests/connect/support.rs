//! What the tests share.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use mcp::connect::{ConnectError, Launcher, Options, Program, Target, Upstream, connect};
use serde_json::json;
use tool::{
    Ask, Call, Client, ClientHandle, Context, Event, Failure, Json, Notification, Object, Provider,
    Reply,
};

pub(crate) const SCRIPTED: &str = env!("CARGO_BIN_EXE_scripted");

pub(crate) fn scripted(mode: &str) -> Target {
    Target::Stdio(Program {
        command: PathBuf::from(SCRIPTED),
        args: vec![mode.to_owned()],
        ..Program::default()
    })
}

pub(crate) fn options() -> Options {
    Options {
        label: "scripted".to_owned(),
        opening_timeout: Duration::from_secs(30),
        grace: Duration::from_secs(5),
        launcher: Some(Launcher::Other(PathBuf::from(SCRIPTED))),
        ..Options::default()
    }
}

pub(crate) fn client() -> Client {
    Client { capabilities: json!({"sampling": {}}).into(), ..Client::named("test", "2025-11-25") }
}

pub(crate) async fn try_open(mode: &str, options: &Options) -> Result<Arc<Upstream>, ConnectError> {
    connect(&scripted(mode), options, &client()).await
}

pub(crate) async fn open(mode: &str) -> Arc<Upstream> {
    try_open(mode, &options()).await.unwrap()
}

pub(crate) async fn refused(mode: &str, options: &Options) -> ConnectError {
    match try_open(mode, options).await {
        Ok(_) => panic!("`{mode}` was opened"),
        Err(error) => error,
    }
}

/// Calls a tool of the scripted server.
pub(crate) async fn call(
    upstream: &Upstream,
    name: &str,
    arguments: serde_json::Value,
) -> Result<Reply, Failure> {
    call_in(upstream, name, arguments, &Context::anonymous()).await
}

pub(crate) async fn call_in(
    upstream: &Upstream,
    name: &str,
    arguments: serde_json::Value,
    context: &Context,
) -> Result<Reply, Failure> {
    upstream.ask(Ask::Call(Call::new(name, arguments.into())), context).await
}

/// The result of a call that must give one.
#[track_caller]
pub(crate) fn result(answer: Result<Reply, Failure>) -> Json {
    match answer {
        Ok(Reply::Result(result)) => result,
        other => panic!("{other:?}"),
    }
}

/// A client that notes what it is told and answers every question alike.
pub(crate) struct Listener {
    pub(crate) notes: Mutex<Vec<String>>,
    answer: Reply,
}

impl Listener {
    pub(crate) fn answering(answer: &str) -> Arc<Listener> {
        let answer = Reply::Result(Json::parse(answer.to_owned()).unwrap());
        Arc::new(Listener { notes: Mutex::default(), answer })
    }

    pub(crate) fn notes(&self) -> Vec<String> {
        self.notes.lock().unwrap().clone()
    }

    /// A question of this client, on a session.
    pub(crate) fn context(self: &Arc<Listener>, session: &str) -> Context {
        Context {
            client: Arc::new(client()),
            session: session.into(),
            client_handle: Arc::clone(self) as Arc<dyn ClientHandle>,
            ..Context::anonymous()
        }
    }
}

#[async_trait]
impl ClientHandle for Listener {
    fn notify(&self, note: Notification) {
        let text = format!("{} {}", note.method, note.params.to_json());
        self.notes.lock().unwrap().push(text);
    }

    async fn request(&self, method: &str, params: Json) -> Result<Reply, Failure> {
        self.notes.lock().unwrap().push(format!("{method}? {params}"));
        Ok(self.answer.clone())
    }
}

/// The next event of a kind that the test waits for.
pub(crate) async fn event_where(
    events: &mut (impl futures::Stream<Item = Event> + Unpin),
    wanted: impl Fn(&Event) -> bool,
) -> Event {
    let found = async {
        while let Some(event) = events.next().await {
            if wanted(&event) {
                return event;
            }
        }
        panic!("the events ended");
    };
    tokio::time::timeout(Duration::from_secs(20), found).await.expect("the event never came")
}

pub(crate) fn other(method: &str, params: serde_json::Value) -> Ask {
    let params = Object::parse(&params.into()).unwrap();
    Ask::Other { method: method.to_owned(), params }
}

/// A client with a human.
enum Human {
    /// Takes an hour.
    Slow,
    /// Never answers.
    Silent,
}

#[async_trait]
impl ClientHandle for Human {
    fn notify(&self, _: Notification) {}

    async fn request(&self, _: &str, _: Json) -> Result<Reply, Failure> {
        match self {
            Human::Slow => {
                tokio::time::pause();
                tokio::time::advance(Duration::from_secs(3600)).await;
                // Whoever has lost patience meanwhile says so before the answer is there.
                for _ in 0..100 {
                    tokio::task::yield_now().await;
                }
                tokio::time::resume();
            }
            Human::Silent => std::future::pending().await,
        }
        Ok(Reply::Result(json!({"late": true}).into()))
    }
}

/// A client whose human takes longer than any patience lasts.
pub(crate) fn slow_human() -> Context {
    with_human(Human::Slow)
}

/// A client whose human never answers.
pub(crate) fn silent_human() -> Context {
    with_human(Human::Silent)
}

fn with_human(human: Human) -> Context {
    Context {
        client: Arc::new(client()),
        session: "s".into(),
        client_handle: Arc::new(human),
        ..Context::anonymous()
    }
}
