//! Leases: a value that expires, and the last fence, which outlives it.

use std::time::Duration;

use store::state::{Lease, Leases, StateError, StateFuture, later};

use crate::{Valkey, life_millis, millis};

/// How long the last fence is remembered. After that the server's clock alone
/// makes sure that the next one is larger.
const FENCE: Duration = Duration::from_secs(30 * 24 * 60 * 60);

impl Valkey {
    fn lease(&self, name: &str) -> [String; 2] {
        [self.tagged("l", name, ""), self.tagged("f", name, "")]
    }
}

impl Leases for Valkey {
    fn acquire<'a>(
        &'a self,
        name: &'a str,
        life: Duration,
        within: Duration,
    ) -> StateFuture<'a, Lease> {
        later(async move {
            let (keys, script) = (self.lease(name), &self.0.scripts.acquire);
            let numbers = [life_millis(life).to_string(), millis(FENCE).to_string()];
            let arguments = [numbers[0].as_bytes(), numbers[1].as_bytes()];
            match self.0.link.script(within, script, &keys, &arguments).await? {
                0 => Err(StateError::Conflict),
                fence => Ok(Lease { name: name.to_owned(), fence }),
            }
        })
    }

    fn renew<'a>(
        &'a self,
        lease: &'a Lease,
        life: Duration,
        within: Duration,
    ) -> StateFuture<'a, ()> {
        later(async move {
            let [key, _] = self.lease(&lease.name);
            let numbers = [lease.fence.to_string(), life_millis(life).to_string()];
            let arguments = [numbers[0].as_bytes(), numbers[1].as_bytes()];
            let script = &self.0.scripts.renew;
            match self.0.link.script::<u8>(within, script, &[key], &arguments).await? {
                0 => Err(StateError::Gone),
                _ => Ok(()),
            }
        })
    }

    fn release(&self, lease: Lease, within: Duration) -> StateFuture<'_, ()> {
        later(async move {
            let ([key, _], fence) = (self.lease(&lease.name), lease.fence.to_string());
            let (script, arguments) = (&self.0.scripts.release, [fence.as_bytes()]);
            self.0.link.script::<u8>(within, script, &[key], &arguments).await.map(drop)
        })
    }
}
