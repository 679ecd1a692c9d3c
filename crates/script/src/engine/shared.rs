//! The state that the script's callbacks and the engine's loop share.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use rquickjs::{Function, Persistent};

use super::console::Log;
use crate::limits::Limit;
use crate::protocol::Call;

/// The state that the script's callbacks and the engine's loop share.
#[derive(Default)]
pub(super) struct Shared {
    /// Calls of the script that are not sent yet.
    pub(super) new_calls: RefCell<Vec<Call>>,
    pub(super) n_calls: Cell<u64>,
    pub(super) pending: RefCell<HashMap<u64, PendingCall>>,
    pub(super) log: RefCell<Log>,
    pub(super) steps: Cell<u64>,
    /// The limit that ended the script.
    pub(super) limit_hit: Cell<Option<Limit>>,
}

/// The promise of a call that has no answer yet.
pub(super) struct PendingCall {
    pub(super) resolve: Persistent<Function<'static>>,
    pub(super) reject: Persistent<Function<'static>>,
}
