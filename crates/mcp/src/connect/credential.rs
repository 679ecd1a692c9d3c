//! The credentials that are sent to a server.
//!
//! A [`Credential`] is asked before every request and told how the server took
//! it. So whoever keeps tokens decides when to renew one, and when to ask
//! nothing at all: a token that a server refused is not sent again and again.

use std::time::Duration;

use async_trait::async_trait;
use http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderValue, StatusCode};
use parking_lot::{Mutex, MutexGuard};
use reqwest::{RequestBuilder, Response};
use tool::{Backoff, CredentialHealth, Failure, Reply, Sent};

use crate::http_client;
use crate::message::Message;

/// Milliseconds since 1970. A parameter, so that tests need not wait.
pub type Now = std::sync::Arc<dyn Fn() -> u64 + Send + Sync>;

/// Says what to show a server.
#[async_trait]
pub trait Credential: Send + Sync {
    /// The `Authorization` to send now, if any; or why nothing should be sent.
    async fn present(&self) -> Result<Option<HeaderValue>, Failure>;

    /// The server refused what was shown. Returns what to show instead, or what to
    /// do.
    async fn refused(
        &self,
        shown: Option<&HeaderValue>,
        refusal: &Refusal,
    ) -> Result<HeaderValue, Failure>;

    /// That was refused too, or there is no second try.
    fn refused_again(&self, shown: Option<&HeaderValue>, refusal: &Refusal) -> Failure;

    /// The server let us in.
    fn accepted(&self);

    /// Returns how it stands, for people.
    fn credential_health(&self) -> CredentialHealth;
}

/// How a server says no.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub status: StatusCode,
    /// `WWW-Authenticate`, as it came.
    pub challenge: Option<String>,
}

impl Refusal {
    /// Returns what a response says against our credentials, if it does. A plain
    /// 403 is about what we asked, not about who we are.
    pub fn read(status: StatusCode, headers: &HeaderMap) -> Option<Refusal> {
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

    /// Returns whether it says that the request did not run. A challenge to show a
    /// bearer token does: it is what the check before the resource answers with
    /// (RFC 9110, section 15.5.2; RFC 6750, section 3). A bare 401 or 403 may be
    /// the word of something behind it, passed on after half the work.
    pub fn is_before_running(&self) -> bool {
        let challenge = self.challenge.as_deref().unwrap_or_default();
        let scheme = challenge.split_whitespace().next().unwrap_or_default();
        scheme.trim_end_matches(',').eq_ignore_ascii_case("bearer")
            && (self.status == StatusCode::UNAUTHORIZED || self.wanted_scope().is_some())
    }

    /// Returns what is known of a failure that is due to this refusal.
    fn qualify(&self, failure: Failure) -> Failure {
        if self.is_before_running() { failure } else { failure.after_sending() }
    }

    /// The scope that is missing, where that is what is wrong.
    pub fn wanted_scope(&self) -> Option<String> {
        let error = self.parameter("error");
        (error.as_deref() == Some("insufficient_scope"))
            .then(|| self.parameter("scope").unwrap_or_default())
    }

    /// One parameter of the challenge.
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

/// Whether a request goes again, with something else to show, after a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Repeat {
    /// Only if the refusal says that it did not run: for calls.
    IfUnrun,
    /// After every refusal: for what does no harm when it arrives twice.
    Always,
}

/// Sends a request with what there is to show, and once more with what there
/// is instead when that is refused and [`Repeat`] lets it.
pub(super) async fn send_with_credential<E: From<Failure>>(
    credential: Option<&dyn Credential>,
    repeat: Repeat,
    request: impl Fn(Option<&HeaderValue>) -> RequestBuilder,
    lost: impl Fn(reqwest::Error) -> E,
) -> Result<Response, E> {
    let Some(credential) = credential else { return request(None).send().await.map_err(lost) };
    let shown = credential.present().await?;
    let response = request(shown.as_ref()).send().await.map_err(&lost)?;
    let refusal = match let_in(response).await {
        Ok(response) => {
            credential.accepted();
            return Ok(response);
        }
        Err(refusal) => refusal,
    };
    // Whatever becomes of this request, the next one has something else to show.
    let other = credential.refused(shown.as_ref(), &refusal).await;
    let other = other.map_err(|failure| refusal.qualify(failure))?;
    if repeat == Repeat::IfUnrun && !refusal.is_before_running() {
        let reason = format!("HTTP {}; it has new credentials now", refusal.status);
        return Err(Failure::Unauthorized { reason, sent: Sent::Perhaps }.into());
    }
    let response = request(Some(&other)).send().await.map_err(&lost)?;
    match let_in(response).await {
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

/// The longest body of a refusal that is read to see whether it is an answer.
const REFUSAL_BODY: usize = 64 << 10;

/// The response, unless it says that our credentials are no good. One that
/// holds the result of a question is an answer, whatever its status.
async fn let_in(response: Response) -> Result<Response, Refusal> {
    let Some(refusal) = Refusal::read(response.status(), response.headers()) else {
        return Ok(response);
    };
    let (status, headers) = (response.status(), response.headers().clone());
    let body = http_client::body(response, REFUSAL_BODY).await.unwrap_or_default();
    match Message::parse(&body) {
        Ok(Message::Response(answer)) if matches!(answer.reply, Reply::Result(_)) => {
            let mut whole = http::Response::new(body);
            (*whole.status_mut(), *whole.headers_mut()) = (status, headers);
            Ok(whole.into())
        }
        Ok(_) | Err(_) => Err(refusal),
    }
}

/// A failure for want of credentials, of a request that did not run.
pub(crate) fn unauthorized(reason: String) -> Failure {
    Failure::Unauthorized { reason, sent: Sent::No }
}

/// Headers with what is shown.
pub(super) fn signed(headers: &HeaderMap, shown: Option<&HeaderValue>) -> HeaderMap {
    let mut headers = headers.clone();
    if let Some(shown) = shown {
        headers.insert(AUTHORIZATION, shown.clone());
    }
    headers
}

/// Headers that the operator wrote, which nobody can renew. Once refused, the
/// server is left alone for a while, and for longer each time.
pub struct FixedHeaders {
    todo: String,
    now: Now,
    refused: Mutex<RefusalBackoff>,
}

/// When a server that refused us may be asked again: ever later.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RefusalBackoff {
    /// How often, since it last let us in.
    refusals: u32,
    /// How many of them are taken to be about what was asked.
    credit: u32,
    /// Nothing is sent before this.
    until: u64,
}

/// After refusals that are about us.
const PAUSES: Backoff = Backoff::doubling(Duration::from_secs(60), Duration::from_secs(3600));

/// A server that lets us in may refuse this often in a row before that is taken
/// to be about us: some refuse single tools that way.
const CREDIT: u32 = 3;

impl RefusalBackoff {
    /// Notes a refusal.
    pub(crate) fn again(&mut self, now: u64) {
        self.refusals = self.refusals.saturating_add(1);
        if !self.is_standing() {
            return;
        }
        let pause = PAUSES.pause_after(self.about_us(), 1.0);
        self.until = now + u64::try_from(pause.as_millis()).unwrap_or(u64::MAX / 2);
    }

    /// The server let us in.
    pub(crate) fn forget(&mut self) {
        *self = RefusalBackoff { credit: CREDIT, ..RefusalBackoff::default() };
    }

    pub(crate) fn is_over(&self, now: u64) -> bool {
        self.until <= now
    }

    pub(crate) fn is_standing(&self) -> bool {
        self.about_us() != 0
    }

    /// Returns whether it was refused since it was last let in.
    pub(crate) fn is_doubtful(&self) -> bool {
        self.refusals != 0
    }

    /// Returns how many refusals are beyond its credit.
    fn about_us(&self) -> u32 {
        self.refusals.saturating_sub(self.credit)
    }
}

impl FixedHeaders {
    /// `todo` says in one line what the operator can do.
    pub fn new(todo: &str, now: Now) -> FixedHeaders {
        FixedHeaders { todo: todo.to_owned(), now, refused: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, RefusalBackoff> {
        self.refused.lock()
    }

    fn failure(&self) -> Failure {
        unauthorized(self.todo.clone())
    }
}

#[async_trait]
impl Credential for FixedHeaders {
    async fn present(&self) -> Result<Option<HeaderValue>, Failure> {
        let refused = *self.lock();
        if refused.is_over((self.now)()) { Ok(None) } else { Err(self.failure()) }
    }

    async fn refused(
        &self,
        shown: Option<&HeaderValue>,
        refusal: &Refusal,
    ) -> Result<HeaderValue, Failure> {
        Err(self.refused_again(shown, refusal))
    }

    fn refused_again(&self, _: Option<&HeaderValue>, refusal: &Refusal) -> Failure {
        // What is allowed and what is not is no reason to leave it alone.
        if let Some(scope) = refusal.wanted_scope() {
            // The server says it, so it is shown only where it is plain text.
            let scope =
                tool::shell::quoted(&scope).unwrap_or_else(|| "with an odd name".to_owned());
            return unauthorized(format!("a scope is missing: {scope}"));
        }
        self.lock().again((self.now)());
        self.failure()
    }

    fn accepted(&self) {
        self.lock().forget();
    }

    fn credential_health(&self) -> CredentialHealth {
        match self.lock().is_standing() {
            false => CredentialHealth::Fine,
            true => CredentialHealth::NeedsHuman { instruction: self.todo.clone() },
        }
    }
}
