//! What runs scripts, and which of them are under way.

use std::collections::HashSet;

use parking_lot::Mutex;
use script::Pool;

/// What runs scripts, and which of them are under way.
pub struct Scripting {
    pub pool: Pool,
    /// The handles of the scripts that go on right now.
    resumed: Mutex<HashSet<String>>,
}

impl Scripting {
    pub fn new(pool: Pool) -> Scripting {
        Scripting { pool, resumed: Mutex::default() }
    }

    /// Marks a script as under way; `None` if it is already.
    pub(super) fn enter(&self, handle: &str) -> Option<UnderWay<'_>> {
        let is_new = self.resumed.lock().insert(handle.to_owned());
        is_new.then(|| UnderWay { scripting: self, handle: handle.to_owned() })
    }
}

/// A script that is under way, until dropped.
pub(super) struct UnderWay<'a> {
    scripting: &'a Scripting,
    handle: String,
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.scripting.resumed.lock().remove(&self.handle);
    }
}
