//! What a script and the engine around it share.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use rquickjs::{Function, Persistent};

use super::console::Log;
use crate::limits::Limit;
use crate::protocol::Call;

/// What the script and the engine around it share.
#[derive(Default)]
pub(super) struct Shared {
    /// Calls that the script made and nobody knows of yet.
    pub(super) made: RefCell<Vec<Call>>,
    pub(super) n_calls: Cell<u64>,
    pub(super) open: RefCell<HashMap<u64, Open>>,
    pub(super) log: RefCell<Log>,
    pub(super) steps: Cell<u64>,
    pub(super) hit: Cell<Option<Limit>>,
}

/// A call whose answer is awaited.
pub(super) struct Open {
    pub(super) resolve: Persistent<Function<'static>>,
    pub(super) reject: Persistent<Function<'static>>,
}
