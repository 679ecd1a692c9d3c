//! What all clients together want of a provider.
//!
//! Many clients may see the same provider. It is subscribed to a resource when
//! the first of them wants that and unsubscribed after the last, and it logs as
//! much as the most curious of them wants.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tool::{Ask, Context, Json, Object, Provider, Reply};

use super::level::Level;
use crate::revision::method;

/// The wishes, by provider.
#[derive(Default)]
pub(crate) struct Demand(Mutex<HashMap<Key, Wishes>>);

/// A provider is known by where it lives; [`Wishes`] keeps it there.
type Key = usize;

struct Wishes {
    _provider: Arc<dyn Provider>,
    subscribers: HashMap<String, usize>,
    levels: HashMap<Arc<str>, Level>,
}

impl Demand {
    /// Subscribes, unless somebody did before.
    pub(crate) async fn subscribe(
        &self,
        provider: &Arc<dyn Provider>,
        params: Object,
        context: &Context,
    ) -> Reply {
        let done = Reply::Result(Json::empty_object());
        let Some(uri) = uri(&params) else { return missing_uri() };
        let first = {
            let mut wishes = self.lock();
            let count =
                wishes_of(&mut wishes, provider).subscribers.entry(uri.clone()).or_default();
            *count += 1;
            *count == 1
        };
        if !first {
            return done;
        }
        let reply = tell(provider, method::SUBSCRIBE, params, context).await;
        if matches!(reply, Reply::Error(_)) {
            self.forget(provider, &uri);
        }
        reply
    }

    /// Unsubscribes, when nobody else wants it.
    pub(crate) async fn unsubscribe(
        &self,
        provider: &Arc<dyn Provider>,
        uri: &str,
        context: &Context,
    ) -> Reply {
        if !self.forget(provider, uri) {
            return Reply::Result(Json::empty_object());
        }
        let params = Object::from_iter([("uri".to_owned(), Json::of(uri))]);
        tell(provider, method::UNSUBSCRIBE, params, context).await
    }

    /// Notes how much a session wants to hear, and tells the provider when
    /// that changes what all of them want.
    pub(crate) async fn listen_at(
        &self,
        provider: &Arc<dyn Provider>,
        level: Option<Level>,
        context: &Context,
    ) {
        let (before, after) = {
            let mut wishes = self.lock();
            let levels = &mut wishes_of(&mut wishes, provider).levels;
            let before = levels.values().min().copied();
            match level {
                Some(level) => levels.insert(Arc::clone(&context.session), level),
                None => levels.remove(&context.session),
            };
            let after = levels.values().min().copied();
            tidy(&mut wishes, provider);
            (before, after)
        };
        if let Some(level) = after.filter(|_| before != after) {
            let params = Object::from_iter([("level".to_owned(), level.to_json())]);
            // The lines are filtered on the way to the client in any case.
            drop(tell(provider, method::SET_LEVEL, params, context).await);
        }
    }

    /// Takes one subscriber off; `true` when it was the last.
    fn forget(&self, provider: &Arc<dyn Provider>, uri: &str) -> bool {
        let mut wishes = self.lock();
        let subscribers = &mut wishes_of(&mut wishes, provider).subscribers;
        let left = subscribers.get_mut(uri).map(|count| {
            *count -= 1;
            *count
        });
        if left == Some(0) {
            subscribers.remove(uri);
        }
        tidy(&mut wishes, provider);
        left == Some(0)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Wishes>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The resource that params name.
pub(crate) fn uri(params: &Object) -> Option<String> {
    params.get("uri")?.read().ok()
}

pub(crate) fn missing_uri() -> Reply {
    let message = "params need `uri` as a string";
    Reply::Error(tool::RpcError::new(crate::revision::code::INVALID_PARAMS, message))
}

async fn tell(
    provider: &Arc<dyn Provider>,
    method: &str,
    params: Object,
    context: &Context,
) -> Reply {
    let ask = Ask::Other { method: method.to_owned(), params };
    let reply = provider.ask(ask, context).await;
    reply.unwrap_or_else(|failure| Reply::Error(super::fit::failure(&failure)))
}

fn key(provider: &Arc<dyn Provider>) -> Key {
    Arc::as_ptr(provider).cast::<()>().addr()
}

fn wishes_of<'a>(
    wishes: &'a mut HashMap<Key, Wishes>,
    provider: &Arc<dyn Provider>,
) -> &'a mut Wishes {
    wishes.entry(key(provider)).or_insert_with(|| Wishes {
        _provider: Arc::clone(provider),
        subscribers: HashMap::new(),
        levels: HashMap::new(),
    })
}

fn tidy(wishes: &mut HashMap<Key, Wishes>, provider: &Arc<dyn Provider>) {
    let idle = |wishes: &Wishes| wishes.subscribers.is_empty() && wishes.levels.is_empty();
    if wishes.get(&key(provider)).is_some_and(idle) {
        wishes.remove(&key(provider));
    }
}
