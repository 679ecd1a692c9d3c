//! Counters over sliding windows: one script with one round trip, by the server's
//! clock.

use std::time::Duration;

use store::state::{Claim, Counters, Spending, StateFuture, later, tag};

use crate::{Valkey, millis, unexpected};

/// How long a counter without a window is stored after its last use. Those of a
/// session that has ended are not used again.
const UNUSED_TTL: Duration = Duration::from_secs(7 * 24 * 60 * 60);

impl Counters for Valkey {
    fn spend<'a>(
        &'a self,
        claims: &'a [Claim<'a>],
        timeout: Duration,
    ) -> StateFuture<'a, Spending> {
        later(self.apply("spend", claims, timeout))
    }

    fn check<'a>(
        &'a self,
        claims: &'a [Claim<'a>],
        timeout: Duration,
    ) -> StateFuture<'a, Spending> {
        later(self.apply("look", claims, timeout))
    }

    fn give_back<'a>(&'a self, claims: &'a [Claim<'a>], timeout: Duration) -> StateFuture<'a, ()> {
        later(async move {
            let numbers =
                claims.iter().flat_map(|claim| [claim.amount.into(), window_millis(claim)]);
            let numbers: Vec<String> = numbers.map(|number: u64| number.to_string()).collect();
            let arguments: Vec<&[u8]> = numbers.iter().map(|number| number.as_bytes()).collect();
            let (keys, script) = (self.claim_keys(claims), &self.0.scripts.give_back);
            self.0.link.script::<u8>(timeout, script, &keys, &arguments).await.map(drop)
        })
    }
}

impl Valkey {
    /// Runs the script, which spends the claims or, for the operation `look`, only
    /// checks them.
    async fn apply(
        &self,
        operation: &str,
        claims: &[Claim<'_>],
        timeout: Duration,
    ) -> Result<Spending, store::state::StateError> {
        let numbers = claims
            .iter()
            .flat_map(|claim| [claim.amount.into(), claim.limit.into(), window_millis(claim)])
            .map(|number: u64| number.to_string());
        let numbers: Vec<String> =
            [millis(UNUSED_TTL).to_string()].into_iter().chain(numbers).collect();
        let mut arguments = vec![operation.as_bytes()];
        arguments.extend(numbers.iter().map(|number| number.as_bytes()));
        let (keys, script) = (self.claim_keys(claims), &self.0.scripts.spend);
        let (number, wait): (usize, i64) =
            self.0.link.script(timeout, script, &keys, &arguments).await?;
        let Some(claim_index) = number.checked_sub(1) else { return Ok(Spending::Granted) };
        if claims.len() <= claim_index {
            return Err(unexpected("a claim"));
        }
        let retry_after = u64::try_from(wait).ok().map(Duration::from_millis);
        Ok(Spending::Refused { claim_index, retry_after })
    }

    /// Returns the keys of each claim: of the list of amounts, and of their sum.
    fn claim_keys(&self, claims: &[Claim<'_>]) -> Vec<String> {
        let both = |claim: &Claim<'_>| {
            let (tag, rest) = (tag(claim.key), claim.key);
            [self.tagged("c", tag, rest), self.tagged("n", tag, rest)]
        };
        claims.iter().flat_map(both).collect()
    }
}

fn window_millis(claim: &Claim<'_>) -> u64 {
    claim.window.map_or(0, millis)
}
