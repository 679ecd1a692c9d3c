//! The values beside the arguments that a tool is given: shared state and whole
//! argument objects.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::ops::Deref;
use std::sync::Arc;

/// The whole arguments object as one type of yours, which then is the schema.
#[derive(Clone, Copy, Debug)]
pub struct Args<T>(pub T);

/// Something that the registry keeps and tools share: a client, a store.
#[derive(Debug)]
pub struct State<T>(Arc<T>);

impl<T> Clone for State<T> {
    fn clone(&self) -> State<T> {
        State(Arc::clone(&self.0))
    }
}

impl<T> Deref for State<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// Everything a registry keeps for its tools, one value per type.
#[derive(Clone, Default)]
pub(crate) struct States(HashMap<TypeId, Arc<dyn Any + Send + Sync>>);

impl States {
    pub(crate) fn insert<T: Send + Sync + 'static>(&mut self, state: Arc<T>) {
        self.0.insert(TypeId::of::<T>(), state);
    }

    pub(crate) fn has(&self, of: TypeId) -> bool {
        self.0.contains_key(&of)
    }

    pub(crate) fn get<T: Send + Sync + 'static>(&self) -> Option<State<T>> {
        let state = Arc::clone(self.0.get(&TypeId::of::<T>())?);
        state.downcast().ok().map(State)
    }
}
