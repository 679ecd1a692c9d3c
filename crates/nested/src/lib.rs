//! Presents a CaSH server behind gatelet as a provider of its functions.
//!
//! A CaSH server shows three tools, `call`, `help` and `skill`. As plain tools they
//! would hide its functions; so the functions that its `help` lists become tools of
//! this provider, in its namespaces. Calls go to its `call`, help for a function comes
//! from its `help`, and a skill from its `skill`. Every other server passes as it is,
//! also one that merely has three tools of these names: the operator or the server
//! itself must declare it to be a CaSH server.

mod functions;
mod skills;

mod request;

use std::sync::Arc;

use ::skills::upstream::cash;
use async_trait::async_trait;
use futures::StreamExt;
use futures::stream::BoxStream;
use mcp::revision::{Revision, method};
use parking_lot::RwLock;
use roster::{Connector, loop_guard};
use serde_json::json;
use tool::{
    Ask, Call, Client, Context, CredentialHealth, Event, Failure, Json, Kind, Listing, Object,
    Provider, Reply, Server, Tool,
};

/// Opens sessions, and wraps those of CaSH servers as [`Nested`].
pub struct CashConnector<S> {
    pub sessions: S,
    pub nesting: Nesting,
    /// The identifier of this gatelet, by which it recognises itself behind others.
    pub gatelet_id: Arc<str>,
}

/// When a server with the three tools is taken for a CaSH server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Nesting {
    /// If it declares itself: as a gatelet, or by the identity resource of CaSH
    /// servers.
    #[default]
    IfDeclared,
    /// Always: the operator says that it is one.
    Expected,
    /// Never: the operator says that it is not one.
    Never,
}

impl Nesting {
    fn admits(self, listing: &Listing) -> bool {
        let is_declared = || {
            loop_guard::is_declared(&listing.server)
                || listing.resources.iter().any(|one| one.uri == IDENTITY_URI)
        };
        match self {
            Nesting::IfDeclared => is_declared(),
            Nesting::Expected => true,
            Nesting::Never => false,
        }
    }
}

/// The identity resource of CaSH servers.
const IDENTITY_URI: &str = "cash://server";

/// Opens sessions with a server that may be a CaSH server.
#[async_trait]
pub trait OpenSession: Send + Sync {
    async fn open(&self, client: &Client) -> Result<OpenedSession, Failure>;

    fn credential_health(&self) -> Option<CredentialHealth>;
}

/// A session with a server.
pub struct OpenedSession {
    /// Answers calls.
    pub upstream: Arc<dyn Provider>,
    /// Answers requests for listings, which gatelet makes for itself. Where a server
    /// lets only callers in, this is the session of one of them.
    pub listing_session: Arc<dyn Provider>,
}

#[async_trait]
impl<S: OpenSession> Connector for CashConnector<S> {
    async fn connect(&self, client: &Client) -> Result<Arc<dyn Provider>, Failure> {
        let OpenedSession { upstream, listing_session } = self.sessions.open(client).await?;
        // First, because a gatelet that is its own upstream would wait for itself.
        if let Some(reason) = loop_guard::refusal(&upstream.listing().server, &self.gatelet_id) {
            return Err(Failure::Unavailable { reason });
        }
        let listing = upstream.listing();
        if !is_cash(&listing) || !self.nesting.admits(&listing) {
            return Ok(upstream);
        }
        let shared = Shared { upstream, listing_session, listing: RwLock::default() };
        shared.refresh_listing().await?;
        Ok(Arc::new(Nested(Arc::new(shared))))
    }

    fn credential_health(&self) -> Option<CredentialHealth> {
        self.sessions.credential_health()
    }
}

/// A CaSH server as a provider of its functions.
struct Nested(Arc<Shared>);

struct Shared {
    upstream: Arc<dyn Provider>,
    listing_session: Arc<dyn Provider>,
    listing: RwLock<Arc<Listing>>,
}

/// Returns whether a server has the three tools and no others.
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
    /// Requests the functions of the server and updates the listing.
    async fn refresh_listing(&self) -> Result<(), Failure> {
        let (found, findings) = functions::discover(&*self.listing_session).await?;
        let own = self.upstream.listing();
        let mut server = own.server.clone();
        // The instructions are about the three tools, which are not shown.
        server.instructions = None;
        // Which gatelets are behind it may have changed.
        let current = self.discover(&server).await.unwrap_or(server.capabilities);
        server.capabilities = capabilities(&current);
        // The identity is that of this gatelet, not of the server.
        let resources = own.resources.iter().filter(|one| one.uri != IDENTITY_URI);
        let listing = Listing {
            server,
            tools: found.iter().filter_map(functions::Function::tool).collect(),
            resources: resources.cloned().collect(),
            templates: own.templates.clone(),
            prompts: own.prompts.clone(),
            findings: own.findings.iter().cloned().chain(findings).collect(),
            is_nested: true,
            ..Listing::default()
        };
        *self.listing.write() = Arc::new(listing);
        Ok(())
    }

    /// Asks the server again for its capabilities, where its protocol revision has a
    /// method for that.
    async fn discover(&self, server: &Server) -> Option<Json> {
        if server.protocol.as_str() < Revision::LATEST.as_str() {
            return None;
        }
        let ask = Ask::Other { method: method::DISCOVER.to_owned(), params: Object::new() };
        match self.listing_session.ask(ask, &request::own_context()).await {
            Ok(Reply::Result(response)) => response.member("capabilities"),
            Ok(Reply::Error(_)) | Err(_) => None,
        }
    }

    async fn call(&self, call: Call, context: &Context) -> Result<Reply, Failure> {
        let (namespace, function) = call.name.rsplit_once('.').unwrap_or(("", &call.name));
        let mut arguments = Object::new();
        arguments.push("namespace", Json::encode(namespace));
        arguments.push("function", Json::encode(function));
        arguments.push("kwargs", call.arguments.unwrap_or_else(Json::empty_object));
        arguments.push("sizelimit", Json::encode(&request::NO_LIMIT));
        let arguments = Some(arguments.to_json());
        let call = Call { name: "call".to_owned(), arguments, other_params: call.other_params };
        self.upstream.ask(Ask::Call(call), context).await
    }

    async fn help(&self, params: &Object, context: &Context) -> Result<Reply, Failure> {
        let call = Call::new("help", params.to_json());
        self.upstream.ask(Ask::Call(call), context).await
    }
}

/// Returns the capabilities of the server, with the CaSH skills added.
fn capabilities(theirs: &Json) -> Json {
    let theirs = theirs.to_value().unwrap_or_else(|_| json!({}));
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
        Arc::clone(&self.0.listing.read())
    }

    fn events(&self) -> BoxStream<'static, Event> {
        let shared = Arc::clone(&self.0);
        let seen = move |event: Event| {
            let shared = Arc::clone(&shared);
            async move {
                if event == Event::Changed(Kind::Tools)
                    && let Err(error) = shared.refresh_listing().await
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
            Ask::ReadResource(_) | Ask::Prompt(_) | Ask::Complete(_) => {
                self.0.upstream.ask(ask, context).await
            }
        }
    }
}

#[cfg(test)]
mod tests;
