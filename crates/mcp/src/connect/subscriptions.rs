//! The resources that clients have subscribed to at one server.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

/// The subscribed sessions by resource URI. Subscribers without a session are counted one
/// by one.
#[derive(Default)]
pub(super) struct Subscriptions(Mutex<BTreeMap<String, Vec<Arc<str>>>>);

/// What changed: the server is told only when the set of resources changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// The set of subscribed resources changed.
    ResourceSet,
    /// Only the subscribers of a resource changed.
    WatchersOnly,
}

impl Subscriptions {
    pub(super) fn add(&self, uri: &str, session: &Arc<str>) -> Change {
        let mut watched = self.lock();
        let watchers = watched.entry(uri.to_owned()).or_default();
        if session.is_empty() || !watchers.contains(session) {
            watchers.push(Arc::clone(session));
        }
        if watchers.len() == 1 { Change::ResourceSet } else { Change::WatchersOnly }
    }

    pub(super) fn remove(&self, uri: &str, session: &Arc<str>) -> Change {
        let mut watched = self.lock();
        let Some(watchers) = watched.get_mut(uri) else { return Change::ResourceSet };
        if let Some(at) = watchers.iter().position(|watcher| watcher == session) {
            watchers.swap_remove(at);
        }
        if !watchers.is_empty() {
            return Change::WatchersOnly;
        }
        watched.remove(uri);
        Change::ResourceSet
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
        assert_eq!(subscriptions.add("u", &a), Change::ResourceSet);
        assert_eq!(subscriptions.add("u", &b), Change::WatchersOnly);
        assert_eq!(subscriptions.add("u", &b), Change::WatchersOnly);
        assert_eq!(subscriptions.remove("u", &a), Change::WatchersOnly);
        assert_eq!(subscriptions.uris(), ["u"]);
        assert_eq!(subscriptions.remove("u", &b), Change::ResourceSet);
        assert_eq!(subscriptions.remove("u", &b), Change::ResourceSet);
        assert!(subscriptions.uris().is_empty());
    }
}
