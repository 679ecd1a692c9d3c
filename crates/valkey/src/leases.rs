//! Leases: one expiring value each, and the last fence, which outlives it.

use std::time::Duration;

use store::state::{Lease, Leases, StateError, StateFuture, later};

use crate::{Valkey, millis, ttl_millis};

/// How long the last fence is stored. After that only the server's clock makes sure
/// that the next one is larger.
const FENCE_TTL: Duration = Duration::from_secs(30 * 24 * 60 * 60);

impl Valkey {
    /// Returns the keys of a lease and of its last fence.
    fn lease_keys(&self, name: &str) -> [String; 2] {
        [self.tagged("l", name, ""), self.tagged("f", name, "")]
    }
}

impl Leases for Valkey {
    fn acquire<'a>(
        &'a self,
        name: &'a str,
        ttl: Duration,
        timeout: Duration,
    ) -> StateFuture<'a, Lease> {
        later(async move {
            let (keys, script) = (self.lease_keys(name), &self.0.scripts.acquire);
            let numbers = [ttl_millis(ttl).to_string(), millis(FENCE_TTL).to_string()];
            let arguments = [numbers[0].as_bytes(), numbers[1].as_bytes()];
            match self.0.link.script(timeout, script, &keys, &arguments).await? {
                0 => Err(StateError::Conflict),
                fence => Ok(Lease { name: name.to_owned(), fence }),
            }
        })
    }

    fn renew<'a>(
        &'a self,
        lease: &'a Lease,
        ttl: Duration,
        timeout: Duration,
    ) -> StateFuture<'a, ()> {
        later(async move {
            let [key, _] = self.lease_keys(&lease.name);
            let numbers = [lease.fence.to_string(), ttl_millis(ttl).to_string()];
            let arguments = [numbers[0].as_bytes(), numbers[1].as_bytes()];
            let script = &self.0.scripts.renew;
            match self.0.link.script::<u8>(timeout, script, &[key], &arguments).await? {
                0 => Err(StateError::Gone),
                _ => Ok(()),
            }
        })
    }

    fn release(&self, lease: Lease, timeout: Duration) -> StateFuture<'_, ()> {
        later(async move {
            let ([key, _], fence) = (self.lease_keys(&lease.name), lease.fence.to_string());
            let (script, arguments) = (&self.0.scripts.release, [fence.as_bytes()]);
            self.0.link.script::<u8>(timeout, script, &[key], &arguments).await.map(drop)
        })
    }
}
