//! What all clients together want of a provider.
//!
//! Many clients may see the same provider. It logs as much as the most curious
//! of them wants, and each gets what it asked for. Subscriptions need no such
//! care: a provider is told which session wants what.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tool::{Ask, Context, Json, Object, Provider, Reply, RpcError};

use super::adapt;
use crate::level::Level;
use crate::revision::{code, method};

/// The wishes, by provider.
#[derive(Default)]
pub(crate) struct LogLevels(Mutex<HashMap<Key, Wishes>>);

/// A provider is known by where it lives; [`Wishes`] keeps it there.
type Key = usize;

struct Wishes {
    _provider: Arc<dyn Provider>,
    levels: HashMap<Arc<str>, Level>,
}

impl LogLevels {
    /// Notes how much a session wants to hear, nothing any more when `None`,
    /// and tells the provider when that changes what all of them want.
    pub(crate) async fn listen_at(
        &self,
        provider: &Arc<dyn Provider>,
        level: Option<Level>,
        context: &Context,
    ) {
        if let Some(level) = self.note(provider, level, &context.session) {
            let params = Object::from_iter([("level".to_owned(), level.to_json())]);
            // The lines are filtered on the way to the client in any case.
            drop(tell(provider, method::SET_LEVEL, params, context).await);
        }
    }

    /// The level that all together want, when it is another one now.
    fn note(
        &self,
        provider: &Arc<dyn Provider>,
        level: Option<Level>,
        session: &Arc<str>,
    ) -> Option<Level> {
        let mut wishes = self.0.lock();
        let key = Arc::as_ptr(provider).cast::<()>().addr();
        let fresh = || Wishes { _provider: Arc::clone(provider), levels: HashMap::new() };
        let levels = &mut wishes.entry(key).or_insert_with(fresh).levels;
        let before = levels.values().min().copied();
        match level {
            Some(level) => levels.insert(Arc::clone(session), level),
            None => levels.remove(session),
        };
        let after = levels.values().min().copied();
        if levels.is_empty() {
            wishes.remove(&key);
        }
        after.filter(|_| before != after)
    }
}

/// Subscribes to a resource, in the name of the session in `context`.
pub(crate) async fn subscribe(
    provider: &Arc<dyn Provider>,
    params: Object,
    context: &Context,
) -> Reply {
    tell(provider, method::SUBSCRIBE, params, context).await
}

/// Takes a subscription back.
pub(crate) async fn unsubscribe(
    provider: &Arc<dyn Provider>,
    uri: &str,
    context: &Context,
) -> Reply {
    let params = Object::from_iter([("uri".to_owned(), Json::encode(uri))]);
    tell(provider, method::UNSUBSCRIBE, params, context).await
}

/// The resource that params name.
pub(crate) fn uri(params: &Object) -> Option<String> {
    params.get("uri")?.read().ok()
}

pub(crate) fn missing_uri() -> Reply {
    Reply::Error(RpcError::new(code::INVALID_PARAMS, "params need `uri` as a string"))
}

async fn tell(
    provider: &Arc<dyn Provider>,
    method: &str,
    params: Object,
    context: &Context,
) -> Reply {
    let ask = Ask::Other { method: method.to_owned(), params };
    let reply = provider.ask(ask, context).await;
    reply.unwrap_or_else(|failure| Reply::Error(adapt::failure(&failure)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::Scripted;

    #[test]
    fn a_provider_logs_as_much_as_the_most_curious_session_wants() {
        let provider: Arc<dyn Provider> =
            Scripted::new(testkit::listing(Vec::new()), |_| Ok(Reply::text("")));
        let log_levels = LogLevels::default();
        let wants = |session: &str, level: Option<&str>| {
            let level = level.map(|level| Level::named(level).unwrap());
            log_levels.note(&provider, level, &session.into()).map(Level::as_str)
        };
        assert_eq!(wants("a", Some("error")), Some("error"));
        assert_eq!(wants("b", Some("debug")), Some("debug"));
        assert_eq!(wants("a", Some("info")), None);
        assert_eq!(wants("b", None), Some("info"));
        assert_eq!(wants("a", None), None);
        assert!(log_levels.0.lock().is_empty());
    }
}
