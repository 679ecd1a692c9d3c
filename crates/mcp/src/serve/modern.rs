//! Requests without a session, as in revision 2026-07-28.
//!
//! A request of the modern revision says in its `_meta` which revision it is
//! written in, who sends it and what the sender can do. Those members belong to
//! this hop: they become the [`tool::Context`] and go no further. Everything
//! else is passed on.

use std::sync::Arc;

use futures::FutureExt;
use tool::trace::Trace;
use tool::{Ask, Client, Context, Identity, Json, NoClient, Object, Provider, Reply, RpcError};

use super::caller::Caller;
use super::channel::{ClientChannel, Route};
use super::exchange::{Exchange, Parking};
use super::listen::{SubscriptionStream, Watcher};
use super::parked::{CallKey, ParkedCall, ParkedCalls, StateOwner};
use super::server::{self, McpServer};
use super::{adapt, discovery, input_required, session};
use crate::level::Level;
use crate::message::Request;
use crate::peer::Peer;
use crate::revision::{Revision, code, meta, method};

/// A modern request that can be answered.
pub(crate) struct Opening {
    pub(crate) client: Arc<Client>,
    pub(crate) caller: Caller,
    pub(crate) provider: Arc<dyn Provider>,
    pub(crate) params: Object,
    /// What stands for the session.
    session: Arc<str>,
    level: Option<Level>,
    token: Option<Json>,
    /// What is known of it for its trace.
    pub(crate) trace: Option<Arc<Trace>>,
}

impl Opening {
    /// The context of a question that nothing has to come back from meanwhile.
    fn context(&self) -> Context {
        server::stateless_context(
            &self.client,
            &self.caller.identity,
            Arc::clone(&self.session),
            Arc::new(NoClient),
        )
    }
}

/// How a modern request is answered.
pub(crate) enum ModernAnswer {
    Now(Reply),
    Exchange(Exchange),
    Listen(SubscriptionStream),
}

/// Returns whether params carry the envelope of a modern request.
pub(crate) fn is_modern(params: Option<&Json>) -> bool {
    params.is_some_and(|params| {
        params.mentions(meta::PROTOCOL_VERSION)
            && params
                .member("_meta")
                .and_then(|about| about.member(meta::PROTOCOL_VERSION))
                .is_some()
    })
}

/// The revision that a request says it is written in.
pub(crate) fn revision_named(params: Option<&Json>) -> Option<String> {
    params?.member("_meta")?.member_as(meta::PROTOCOL_VERSION)
}

/// Reads the envelope of a modern request.
pub(crate) fn open(
    server: &McpServer,
    params: Option<&Json>,
    caller: &Caller,
) -> Result<Opening, RpcError> {
    let mut params = match params {
        Some(params) => Object::parse(params)
            .map_err(|_| RpcError::new(code::INVALID_PARAMS, "params must be an object"))?,
        None => Object::new(),
    };
    let about = params.get("_meta").and_then(|about| Object::parse(about).ok());
    let mut about = about.ok_or_else(|| missing(meta::PROTOCOL_VERSION))?;
    let asked = about.remove(meta::PROTOCOL_VERSION).and_then(|asked| asked.string_value());
    let asked = asked.ok_or_else(|| missing(meta::PROTOCOL_VERSION))?;
    let revision = asked.parse::<Revision>().ok().filter(|revision| revision.is_modern());
    let revision = revision.ok_or_else(|| unsupported(&asked))?;
    let capabilities = about.remove(meta::CLIENT_CAPABILITIES).filter(Json::is_object);
    let capabilities = capabilities.ok_or_else(|| missing(meta::CLIENT_CAPABILITIES))?;
    let client = session::client(about.remove(meta::CLIENT_INFO), Some(capabilities), revision)?;
    let client = Arc::new(client);
    let (level, token) =
        (Level::read(&about, meta::LOG_LEVEL), about.get(meta::PROGRESS_TOKEN).cloned());
    match about.is_empty() {
        true => drop(params.remove("_meta")),
        false => params.set("_meta", about.to_json()),
    }
    let provider = server.source.provider_for(&client, &caller.identity);
    let session = server::implied_session(&client, caller);
    let (caller, trace) = (caller.clone(), None);
    Ok(Opening { client, caller, provider, params, session, level, token, trace })
}

/// Begins to answer.
pub(crate) async fn begin(
    server: &Arc<McpServer>,
    opening: Opening,
    request: &Request,
    peer: Option<Peer>,
) -> ModernAnswer {
    let listing = opening.provider.listing();
    let now = |result: Result<Json, RpcError>| {
        let reply = result.map_or_else(Reply::Error, Reply::Result);
        ModernAnswer::Now(adapt::modern(&request.method, reply, &listing))
    };
    let own = match discovery::is_personal(&request.method) {
        true => opening.provider.resources_for(&opening.context()).await,
        false => Vec::new(),
    };
    match request.method.as_str() {
        method if discovery::is_list(method) => {
            now(discovery::list(&listing, &own, method, request.params.as_ref()))
        }
        method::DISCOVER => now(Ok(discovery::discover(&listing))),
        method::INITIALIZE
        | method::PING
        | method::SET_LEVEL
        | method::SUBSCRIBE
        | method::UNSUBSCRIBE => now(Err(discovery::no_method(&request.method))),
        method::LISTEN => {
            let wanted = opening.params.get("notifications");
            let context = server::stateless_context(
                &opening.client,
                &opening.caller.identity,
                // Without a session, every listener counts for itself.
                "".into(),
                Arc::new(NoClient),
            );
            let watcher = Watcher {
                provider: Arc::clone(&opening.provider),
                context,
                key: opening.caller.key(),
                watched: Arc::clone(&server.watched),
            };
            let listening = SubscriptionStream::open(watcher, wanted, &request.id).await;
            listening.map_or_else(|error| now(Err(error)), ModernAnswer::Listen)
        }
        name if method::is_notification(name) => now(Err(discovery::notification_only(name))),
        _ => ask(server, opening, request, peer)
            .map_or_else(|error| now(Err(error)), ModernAnswer::Exchange),
    }
}

fn ask(
    server: &Arc<McpServer>,
    opening: Opening,
    request: &Request,
    peer: Option<Peer>,
) -> Result<Exchange, RpcError> {
    let Opening { client, caller, provider, params, session, level, token, trace } = opening;
    let listing = provider.listing();
    let invalid =
        |error: tool::ask::InvalidAsk| RpcError::new(code::INVALID_PARAMS, error.to_string());
    let mut ask = Ask::parse(&request.method, &params.to_json()).map_err(invalid)?;
    let key = key(&ask, &caller.identity);
    let parking = key.map(|key| Parking {
        park: Arc::clone(&server.park),
        key,
        listing: Arc::clone(&listing),
    });
    if let Some(parking) = &parking
        && let Some(ParkedCall { call, channel }) = resumed(parking, &mut ask)?
    {
        channel.resume(token, level);
        return Ok(Exchange::new(call, channel, Some(parking.clone())));
    }
    let route = Route::Alone { client: Arc::clone(&client), peer, parks: parking.is_some() };
    let channel = ClientChannel::new(route, token, level);
    let context =
        server::stateless_context(&client, &caller.identity, session, Arc::clone(&channel) as _);
    let context = Context { trace, ..context };
    let method = request.method.clone();
    let call = async move {
        let reply = adapt::reply_or_error(provider.ask(ask, &context).await);
        let reply = input_required::answerable(reply, &context.client);
        adapt::modern(&method, reply, &listing)
    }
    .boxed();
    Ok(Exchange::new(call, channel, parking))
}

/// Returns what a parked call would be bound to; `None` where input cannot be asked
/// for.
fn key(ask: &Ask, caller: &Identity) -> Option<CallKey> {
    let (name, arguments) = match ask {
        Ask::Call(call) => (&call.name, call.arguments.as_ref()),
        Ask::ReadResource(read) => (&read.uri, None),
        Ask::Prompt(prompt) => (&prompt.name, prompt.arguments.as_ref()),
        Ask::Complete(_) | Ask::Other { .. } => return None,
    };
    Some(CallKey {
        subject: caller.subject.clone(),
        method: ask.method().to_owned(),
        name: name.clone(),
        arguments: arguments.cloned(),
    })
}

/// The parked call that a request takes up again, with its answers handed over.
/// A state of the provider's is given to the provider as it was.
fn resumed(parking: &Parking, ask: &mut Ask) -> Result<Option<ParkedCall>, RpcError> {
    let Some(state) = ask.other_params().get("requestState").and_then(Json::string_value) else {
        return Ok(None);
    };
    if let StateOwner::Provider(theirs) = ParkedCalls::owner(&state) {
        if theirs != state {
            ask.other_params_mut().set("requestState", Json::encode(theirs));
        }
        return Ok(None);
    }
    let invalid = |message: String| RpcError::new(code::INVALID_PARAMS, message);
    let responses = match ask.other_params().get("inputResponses") {
        Some(responses) => Object::parse(responses)
            .map_err(|_| invalid("`inputResponses` must be an object".to_owned()))?,
        None => Object::new(),
    };
    if let Some((key, _)) = responses.iter().find(|(_, response)| !response.is_object()) {
        return Err(invalid(format!("the response to `{key}` must be an object")));
    }
    let entry = parking.park.take(&state, &parking.key);
    let entry = entry.map_err(|refused| invalid(refused.to_string()))?;
    entry.channel.answer(&responses);
    Ok(Some(entry))
}

fn missing(key: &str) -> RpcError {
    let message = format!("params need `_meta` with `{key}`");
    RpcError::new(code::INVALID_PARAMS, message)
}

/// The error for a revision that is not spoken here.
pub(crate) fn unsupported(asked: &str) -> RpcError {
    let data = serde_json::json!({"supported": discovery::modern_revisions(), "requested": asked});
    let message = format!("protocol revision `{asked}` is not spoken here without `initialize`");
    RpcError::with_data(code::UNSUPPORTED_VERSION, message, &data.into())
}
