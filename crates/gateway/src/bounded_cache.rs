//! A small cache with a fixed capacity.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

/// Values by key. When it is full it is cleared: what is in use is soon in it
/// again.
#[derive(Debug)]
pub(crate) struct BoundedCache<K, V> {
    capacity: usize,
    made: Mutex<HashMap<K, Arc<V>>>,
}

impl<K: Eq + Hash, V> BoundedCache<K, V> {
    /// With room for this many values.
    pub(crate) fn new(capacity: usize) -> BoundedCache<K, V> {
        BoundedCache { capacity, made: Mutex::default() }
    }

    /// The value of a key, or what `make` returns for it now. A failure is not
    /// kept.
    pub(crate) fn get_or<E>(
        &self,
        key: K,
        make: impl FnOnce() -> Result<V, E>,
    ) -> Result<Arc<V>, E> {
        if let Some(made) = self.lock().get(&key) {
            return Ok(Arc::clone(made));
        }
        // Outside of the lock, so that nobody waits for another's value.
        let value = Arc::new(make()?);
        let mut made = self.lock();
        if self.capacity <= made.len() {
            made.clear();
        }
        Ok(Arc::clone(made.entry(key).or_insert(value)))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<K, Arc<V>>> {
        self.made.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_made_once_is_kept_and_what_fails_is_not() {
        let memo: BoundedCache<u8, u8> = BoundedCache::new(2);
        assert_eq!(memo.get_or(1, || Err::<u8, _>("no")), Err("no"));
        let made = |key, value| *memo.get_or::<()>(key, || Ok(value)).unwrap();
        assert_eq!([made(1, 10), made(1, 11)], [10, 10]);
        assert_eq!([made(2, 20), made(3, 30), made(1, 12)], [20, 30, 12]);
    }
}
