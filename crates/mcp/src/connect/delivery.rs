//! Posts messages that get no reply, with retries: responses to a server's requests, and
//! notifications.
//!
//! If the server is unreachable for a moment, the message is sent again a few times.
//! Sending it twice does no harm: the server ignores a second response. Requests are not
//! sent this way.

use std::time::Duration;

use http::{HeaderValue, StatusCode};
use tokio::time::sleep;
use tool::{Backoff, Failure, Sent};

use super::credential::{Credential, RepeatPolicy, send_with_credential};
use super::http::{error_body, error_failure, failure_without_response};

/// The maximum number of attempts.
const TRIES: u32 = 6;

/// The pauses between attempts, half of each random.
const PAUSES: Backoff =
    Backoff::doubling(Duration::from_millis(250), LONGEST_PAUSE).with_jitter(0.5);

/// If the server asks for a longer pause than this, the message is given up.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Why a message was not delivered.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Undelivered {
    /// It may succeed when sent again.
    Retryable(Failure),
    /// The server received it and refused it.
    Refused(Failure),
}

/// Sends a message until it is accepted, refused, or out of attempts. `request` builds the
/// request with an `Authorization` header.
pub(super) async fn deliver(
    credential: Option<&dyn Credential>,
    request: impl Fn(Option<&HeaderValue>) -> reqwest::RequestBuilder,
) -> Result<(), Undelivered> {
    retry(|| send_once(credential, &request)).await
}

async fn retry<T>(attempt: impl Fn() -> T) -> Result<(), Undelivered>
where
    T: Future<Output = Result<(), Undelivered>>,
{
    let (mut n_tried, mut has_left) = (0, false);
    loop {
        let Err(undelivered) = attempt().await else { return Ok(()) };
        n_tried += 1;
        match &undelivered {
            // An earlier attempt had arrived without our knowing.
            Undelivered::Refused(_) if has_left => return Ok(()),
            Undelivered::Refused(_) => return Err(undelivered),
            Undelivered::Retryable(failure) => {
                // A refusal of credentials means that it was not accepted.
                let is_refused = matches!(failure, Failure::Unauthorized { .. });
                has_left |= failure.sent() == Sent::Perhaps && !is_refused;
                let Some(pause) = pause_before_retry(failure, n_tried, rand::random()) else {
                    return Err(undelivered);
                };
                sleep(pause).await;
            }
        }
    }
}

/// Returns the pause before the next attempt; `None` to give up. `chance`, from 0 to 1, is
/// the random part.
fn pause_before_retry(failure: &Failure, n_tried: u32, chance: f64) -> Option<Duration> {
    if TRIES <= n_tried {
        return None;
    }
    let pause = PAUSES.pause_after(n_tried, chance);
    let wanted = failure.retry_after().unwrap_or_default();
    (wanted <= LONGEST_PAUSE).then_some(pause.max(wanted))
}

async fn send_once(
    credential: Option<&dyn Credential>,
    request: impl Fn(Option<&HeaderValue>) -> reqwest::RequestBuilder,
) -> Result<(), Undelivered> {
    let to_failure = |error: reqwest::Error| match error.is_timeout() && !error.is_connect() {
        true => Failure::Timeout { after: Duration::ZERO },
        false => failure_without_response(&error),
    };
    let response =
        match send_with_credential(credential, RepeatPolicy::Always, request, to_failure).await {
            Ok(response) => response,
            // It has the message but responds slowly.
            Err(Failure::Timeout { .. }) => return Ok(()),
            Err(failure @ Failure::Forbidden { .. }) => return Err(Undelivered::Refused(failure)),
            Err(failure) => return Err(Undelivered::Retryable(failure)),
        };
    let (status, headers) = (response.status(), response.headers().clone());
    if status.is_success() || status.is_informational() {
        return Ok(());
    }
    let body = error_body(response).await;
    let failure = error_failure(status, &headers, &body);
    Err(if is_transient(status) {
        Undelivered::Retryable(failure)
    } else {
        Undelivered::Refused(failure)
    })
}

/// Returns whether the same message may be accepted when it is sent later.
fn is_transient(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::UNAUTHORIZED
            | StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT
    )
}

impl Undelivered {
    pub(super) fn failure(&self) -> &Failure {
        match self {
            Undelivered::Retryable(failure) | Undelivered::Refused(failure) => failure,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use tokio::time::Instant;

    use super::*;

    fn busy() -> Undelivered {
        Undelivered::Retryable(Failure::Unavailable { reason: "busy".to_owned() })
    }

    fn cut_off() -> Undelivered {
        Undelivered::Retryable(Failure::Lost { reason: "cut off".to_owned(), sent: Sent::Perhaps })
    }

    fn unknown() -> Undelivered {
        Undelivered::Refused(Failure::Unusable { reason: "what question?".to_owned() })
    }

    /// Returns how it ends when the tries end like this, the last for ever, and how
    /// often it was tried.
    async fn check(mut tries: Vec<Result<(), Undelivered>>) -> (Result<(), Undelivered>, usize) {
        tries.reverse();
        let (tries, n_tried) = (RefCell::new(tries), RefCell::new(0));
        let attempt = || {
            *n_tried.borrow_mut() += 1;
            let mut tries = tries.borrow_mut();
            let next = if tries.len() == 1 { tries.last().cloned() } else { tries.pop() };
            std::future::ready(next.unwrap())
        };
        let end = retry(attempt).await;
        (end, n_tried.into_inner())
    }

    #[tokio::test(start_paused = true)]
    async fn a_message_that_meets_a_server_that_is_busy_goes_again() {
        assert_eq!(check(vec![Ok(())]).await, (Ok(()), 1));
        assert_eq!(check(vec![Err(busy()), Err(cut_off()), Ok(())]).await, (Ok(()), 3));
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_stays_away_is_given_up_after_a_few_seconds() {
        let since = Instant::now();
        assert_eq!(check(vec![Err(busy())]).await, (Err(busy()), 6));
        let lasted = since.elapsed();
        assert!((Duration::from_secs(3)..Duration::from_secs(8)).contains(&lasted), "{lasted:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_refused_is_not_sent_again() {
        assert_eq!(check(vec![Err(unknown())]).await, (Err(unknown()), 1));
        assert_eq!(check(vec![Err(busy()), Err(unknown())]).await, (Err(unknown()), 2));
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_refused_after_it_may_have_arrived_had_arrived() {
        assert_eq!(check(vec![Err(cut_off()), Err(unknown())]).await, (Ok(()), 2));
    }

    #[test]
    fn the_pause_that_a_server_wants_is_kept_unless_it_is_too_long() {
        let after = |seconds| {
            let retry_after = Some(Duration::from_secs(seconds));
            pause_before_retry(&Failure::RateLimited { retry_after, sent: Sent::Perhaps }, 1, 1.0)
        };
        assert_eq!(after(0), Some(Duration::from_millis(250)));
        assert_eq!(after(7), Some(Duration::from_secs(7)));
        assert_eq!(after(3600), None);
    }
}
