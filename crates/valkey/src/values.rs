//! Single uses and expiring values.

use std::time::Duration;

use bytes::Bytes;
use redis::{Value, cmd};
use store::state::{Expiring, SingleUse, StateError, StateFuture, fits, later, ready};

use crate::{Valkey, life_millis};

impl SingleUse for Valkey {
    fn put<'a>(
        &'a self,
        key: &'a str,
        value: Bytes,
        life: Duration,
        within: Duration,
    ) -> StateFuture<'a, ()> {
        if let Err(error) = fits(value.len(), self.0.limits.value_bytes) {
            return ready(Err(error));
        }
        later(async move {
            let (keys, life) = ([self.key("u", key)], life_millis(life).to_string());
            let arguments = [value.as_ref(), life.as_bytes()];
            let script = &self.0.scripts.put_once;
            match self.0.link.script::<u8>(within, script, &keys, &arguments).await? {
                0 => Err(StateError::Conflict),
                _ => Ok(()),
            }
        })
    }

    /// [`StateError::Gone`] for what was put before a failover: nobody knows any
    /// more whether it was taken.
    fn take<'a>(&'a self, key: &'a str, within: Duration) -> StateFuture<'a, Option<Bytes>> {
        later(async move {
            let keys = [self.key("u", key)];
            let taken = self.0.link.script(within, &self.0.scripts.take, &keys, &[]).await?;
            if let Value::BulkString(value) = taken {
                return Ok(Some(value.into()));
            }
            match taken == Value::Nil {
                true => Ok(None),
                false => Err(StateError::Gone),
            }
        })
    }
}

impl Expiring for Valkey {
    fn put<'a>(
        &'a self,
        key: &'a str,
        value: Bytes,
        life: Duration,
        within: Duration,
    ) -> StateFuture<'a, ()> {
        if let Err(error) = fits(value.len(), self.0.limits.value_bytes) {
            return ready(Err(error));
        }
        later(async move {
            let mut set = cmd("SET");
            set.arg(self.key("e", key)).arg(value.as_ref()).arg("PX").arg(life_millis(life));
            self.0.link.command(within, &set).await
        })
    }

    fn get<'a>(&'a self, key: &'a str, within: Duration) -> StateFuture<'a, Option<Bytes>> {
        later(async move {
            let mut get = cmd("GET");
            get.arg(self.key("e", key));
            self.0.link.command(within, &get).await
        })
    }

    fn touch<'a>(
        &'a self,
        key: &'a str,
        life: Duration,
        within: Duration,
    ) -> StateFuture<'a, bool> {
        later(async move {
            let mut touch = cmd("PEXPIRE");
            touch.arg(self.key("e", key)).arg(life_millis(life));
            self.0.link.command(within, &touch).await
        })
    }

    fn remove<'a>(&'a self, key: &'a str, within: Duration) -> StateFuture<'a, bool> {
        later(async move {
            let mut remove = cmd("DEL");
            remove.arg(self.key("e", key));
            self.0.link.command(within, &remove).await
        })
    }
}
