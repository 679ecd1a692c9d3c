//! The log level that all clients together want of a provider.
//!
//! Many clients may see the same provider. It logs as much as the most curious
//! of them wants, and each gets what it asked for. Subscriptions need no such
//! care: a provider is told which session wants what.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tool::{Context, Object, Provider};

use super::adapt;
use crate::level::Level;
use crate::revision::method;

/// The wishes, by provider.
#[derive(Default)]
pub(crate) struct LogLevels(Mutex<HashMap<Key, WantedLevels>>);

/// A provider is known by where it lives; [`WantedLevels`] keeps it there.
type Key = usize;

struct WantedLevels {
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
            drop(adapt::ask_other(provider, method::SET_LEVEL, params, context).await);
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
        let fresh = || WantedLevels { _provider: Arc::clone(provider), levels: HashMap::new() };
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

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::Scripted;
    use tool::Reply;

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
