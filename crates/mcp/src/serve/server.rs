//! The state that all served clients share, and how requests of a session are
//! answered.

use std::sync::Arc;

use futures::FutureExt;
use tool::context::{CONNECTION_PREFIX, SUBJECT_PREFIX};
use tool::trace::Trace;
use tool::{
    Ask, Client, ClientHandle, Context, Identity, Json, NoClient, Object, ProviderSource, Reply,
    RpcError,
};

use super::caller::{Caller, PerCaller};
use super::channel::{ClientChannel, Route};
use super::exchange::Exchange;
use super::log_levels::LogLevels;
use super::parked::{self, Call, ParkedCalls};
use super::session::{self, Session};
use super::subscriptions;
use super::{adapt, discovery, input_required};
use crate::aside::{LONG, aside};
use crate::level::Level;
use crate::message;
use crate::peer::Peer;
use crate::revision::{code, meta, method};

/// What everybody who is served shares.
pub(crate) struct McpServer {
    pub(crate) source: Arc<dyn ProviderSource>,
    pub(crate) park: Arc<ParkedCalls>,
    pub(crate) log_levels: LogLevels,
    /// The resources that are watched.
    pub(crate) watched: Arc<PerCaller>,
}

impl McpServer {
    /// `replica` tells this one from others that serve the same; 0 where there are none.
    pub(crate) fn new(
        source: Arc<dyn ProviderSource>,
        limits: parked::Limits,
        replica: u32,
    ) -> Arc<McpServer> {
        Arc::new(McpServer {
            source,
            park: Arc::new(ParkedCalls::new(limits, replica)),
            log_levels: LogLevels::default(),
            watched: PerCaller::new("subscriptions", subscriptions::PER_CALLER),
        })
    }

    /// Opens a session, and returns it with the result of `initialize`.
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
        let client = Arc::new(session::introduction(params, revision)?);
        let provider = self.source.provider_for(&client, &caller.identity);
        let result = discovery::initialize(&provider.listing(), revision);
        let session = Session::new(id, revision, client, caller, provider, peer);
        Ok((session, Reply::Result(result)))
    }

    /// Begins to answer a request of a session.
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
    ) -> Call {
        match method.as_str() {
            name if discovery::is_personal(name) => list(session, method, params, channel),
            name if discovery::is_list(name) => {
                let listed =
                    discovery::list(&session.provider.listing(), &[], name, params.as_ref());
                ready(listed.map_or_else(Reply::Error, Reply::Result))
            }
            method::PING => ready(Reply::Result(Json::empty_object())),
            method::INITIALIZE => ready(Reply::Error(RpcError::new(
                code::INVALID_REQUEST,
                "this session is initialised already",
            ))),
            method::SET_LEVEL => self.set_level(session, params.as_ref()),
            method::SUBSCRIBE => self.subscribe(session, params.as_ref()),
            method::UNSUBSCRIBE => unsubscribe(session, params.as_ref()),
            name if method::is_notification(name) => {
                ready(Reply::Error(discovery::notification_only(name)))
            }
            _ => ask(session, method, params, trace, channel),
        }
    }

    /// Ends a session: what it wanted of the provider is wanted no more.
    pub(crate) async fn close(&self, session: &Session) {
        session.stop_forwarding();
        let context = session.context(Arc::new(NoClient));
        for uri in session.take_subscriptions() {
            drop(subscriptions::unsubscribe(&session.provider, &uri, &context).await);
        }
        if session.level().is_some() {
            self.log_levels.listen_at(&session.provider, None, &context).await;
        }
    }

    fn subscribe(&self, session: &Arc<Session>, params: Option<&Json>) -> Call {
        let params = params.and_then(|params| Object::parse(params).ok()).unwrap_or_default();
        let Some(uri) = subscriptions::uri(&params) else {
            return ready(subscriptions::missing_uri());
        };
        let is_new = match session.subscribe(&uri, &self.watched) {
            Ok(is_new) => is_new,
            Err(error) => return ready(Reply::Error(error)),
        };
        let session = Arc::clone(session);
        async move {
            // Who asks again may know that it was forgotten, so it is asked again.
            let context = session.context(Arc::new(NoClient));
            let reply = subscriptions::subscribe(&session.provider, params, &context).await;
            if is_new && matches!(reply, Reply::Error(_)) {
                session.unsubscribe(&uri);
            }
            adapt::legacy(method::SUBSCRIBE, reply)
        }
        .boxed()
    }

    fn set_level(self: &Arc<Self>, session: &Arc<Session>, params: Option<&Json>) -> Call {
        if !discovery::has(&session.provider.listing(), "logging") {
            return ready(Reply::Error(discovery::no_method(method::SET_LEVEL)));
        }
        let params = params.and_then(|params| Object::parse(params).ok()).unwrap_or_default();
        let Some(level) = Level::read(&params, "level") else {
            let message = "params need `level`: debug, info, notice, warning, error, critical, alert or emergency";
            return ready(Reply::Error(RpcError::new(code::INVALID_PARAMS, message)));
        };
        let (server, session) = (Arc::clone(self), Arc::clone(session));
        async move {
            session.set_level(level);
            let context = session.context(Arc::new(NoClient));
            server.log_levels.listen_at(&session.provider, Some(level), &context).await;
            Reply::Result(Json::empty_object())
        }
        .boxed()
    }
}

/// A question to the provider.
fn ask(
    session: &Arc<Session>,
    method: String,
    params: Option<Json>,
    trace: Option<Arc<Trace>>,
    channel: &Arc<ClientChannel>,
) -> Call {
    let level = session.level();
    let provider = Arc::clone(&session.provider);
    let params = params.unwrap_or_else(Json::empty_object);
    let ask = match read(&method, &params, level) {
        Ok(ask) => ask,
        Err(error) => return ready(Reply::Error(error)),
    };
    channel.want_progress(ask.other_params().get("_meta"));
    let context = Context { trace, ..session.context(Arc::clone(channel) as _) };
    async move {
        let again = || read(&method, &params, level).ok();
        let reply = input_required::ask(&provider, ask, again, &context).await;
        let reply = adapt::reply_or_error(reply);
        let n_bytes = message::payload(&reply).as_str().len();
        match n_bytes < LONG {
            true => adapt::legacy(&method, reply),
            false => Box::pin(aside(n_bytes, move || adapt::legacy(&method, reply))).await,
        }
    }
    .boxed()
}

/// A list that depends on who asks.
fn list(
    session: &Arc<Session>,
    method: String,
    params: Option<Json>,
    channel: &Arc<ClientChannel>,
) -> Call {
    let provider = Arc::clone(&session.provider);
    let listing = provider.listing();
    let about = params.as_ref().and_then(|params| params.member("_meta"));
    channel.want_progress(about.as_ref());
    let context = session.context(Arc::clone(channel) as _);
    async move {
        let own = provider.resources_for(&context).await;
        let listed = discovery::list(&listing, &own, &method, params.as_ref());
        listed.map_or_else(Reply::Error, Reply::Result)
    }
    .boxed()
}

fn unsubscribe(session: &Arc<Session>, params: Option<&Json>) -> Call {
    let params = params.and_then(|params| Object::parse(params).ok()).unwrap_or_default();
    let Some(uri) = subscriptions::uri(&params) else { return ready(subscriptions::missing_uri()) };
    if !session.unsubscribe(&uri) {
        return ready(Reply::Result(Json::empty_object()));
    }
    let session = Arc::clone(session);
    async move {
        let context = session.context(Arc::new(NoClient));
        let reply = subscriptions::unsubscribe(&session.provider, &uri, &context).await;
        adapt::legacy(method::UNSUBSCRIBE, reply)
    }
    .boxed()
}

/// A question to a provider, as it stands in a request of a session.
fn read(method: &str, params: &Json, level: Option<Level>) -> Result<Ask, RpcError> {
    let mut ask = Ask::parse(method, params)
        .map_err(|error| RpcError::new(code::INVALID_PARAMS, error.to_string()))?;
    // A modern server logs for one request at a time, and only when told to.
    // Which of them is behind the provider is not known here.
    if let Some(level) = level {
        let about = ask.other_params().get("_meta").and_then(|about| Object::parse(about).ok());
        let mut about = about.unwrap_or_default();
        about.set(meta::LOG_LEVEL, level.to_json());
        ask.other_params_mut().set("_meta", about.to_json());
    }
    Ok(ask)
}

pub(crate) fn ready(reply: Reply) -> Call {
    futures::future::ready(reply).boxed()
}

/// A provider's context for what no session asks.
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

/// Returns what stands for a session where there is none: requests of one caller
/// with one client belong together. An upstream on a pipe does not say which of its
/// open calls a question belongs to; this is how it still finds its client.
///
/// Anonymous callers have nothing in common but what they say of themselves,
/// so each is known by its connection.
pub(crate) fn implied_session(client: &Client, caller: &Caller) -> Arc<str> {
    let (caller, connection) = (&caller.identity, &caller.connection);
    // Lengths tell where one name ends and the next begins, whatever is in them.
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
