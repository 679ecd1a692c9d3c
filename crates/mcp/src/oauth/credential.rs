//! The credential of a server that requires OAuth: loads, renews and saves its grant.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use http::header::{ACCEPT, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, StatusCode};
use parking_lot::{Mutex, MutexGuard};
use serde::Deserialize;
use tool::{CredentialHealth, Failure};

use super::state::{GrantState, NextStep, RenewalFailure};
use super::{Grant, GrantKind, GrantStore, LoginError, LoginRequest, client_credentials, web};
use crate::connect::Certificates;
use crate::connect::credential::{Credential, MillisClock, Refusal, RefusalBackoff, unauthorized};

/// The credential of a server that wants OAuth.
pub struct OAuthCredential {
    /// Tells in one line how to log in: ``run `gatelet login wiki` ``.
    instruction: String,
    /// The URL of the server that a grant must be for.
    server: String,
    /// Why the stored grant is not used, if it is not.
    why_unusable: Mutex<Option<String>>,
    /// The only issuer whose grants are used, if the operator configured one.
    issuer: Option<String>,
    /// The issuer whose tokens the server no longer accepts.
    former_issuer: Mutex<Option<String>>,
    store: Arc<dyn GrantStore>,
    now: MillisClock,
    /// Returns a random number from 0 to 1, to spread retries.
    random: fn() -> f64,
    /// TLS certificates for the token endpoint.
    certificates: Certificates,
    /// The client to use for the `client_credentials` grant, if configured.
    client_credentials: Option<LoginRequest>,
    /// The challenge of the last refusal.
    challenge: Mutex<Option<String>>,
    state: Mutex<GrantState>,
    /// The refusals of requests without a token. While there is no token, requests are sent
    /// without one, less and less often.
    anonymous_refusals: Mutex<RefusalBackoff>,
    /// Held while the token is being renewed, so that it is renewed once for all.
    renewing: tokio::sync::Mutex<()>,
}

/// Why renewing failed.
enum RenewError {
    /// The grant is no longer valid.
    Rejected(String),
    /// A later attempt may succeed.
    Failed { reason: String, retry_after: Option<Duration> },
}

/// The response of a token endpoint (RFC 6749, section 5.1).
#[derive(Deserialize)]
struct TokenResponse {
    access_token: String,
    refresh_token: Option<String>,
    expires_in: Option<u64>,
    scope: Option<String>,
}

/// Its error response (RFC 6749, section 5.2).
#[derive(Default, Deserialize)]
struct ErrorResponse {
    #[serde(default)]
    error: String,
}

impl OAuthCredential {
    /// Makes a credential for the server at the URL `server`. `instruction` tells in one line
    /// how to log in, `random` returns a number from 0 to 1.
    pub fn new(
        instruction: &str,
        server: &str,
        store: Arc<dyn GrantStore>,
        now: MillisClock,
        random: fn() -> f64,
    ) -> OAuthCredential {
        OAuthCredential {
            instruction: instruction.to_owned(),
            server: server.to_owned(),
            why_unusable: Mutex::default(),
            issuer: None,
            former_issuer: Mutex::default(),
            store,
            now,
            random,
            certificates: Certificates::default(),
            client_credentials: None,
            challenge: Mutex::default(),
            state: Mutex::default(),
            anonymous_refusals: Mutex::default(),
            renewing: tokio::sync::Mutex::new(()),
        }
    }

    /// Uses the operator's own certificates.
    pub fn with_certificates(self, certificates: Certificates) -> OAuthCredential {
        OAuthCredential { certificates, ..self }
    }

    /// Obtains tokens with client credentials, without a user. The request names the client
    /// and the issuer.
    pub fn with_client_credentials(self, login_request: Option<LoginRequest>) -> OAuthCredential {
        OAuthCredential { client_credentials: login_request, ..self }
    }

    /// Uses only grants of this issuer, if one is given.
    pub fn only_for_issuer(self, issuer: Option<String>) -> OAuthCredential {
        OAuthCredential { issuer, ..self }
    }

    /// Returns the token to use now; renews it if needed and possible.
    async fn token(&self) -> Result<String, Failure> {
        if let Some(told) = self.without_request() {
            return told;
        }
        let _one_for_all = self.renewing.lock().await;
        // Another task or process may have renewed it meanwhile.
        self.load_grant()?;
        if let Some(told) = self.without_request() {
            return told;
        }
        let grant = self.state().grant.clone();
        let renewed = match (grant, &self.client_credentials) {
            (Some(grant), _) => renew(&grant, &self.certificates, (self.now)() / 1000).await,
            (None, Some(login_request)) => self.request_first_token(login_request).await,
            (None, None) => return Err(self.human_needed()),
        };
        let mut state = self.state();
        match renewed {
            Ok(grant) => {
                let token = grant.access_token.clone();
                state.adopt_renewed(grant.clone());
                drop(state);
                // The old refresh token may be invalid now, so losing this matters.
                if let Err(reason) = self.store.save(&grant) {
                    tracing::error!(reason, "a renewed token could not be kept");
                }
                Ok(token)
            }
            // No login can help, so it is tried again, less and less often.
            Err(RenewError::Rejected(reason)) if self.client_credentials.is_some() => {
                tracing::warn!(reason, todo = self.instruction, "a client is not let in");
                let told = format!("{reason}: {}", self.instruction);
                *state = GrantState {
                    renewal_failure: state.renewal_failure.take(),
                    ..GrantState::default()
                };
                state.note_failure((self.now)(), told.clone(), None, (self.random)());
                Err(unauthorized(told))
            }
            Err(RenewError::Rejected(reason)) => {
                tracing::warn!(reason, todo = self.instruction, "a grant is not renewed any more");
                state.renewal_failure = Some(RenewalFailure::NeedsHuman);
                Err(self.human_needed())
            }
            Err(RenewError::Failed { reason, retry_after }) => {
                state.note_failure((self.now)(), reason.clone(), retry_after, (self.random)());
                Err(unavailable(&reason))
            }
        }
    }

    /// Requests the first token with client credentials.
    async fn request_first_token(&self, login_request: &LoginRequest) -> Result<Grant, RenewError> {
        let challenge = self.challenge.lock().clone();
        let found = client_credentials::discover_grant(login_request, challenge.as_deref()).await;
        let failed = |error: LoginError| match error {
            LoginError::Undiscovered(reason) => RenewError::Failed { reason, retry_after: None },
            LoginError::BadAddress { .. }
            | LoginError::Unsafe(_)
            | LoginError::Unexpected { .. }
            | LoginError::Unregistered(_)
            | LoginError::Denied(_) => RenewError::Rejected(error.to_string()),
        };
        let grant = found.map_err(failed)?;
        renew(&grant, &self.certificates, (self.now)() / 1000).await
    }

    /// Returns whether the first token has to be requested with client credentials.
    fn needs_first_token(&self) -> bool {
        self.client_credentials.is_some() && self.state().grant.is_none()
    }

    /// Returns the token or the failure if that needs no request to the token endpoint;
    /// `None` if the token has to be renewed.
    fn without_request(&self) -> Option<Result<String, Failure>> {
        let mut step = self.state().step((self.now)());
        // A user may have logged in meanwhile.
        if step == NextStep::NeedsHuman || self.state().refusals.has_refusals() {
            if let Err(failure) = self.load_grant() {
                return Some(Err(failure));
            }
            step = self.state().step((self.now)());
        }
        match step {
            NextStep::Use(token) => Some(Ok(token)),
            NextStep::Wait(reason) => Some(Err(unavailable(&reason))),
            NextStep::NeedsHuman if self.needs_first_token() => None,
            NextStep::NeedsHuman => Some(Err(self.human_needed())),
            NextStep::Renew => None,
        }
    }

    /// Loads the stored grant.
    fn load_grant(&self) -> Result<(), Failure> {
        match self.store.load() {
            Ok(Some(grant)) => {
                let why_not = grant.why_not_for(&self.server);
                let why_not = why_not.or_else(|| self.why_wrong_issuer(&grant));
                let why_not = why_not.or_else(|| self.why_former_issuer(&grant));
                match why_not {
                    None => self.state().adopt(grant),
                    Some(_) => *self.state() = GrantState::default(),
                }
                *self.why_unusable.lock() = why_not;
                Ok(())
            }
            Ok(None) => {
                let mut state = self.state();
                let renewal_failure =
                    state.renewal_failure.take().filter(|_| self.client_credentials.is_some());
                *state = GrantState { renewal_failure, ..GrantState::default() };
                drop(state);
                *self.why_unusable.lock() = None;
                Ok(())
            }
            Err(reason) => Err(unauthorized(reason)),
        }
    }

    /// Returns why a grant is not of the configured issuer, if it is not.
    fn why_wrong_issuer(&self, grant: &Grant) -> Option<String> {
        let issuer = self.issuer.as_deref().filter(|issuer| !grant.is_issued_by(issuer))?;
        Some(format!("its token is not of the issuer `{issuer}`, which the configuration names"))
    }

    /// Returns why a grant is not used whose issuer the server no longer accepts.
    fn why_former_issuer(&self, grant: &Grant) -> Option<String> {
        let former = self.former_issuer.lock();
        let is_former = former.is_some() && *former == grant.issuer;
        is_former.then(|| "its server takes tokens of another issuer now".to_owned())
    }

    /// Compares the issuer of the grant with the issuers that the server names now. A grant
    /// of another issuer is neither sent nor renewed, so that somebody who took over the
    /// server's address does not get it.
    async fn compare_issuer(&self, refusal: &Refusal) {
        let Some(grant) = self.state().grant.clone() else { return };
        let Some(issuers) = web::fetch_issuers(refusal, &self.server, &self.certificates).await
        else {
            return;
        };
        if grant.is_issued_by_none_of(&issuers) {
            tracing::warn!(todo = self.instruction, "a server takes tokens of another issuer now");
            self.former_issuer.lock().clone_from(&grant.issuer);
            // An error is reported when the grant is needed.
            let _ = self.load_grant();
        }
    }

    /// Returns whether to send requests without a token: there is none, and the server has
    /// not recently required one.
    fn needs_no_token(&self) -> bool {
        if !self.anonymous_refusals().is_pause_over((self.now)()) || self.state().grant.is_some() {
            return false;
        }
        // An error is reported when the grant is needed.
        self.load_grant().is_ok() && self.state().grant.is_none()
    }

    fn anonymous_refusals(&self) -> MutexGuard<'_, RefusalBackoff> {
        self.anonymous_refusals.lock()
    }

    fn human_needed(&self) -> Failure {
        unauthorized(self.instruction_with_reason())
    }

    /// Returns the instruction, with the reason why the stored grant is not used.
    fn instruction_with_reason(&self) -> String {
        match &*self.why_unusable.lock() {
            Some(why) => format!("{why}: {}", self.instruction),
            None => self.instruction.clone(),
        }
    }

    fn state(&self) -> MutexGuard<'_, GrantState> {
        self.state.lock()
    }
}

#[async_trait]
impl Credential for OAuthCredential {
    async fn present(&self) -> Result<Option<HeaderValue>, Failure> {
        if self.needs_no_token() {
            return Ok(None);
        }
        bearer_header(&self.token().await?).map(Some)
    }

    async fn refused(
        &self,
        authorization: Option<&HeaderValue>,
        refusal: &Refusal,
    ) -> Result<HeaderValue, Failure> {
        if refusal.wanted_scope().is_some() {
            // A user may have logged in with more scopes meanwhile.
            self.load_grant()?;
            let other = self.state().grant.as_ref().map(|grant| grant.access_token.clone());
            return match other.filter(|token| *token != bare_token(authorization)) {
                Some(token) => bearer_header(&token),
                None => Err(self.refused_again(authorization, refusal)),
            };
        }
        if authorization.is_none() {
            self.anonymous_refusals().note_refusal((self.now)());
        }
        self.challenge.lock().clone_from(&refusal.challenge);
        self.compare_issuer(refusal).await;
        let refused = bare_token(authorization);
        self.state().note_refused(&refused, (self.now)());
        match self.token().await? {
            // There is no other token.
            token if token == refused => Err(self.human_needed()),
            token => bearer_header(&token),
        }
    }

    fn refused_again(&self, authorization: Option<&HeaderValue>, refusal: &Refusal) -> Failure {
        match (refusal.wanted_scope(), &self.client_credentials) {
            (Some(scope), Some(_)) => {
                let scope: String =
                    scope.chars().filter(|c| c.is_ascii_graphic()).take(80).collect();
                return unauthorized(format!("a scope is missing: {scope}"));
            }
            (Some(scope), None) => {
                return unauthorized(instruction_for_scope(&self.instruction, &scope));
            }
            (None, _) => {}
        }
        self.state().note_refused_again(&bare_token(authorization), (self.now)());
        self.human_needed()
    }

    fn accepted(&self) {
        self.anonymous_refusals().note_accepted();
        self.state().note_accepted();
    }

    fn credential_health(&self) -> CredentialHealth {
        if self.needs_no_token() && !self.anonymous_refusals().is_persistent() {
            return CredentialHealth::Fine;
        }
        if self.renewing.try_lock().is_err() {
            return CredentialHealth::Refreshing;
        }
        // Nothing was loaded yet, or a user may have logged in meanwhile.
        let stale = self.state().step((self.now)()) == NextStep::NeedsHuman;
        if stale && let Err(Failure::Unauthorized { reason, .. }) = self.load_grant() {
            return CredentialHealth::Broken { reason };
        }
        let step = self.state().step((self.now)());
        match step {
            NextStep::Use(_) | NextStep::Renew => CredentialHealth::Fine,
            NextStep::Wait(reason) => CredentialHealth::Broken { reason },
            NextStep::NeedsHuman if self.needs_first_token() => CredentialHealth::Fine,
            NextStep::NeedsHuman => {
                CredentialHealth::NeedsHuman { instruction: self.instruction_with_reason() }
            }
        }
    }
}

/// Returns the instruction to log in with a scope. The server named the scope and a user
/// pastes the command, so it is quoted.
fn instruction_for_scope(instruction: &str, scope: &str) -> String {
    match (tool::shell::quoted(scope), instruction.strip_suffix('`')) {
        (Some(scope), Some(command)) => format!("{command} --scope {scope}`"),
        _ => format!("{instruction} with `--scope`: the server wants a scope with an odd name"),
    }
}

fn bearer_header(token: &str) -> Result<HeaderValue, Failure> {
    let unusable = |_| Failure::Unusable { reason: "the token is no header".to_owned() };
    let mut value = HeaderValue::from_str(&format!("Bearer {token}")).map_err(unusable)?;
    value.set_sensitive(true);
    Ok(value)
}

fn bare_token(authorization: Option<&HeaderValue>) -> String {
    let text = authorization.and_then(|value| value.to_str().ok()).unwrap_or_default();
    text.strip_prefix("Bearer ").unwrap_or(text).to_owned()
}

fn unavailable(reason: &str) -> Failure {
    Failure::Unavailable { reason: format!("its token cannot be renewed: {reason}") }
}

/// Requests the next token, once. `now_seconds` is the time since 1970.
async fn renew(
    grant: &Grant,
    certificates: &Certificates,
    now_seconds: u64,
) -> Result<Grant, RenewError> {
    let failed = |reason: String| RenewError::Failed { reason, retry_after: None };
    let post = token_request(&web::client(certificates).map_err(failed)?, grant);
    let sent = tokio::time::timeout(web::TIMEOUT, post.send()).await;
    let response = match sent {
        Ok(Ok(response)) => response,
        Ok(Err(error)) if error.is_connect() => {
            return Err(failed("the token endpoint cannot be reached".to_owned()));
        }
        Ok(Err(_)) | Err(_) => {
            return Err(failed("the token endpoint does not answer".to_owned()));
        }
    };
    parse_token_response(grant, response, now_seconds).await
}

fn token_request(client: &reqwest::Client, grant: &Grant) -> reqwest::RequestBuilder {
    let mut form = url::form_urlencoded::Serializer::new(String::new());
    match (grant.kind, grant.refresh_token.as_deref()) {
        (GrantKind::ClientCredentials, _) => {
            form.append_pair("grant_type", "client_credentials");
            if !grant.scopes.is_empty() {
                form.append_pair("scope", &grant.scopes.join(" "));
            }
        }
        (GrantKind::Login, token) => {
            form.append_pair("grant_type", "refresh_token");
            form.append_pair("refresh_token", token.unwrap_or_default());
        }
    }
    form.append_pair("resource", &grant.resource);
    let post = grant.authenticate_client(client.post(&grant.token_endpoint), &mut form);
    let post = post.header(ACCEPT, "application/json");
    post.header(CONTENT_TYPE, "application/x-www-form-urlencoded").body(form.finish())
}

async fn parse_token_response(
    grant: &Grant,
    response: reqwest::Response,
    now_seconds: u64,
) -> Result<Grant, RenewError> {
    let status = response.status();
    let retry_after = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
    let retry_after = retry_after.and_then(|text| text.parse().ok()).map(Duration::from_secs);
    let retry_after = retry_after.map(|retry_after| retry_after.min(Duration::from_secs(3600)));
    let body = web::body(response).await.unwrap_or_default();
    if status.is_success() {
        let unusable = "the token endpoint gave no token".to_owned();
        let answer: TokenResponse = serde_json::from_slice(&body)
            .map_err(|_| RenewError::Failed { reason: unusable, retry_after })?;
        return Ok(merge_renewed(grant, answer, now_seconds));
    }
    let error_response: ErrorResponse = serde_json::from_slice(&body).unwrap_or_default();
    let is_final = matches!(
        error_response.error.as_str(),
        "invalid_grant" | "invalid_client" | "unauthorized_client" | "invalid_target"
    );
    let word: String =
        error_response.error.chars().filter(|c| c.is_ascii_graphic()).take(40).collect();
    if status == StatusCode::UNAUTHORIZED || (status == StatusCode::BAD_REQUEST && is_final) {
        return Err(RenewError::Rejected(format!("HTTP {} {word}", status.as_u16())));
    }
    let reason = format!("the token endpoint says HTTP {} {word}", status.as_u16());
    Err(RenewError::Failed { reason: reason.trim_end().to_owned(), retry_after })
}

/// Returns the grant with the new token; what the response omits stays as it was.
fn merge_renewed(grant: &Grant, answer: TokenResponse, now_seconds: u64) -> Grant {
    let scopes = answer.scope.map(|scope| scope.split_whitespace().map(str::to_owned).collect());
    Grant {
        access_token: answer.access_token,
        refresh_token: answer.refresh_token.or_else(|| grant.refresh_token.clone()),
        expires_at: answer.expires_in.map(|lifetime| now_seconds.saturating_add(lifetime)),
        scopes: scopes.unwrap_or_else(|| grant.scopes.clone()),
        ..grant.clone()
    }
}
