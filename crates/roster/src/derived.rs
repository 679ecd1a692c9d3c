//! Caches values that other modules derive from a snapshot or a pool, one of each type.
//!
//! The module that derives a value owns its type; the snapshot or pool does not know it.

use std::any::Any;
use std::sync::OnceLock;

/// At most one value of each type. Values are never removed, so they are handed out by
/// reference.
#[derive(Default)]
pub struct DerivedValues {
    first: OnceLock<Box<ValueNode>>,
}

/// A node of the linked list of values, which is short.
struct ValueNode {
    value: Box<dyn Any + Send + Sync>,
    next: OnceLock<Box<ValueNode>>,
}

impl DerivedValues {
    /// Returns the value of this type, and makes it the first time.
    pub fn get_or_make<T: Send + Sync + 'static>(&self, make: impl FnOnce() -> T) -> &T {
        match self.get() {
            Some(value) => value,
            // Not inside of `put`: making one value may need another.
            None => self.put(make()),
        }
    }

    fn get<T: 'static>(&self) -> Option<&T> {
        let mut slot = self.first.get();
        while let Some(ValueNode { value, next }) = slot.map(|slot| &**slot) {
            if let Some(value) = value.downcast_ref() {
                return Some(value);
            }
            slot = next.get();
        }
        None
    }

    /// Stores a value, unless another thread was quicker, and returns the stored one.
    fn put<T: Send + Sync + 'static>(&self, value: T) -> &T {
        let (mut value, mut place) = (Some(value), &self.first);
        loop {
            let slot = place.get_or_init(|| {
                let value = value.take().expect("a slot is filled once, and then it is found");
                Box::new(ValueNode { value: Box::new(value), next: OnceLock::new() })
            });
            if let Some(value) = slot.value.downcast_ref() {
                return value;
            }
            place = &slot.next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_type_has_one_value_and_it_is_made_once() {
        let derived = DerivedValues::default();
        assert_eq!(*derived.get_or_make(|| 1_u8), 1);
        assert_eq!(*derived.get_or_make(|| 2_u8), 1);
        // One may be made of another, which comes first then.
        let text = derived.get_or_make(|| derived.get_or_make(|| 7_u32).to_string());
        assert_eq!((text.as_str(), *derived.get_or_make(|| 8_u32)), ("7", 7));
    }

    #[test]
    fn many_threads_get_the_same_value() {
        let derived = DerivedValues::default();
        let seen: Vec<usize> = std::thread::scope(|scope| {
            let asked = (0..8).map(|n| {
                let derived = &derived;
                scope.spawn(move || *derived.get_or_make(|| n))
            });
            let asked: Vec<_> = asked.collect();
            asked.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(seen.iter().all(|one| *one == seen[0]), "{seen:?}");
    }
}
