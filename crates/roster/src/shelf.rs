//! Where listings are remembered between runs.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use tool::{Json, Listing};

use super::{Profile, Upstream};

/// Small storage for text under a name. The name consists of letters, digits,
/// `-` and `_`, so it can be a file name.
pub trait Shelf: Send + Sync {
    fn load(&self, name: &str) -> Option<Vec<u8>>;

    /// Keeps the text. What cannot be kept is lost without harm: the next run
    /// asks the upstream.
    fn save(&self, name: &str, text: &[u8]);
}

/// A shelf that lasts as long as the process.
#[derive(Debug, Default)]
pub struct Memory(Mutex<HashMap<String, Vec<u8>>>);

impl Shelf for Memory {
    fn load(&self, name: &str) -> Option<Vec<u8>> {
        self.0.lock().get(name).cloned()
    }

    fn save(&self, name: &str, text: &[u8]) {
        let mut texts = self.0.lock();
        texts.insert(name.to_owned(), text.to_owned());
    }
}

/// What upstreams listed for which clients, and which of that was seen in this
/// run.
pub(crate) struct Memories {
    shelf: Arc<dyn Shelf>,
    familiar: Mutex<HashSet<String>>,
}

impl Memories {
    pub(crate) fn on(shelf: Arc<dyn Shelf>) -> Memories {
        Memories { shelf, familiar: Mutex::default() }
    }

    /// The listing an upstream had when it was last seen by such a client.
    pub(crate) fn recall(&self, upstream: &Upstream, profile: &Profile) -> Option<Listing> {
        let text = self.shelf.load(&name(upstream, profile))?;
        Json::parse(text).ok()?.read().ok()
    }

    /// Keeps a listing. Writing may block.
    pub(crate) fn remember(&self, upstream: &Upstream, profile: &Profile, listing: &Listing) {
        self.shelf.save(&name(upstream, profile), Json::encode(listing).as_bytes());
    }

    /// Whether such a client has seen the upstream in this run.
    pub(crate) fn is_familiar(&self, upstream: &Upstream, profile: &Profile) -> bool {
        self.lock().contains(&name(upstream, profile))
    }

    pub(crate) fn familiarise(&self, upstream: &Upstream, profile: &Profile) {
        self.lock().insert(name(upstream, profile));
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<String>> {
        self.familiar.lock()
    }
}

fn name(upstream: &Upstream, profile: &Profile) -> String {
    let whose = format!("{}\u{1f}{}\u{1f}{}", upstream.label, upstream.fingerprint, profile.text());
    format!("{}-{}", catalog::name::alias(&upstream.label), catalog::name::tag(&whose, 16))
}
