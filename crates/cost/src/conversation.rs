//! Adds up the tokens of a conversation between a host and a model, and their price.

/// One turn, in tokens: the model writes a call and reads its result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Turn {
    /// Tokens of the call.
    pub written: u64,
    /// Tokens of the result.
    pub read: u64,
}

/// A whole conversation, in tokens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conversation {
    /// The tool definitions, or the names of tools, at the start of every request.
    pub definitions: u64,
    /// The user's question.
    pub question: u64,
    pub turns: Vec<Turn>,
}

/// The tokens of one or more conversations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Requests to the model: one per turn, and one for its final answer.
    pub requests: u64,
    /// All tokens that were sent to the model.
    pub context: u64,
    /// Those of them that were already in the request before, as its prefix.
    pub cached: u64,
    /// All tokens that the model wrote.
    pub written: u64,
    /// All tokens of results, each counted once.
    pub read: u64,
    /// The longest request.
    pub peak: u64,
}

/// Prices per token, relative to a token that is sent without a cache.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prices {
    /// Sent, and in the cache.
    pub cached: f64,
    /// Sent, and not in the cache.
    pub fresh: f64,
    /// Written by the model.
    pub written: f64,
}

impl Prices {
    /// Every sent token costs the same.
    pub const WITHOUT_CACHE: Prices = Prices { cached: 1.0, fresh: 1.0, written: 5.0 };
    /// A cached token costs a tenth, a new one a quarter more, because it is stored.
    pub const WITH_CACHE: Prices = Prices { cached: 0.1, fresh: 1.25, written: 5.0 };
}

impl Conversation {
    /// Adds up the conversation. The model answers the last request without a call.
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
    /// Returns the price, in units of a token that is sent without a cache.
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
