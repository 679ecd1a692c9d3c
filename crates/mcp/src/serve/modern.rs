//! Answers requests of the modern revision (2026-07-28), which have no session.
//!
//! Such a request names in its `_meta` the revision, the client and its capabilities. These
//! members are for this hop only: they become the [`tool::Context`] and are removed.
//! Everything else is passed on.

use std::sync::Arc;

use futures::FutureExt;
use tool::trace::Trace;
use tool::{
    Ask, Client, Context, Identity, Json, Listing, NoClient, Object, Provider, Reply, RpcError,
};

use super::caller::Caller;
use super::channel::{ClientChannel, Route};
use super::exchange::{Exchange, Parking};
use super::listen::{Subscriber, SubscriptionStream};
use super::parked::{CallKey, ParkedCall, ParkedCalls, StateOwner};
use super::server::{self, McpServer};
use super::trace::ObservedRequest;
use super::{adapt, discovery, input_required, session};
use crate::level::Level;
use crate::message::Request;
use crate::peer::Peer;
use crate::revision::{Revision, code, meta, method};

/// A modern request with its `_meta` parsed, and the provider for it.
pub(crate) struct ParsedRequest {
    pub(crate) client: Arc<Client>,
    pub(crate) caller: Caller,
    pub(crate) provider: Arc<dyn Provider>,
    pub(crate) params: Object,
    /// The implied session; see [`server::implied_session`].
    session: Arc<str>,
    level: Option<Level>,
    progress_token: Option<Json>,
    /// The trace data, if tracing is on.
    pub(crate) trace: Option<Arc<Trace>>,
}

impl ParsedRequest {
    /// Returns a context without a way back to the client.
    fn context(&self) -> Context {
        let context = server::stateless_context(
            &self.client,
            &self.caller.identity,
            Arc::clone(&self.session),
            Arc::new(NoClient),
        );
        Context { trace: self.trace.clone(), ..context }
    }
}

/// How a modern request is answered.
pub(crate) enum ModernAnswer {
    Immediate(Reply),
    Exchange(Exchange),
    Listen(SubscriptionStream),
}

/// Returns whether params have the `_meta` of a modern request.
pub(crate) fn is_modern(params: Option<&Json>) -> bool {
    params.is_some_and(|params| {
        params.mentions(meta::PROTOCOL_VERSION)
            && params
                .member("_meta")
                .and_then(|about| about.member(meta::PROTOCOL_VERSION))
                .is_some()
    })
}

/// Returns the revision that a request names.
pub(crate) fn revision_named(params: Option<&Json>) -> Option<String> {
    params?.member("_meta")?.member_as(meta::PROTOCOL_VERSION)
}

/// Parses the `_meta` of a modern request and picks the provider.
pub(crate) fn parse_request(
    server: &McpServer,
    params: Option<&Json>,
    caller: &Caller,
) -> Result<ParsedRequest, RpcError> {
    let mut params = match params {
        Some(params) => Object::parse(params)
            .map_err(|_| RpcError::new(code::INVALID_PARAMS, "params must be an object"))?,
        None => Object::new(),
    };
    let about = params.get("_meta").and_then(|about| Object::parse(about).ok());
    let mut about = about.ok_or_else(|| missing_meta(meta::PROTOCOL_VERSION))?;
    let asked = about.remove(meta::PROTOCOL_VERSION).and_then(|asked| asked.string_value());
    let asked = asked.ok_or_else(|| missing_meta(meta::PROTOCOL_VERSION))?;
    let revision = asked.parse::<Revision>().ok().filter(|revision| revision.is_modern());
    let revision = revision.ok_or_else(|| unsupported_revision(&asked))?;
    let capabilities = about.remove(meta::CLIENT_CAPABILITIES).filter(Json::is_object);
    let capabilities = capabilities.ok_or_else(|| missing_meta(meta::CLIENT_CAPABILITIES))?;
    let client =
        session::build_client(about.remove(meta::CLIENT_INFO), Some(capabilities), revision)?;
    let client = Arc::new(client);
    let (level, progress_token) =
        (Level::from_params(&about, meta::LOG_LEVEL), about.get(meta::PROGRESS_TOKEN).cloned());
    match about.is_empty() {
        true => drop(params.remove("_meta")),
        false => params.set("_meta", about.to_json()),
    }
    let provider = server.source.provider_for(&client, &caller.identity);
    let session = server::implied_session(&client, caller);
    let (caller, trace) = (caller.clone(), None);
    Ok(ParsedRequest { client, caller, provider, params, session, level, progress_token, trace })
}

/// Starts to answer a request. `peer` is the pipe to the client, if there is one.
pub(crate) async fn begin(
    server: &Arc<McpServer>,
    parsed: ParsedRequest,
    request: &Request,
    peer: Option<Peer>,
) -> ModernAnswer {
    let listing = parsed.provider.listing();
    let now = |result: Result<Json, RpcError>| {
        let reply = result.map_or_else(Reply::Error, Reply::Result);
        ModernAnswer::Immediate(adapt::to_modern(&request.method, reply, &listing))
    };
    match request.method.as_str() {
        method if discovery::is_list(method) => {
            let reply = list(&parsed, &listing, request).await;
            ModernAnswer::Immediate(adapt::to_modern(method, reply, &listing))
        }
        method::DISCOVER => {
            let observed = observe(&parsed, request, &parsed.context());
            let reply = observed.answered(Reply::Result(discovery::discover(&listing)));
            ModernAnswer::Immediate(adapt::to_modern(method::DISCOVER, reply, &listing))
        }
        method::INITIALIZE
        | method::PING
        | method::SET_LEVEL
        | method::SUBSCRIBE
        | method::UNSUBSCRIBE => now(Err(discovery::method_not_found(&request.method))),
        method::LISTEN => {
            let wanted = parsed.params.get("notifications");
            let context = server::stateless_context(
                &parsed.client,
                &parsed.caller.identity,
                // Without a session, every subscription counts separately.
                "".into(),
                Arc::new(NoClient),
            );
            let subscriber = Subscriber {
                provider: Arc::clone(&parsed.provider),
                context,
                key: parsed.caller.key(),
                subscription_limit: Arc::clone(&server.subscription_limit),
            };
            let listening = SubscriptionStream::open(subscriber, wanted, &request.id).await;
            listening.map_or_else(|error| now(Err(error)), ModernAnswer::Listen)
        }
        name if method::is_notification(name) => now(Err(discovery::notification_only(name))),
        _ => ask(server, parsed, request, peer)
            .map_or_else(|error| now(Err(error)), ModernAnswer::Exchange),
    }
}

/// Answers a list method.
async fn list(parsed: &ParsedRequest, listing: &Listing, request: &Request) -> Reply {
    let (context, method) = (parsed.context(), request.method.as_str());
    let observed = observe(parsed, request, &context);
    let caller_resources = match discovery::depends_on_caller(method) {
        true => parsed.provider.resources_for(&context).await,
        false => Vec::new(),
    };
    let listed =
        discovery::list_result(listing, &caller_resources, method, request.params.as_ref());
    observed.answered(listed.map_or_else(Reply::Error, Reply::Result))
}

fn observe(parsed: &ParsedRequest, request: &Request, context: &Context) -> ObservedRequest {
    let Request { method, params, .. } = request;
    ObservedRequest::begin(&*parsed.provider, method, params.as_ref(), context)
}

fn ask(
    server: &Arc<McpServer>,
    parsed: ParsedRequest,
    request: &Request,
    peer: Option<Peer>,
) -> Result<Exchange, RpcError> {
    let ParsedRequest { client, caller, provider, params, session, level, progress_token, trace } =
        parsed;
    let listing = provider.listing();
    let invalid =
        |error: tool::ask::InvalidAsk| RpcError::new(code::INVALID_PARAMS, error.to_string());
    let mut ask = Ask::parse(&request.method, &params.to_json()).map_err(invalid)?;
    let key = call_key(&ask, &caller.identity);
    let parking = key.map(|key| Parking {
        parked_calls: Arc::clone(&server.parked_calls),
        key,
        listing: Arc::clone(&listing),
    });
    if let Some(parking) = &parking
        && let Some(ParkedCall { call, channel }) = take_parked(parking, &mut ask)?
    {
        channel.resume(progress_token, level);
        return Ok(Exchange::new(call, channel, Some(parking.clone())));
    }
    let route = Route::Stateless { client: Arc::clone(&client), peer, can_park: parking.is_some() };
    let channel = ClientChannel::new(route, progress_token, level);
    let context =
        server::stateless_context(&client, &caller.identity, session, Arc::clone(&channel) as _);
    let context = Context { trace, ..context };
    let method = request.method.clone();
    let call = async move {
        let reply = adapt::reply_or_error(provider.ask(ask, &context).await);
        let reply = input_required::check_answerable(reply, &context.client);
        adapt::to_modern(&method, reply, &listing)
    }
    .boxed();
    let n_bytes = request.params.as_ref().map_or(0, |params| params.as_str().len());
    let call = server::aside_if_long(n_bytes, &caller.identity, call);
    Ok(Exchange::new(call, channel, parking))
}

/// Returns the key for parking a call; `None` if the request cannot require input.
fn call_key(ask: &Ask, caller: &Identity) -> Option<CallKey> {
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

/// Returns the parked call that a request resumes, after passing the client's answers to
/// it. Restores a `requestState` that belongs to the provider.
fn take_parked(parking: &Parking, ask: &mut Ask) -> Result<Option<ParkedCall>, RpcError> {
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
    let entry = parking.parked_calls.resume(&state, &parking.key);
    let entry = entry.map_err(|refused| invalid(refused.to_string()))?;
    entry.channel.answer(&responses);
    Ok(Some(entry))
}

fn missing_meta(key: &str) -> RpcError {
    let message = format!("params need `_meta` with `{key}`");
    RpcError::new(code::INVALID_PARAMS, message)
}

/// Returns the error for an unsupported revision.
pub(crate) fn unsupported_revision(requested: &str) -> RpcError {
    let data =
        serde_json::json!({"supported": discovery::modern_revisions(), "requested": requested});
    let message =
        format!("protocol revision `{requested}` is not spoken here without `initialize`");
    RpcError::with_data(code::UNSUPPORTED_VERSION, message, &data.into())
}
