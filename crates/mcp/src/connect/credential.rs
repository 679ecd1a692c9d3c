//! The credentials that are sent to a server over HTTP.
//!
//! A [`Credential`] supplies the `Authorization` header before every request, and learns
//! whether the server accepted it. So an implementation decides when to renew a token, and
//! when to send nothing: a refused token is not sent again and again.

use std::time::Duration;

use async_trait::async_trait;
use http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderValue, StatusCode};
use parking_lot::{Mutex, MutexGuard};
use reqwest::{RequestBuilder, Response};
use tool::{Backoff, CredentialHealth, Failure, Reply, Sent};

use crate::http_client;
use crate::message::Message;

/// Returns the time now, in milliseconds since 1970. Tests pass their own.
pub type MillisClock = std::sync::Arc<dyn Fn() -> u64 + Send + Sync>;

/// Supplies the `Authorization` header for one server.
#[async_trait]
pub trait Credential: Send + Sync {
    /// Returns the header to send now, if any, or why no request should be sent.
    async fn present(&self) -> Result<Option<HeaderValue>, Failure>;

    /// Handles a refusal of `authorization` (the header that was sent). Returns another
    /// header to try, or the failure to report.
    async fn refused(
        &self,
        authorization: Option<&HeaderValue>,
        refusal: &Refusal,
    ) -> Result<HeaderValue, Failure>;

    /// Handles a refusal after which there is no other try. Returns the failure to report.
    fn refused_again(&self, authorization: Option<&HeaderValue>, refusal: &Refusal) -> Failure;

    /// Notes that the server accepted the credentials.
    fn accepted(&self);

    /// Returns whether the credentials work, for display.
    fn credential_health(&self) -> CredentialHealth;
}

/// A response that refuses our credentials, so that others may help.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub status: StatusCode,
    /// The `WWW-Authenticate` header, unparsed.
    pub challenge: Option<String>,
}

impl Refusal {
    /// Returns the refusal if a response with this status and headers refuses our
    /// credentials. Any other 403 denies access too, but for a reason that other
    /// credentials do not remove: the token is not renewed, and the request fails.
    pub fn parse(status: StatusCode, headers: &HeaderMap) -> Option<Refusal> {
        let challenges = headers.get_all(WWW_AUTHENTICATE).iter();
        let mut challenges = challenges.filter_map(|value| value.to_str().ok());
        let bearer = challenges.find(|text| text.to_ascii_lowercase().starts_with("bearer"));
        let first = headers.get(WWW_AUTHENTICATE).and_then(|value| value.to_str().ok());
        let challenge = bearer.or(first).map(str::to_owned);
        let refusal = Refusal { status, challenge };
        match status {
            StatusCode::UNAUTHORIZED => Some(refusal),
            StatusCode::FORBIDDEN => refusal.wanted_scope().is_some().then_some(refusal),
            _ => None,
        }
    }

    /// Returns whether the refusal proves that the request did not run. A challenge for a
    /// bearer token does: it comes from the check before the resource (RFC 9110, section
    /// 15.5.2; RFC 6750, section 3). A bare 401 or 403 may come from a service behind the
    /// server, passed on after half the work.
    pub fn is_before_running(&self) -> bool {
        let challenge = self.challenge.as_deref().unwrap_or_default();
        let scheme = challenge.split_whitespace().next().unwrap_or_default();
        scheme.trim_end_matches(',').eq_ignore_ascii_case("bearer")
            && (self.status == StatusCode::UNAUTHORIZED || self.wanted_scope().is_some())
    }

    /// Marks a failure as possibly run, unless the refusal proves otherwise.
    fn qualify(&self, failure: Failure) -> Failure {
        if self.is_before_running() { failure } else { failure.after_sending() }
    }

    /// Returns the missing scope, if that is the reason.
    pub fn wanted_scope(&self) -> Option<String> {
        let error = self.parameter("error");
        (error.as_deref() == Some("insufficient_scope"))
            .then(|| self.parameter("scope").unwrap_or_default())
    }

    /// Returns a parameter of the challenge.
    pub fn parameter(&self, name: &str) -> Option<String> {
        let text = self.challenge.as_deref()?;
        for (at, _) in text.match_indices(name) {
            let apart = text[..at].ends_with([' ', ',', '\t']);
            let Some(value) = text[at + name.len()..].trim_start().strip_prefix('=') else {
                continue;
            };
            if !apart {
                continue;
            }
            let value = value.trim_start();
            return Some(match value.strip_prefix('"') {
                Some(quoted) => quoted.split('"').next().unwrap_or_default().to_owned(),
                None => value.split([',', ' ']).next().unwrap_or_default().to_owned(),
            });
        }
        None
    }
}

/// When a refused request is sent again with other credentials.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RepeatPolicy {
    /// Only if the refusal proves that it did not run: for calls.
    IfNotRun,
    /// After every refusal: for messages that may arrive twice.
    Always,
}

/// Sends a request with the credential, and once more with another `Authorization` if it
/// is refused and `repeat` allows. `request` builds the request with a header, `to_error`
/// converts a failure to send.
pub(super) async fn send_with_credential<E: From<Failure>>(
    credential: Option<&dyn Credential>,
    repeat: RepeatPolicy,
    request: impl Fn(Option<&HeaderValue>) -> RequestBuilder,
    to_error: impl Fn(reqwest::Error) -> E,
) -> Result<Response, E> {
    let Some(credential) = credential else { return request(None).send().await.map_err(to_error) };
    let authorization = credential.present().await?;
    let response = request(authorization.as_ref()).send().await.map_err(&to_error)?;
    let refusal = match check_refused(response).await {
        Ok(response) => {
            credential.accepted();
            return Ok(response);
        }
        Err(refusal) => refusal,
    };
    // Even if this request is not repeated, the next one gets the new credentials.
    let other = credential.refused(authorization.as_ref(), &refusal).await;
    let other = other.map_err(|failure| refusal.qualify(failure))?;
    if repeat == RepeatPolicy::IfNotRun && !refusal.is_before_running() {
        let reason = format!("HTTP {}; it has new credentials now", refusal.status);
        return Err(Failure::Unauthorized { reason, sent: Sent::Perhaps }.into());
    }
    let response = request(Some(&other)).send().await.map_err(&to_error)?;
    match check_refused(response).await {
        Ok(response) => {
            credential.accepted();
            Ok(response)
        }
        Err(refusal) => {
            let failure = credential.refused_again(Some(&other), &refusal);
            Err(refusal.qualify(failure).into())
        }
    }
}

/// How many bytes of a refusal are read to see whether it holds an answer.
const MAX_REFUSAL_BODY: usize = 64 << 10;

/// Returns the response, or the refusal if it refuses our credentials. A body with a
/// JSON-RPC result is an answer, whatever the status.
async fn check_refused(response: Response) -> Result<Response, Refusal> {
    let Some(refusal) = Refusal::parse(response.status(), response.headers()) else {
        return Ok(response);
    };
    let (status, headers) = (response.status(), response.headers().clone());
    let body = http_client::body(response, MAX_REFUSAL_BODY).await.unwrap_or_default();
    match Message::parse(&body) {
        Ok(Message::Response(answer)) if matches!(answer.reply, Reply::Result(_)) => {
            let mut whole = http::Response::new(body);
            (*whole.status_mut(), *whole.headers_mut()) = (status, headers);
            Ok(whole.into())
        }
        Ok(_) | Err(_) => Err(refusal),
    }
}

/// Makes the failure for missing or refused credentials of a request that did not run.
pub(crate) fn unauthorized(reason: String) -> Failure {
    Failure::Unauthorized { reason, sent: Sent::No }
}

/// Returns the headers with `Authorization` added.
pub(super) fn with_authorization(
    headers: &HeaderMap,
    authorization: Option<&HeaderValue>,
) -> HeaderMap {
    let mut headers = headers.clone();
    if let Some(authorization) = authorization {
        headers.insert(AUTHORIZATION, authorization.clone());
    }
    headers
}

/// The credential of a server whose headers the operator configured. They cannot be
/// renewed, so after a refusal requests pause, longer each time.
pub struct FixedHeaders {
    instruction: String,
    now: MillisClock,
    refused: Mutex<RefusalBackoff>,
}

/// Counts refusals in a row, and computes when to send the next request: later each time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RefusalBackoff {
    /// The number of refusals since the server last accepted us.
    refusals: u32,
    /// How many of them are tolerated, as being about single requests.
    credit: u32,
    /// Nothing is sent before this time, in milliseconds since 1970.
    until: u64,
}

/// The pauses after refusals beyond the tolerated ones.
const PAUSES: Backoff = Backoff::doubling(Duration::from_secs(60), Duration::from_secs(3600));

/// How many refusals in a row are tolerated from a server that has accepted us: some
/// servers refuse single tools that way.
const CREDIT: u32 = 3;

impl RefusalBackoff {
    /// Counts a refusal; sets the pause if it is beyond the tolerated ones.
    pub(crate) fn note_refusal(&mut self, now: u64) {
        self.refusals = self.refusals.saturating_add(1);
        if !self.is_persistent() {
            return;
        }
        let pause = PAUSES.pause_after(self.n_beyond_credit(), 1.0);
        self.until = now + u64::try_from(pause.as_millis()).unwrap_or(u64::MAX / 2);
    }

    /// Resets the count, because the server accepted us.
    pub(crate) fn note_accepted(&mut self) {
        *self = RefusalBackoff { credit: CREDIT, ..RefusalBackoff::default() };
    }

    pub(crate) fn is_pause_over(&self, now: u64) -> bool {
        self.until <= now
    }

    /// Returns whether there are more refusals than are tolerated.
    pub(crate) fn is_persistent(&self) -> bool {
        self.n_beyond_credit() != 0
    }

    /// Returns whether there was a refusal since the server last accepted us.
    pub(crate) fn has_refusals(&self) -> bool {
        self.refusals != 0
    }

    /// Returns how many refusals are beyond the tolerated ones.
    fn n_beyond_credit(&self) -> u32 {
        self.refusals.saturating_sub(self.credit)
    }
}

impl FixedHeaders {
    /// `instruction` tells the operator in one line what to do after a refusal.
    pub fn new(instruction: &str, now: MillisClock) -> FixedHeaders {
        FixedHeaders { instruction: instruction.to_owned(), now, refused: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, RefusalBackoff> {
        self.refused.lock()
    }

    fn failure(&self) -> Failure {
        unauthorized(self.instruction.clone())
    }
}

#[async_trait]
impl Credential for FixedHeaders {
    async fn present(&self) -> Result<Option<HeaderValue>, Failure> {
        let refused = *self.lock();
        if refused.is_pause_over((self.now)()) { Ok(None) } else { Err(self.failure()) }
    }

    async fn refused(
        &self,
        authorization: Option<&HeaderValue>,
        refusal: &Refusal,
    ) -> Result<HeaderValue, Failure> {
        Err(self.refused_again(authorization, refusal))
    }

    fn refused_again(&self, _: Option<&HeaderValue>, refusal: &Refusal) -> Failure {
        // A missing scope is about single requests, so it causes no pause.
        if let Some(scope) = refusal.wanted_scope() {
            // The text comes from the server, so it is shown only if it is plain.
            let scope =
                tool::shell::quoted(&scope).unwrap_or_else(|| "with an odd name".to_owned());
            return unauthorized(format!("a scope is missing: {scope}"));
        }
        self.lock().note_refusal((self.now)());
        self.failure()
    }

    fn accepted(&self) {
        self.lock().note_accepted();
    }

    fn credential_health(&self) -> CredentialHealth {
        match self.lock().is_persistent() {
            false => CredentialHealth::Fine,
            true => CredentialHealth::NeedsHuman { instruction: self.instruction.clone() },
        }
    }
}
