//! Where listings are remembered between runs.

use std::collections::HashMap;
use std::sync::Mutex;

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
        self.0.lock().expect("nothing panics while it holds this").get(name).cloned()
    }

    fn save(&self, name: &str, text: &[u8]) {
        let mut texts = self.0.lock().expect("nothing panics while it holds this");
        texts.insert(name.to_owned(), text.to_owned());
    }
}

/// The listing an upstream had when it was last seen by such a client.
pub(super) fn recall(shelf: &dyn Shelf, upstream: &Upstream, profile: &Profile) -> Option<Listing> {
    let text = shelf.load(&name(upstream, profile))?;
    Json::parse(text).ok()?.read().ok()
}

pub(super) fn remember(
    shelf: &dyn Shelf,
    upstream: &Upstream,
    profile: &Profile,
    listing: &Listing,
) {
    shelf.save(&name(upstream, profile), Json::of(listing).as_bytes());
}

fn name(upstream: &Upstream, profile: &Profile) -> String {
    let whose = format!("{}\u{1f}{}\u{1f}{}", upstream.label, upstream.fingerprint, profile.text());
    format!("{}-{}", catalog::name::alias(&upstream.label), catalog::name::tag(&whose, 16))
}
