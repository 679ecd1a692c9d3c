//! How soon a stream that ended is opened again.
//!
//! A server may say how soon, and is believed within bounds. One whose streams
//! end at once and hold nothing, again and again, is asked less and less often,
//! whatever it says: it would be asked thousands of times a minute.

use std::time::Duration;

use tokio::time::Instant;

/// The pause when the server does not say.
const PAUSE: Duration = Duration::from_secs(1);

/// The shortest pause, and the first of those that are doubled.
const SHORTEST: Duration = Duration::from_millis(250);

/// The longest that a server may make us wait.
const LONGEST: Duration = Duration::from_secs(30);

/// What lasted this long was a stream, though nothing came on it.
const STEADY: Duration = Duration::from_secs(5);

/// Counts the streams in a row that were none.
pub(super) struct Pace {
    n_empty: u32,
    opened: Instant,
    /// No pause that the server did not ask for is longer.
    bound: Duration,
}

impl Pace {
    pub(super) fn within(bound: Duration) -> Pace {
        Pace { n_empty: 0, opened: Instant::now(), bound }
    }

    /// A stream is about to be opened.
    pub(super) fn open(&mut self) {
        self.opened = Instant::now();
    }

    /// It ended. How long to wait, when the server wants `wanted`.
    pub(super) fn ended(&mut self, came: Came, wanted: Option<Duration>) -> Duration {
        let is_empty = came == Came::Nothing && self.opened.elapsed() < STEADY;
        self.n_empty = if is_empty { self.n_empty.saturating_add(1) } else { 0 };
        let doubled = 2_u32.saturating_pow(self.n_empty.saturating_sub(1));
        match wanted {
            None => PAUSE.saturating_mul(doubled).min(self.bound),
            Some(wanted) => {
                wanted.min(LONGEST).max(SHORTEST.saturating_mul(doubled).min(self.bound))
            }
        }
    }
}

/// What a stream brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Came {
    Nothing,
    Something,
}

impl Came {
    /// An event came. One without data only says where to resume.
    pub(super) fn note(&mut self, data: &[u8]) {
        if !data.trim_ascii().is_empty() {
            *self = Came::Something;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pauses after streams that brought this.
    fn check(came: &[Came], wanted: Option<u64>) -> Vec<u128> {
        let mut pace = Pace::within(Duration::from_secs(5));
        let wanted = wanted.map(Duration::from_millis);
        came.iter().map(|came| pace.ended(*came, wanted).as_millis()).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn empty_streams_are_opened_less_and_less_often_whatever_the_server_wants() {
        let expected = [250, 500, 1000, 2000, 4000, 5000, 5000];
        assert_eq!(check(&[Came::Nothing; 7], Some(0)), expected);
        assert_eq!(check(&[Came::Nothing; 4], Some(700)), [700, 700, 1000, 2000]);
        assert_eq!(check(&[Came::Nothing; 4], None), [1000, 2000, 4000, 5000]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_that_brings_something_is_opened_again_as_the_server_wants() {
        assert_eq!(check(&[Came::Something; 3], Some(0)), [250, 250, 250]);
        assert_eq!(check(&[Came::Something; 2], Some(7000)), [7000, 7000]);
        assert_eq!(check(&[Came::Something; 2], Some(99_000)), [30_000, 30_000]);
        let turns = [Came::Nothing, Came::Nothing, Came::Something, Came::Nothing];
        assert_eq!(check(&turns, Some(0)), [250, 500, 250, 250]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_that_stood_for_a_while_was_one() {
        let mut pace = Pace::within(LONGEST);
        for _ in 0..5 {
            pace.open();
            tokio::time::sleep(STEADY).await;
            assert_eq!(pace.ended(Came::Nothing, Some(Duration::ZERO)), SHORTEST);
        }
    }
}
