//! Values that others derive from something, cached beside it: one of each type.
//!
//! Whoever makes a value owns its type; what it is kept beside knows neither.

use std::any::Any;
use std::sync::OnceLock;

/// At most one value of each type. Values stay as long as this does, so they
/// are handed out by reference.
#[derive(Default)]
pub struct Derived {
    first: OnceLock<Box<Slot>>,
}

/// A value, and the next one: they are few.
struct Slot {
    value: Box<dyn Any + Send + Sync>,
    next: OnceLock<Box<Slot>>,
}

impl Derived {
    /// The value of this type, made when it is first asked for.
    pub fn get_or_make<T: Send + Sync + 'static>(&self, make: impl FnOnce() -> T) -> &T {
        match self.get() {
            Some(value) => value,
            // Not within a slot: what is made may be made of another value.
            None => self.put(make()),
        }
    }

    fn get<T: 'static>(&self) -> Option<&T> {
        let mut slot = self.first.get();
        while let Some(Slot { value, next }) = slot.map(|slot| &**slot) {
            if let Some(value) = value.downcast_ref() {
                return Some(value);
            }
            slot = next.get();
        }
        None
    }

    /// Keeps a value, unless somebody else was quicker.
    fn put<T: Send + Sync + 'static>(&self, value: T) -> &T {
        let (mut value, mut place) = (Some(value), &self.first);
        loop {
            let slot = place.get_or_init(|| {
                let value = value.take().expect("a slot is filled once, and then it is found");
                Box::new(Slot { value: Box::new(value), next: OnceLock::new() })
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
        let derived = Derived::default();
        assert_eq!(*derived.get_or_make(|| 1_u8), 1);
        assert_eq!(*derived.get_or_make(|| 2_u8), 1);
        // One may be made of another, which comes first then.
        let text = derived.get_or_make(|| derived.get_or_make(|| 7_u32).to_string());
        assert_eq!((text.as_str(), *derived.get_or_make(|| 8_u32)), ("7", 7));
    }

    #[test]
    fn many_threads_get_the_same_value() {
        let derived = Derived::default();
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
