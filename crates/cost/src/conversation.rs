//! The turns of a conversation, and what they add up to.

/// One turn: the model writes a call, and reads its result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Turn {
    pub written: u64,
    pub read: u64,
}

/// A whole conversation, in tokens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conversation {
    /// What stands before everything in every request: definitions, or names of tools.
    pub definitions: u64,
    /// What the user asked for.
    pub question: u64,
    pub turns: Vec<Turn>,
}

/// What conversations add up to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// How often the model was asked: once per turn, and once for its answer.
    pub requests: u64,
    /// All tokens that were sent to the model.
    pub context: u64,
    /// Those of them that the request before had already, from its first token on.
    pub cached: u64,
    pub written: u64,
    /// All tokens of results, each counted once.
    pub read: u64,
    /// The longest request.
    pub peak: u64,
}

/// The price of a token, where one that is sent without a cache costs 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prices {
    pub cached: f64,
    pub fresh: f64,
    pub written: f64,
}

impl Prices {
    /// Every token that is sent costs the same.
    pub const WITHOUT_CACHE: Prices = Prices { cached: 1.0, fresh: 1.0, written: 5.0 };
    /// What was sent before costs a tenth, what is new a quarter more, as it is kept.
    pub const WITH_CACHE: Prices = Prices { cached: 0.1, fresh: 1.25, written: 5.0 };
}

impl Conversation {
    /// What it adds up to. The last request is the one that the model answers
    /// without a call.
    pub fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        let (mut size, mut before) = (self.definitions + self.question, 0);
        let last = Turn::default();
        for turn in self.turns.iter().chain([&last]) {
            totals.requests += 1;
            totals.context += size;
            totals.cached += before;
            totals.peak = totals.peak.max(size);
            totals.written += turn.written;
            totals.read += turn.read;
            before = size;
            size += turn.written + turn.read;
        }
        totals
    }
}

impl Totals {
    /// What it costs, in tokens that are sent without a cache.
    #[expect(clippy::cast_precision_loss, reason = "token counts are far below 2^52")]
    pub fn price(&self, prices: Prices) -> f64 {
        let fresh = self.context - self.cached;
        self.cached as f64 * prices.cached
            + fresh as f64 * prices.fresh
            + self.written as f64 * prices.written
    }
}

impl std::ops::Add for Totals {
    type Output = Totals;

    fn add(self, other: Totals) -> Totals {
        Totals {
            requests: self.requests + other.requests,
            context: self.context + other.context,
            cached: self.cached + other.cached,
            written: self.written + other.written,
            read: self.read + other.read,
            peak: self.peak.max(other.peak),
        }
    }
}

impl std::iter::Sum for Totals {
    fn sum<I: Iterator<Item = Totals>>(all: I) -> Totals {
        all.fold(Totals::default(), |sum, one| sum + one)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_request_sends_everything_before_it_once_more() {
        let turns = vec![Turn { written: 10, read: 100 }, Turn { written: 20, read: 0 }];
        let totals = Conversation { definitions: 1000, question: 5, turns }.totals();
        // 1005, then 1005 + 110, then 1115 + 20.
        assert_eq!(totals.context, 1005 + 1115 + 1135);
        assert_eq!(totals.cached, 1005 + 1115, "all of the request before");
        assert_eq!((totals.requests, totals.peak), (3, 1135));
        assert_eq!((totals.written, totals.read), (30, 100));
        assert!((totals.price(Prices::WITHOUT_CACHE) - (3255.0 + 150.0)).abs() < 1e-9);
        let cheap = 2120.0 * 0.1 + 1135.0 * 1.25 + 150.0;
        assert!((totals.price(Prices::WITH_CACHE) - cheap).abs() < 1e-9);
        assert_eq!((totals + totals).requests, 6);
    }
}
