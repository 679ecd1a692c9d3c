//! Combines the log levels that the sessions of one provider want.
//!
//! Many clients may share a provider. It is set to the most detailed level that any of them
//! wants, and the lines are filtered for each client. Subscriptions need no such
//! combination: a provider knows them per session.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tool::{Context, Object, Provider};

use super::adapt;
use crate::level::Level;
use crate::revision::method;

/// The wanted levels, by provider.
#[derive(Default)]
pub(crate) struct LogLevels(Mutex<HashMap<ProviderKey, WantedLevels>>);

/// The memory address of a provider, which [`WantedLevels`] keeps alive.
type ProviderKey = usize;

struct WantedLevels {
    _provider: Arc<dyn Provider>,
    levels: HashMap<Arc<str>, Level>,
}

impl LogLevels {
    /// Sets the level that a session wants, `None` for none, and sets the provider's level if
    /// the combined level changes.
    pub(crate) async fn set_level(
        &self,
        provider: &Arc<dyn Provider>,
        level: Option<Level>,
        context: &Context,
    ) {
        if let Some(level) = self.update(provider, level, &context.session) {
            let params = Object::from_iter([("level".to_owned(), level.to_json())]);
            // An error does not matter: lines are filtered for each client anyway.
            drop(adapt::ask_other(provider, method::SET_LEVEL, params, context).await);
        }
    }

    /// Updates the level of a session, and returns the combined level if it changed.
    fn update(
        &self,
        provider: &Arc<dyn Provider>,
        level: Option<Level>,
        session: &Arc<str>,
    ) -> Option<Level> {
        let mut levels_by_provider = self.0.lock();
        let key = Arc::as_ptr(provider).cast::<()>().addr();
        let fresh = || WantedLevels { _provider: Arc::clone(provider), levels: HashMap::new() };
        let levels = &mut levels_by_provider.entry(key).or_insert_with(fresh).levels;
        let before = levels.values().min().copied();
        match level {
            Some(level) => levels.insert(Arc::clone(session), level),
            None => levels.remove(session),
        };
        let after = levels.values().min().copied();
        if levels.is_empty() {
            levels_by_provider.remove(&key);
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
            let level = level.map(|level| Level::parse(level).unwrap());
            log_levels.update(&provider, level, &session.into()).map(Level::as_str)
        };
        assert_eq!(wants("a", Some("error")), Some("error"));
        assert_eq!(wants("b", Some("debug")), Some("debug"));
        assert_eq!(wants("a", Some("info")), None);
        assert_eq!(wants("b", None), Some("info"));
        assert_eq!(wants("a", None), None);
        assert!(log_levels.0.lock().is_empty());
    }
}
