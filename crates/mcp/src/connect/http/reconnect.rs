//! Computes the pause before an event stream that ended is opened again.
//!
//! The server may request a pause (`retry:`), within limits. If its streams end at once
//! without events, again and again, the pause doubles each time, whatever it requests:
//! otherwise it would get thousands of requests a minute.

use std::time::Duration;

use tokio::time::Instant;
use tool::Backoff;

/// The pause when the server requests none.
const PAUSE: Duration = Duration::from_secs(1);

/// The shortest pause, and the first of those that are doubled.
const SHORTEST: Duration = Duration::from_millis(250);

/// The longest pause that a server may request.
const LONGEST: Duration = Duration::from_secs(30);

/// A stream that lasted this long counts as successful, even without events.
const STEADY: Duration = Duration::from_secs(5);

/// The reconnect pause, which grows with empty streams in a row.
pub(super) struct ReconnectDelay {
    /// The minimum pause when the server requests one.
    minimum_pause: Backoff,
    /// The pause when the server requests none.
    default_pause: Backoff,
    opened: Instant,
}

impl ReconnectDelay {
    pub(super) fn new(longest: Duration) -> ReconnectDelay {
        ReconnectDelay {
            minimum_pause: Backoff::doubling(SHORTEST, longest),
            default_pause: Backoff::doubling(PAUSE, longest),
            opened: Instant::now(),
        }
    }

    /// Notes that a stream is about to be opened.
    pub(super) fn note_opened(&mut self) {
        self.opened = Instant::now();
    }

    /// Returns the pause after a stream ended; `requested` is the pause that the server
    /// requested.
    pub(super) fn pause_after_end(
        &mut self,
        received: Received,
        requested: Option<Duration>,
    ) -> Duration {
        let is_empty = received == Received::Nothing && self.opened.elapsed() < STEADY;
        for backoff in [&mut self.minimum_pause, &mut self.default_pause] {
            if is_empty {
                backoff.fail();
            } else {
                backoff.reset();
            }
        }
        match requested {
            None => self.default_pause.pause(1.0),
            Some(requested) => requested.min(LONGEST).max(self.minimum_pause.pause(1.0)),
        }
    }
}

/// Whether one connection of a stream brought an event with data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Received {
    /// No event, or only empty ones.
    Nothing,
    Data,
}

impl Received {
    /// Notes an event. One without data only carries an id to resume from.
    pub(super) fn note(&mut self, data: &[u8]) {
        if !data.trim_ascii().is_empty() {
            *self = Received::Data;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pauses after streams that brought this.
    fn check(received: &[Received], minimum_pause: Option<u64>) -> Vec<u128> {
        let mut delay = ReconnectDelay::new(Duration::from_secs(5));
        let minimum_pause = minimum_pause.map(Duration::from_millis);
        received.iter().map(|one| delay.pause_after_end(*one, minimum_pause).as_millis()).collect()
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
        assert_eq!(check(&[Received::Data; 3], Some(0)), [250, 250, 250]);
        assert_eq!(check(&[Received::Data; 2], Some(7000)), [7000, 7000]);
        assert_eq!(check(&[Received::Data; 2], Some(99_000)), [30_000, 30_000]);
        let turns = [Received::Nothing, Received::Nothing, Received::Data, Received::Nothing];
        assert_eq!(check(&turns, Some(0)), [250, 500, 250, 250]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_that_stood_for_a_while_was_one() {
        let mut delay = ReconnectDelay::new(LONGEST);
        for _ in 0..5 {
            delay.note_opened();
            tokio::time::sleep(STEADY).await;
            assert_eq!(delay.pause_after_end(Received::Nothing, Some(Duration::ZERO)), SHORTEST);
        }
    }
}
