//! Messages: a list for every mailbox, whose one receiver waits on the server.

use std::time::Duration;

use bytes::Bytes;
use redis::cmd;
use store::state::{Messages, StateFuture, fits, later, ready};

use crate::{Valkey, life_millis};

/// How many messages are taken at once.
const AT_ONCE: usize = 100;

/// What a request that waits takes longer than it waits.
const ROUND_TRIP: Duration = Duration::from_secs(5);

impl Messages for Valkey {
    fn send<'a>(
        &'a self,
        mailbox: &'a str,
        message: Bytes,
        life: Duration,
        within: Duration,
    ) -> StateFuture<'a, ()> {
        if let Err(error) = fits(message.len(), self.0.limits.value_bytes) {
            return ready(Err(error));
        }
        later(async move {
            let (keys, script) = ([self.key("m", mailbox)], &self.0.scripts.send);
            let numbers = [self.0.limits.n_messages.to_string(), life_millis(life).to_string()];
            let arguments = [message.as_ref(), numbers[0].as_bytes(), numbers[1].as_bytes()];
            self.0.link.script::<u8>(within, script, &keys, &arguments).await.map(drop)
        })
    }

    fn receive<'a>(&'a self, mailbox: &'a str, wait: Duration) -> StateFuture<'a, Vec<Bytes>> {
        later(async move {
            // To the server, zero is for ever.
            let mut pop = match wait.is_zero() {
                true => cmd("LMPOP"),
                false => cmd("BLMPOP").arg(wait.as_secs_f64().max(0.001)).clone(),
            };
            pop.arg(1).arg(self.key("m", mailbox)).arg("LEFT").arg("COUNT").arg(AT_ONCE);
            let taken: Option<(String, Vec<Bytes>)> =
                self.0.waiting.command(wait + ROUND_TRIP, &pop).await?;
            Ok(taken.map(|(_, messages)| messages).unwrap_or_default())
        })
    }
}
