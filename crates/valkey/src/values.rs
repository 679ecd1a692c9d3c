//! Single-use and expiring values.

use std::time::Duration;

use bytes::Bytes;
use redis::{Value, cmd};
use store::state::{Expiring, SingleUse, StateError, StateFuture, check_size, later, ready};

use crate::{Valkey, ttl_millis};

impl SingleUse for Valkey {
    fn put<'a>(
        &'a self,
        key: &'a str,
        value: Bytes,
        ttl: Duration,
        timeout: Duration,
    ) -> StateFuture<'a, ()> {
        if let Err(error) = check_size(value.len(), self.0.limits.value_bytes) {
            return ready(Err(error));
        }
        later(async move {
            let (keys, ttl) = ([self.key("u", key)], ttl_millis(ttl).to_string());
            let arguments = [value.as_ref(), ttl.as_bytes()];
            let script = &self.0.scripts.put_once;
            match self.0.link.script::<u8>(timeout, script, &keys, &arguments).await? {
                0 => Err(StateError::Conflict),
                _ => Ok(()),
            }
        })
    }

    /// Returns [`StateError::Gone`] for a value from before a failover: it is unknown
    /// whether it was taken.
    fn take<'a>(&'a self, key: &'a str, timeout: Duration) -> StateFuture<'a, Option<Bytes>> {
        later(async move {
            let keys = [self.key("u", key)];
            parse_bound(self.0.link.script(timeout, &self.0.scripts.take, &keys, &[]).await?)
        })
    }
}

/// Parses a script's answer with a value that is bound to the replication id.
pub(crate) fn parse_bound(answer: Value) -> Result<Option<Bytes>, StateError> {
    if let Value::BulkString(value) = answer {
        return Ok(Some(value.into()));
    }
    match answer == Value::Nil {
        true => Ok(None),
        false => Err(StateError::Gone),
    }
}

impl Expiring for Valkey {
    fn put<'a>(
        &'a self,
        key: &'a str,
        value: Bytes,
        ttl: Duration,
        timeout: Duration,
    ) -> StateFuture<'a, ()> {
        if let Err(error) = check_size(value.len(), self.0.limits.value_bytes) {
            return ready(Err(error));
        }
        later(async move {
            let mut set = cmd("SET");
            set.arg(self.key("e", key)).arg(value.as_ref()).arg("PX").arg(ttl_millis(ttl));
            self.0.link.command(timeout, &set).await
        })
    }

    fn get<'a>(&'a self, key: &'a str, timeout: Duration) -> StateFuture<'a, Option<Bytes>> {
        later(async move {
            let mut get = cmd("GET");
            get.arg(self.key("e", key));
            self.0.link.command(timeout, &get).await
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
        if let Err(error) = check_size(length, self.0.limits.value_bytes) {
            return ready(Err(error));
        }
        later(async move {
            let keys = [self.key("e", key)];
            let numbers = [at.to_string(), ttl_millis(ttl).to_string()];
            let arguments = [numbers[0].as_bytes(), bytes.as_ref(), numbers[1].as_bytes()];
            let script = &self.0.scripts.append;
            match self.0.link.script::<u8>(timeout, script, &keys, &arguments).await? {
                0 => Err(StateError::Conflict),
                _ => Ok(()),
            }
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
        if let Err(error) = check_size(next.len(), self.0.limits.value_bytes) {
            return ready(Err(error));
        }
        later(async move {
            let (keys, ttl) = ([self.key("e", key)], ttl_millis(ttl).to_string());
            let mut arguments = vec![next.as_ref(), ttl.as_bytes()];
            arguments.extend(expected.as_deref());
            let script = &self.0.scripts.replace;
            match self.0.link.script::<u8>(timeout, script, &keys, &arguments).await? {
                0 => Err(StateError::Conflict),
                _ => Ok(()),
            }
        })
    }

    fn touch<'a>(
        &'a self,
        key: &'a str,
        ttl: Duration,
        timeout: Duration,
    ) -> StateFuture<'a, bool> {
        later(async move {
            let mut touch = cmd("PEXPIRE");
            touch.arg(self.key("e", key)).arg(ttl_millis(ttl));
            self.0.link.command(timeout, &touch).await
        })
    }

    fn remove<'a>(&'a self, key: &'a str, timeout: Duration) -> StateFuture<'a, bool> {
        later(async move {
            let mut remove = cmd("DEL");
            remove.arg(self.key("e", key));
            self.0.link.command(timeout, &remove).await
        })
    }
}
