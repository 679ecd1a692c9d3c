//! Expiring values that a failover makes void.
//!
//! A failover may bring back a value without its last changes. For most values that
//! is one more reading; where it would allow something a second time, the value must
//! rather be void. So each begins with the replication id of its server, as
//! single-use values do, and the server compares it in the step that reads or changes
//! the value.

use std::time::Duration;

use bytes::Bytes;
use redis::cmd;
use store::state::{Expiring, StateError, StateFuture, check_size, later, ready};

use crate::scripts::Script;
use crate::values::parse_bound;
use crate::{Valkey, ttl_millis};

/// Expiring values that are void after a failover and after a restart of the server:
/// then reading and changing one is [`StateError::Gone`], and `put` begins a new one.
/// They are apart from the other expiring values of the same store.
#[derive(Clone)]
pub struct EpochValues(pub Valkey);

impl EpochValues {
    fn key(&self, key: &str) -> [String; 1] {
        [self.0.key("v", key)]
    }

    fn check_size(&self, n_bytes: usize) -> Result<(), StateError> {
        check_size(n_bytes, self.0.0.limits.value_bytes)
    }

    /// Runs a script that changes a value.
    async fn change(
        &self,
        script: &Script,
        key: &str,
        arguments: &[&[u8]],
        timeout: Duration,
    ) -> Result<(), StateError> {
        match self.0.0.link.script::<u8>(timeout, script, &self.key(key), arguments).await? {
            0 => Err(StateError::Conflict),
            1 => Ok(()),
            _ => Err(StateError::Gone),
        }
    }
}

impl Expiring for EpochValues {
    fn put<'a>(
        &'a self,
        key: &'a str,
        value: Bytes,
        ttl: Duration,
        timeout: Duration,
    ) -> StateFuture<'a, ()> {
        if let Err(error) = self.check_size(value.len()) {
            return ready(Err(error));
        }
        later(async move {
            let ttl = ttl_millis(ttl).to_string();
            let arguments = [value.as_ref(), ttl.as_bytes()];
            self.change(&self.0.0.scripts.put_epoch, key, &arguments, timeout).await
        })
    }

    fn get<'a>(&'a self, key: &'a str, timeout: Duration) -> StateFuture<'a, Option<Bytes>> {
        later(async move {
            let (script, keys) = (&self.0.0.scripts.get_epoch, self.key(key));
            parse_bound(self.0.0.link.script(timeout, script, &keys, &[]).await?)
        })
    }

    fn append_at<'a>(
        &'a self,
        key: &'a str,
        at: u64,
        bytes: Bytes,
        ttl: Duration,
        timeout: Duration,
    ) -> StateFuture<'a, ()> {
        let length = usize::try_from(at).unwrap_or(usize::MAX).saturating_add(bytes.len());
        if let Err(error) = self.check_size(length) {
            return ready(Err(error));
        }
        later(async move {
            let numbers = [at.to_string(), ttl_millis(ttl).to_string()];
            let arguments = [numbers[0].as_bytes(), bytes.as_ref(), numbers[1].as_bytes()];
            self.change(&self.0.0.scripts.append_epoch, key, &arguments, timeout).await
        })
    }

    fn replace<'a>(
        &'a self,
        key: &'a str,
        expected: Option<Bytes>,
        next: Bytes,
        ttl: Duration,
        timeout: Duration,
    ) -> StateFuture<'a, ()> {
        if let Err(error) = self.check_size(next.len()) {
            return ready(Err(error));
        }
        later(async move {
            let ttl = ttl_millis(ttl).to_string();
            let mut arguments = vec![next.as_ref(), ttl.as_bytes()];
            arguments.extend(expected.as_deref());
            self.change(&self.0.0.scripts.replace_epoch, key, &arguments, timeout).await
        })
    }

    /// Also lets a void value live on, which stays void.
    fn touch<'a>(
        &'a self,
        key: &'a str,
        ttl: Duration,
        timeout: Duration,
    ) -> StateFuture<'a, bool> {
        later(async move {
            let mut touch = cmd("PEXPIRE");
            touch.arg(&self.key(key)).arg(ttl_millis(ttl));
            self.0.0.link.command(timeout, &touch).await
        })
    }

    fn remove<'a>(&'a self, key: &'a str, timeout: Duration) -> StateFuture<'a, bool> {
        later(async move {
            let mut remove = cmd("DEL");
            remove.arg(&self.key(key));
            self.0.0.link.command(timeout, &remove).await
        })
    }
}
