//! Messages: a list for every mailbox, on which its one receiver blocks.

use std::time::Duration;

use bytes::Bytes;
use redis::cmd;
use store::state::{Messages, StateFuture, check_size, later, ready};

use crate::{Valkey, ttl_millis};

/// The maximum number of messages that are received at once.
const AT_ONCE: usize = 100;

/// How much longer than its waiting time a blocking request may take.
const ROUND_TRIP: Duration = Duration::from_secs(5);

impl Messages for Valkey {
    fn send<'a>(
        &'a self,
        mailbox: &'a str,
        message: Bytes,
        ttl: Duration,
        timeout: Duration,
    ) -> StateFuture<'a, ()> {
        if let Err(error) = check_size(message.len(), self.0.limits.value_bytes) {
            return ready(Err(error));
        }
        later(async move {
            let (keys, script) = ([self.key("m", mailbox)], &self.0.scripts.send);
            let numbers = [self.0.limits.n_messages.to_string(), ttl_millis(ttl).to_string()];
            let arguments = [message.as_ref(), numbers[0].as_bytes(), numbers[1].as_bytes()];
            self.0.link.script::<u8>(timeout, script, &keys, &arguments).await.map(drop)
        })
    }

    fn receive<'a>(&'a self, mailbox: &'a str, wait: Duration) -> StateFuture<'a, Vec<Bytes>> {
        later(async move {
            // Zero means for ever to the server.
            let mut pop = match wait.is_zero() {
                true => cmd("LMPOP"),
                false => cmd("BLMPOP").arg(wait.as_secs_f64().max(0.001)).clone(),
            };
            pop.arg(1).arg(self.key("m", mailbox)).arg("LEFT").arg("COUNT").arg(AT_ONCE);
            let taken: Option<(String, Vec<Bytes>)> =
                self.0.blocking_link.command(wait + ROUND_TRIP, &pop).await?;
            Ok(taken.map(|(_, messages)| messages).unwrap_or_default())
        })
    }
}
