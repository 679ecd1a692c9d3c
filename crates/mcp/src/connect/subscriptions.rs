//! The resource subscriptions of clients.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

/// The watchers of every watched resource, each by its session. Visitors
/// without a session are counted one by one.
#[derive(Default)]
pub(super) struct Subscriptions(Mutex<BTreeMap<String, Vec<Arc<str>>>>);

/// What a change means for the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// The set of watched resources is another one now.
    Set,
    /// Only who watches changed.
    Watchers,
}

impl Subscriptions {
    pub(super) fn add(&self, uri: &str, session: &Arc<str>) -> Change {
        let mut watched = self.lock();
        let watchers = watched.entry(uri.to_owned()).or_default();
        if session.is_empty() || !watchers.contains(session) {
            watchers.push(Arc::clone(session));
        }
        if watchers.len() == 1 { Change::Set } else { Change::Watchers }
    }

    pub(super) fn remove(&self, uri: &str, session: &Arc<str>) -> Change {
        let mut watched = self.lock();
        let Some(watchers) = watched.get_mut(uri) else { return Change::Set };
        if let Some(at) = watchers.iter().position(|watcher| watcher == session) {
            watchers.swap_remove(at);
        }
        if !watchers.is_empty() {
            return Change::Watchers;
        }
        watched.remove(uri);
        Change::Set
    }

    pub(super) fn uris(&self) -> Vec<String> {
        self.lock().keys().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Vec<Arc<str>>>> {
        self.0.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resource_is_watched_until_the_last_watcher_leaves() {
        let subscriptions = Subscriptions::default();
        let [a, b]: [Arc<str>; 2] = ["a".into(), "b".into()];
        assert_eq!(subscriptions.add("u", &a), Change::Set);
        assert_eq!(subscriptions.add("u", &b), Change::Watchers);
        assert_eq!(subscriptions.add("u", &b), Change::Watchers);
        assert_eq!(subscriptions.remove("u", &a), Change::Watchers);
        assert_eq!(subscriptions.uris(), ["u"]);
        assert_eq!(subscriptions.remove("u", &b), Change::Set);
        assert_eq!(subscriptions.remove("u", &b), Change::Set);
        assert!(subscriptions.uris().is_empty());
    }
}
