//! The MCP server: state that all clients share, and answers to requests in a session.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::FutureExt;
use tool::context::{CONNECTION_PREFIX, SUBJECT_PREFIX};
use tool::trace::Trace;
use tool::{
    Ask, Client, ClientHandle, Context, Identity, Json, NoClient, Object, ProviderSource, Reply,
    RpcError,
};

use super::caller::{Caller, PerCallerLimit};
use super::channel::{ClientChannel, Route};
use super::exchange::Exchange;
use super::log_levels::LogLevels;
use super::parked::{self, ParkedCalls, ReplyFuture};
use super::session::{self, Session};
use super::subscriptions;
use super::trace::ObservedRequest;
use super::{adapt, discovery, input_required};
use crate::level::Level;
use crate::message;
use crate::off_thread::{LONG_MESSAGE, off_thread};
use crate::peer::Peer;
use crate::revision::{code, meta, method};

/// The state that all served clients share.
pub(crate) struct McpServer {
    pub(crate) source: Arc<dyn ProviderSource>,
    pub(crate) parked_calls: Arc<ParkedCalls>,
    pub(crate) log_levels: LogLevels,
    /// Limits the resource subscriptions per caller.
    pub(crate) subscription_limit: Arc<PerCallerLimit>,
}

impl McpServer {
    /// `replica` is the tag of this replica; 0 if there is only one.
    pub(crate) fn new(
        source: Arc<dyn ProviderSource>,
        limits: parked::Limits,
        replica: u32,
    ) -> Arc<McpServer> {
        Arc::new(McpServer {
            source,
            parked_calls: Arc::new(ParkedCalls::new(limits, replica)),
            log_levels: LogLevels::default(),
            subscription_limit: PerCallerLimit::new("subscriptions", subscriptions::PER_CALLER),
        })
    }

    /// Opens a session, and returns it with the reply to `initialize`.
    pub(crate) fn initialize(
        &self,
        id: Arc<str>,
        params: Option<&Json>,
        caller: &Caller,
        peer: Option<Peer>,
    ) -> Result<(Session, Reply), RpcError> {
        let asked = params.and_then(|params| params.member_as::<String>("protocolVersion"));
        let asked = asked.ok_or_else(|| {
            let message = "`initialize` needs params with `protocolVersion` as a string";
            RpcError::new(code::INVALID_PARAMS, message)
        })?;
        let revision = discovery::negotiate(&asked);
        let client = Arc::new(session::parse_client(params, revision)?);
        let provider = self.source.provider_for(&client, &caller.identity);
        let result = discovery::initialize(&provider.listing(), revision);
        let session = Session::new(id, revision, client, caller, provider, peer);
        Ok((session, Reply::Result(result)))
    }

    /// Starts to answer a request in a session.
    pub(crate) fn begin(
        self: &Arc<Self>,
        session: &Arc<Session>,
        method: String,
        params: Option<Json>,
        trace: Option<Arc<Trace>>,
    ) -> Exchange {
        let channel = ClientChannel::new(Route::Session(Arc::clone(session)), None, None);
        let call = self.answer(session, method, params, trace, &channel);
        Exchange::new(call, channel, None)
    }

    fn answer(
        self: &Arc<Self>,
        session: &Arc<Session>,
        method: String,
        params: Option<Json>,
        trace: Option<Arc<Trace>>,
        channel: &Arc<ClientChannel>,
    ) -> ReplyFuture {
        match method.as_str() {
            name if discovery::depends_on_caller(name) => {
                list_for_caller(session, method, params, trace, channel)
            }
            name if discovery::is_list(name) => {
                // Made when it is polled: the lists of a batch are long together.
                let session = Arc::clone(session);
                async move { list(&session, &method, params.as_ref(), trace) }.boxed()
            }
            method::PING => ready_reply(Reply::Result(Json::empty_object())),
            method::INITIALIZE => ready_reply(Reply::Error(RpcError::new(
                code::INVALID_REQUEST,
                "this session is initialised already",
            ))),
            method::SET_LEVEL => self.set_level(session, params.as_ref()),
            method::SUBSCRIBE => self.subscribe(session, params.as_ref()),
            method::UNSUBSCRIBE => unsubscribe(session, params.as_ref()),
            name if method::is_notification(name) => {
                ready_reply(Reply::Error(discovery::notification_only(name)))
            }
            _ => ask(session, method, params, trace, channel),
        }
    }

    /// Ends a session: unsubscribes from the provider and resets its log level.
    pub(crate) async fn close(&self, session: &Session) {
        session.stop_forwarding();
        let context = session.context(Arc::new(NoClient));
        for uri in session.take_subscriptions() {
            drop(subscriptions::unsubscribe(&session.provider, &uri, &context).await);
        }
        if session.level().is_some() {
            self.log_levels.set_level(&session.provider, None, &context).await;
        }
    }

    /// Brings a session to the log level and the subscriptions that its client told
    /// another replica.
    pub(crate) async fn adjust(
        &self,
        session: &Session,
        level: Option<Level>,
        wanted: &BTreeSet<String>,
    ) {
        let context = session.context(Arc::new(NoClient));
        if let Some(level) = level.filter(|level| session.level() != Some(*level)) {
            session.set_level(level);
            self.log_levels.set_level(&session.provider, Some(level), &context).await;
        }
        let known = session.subscriptions();
        for uri in known.difference(wanted).filter(|uri| session.unsubscribe(uri)) {
            drop(subscriptions::unsubscribe(&session.provider, uri, &context).await);
        }
        for uri in wanted.difference(&known) {
            if !matches!(session.subscribe(uri, &self.subscription_limit), Ok(true)) {
                continue;
            }
            let params = Object::from_iter([("uri".to_owned(), Json::encode(uri))]);
            let reply = subscriptions::subscribe(&session.provider, params, &context).await;
            if let Reply::Error(error) = reply {
                session.unsubscribe(uri);
                tracing::warn!(
                    error = error.message,
                    "a subscription of a session could not be made at this replica"
                );
            }
        }
    }

    fn subscribe(&self, session: &Arc<Session>, params: Option<&Json>) -> ReplyFuture {
        let params = params.and_then(|params| Object::parse(params).ok()).unwrap_or_default();
        let Some(uri) = subscriptions::uri(&params) else {
            return ready_reply(subscriptions::missing_uri());
        };
        let is_new = match session.subscribe(&uri, &self.subscription_limit) {
            Ok(is_new) => is_new,
            Err(error) => return ready_reply(Reply::Error(error)),
        };
        let session = Arc::clone(session);
        async move {
            // Also for a repeated request: the provider may have lost the subscription.
            let context = session.context(Arc::new(NoClient));
            let reply = subscriptions::subscribe(&session.provider, params, &context).await;
            if is_new && matches!(reply, Reply::Error(_)) {
                session.unsubscribe(&uri);
            }
            adapt::to_legacy(method::SUBSCRIBE, reply)
        }
        .boxed()
    }

    fn set_level(self: &Arc<Self>, session: &Arc<Session>, params: Option<&Json>) -> ReplyFuture {
        if !discovery::has_capability(&session.provider.listing(), "logging") {
            return ready_reply(Reply::Error(discovery::method_not_found(method::SET_LEVEL)));
        }
        let params = params.and_then(|params| Object::parse(params).ok()).unwrap_or_default();
        let Some(level) = Level::from_params(&params, "level") else {
            let message = "params need `level`: debug, info, notice, warning, error, critical, alert or emergency";
            return ready_reply(Reply::Error(RpcError::new(code::INVALID_PARAMS, message)));
        };
        let (server, session) = (Arc::clone(self), Arc::clone(session));
        async move {
            session.set_level(level);
            let context = session.context(Arc::new(NoClient));
            server.log_levels.set_level(&session.provider, Some(level), &context).await;
            Reply::Result(Json::empty_object())
        }
        .boxed()
    }
}

/// Sends a request to the provider.
fn ask(
    session: &Arc<Session>,
    method: String,
    params: Option<Json>,
    trace: Option<Arc<Trace>>,
    channel: &Arc<ClientChannel>,
) -> ReplyFuture {
    let level = session.level();
    let provider = Arc::clone(&session.provider);
    let params = params.unwrap_or_else(Json::empty_object);
    let ask = match parse_ask(&method, &params, level) {
        Ok(ask) => ask,
        Err(error) => return ready_reply(Reply::Error(error)),
    };
    channel.set_progress_token(ask.other_params().get("_meta"));
    let context = Context { trace, ..session.context(Arc::clone(channel) as _) };
    let (n_bytes, caller) = (params.as_str().len(), Arc::clone(&context.caller));
    let call = async move {
        let rebuild_ask = || parse_ask(&method, &params, level).ok();
        let reply = input_required::ask(&provider, ask, rebuild_ask, &context).await;
        let reply = adapt::reply_or_error(reply);
        let n_bytes = message::payload(&reply).as_str().len();
        match n_bytes < LONG_MESSAGE {
            true => adapt::to_legacy(&method, reply),
            false => Box::pin(off_thread(n_bytes, move || adapt::to_legacy(&method, reply))).await,
        }
    }
    .boxed();
    aside_if_long(n_bytes, &caller, call)
}

/// Has a call with long params polled on other threads than the runtime's: everything that
/// looks at the arguments takes long.
pub(crate) fn aside_if_long(n_bytes: usize, caller: &Identity, call: ReplyFuture) -> ReplyFuture {
    match offload::is_long(n_bytes) {
        true => offload::aside(caller.caller_key(), call).boxed(),
        false => call,
    }
}

/// Answers a list method whose result is the same for every caller.
fn list(
    session: &Session,
    method: &str,
    params: Option<&Json>,
    trace: Option<Arc<Trace>>,
) -> Reply {
    let provider = &*session.provider;
    let context = Context { trace, ..session.context(Arc::new(NoClient)) };
    let observed = ObservedRequest::begin(provider, method, params, &context);
    let listed = discovery::list_result(&provider.listing(), &[], method, params);
    observed.answered(listed.map_or_else(Reply::Error, Reply::Result))
}

/// Answers a list method whose result depends on the caller.
fn list_for_caller(
    session: &Arc<Session>,
    method: String,
    params: Option<Json>,
    trace: Option<Arc<Trace>>,
    channel: &Arc<ClientChannel>,
) -> ReplyFuture {
    let provider = Arc::clone(&session.provider);
    let listing = provider.listing();
    let about = params.as_ref().and_then(|params| params.member("_meta"));
    channel.set_progress_token(about.as_ref());
    let context = Context { trace, ..session.context(Arc::clone(channel) as _) };
    let observed = ObservedRequest::begin(&*provider, &method, params.as_ref(), &context);
    async move {
        let own = provider.resources_for(&context).await;
        let listed = discovery::list_result(&listing, &own, &method, params.as_ref());
        observed.answered(listed.map_or_else(Reply::Error, Reply::Result))
    }
    .boxed()
}

fn unsubscribe(session: &Arc<Session>, params: Option<&Json>) -> ReplyFuture {
    let params = params.and_then(|params| Object::parse(params).ok()).unwrap_or_default();
    let Some(uri) = subscriptions::uri(&params) else {
        return ready_reply(subscriptions::missing_uri());
    };
    if !session.unsubscribe(&uri) {
        return ready_reply(Reply::Result(Json::empty_object()));
    }
    let session = Arc::clone(session);
    async move {
        let context = session.context(Arc::new(NoClient));
        let reply = subscriptions::unsubscribe(&session.provider, &uri, &context).await;
        adapt::to_legacy(method::UNSUBSCRIBE, reply)
    }
    .boxed()
}

/// Parses a request in a session, and adds the session's log level.
fn parse_ask(method: &str, params: &Json, level: Option<Level>) -> Result<Ask, RpcError> {
    let mut ask = Ask::parse(method, params)
        .map_err(|error| RpcError::new(code::INVALID_PARAMS, error.to_string()))?;
    // A modern server logs per request, and only at a requested level. Whether the
    // provider is modern is not known here.
    if let Some(level) = level {
        let about = ask.other_params().get("_meta").and_then(|about| Object::parse(about).ok());
        let mut about = about.unwrap_or_default();
        about.set(meta::LOG_LEVEL, level.to_json());
        ask.other_params_mut().set("_meta", about.to_json());
    }
    Ok(ask)
}

pub(crate) fn ready_reply(reply: Reply) -> ReplyFuture {
    futures::future::ready(reply).boxed()
}

/// Returns the context of a request without a session.
pub(crate) fn stateless_context(
    client: &Arc<Client>,
    caller: &Arc<Identity>,
    session: Arc<str>,
    client_handle: Arc<dyn ClientHandle>,
) -> Context {
    Context {
        client: Arc::clone(client),
        caller: Arc::clone(caller),
        session,
        timeout: None,
        client_handle,
        trace: None,
    }
}

/// Returns a session id for requests without a session: the same for all requests of one
/// caller with one client program. An upstream on a pipe does not tell which of its open
/// calls a question belongs to; this id still leads to the right client.
///
/// Anonymous callers cannot be identified, so the id depends on their connection.
pub(crate) fn implied_session(client: &Client, caller: &Caller) -> Arc<str> {
    let (caller, connection) = (&caller.identity, &caller.connection);
    // Lengths make the combination of names unambiguous.
    let Client { name, version, .. } = client;
    let own = format!("{}:{name}{version}", name.len());
    match (caller.is_anonymous(), caller.subject.as_str()) {
        (true, _) => format!("{CONNECTION_PREFIX}{connection} {own}").into(),
        (false, subject) => format!("{SUBJECT_PREFIX}{}:{subject}{own}", subject.len()).into(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn callers_whose_names_run_together_are_told_apart() {
        let mut names = vec![String::new()];
        for separator in
            ["@", " ", ":", "#", "/", "1", "a", "\u{1f}", "\n", CONNECTION_PREFIX, SUBJECT_PREFIX]
        {
            names.extend([
                separator.to_owned(),
                format!("a{separator}"),
                format!("1:{separator}a"),
            ]);
        }
        let mut known: HashMap<Arc<str>, (String, String, String)> = HashMap::new();
        for subject in &names {
            for name in &names {
                for version in &names {
                    let caller = Identity { subject: subject.clone(), ..Identity::default() };
                    let client = Client { version: version.clone(), ..Client::named(name, "") };
                    let session = implied_session(&client, &Caller::on_pipe(Arc::new(caller)));
                    assert_eq!(
                        session.starts_with(CONNECTION_PREFIX),
                        subject.is_empty(),
                        "{session:?}"
                    );
                    let who = (subject.clone(), name.clone(), version.clone());
                    if let Some(other) = known.insert(session, who.clone()) {
                        panic!("{who:?} is taken for {other:?}");
                    }
                }
            }
        }
    }
}
