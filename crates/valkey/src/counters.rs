//! Counters in sliding windows: one script, one round trip, the server's clock.

use std::time::Duration;

use store::state::{Claim, Counters, Spending, StateFuture, later, tag};

use crate::{Valkey, millis, unexpected};

/// How long a counter without a window is kept after it was last used. Those of a
/// session that ended are not asked for again.
const UNUSED: Duration = Duration::from_secs(7 * 24 * 60 * 60);

impl Counters for Valkey {
    fn spend<'a>(&'a self, claims: &'a [Claim<'a>], within: Duration) -> StateFuture<'a, Spending> {
        later(self.judge("spend", claims, within))
    }

    fn look<'a>(&'a self, claims: &'a [Claim<'a>], within: Duration) -> StateFuture<'a, Spending> {
        later(self.judge("look", claims, within))
    }

    fn give_back<'a>(&'a self, claims: &'a [Claim<'a>], within: Duration) -> StateFuture<'a, ()> {
        later(async move {
            let numbers = claims.iter().flat_map(|claim| [claim.amount.into(), window(claim)]);
            let numbers: Vec<String> = numbers.map(|number: u64| number.to_string()).collect();
            let arguments: Vec<&[u8]> = numbers.iter().map(|number| number.as_bytes()).collect();
            let (keys, script) = (self.keys_of(claims), &self.0.scripts.give_back);
            self.0.link.script::<u8>(within, script, &keys, &arguments).await.map(drop)
        })
    }
}

impl Valkey {
    async fn judge(
        &self,
        how: &str,
        claims: &[Claim<'_>],
        within: Duration,
    ) -> Result<Spending, store::state::StateError> {
        let numbers = claims
            .iter()
            .flat_map(|claim| [claim.amount.into(), claim.limit.into(), window(claim)])
            .map(|number: u64| number.to_string());
        let numbers: Vec<String> =
            [millis(UNUSED).to_string()].into_iter().chain(numbers).collect();
        let mut arguments = vec![how.as_bytes()];
        arguments.extend(numbers.iter().map(|number| number.as_bytes()));
        let (keys, script) = (self.keys_of(claims), &self.0.scripts.spend);
        let (at, wait): (usize, i64) =
            self.0.link.script(within, script, &keys, &arguments).await?;
        let Some(at) = at.checked_sub(1) else { return Ok(Spending::Granted) };
        if claims.len() <= at {
            return Err(unexpected("a claim"));
        }
        let retry_after = u64::try_from(wait).ok().map(Duration::from_millis);
        Ok(Spending::Refused { at, retry_after })
    }

    /// The list and the sum of each claim.
    fn keys_of(&self, claims: &[Claim<'_>]) -> Vec<String> {
        let both = |claim: &Claim<'_>| {
            let (tag, rest) = (tag(claim.key), claim.key);
            [self.tagged("c", tag, rest), self.tagged("n", tag, rest)]
        };
        claims.iter().flat_map(both).collect()
    }
}

fn window(claim: &Claim<'_>) -> u64 {
    claim.window.map_or(0, millis)
}
