//! The pauses before a stream that ended is opened again.
//!
//! A server may say how soon, and is believed within bounds. One whose streams
//! end at once and hold nothing, again and again, is asked less and less often,
//! whatever it says: it would be asked thousands of times a minute.

use std::time::Duration;

use tokio::time::Instant;
use tool::Backoff;

/// The pause when the server does not say.
const PAUSE: Duration = Duration::from_secs(1);

/// The shortest pause, and the first of those that are doubled.
const SHORTEST: Duration = Duration::from_millis(250);

/// The longest that a server may make us wait.
const LONGEST: Duration = Duration::from_secs(30);

/// What lasted this long was a stream, though nothing came on it.
const STEADY: Duration = Duration::from_secs(5);

/// Counts the streams in a row that were none.
pub(super) struct ReconnectDelay {
    /// After streams in a row that brought nothing, as the server wants it.
    wanted: Backoff,
    /// The same where it does not say.
    unsaid: Backoff,
    opened: Instant,
}

impl ReconnectDelay {
    pub(super) fn within(bound: Duration) -> ReconnectDelay {
        ReconnectDelay {
            wanted: Backoff::doubling(SHORTEST, bound),
            unsaid: Backoff::doubling(PAUSE, bound),
            opened: Instant::now(),
        }
    }

    /// A stream is about to be opened.
    pub(super) fn open(&mut self) {
        self.opened = Instant::now();
    }

    /// It ended. How long to wait, when the server wants `wanted`.
    pub(super) fn ended(&mut self, received: Received, wanted: Option<Duration>) -> Duration {
        let is_empty = received == Received::Nothing && self.opened.elapsed() < STEADY;
        for backoff in [&mut self.wanted, &mut self.unsaid] {
            if is_empty {
                backoff.fail();
            } else {
                backoff.reset();
            }
        }
        match wanted {
            None => self.unsaid.pause(1.0),
            Some(wanted) => wanted.min(LONGEST).max(self.wanted.pause(1.0)),
        }
    }
}

/// What a stream brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Received {
    Nothing,
    Something,
}

impl Received {
    /// An event came. One without data only says where to resume.
    pub(super) fn note(&mut self, data: &[u8]) {
        if !data.trim_ascii().is_empty() {
            *self = Received::Something;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pauses after streams that brought this.
    fn check(received: &[Received], wanted: Option<u64>) -> Vec<u128> {
        let mut delay = ReconnectDelay::within(Duration::from_secs(5));
        let wanted = wanted.map(Duration::from_millis);
        received.iter().map(|one| delay.ended(*one, wanted).as_millis()).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn empty_streams_are_opened_less_and_less_often_whatever_the_server_wants() {
        let expected = [250, 500, 1000, 2000, 4000, 5000, 5000];
        assert_eq!(check(&[Received::Nothing; 7], Some(0)), expected);
        assert_eq!(check(&[Received::Nothing; 4], Some(700)), [700, 700, 1000, 2000]);
        assert_eq!(check(&[Received::Nothing; 4], None), [1000, 2000, 4000, 5000]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_that_brings_something_is_opened_again_as_the_server_wants() {
        assert_eq!(check(&[Received::Something; 3], Some(0)), [250, 250, 250]);
        assert_eq!(check(&[Received::Something; 2], Some(7000)), [7000, 7000]);
        assert_eq!(check(&[Received::Something; 2], Some(99_000)), [30_000, 30_000]);
        let turns = [Received::Nothing, Received::Nothing, Received::Something, Received::Nothing];
        assert_eq!(check(&turns, Some(0)), [250, 500, 250, 250]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_that_stood_for_a_while_was_one() {
        let mut delay = ReconnectDelay::within(LONGEST);
        for _ in 0..5 {
            delay.open();
            tokio::time::sleep(STEADY).await;
            assert_eq!(delay.ended(Received::Nothing, Some(Duration::ZERO)), SHORTEST);
        }
    }
}
