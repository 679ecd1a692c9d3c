//! What was found out once and need not be found out again.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

/// A bounded store of what was made, by what it was made of. When it is full
/// it starts afresh: what is in use comes back at once.
#[derive(Debug)]
pub(crate) struct Memo<K, V> {
    room: usize,
    made: Mutex<HashMap<K, Arc<V>>>,
}

impl<K: Eq + Hash, V> Memo<K, V> {
    /// Room for so many.
    pub(crate) fn new(room: usize) -> Memo<K, V> {
        Memo { room, made: Mutex::default() }
    }

    /// What was made of this, or what `make` makes of it now. A failure is not
    /// kept.
    pub(crate) fn get_or<E>(
        &self,
        key: K,
        make: impl FnOnce() -> Result<V, E>,
    ) -> Result<Arc<V>, E> {
        if let Some(made) = self.lock().get(&key) {
            return Ok(Arc::clone(made));
        }
        // Not under the lock: nobody waits for what somebody else wants.
        let value = Arc::new(make()?);
        let mut made = self.lock();
        if self.room <= made.len() {
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
        let memo: Memo<u8, u8> = Memo::new(2);
        assert_eq!(memo.get_or(1, || Err::<u8, _>("no")), Err("no"));
        let made = |key, value| *memo.get_or::<()>(key, || Ok(value)).unwrap();
        assert_eq!([made(1, 10), made(1, 11)], [10, 10]);
        assert_eq!([made(2, 20), made(3, 30), made(1, 12)], [20, 30, 12]);
    }
}
