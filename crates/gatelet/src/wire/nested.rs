//! A CaSH server behind this gate.
//!
//! Such a server shows three tools, `call`, `help` and `skill`. Mounted as it
//! is, its functions would be hidden two levels deep; so what its `help` lists
//! is listed here as functions, in its namespaces below our label. Calls go to
//! its `call` and their results come back untouched, help for a function is
//! asked of its `help`, and a skill of its `skill`. Every other server passes
//! as it is.

mod skills;
mod walk;

use std::sync::{Arc, PoisonError, RwLock};

use async_trait::async_trait;
use futures::StreamExt;
use futures::stream::BoxStream;
use gateway::roster::{Connector, Profile, gates};
use gateway::skill::upstream::cash;
use mcp::revision::{Revision, method};
use serde_json::json;
use tool::{
    Ask, Call, Client, Context, CredentialHealth, Event, Failure, Json, Kind, Listing, Object,
    Provider, Reply, RpcError, Server, Tool,
};

use super::connector::Remote;

/// Opens sessions, and looks whether it is a CaSH server that answers.
pub(super) struct Nesting<C> {
    pub(super) opening: C,
    /// What tells this gate from every other.
    pub(super) instance: Arc<str>,
}

/// Opens sessions with a server that may be a CaSH server.
#[async_trait]
pub(super) trait Opening: Send + Sync {
    async fn open(&self, client: &Client) -> Result<Opened, Failure>;

    fn credential_health(&self) -> Option<CredentialHealth>;
}

/// A server that was reached.
pub(super) struct Opened {
    /// Who answers callers.
    pub(super) upstream: Arc<dyn Provider>,
    /// Who tells what there is. Nobody calls then, so where only callers are
    /// let in it is one of their sessions.
    pub(super) first: Arc<dyn Provider>,
}

#[async_trait]
impl Opening for Remote {
    async fn open(&self, client: &Client) -> Result<Opened, Failure> {
        let upstream = self.connect(client).await?;
        Ok(Opened { first: Arc::clone(&upstream), upstream })
    }

    fn credential_health(&self) -> Option<CredentialHealth> {
        Connector::credential_health(self)
    }
}

#[async_trait]
impl<C: Opening> Connector for Nesting<C> {
    async fn connect(&self, client: &Client) -> Result<Arc<dyn Provider>, Failure> {
        let Opened { upstream, first } = self.opening.open(client).await?;
        // Before it is read: this gate would wait for what it tells itself.
        if let Some(reason) = gates::refuse(&upstream.listing().server, &self.instance) {
            return Err(Failure::Unavailable { reason });
        }
        if !is_cash(&upstream.listing()) {
            return Ok(upstream);
        }
        let shared = Shared { upstream, first, listing: RwLock::default() };
        shared.look().await?;
        Ok(Arc::new(Nested(Arc::new(shared))))
    }

    fn credential_health(&self) -> Option<CredentialHealth> {
        self.opening.credential_health()
    }
}

/// A CaSH server as a provider of its functions.
struct Nested(Arc<Shared>);

struct Shared {
    upstream: Arc<dyn Provider>,
    first: Arc<dyn Provider>,
    listing: RwLock<Arc<Listing>>,
}

/// How much of a result the other side may give: everything. Our own gate
/// decides what goes out, so that nothing has to run twice.
const EVERYTHING: u32 = 16_000_000;

/// Whether a server has the three tools and no others.
fn is_cash(listing: &Listing) -> bool {
    let mut names: Vec<&str> = listing.tools.iter().map(|tool| tool.name.as_str()).collect();
    names.sort_unstable();
    let takes_function = |tool: &Tool| {
        let properties = tool.input_schema.member("properties");
        tool.name != "call" || properties.is_some_and(|all| all.member("function").is_some())
    };
    names == ["call", "help", "skill"] && listing.tools.iter().all(takes_function)
}

impl Shared {
    /// Reads what the server has.
    async fn look(&self) -> Result<(), Failure> {
        let (functions, cuts) = walk::functions(&*self.first).await?;
        let own = self.upstream.listing();
        let mut server = own.server.clone();
        // Which gates stand behind it may be different now.
        let told = self.discover(&server).await.unwrap_or(server.capabilities);
        server.capabilities = capabilities(&told);
        // Who this gate is is ours to say.
        let resources = own.resources.iter().filter(|one| one.uri != "cash://server");
        let listing = Listing {
            server,
            tools: functions.iter().filter_map(walk::Function::tool).collect(),
            resources: resources.cloned().collect(),
            templates: own.templates.clone(),
            prompts: own.prompts.clone(),
            findings: own.findings.iter().cloned().chain(cuts).collect(),
            ..Listing::default()
        };
        *self.listing.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(listing);
        Ok(())
    }

    /// What the server says now that it can do, where it can be asked again.
    async fn discover(&self, server: &Server) -> Option<Json> {
        if server.protocol.as_str() < Revision::LATEST.as_str() {
            return None;
        }
        let ask = Ask::Other { method: method::DISCOVER.to_owned(), params: Object::new() };
        match self.first.ask(ask, &nobody()).await {
            Ok(Reply::Result(told)) => told.member("capabilities"),
            Ok(Reply::Error(_)) | Err(_) => None,
        }
    }

    async fn call(&self, call: Call, context: &Context) -> Result<Reply, Failure> {
        let (namespace, function) = call.name.rsplit_once('.').unwrap_or(("", &call.name));
        let mut arguments = Object::new();
        arguments.push("namespace", Json::encode(namespace));
        arguments.push("function", Json::encode(function));
        arguments.push("kwargs", call.arguments.unwrap_or_else(Json::empty_object));
        arguments.push("sizelimit", Json::encode(&EVERYTHING));
        let arguments = Some(arguments.to_json());
        let call = Call { name: "call".to_owned(), arguments, rest: call.rest };
        self.upstream.ask(Ask::Call(call), context).await
    }

    async fn help(&self, params: &Object, context: &Context) -> Result<Reply, Failure> {
        let call = Call::new("help", params.to_json());
        self.upstream.ask(Ask::Call(call), context).await
    }
}

/// What the other side can do, and that it has skills as CaSH has them.
fn capabilities(theirs: &Json) -> Json {
    let theirs = theirs.value().unwrap_or_else(|_| json!({}));
    let mut all = if theirs.is_object() { theirs } else { json!({}) };
    if !all["extensions"].is_object() {
        all["extensions"] = json!({});
    }
    all["extensions"][cash::EXTENSION] = json!({});
    all.into()
}

#[async_trait]
impl Provider for Nested {
    fn listing(&self) -> Arc<Listing> {
        Arc::clone(&self.0.listing.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn events(&self) -> BoxStream<'static, Event> {
        let shared = Arc::clone(&self.0);
        let seen = move |event: Event| {
            let shared = Arc::clone(&shared);
            async move {
                if event == Event::Changed(Kind::Tools)
                    && let Err(error) = shared.look().await
                {
                    tracing::warn!(%error, "a server changed and cannot be read again");
                }
                event
            }
        };
        self.0.upstream.events().then(seen).boxed()
    }

    async fn ask(&self, ask: Ask, context: &Context) -> Result<Reply, Failure> {
        match ask {
            Ask::Call(call) => self.0.call(call, context).await,
            Ask::Other { method, params } => match method.as_str() {
                cash::LIST => skills::list(&*self.0.upstream, context).await,
                cash::READ => skills::read(&*self.0.upstream, params, context).await,
                gateway::surface::cash::HELP => self.0.help(&params, context).await,
                _ => self.0.upstream.ask(Ask::Other { method, params }, context).await,
            },
            Ask::Read(_) | Ask::Prompt(_) | Ask::Complete(_) => {
                self.0.upstream.ask(ask, context).await
            }
        }
    }
}

/// Nobody's question but the gate's own.
fn nobody() -> Context {
    Context { client: Arc::new(Profile::default().client()), ..Context::anonymous() }
}

/// The text of one of the three tools.
async fn text(
    upstream: &dyn Provider,
    tool: &str,
    arguments: serde_json::Value,
    context: &Context,
) -> Result<Result<String, RpcError>, Failure> {
    let reply = upstream.ask(Ask::Call(Call::new(tool, arguments.into())), context).await?;
    let unusable = || Failure::Unusable { reason: format!("`{tool}` gave no text") };
    Ok(match reply {
        Reply::Error(error) => Err(error),
        Reply::Result(_) => {
            let result = reply.tool_result().ok_or_else(unusable)?;
            if result.is_error {
                Err(RpcError::new(-32002, result.text()))
            } else {
                Ok(result.text())
            }
        }
    })
}

#[cfg(test)]
mod tests;
