//! A small cache with a fixed capacity.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

/// Values by key. When it is full, all of them are dropped: those that are still in use
/// are soon computed again.
#[derive(Debug)]
pub(crate) struct BoundedCache<K, V> {
    capacity: usize,
    values: Mutex<HashMap<K, Arc<V>>>,
}

impl<K: Eq + Hash, V> BoundedCache<K, V> {
    /// Makes a cache for at most `capacity` values.
    pub(crate) fn new(capacity: usize) -> BoundedCache<K, V> {
        BoundedCache { capacity, values: Mutex::default() }
    }

    /// Returns the cached value of a key, or makes and caches it. A failure is not
    /// cached.
    pub(crate) fn get_or_try_insert_with<E>(
        &self,
        key: K,
        make: impl FnOnce() -> Result<V, E>,
    ) -> Result<Arc<V>, E> {
        if let Some(value) = self.lock().get(&key) {
            return Ok(Arc::clone(value));
        }
        // Outside of the lock, so that nobody waits for another's value.
        let value = Arc::new(make()?);
        let mut values = self.lock();
        if self.capacity <= values.len() {
            values.clear();
        }
        Ok(Arc::clone(values.entry(key).or_insert(value)))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<K, Arc<V>>> {
        self.values.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_made_once_is_kept_and_what_fails_is_not() {
        let memo: BoundedCache<u8, u8> = BoundedCache::new(2);
        assert_eq!(memo.get_or_try_insert_with(1, || Err::<u8, _>("no")), Err("no"));
        let made = |key, value| *memo.get_or_try_insert_with::<()>(key, || Ok(value)).unwrap();
        assert_eq!([made(1, 10), made(1, 11)], [10, 10]);
        assert_eq!([made(2, 20), made(3, 30), made(1, 12)], [20, 30, 12]);
    }
}
