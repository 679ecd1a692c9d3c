//! Parameter types that the registry fills in: `State<T>` (a value that tools share) and
//! `Args<T>` (all arguments as one type).

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::ops::Deref;
use std::sync::Arc;

/// The whole arguments object as one type, from which the input schema is derived.
#[derive(Clone, Copy, Debug)]
pub struct Args<T>(pub T);

/// A value that the registry holds and tools share, such as an HTTP client or a store.
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

/// All shared values of a registry, one per type.
#[derive(Clone, Default)]
pub(crate) struct SharedStates(HashMap<TypeId, Arc<dyn Any + Send + Sync>>);

impl SharedStates {
    pub(crate) fn insert<T: Send + Sync + 'static>(&mut self, state: Arc<T>) {
        self.0.insert(TypeId::of::<T>(), state);
    }

    pub(crate) fn has(&self, id: TypeId) -> bool {
        self.0.contains_key(&id)
    }

    pub(crate) fn get<T: Send + Sync + 'static>(&self) -> Option<State<T>> {
        let state = Arc::clone(self.0.get(&TypeId::of::<T>())?);
        state.downcast().ok().map(State)
    }
}
