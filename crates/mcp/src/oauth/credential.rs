//! Keeps one OAuth grant fresh, and stops trying when it cannot.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use http::header::{ACCEPT, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, StatusCode};
use parking_lot::{Mutex, MutexGuard};
use serde::Deserialize;
use tool::{CredentialHealth, Failure};

use super::state::{RenewalFailure, State, Step};
use super::{Grant, GrantKind, GrantStore, LoginError, LoginRequest, machine, web};
use crate::connect::Certificates;
use crate::connect::credential::{Credential, Now, Refusal, RefusalBackoff, unauthorized};

/// The credential of a server that wants OAuth.
pub struct OAuthCredential {
    /// What a human has to do, in one line: ``run `gatelet login wiki` ``.
    todo: String,
    /// The server that a grant must be for.
    server: String,
    /// Why what is kept is not used, where it is not.
    unused: Mutex<Option<String>>,
    /// The only issuer whose grants are used, where the operator names it.
    issuer: Option<String>,
    /// The issuer whose tokens the server does not take any more.
    former_issuer: Mutex<Option<String>>,
    store: Arc<dyn GrantStore>,
    now: Now,
    /// From 0 to 1; spreads what would otherwise come in one rush.
    chance: fn() -> f64,
    /// For the token endpoint, as for the server.
    certificates: Certificates,
    /// As whom a token is had without a human, where the operator wants that.
    machine: Option<LoginRequest>,
    /// What the server said when it last refused us.
    challenge: Mutex<Option<String>>,
    state: Mutex<State>,
    /// How often the server has said that it wants a token. With none at hand
    /// it is asked without one, and ever less often when it refuses that.
    wanted: Mutex<RefusalBackoff>,
    /// Held while the token is being renewed, so that one request does it for
    /// all who wait.
    renewing: tokio::sync::Mutex<()>,
}

/// Why a token was not renewed.
enum Unrenewed {
    /// The grant is worth nothing any more.
    Rejected(String),
    /// It may pass.
    Failed { reason: String, after: Option<Duration> },
}

#[derive(Deserialize)]
struct Answer {
    access_token: String,
    refresh_token: Option<String>,
    expires_in: Option<u64>,
    scope: Option<String>,
}

#[derive(Default, Deserialize)]
struct Complaint {
    #[serde(default)]
    error: String,
}

impl OAuthCredential {
    /// A credential for the server at `server`. `todo` says in one line how a
    /// human logs in there.
    pub fn new(
        todo: &str,
        server: &str,
        store: Arc<dyn GrantStore>,
        now: Now,
        chance: fn() -> f64,
    ) -> OAuthCredential {
        OAuthCredential {
            todo: todo.to_owned(),
            server: server.to_owned(),
            unused: Mutex::default(),
            issuer: None,
            former_issuer: Mutex::default(),
            store,
            now,
            chance,
            certificates: Certificates::default(),
            machine: None,
            challenge: Mutex::default(),
            state: Mutex::default(),
            wanted: Mutex::default(),
            renewing: tokio::sync::Mutex::new(()),
        }
    }

    /// With certificates of the operator's own.
    pub fn with_certificates(self, certificates: Certificates) -> OAuthCredential {
        OAuthCredential { certificates, ..self }
    }

    /// One that needs no human: `wanted` says who we are and whose tokens are used.
    pub fn as_machine(self, wanted: Option<LoginRequest>) -> OAuthCredential {
        OAuthCredential { machine: wanted, ..self }
    }

    /// For grants of one issuer only.
    pub fn of_issuer(self, issuer: Option<String>) -> OAuthCredential {
        OAuthCredential { issuer, ..self }
    }

    /// The token to use now, renewed when that is needed and possible.
    async fn token(&self) -> Result<String, Failure> {
        if let Some(told) = self.without_asking() {
            return told;
        }
        let _one_for_all = self.renewing.lock().await;
        // Whoever was first may have done it, here or in another process.
        self.look_up()?;
        if let Some(told) = self.without_asking() {
            return told;
        }
        let grant = self.state().grant.clone();
        let renewed = match (grant, &self.machine) {
            (Some(grant), _) => renew(&grant, &self.certificates, (self.now)() / 1000).await,
            (None, Some(wanted)) => self.introduce(wanted).await,
            (None, None) => return Err(self.human()),
        };
        let mut state = self.state();
        match renewed {
            Ok(grant) => {
                let token = grant.access_token.clone();
                state.renew(grant.clone());
                drop(state);
                // The old refresh token may be dead by now, so this matters.
                if let Err(reason) = self.store.save(&grant) {
                    tracing::error!(reason, "a renewed token could not be kept");
                }
                Ok(token)
            }
            // Nobody else can help, so it is tried again, ever less often.
            Err(Unrenewed::Rejected(reason)) if self.machine.is_some() => {
                tracing::warn!(reason, todo = self.todo, "a client is not let in");
                let told = format!("{reason}: {}", self.todo);
                *state = State { trouble: state.trouble.take(), ..State::default() };
                state.fail((self.now)(), told.clone(), None, (self.chance)());
                Err(unauthorized(told))
            }
            Err(Unrenewed::Rejected(reason)) => {
                tracing::warn!(reason, todo = self.todo, "a grant is not renewed any more");
                state.trouble = Some(RenewalFailure::Human);
                Err(self.human())
            }
            Err(Unrenewed::Failed { reason, after }) => {
                state.fail((self.now)(), reason.clone(), after, (self.chance)());
                Err(unavailable(&reason))
            }
        }
    }

    /// Asks for a first token, as a client that needs no human.
    async fn introduce(&self, wanted: &LoginRequest) -> Result<Grant, Unrenewed> {
        let challenge = self.challenge.lock().clone();
        let found = machine::grant_to_be(wanted, challenge.as_deref()).await;
        let failed = |error: LoginError| match error {
            LoginError::Undiscovered(reason) => Unrenewed::Failed { reason, after: None },
            LoginError::BadAddress { .. }
            | LoginError::Unsafe(_)
            | LoginError::Unexpected { .. }
            | LoginError::Unregistered(_)
            | LoginError::Denied(_) => Unrenewed::Rejected(error.to_string()),
        };
        let grant = found.map_err(failed)?;
        renew(&grant, &self.certificates, (self.now)() / 1000).await
    }

    /// Whether there is no token yet, and none is needed from a human.
    fn introduces(&self) -> bool {
        self.machine.is_some() && self.state().grant.is_none()
    }

    /// What can be said without asking the token endpoint; `None` when the
    /// token has to be renewed.
    fn without_asking(&self) -> Option<Result<String, Failure>> {
        let mut step = self.state().step((self.now)());
        // Somebody may have logged in meanwhile.
        if step == Step::Human || self.state().refused.is_doubtful() {
            if let Err(failure) = self.look_up() {
                return Some(Err(failure));
            }
            step = self.state().step((self.now)());
        }
        match step {
            Step::Use(token) => Some(Ok(token)),
            Step::Wait(reason) => Some(Err(unavailable(&reason))),
            Step::Human if self.introduces() => None,
            Step::Human => Some(Err(self.human())),
            Step::Renew => None,
        }
    }

    /// Takes up what is kept.
    fn look_up(&self) -> Result<(), Failure> {
        match self.store.load() {
            Ok(Some(grant)) => {
                let stranger = grant.stranger_to(&self.server);
                let stranger = stranger.or_else(|| self.otherwise_issued(&grant));
                let stranger = stranger.or_else(|| self.formerly_issued(&grant));
                match stranger {
                    None => self.state().take(grant),
                    Some(_) => *self.state() = State::default(),
                }
                *self.unused.lock() = stranger;
                Ok(())
            }
            Ok(None) => {
                let mut state = self.state();
                let trouble = state.trouble.take().filter(|_| self.machine.is_some());
                *state = State { trouble, ..State::default() };
                drop(state);
                *self.unused.lock() = None;
                Ok(())
            }
            Err(reason) => Err(unauthorized(reason)),
        }
    }

    /// Why a grant of another issuer than the operator names is not used.
    fn otherwise_issued(&self, grant: &Grant) -> Option<String> {
        let issuer = self.issuer.as_deref().filter(|issuer| !grant.is_issued_by(issuer))?;
        Some(format!("its token is not of the issuer `{issuer}`, which the configuration names"))
    }

    /// Why a grant is not used whose issuer the server has left, if it has.
    fn formerly_issued(&self, grant: &Grant) -> Option<String> {
        let former = self.former_issuer.lock();
        let is_former = former.is_some() && *former == grant.issuer;
        is_former.then(|| "its server takes tokens of another issuer now".to_owned())
    }

    /// Compares who issued the grant with whom the server names now, where its
    /// refusal says where to read that. A grant of another issuer is neither shown
    /// again nor renewed: whoever took over the address gets nothing of it.
    async fn compare_issuer(&self, refusal: &Refusal) {
        let Some(grant) = self.state().grant.clone() else { return };
        let Some(issuers) = web::issuers(refusal, &self.server, &self.certificates).await else {
            return;
        };
        if grant.is_issued_by_none_of(&issuers) {
            tracing::warn!(todo = self.todo, "a server takes tokens of another issuer now");
            self.former_issuer.lock().clone_from(&grant.issuer);
            // What cannot be read is told when it is needed.
            let _ = self.look_up();
        }
    }

    /// Returns whether there is no token, and nobody wants one as far as is known
    /// now.
    fn is_unasked(&self) -> bool {
        if !self.wanted().is_over((self.now)()) || self.state().grant.is_some() {
            return false;
        }
        // What cannot be read is told when it is needed.
        self.look_up().is_ok() && self.state().grant.is_none()
    }

    fn wanted(&self) -> MutexGuard<'_, RefusalBackoff> {
        self.wanted.lock()
    }

    fn human(&self) -> Failure {
        unauthorized(self.todo())
    }

    /// What a human has to do, and why it is not done already.
    fn todo(&self) -> String {
        match &*self.unused.lock() {
            Some(why) => format!("{why}: {}", self.todo),
            None => self.todo.clone(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

#[async_trait]
impl Credential for OAuthCredential {
    async fn present(&self) -> Result<Option<HeaderValue>, Failure> {
        if self.is_unasked() {
            return Ok(None);
        }
        header(&self.token().await?).map(Some)
    }

    async fn refused(
        &self,
        shown: Option<&HeaderValue>,
        refusal: &Refusal,
    ) -> Result<HeaderValue, Failure> {
        if refusal.wanted_scope().is_some() {
            // Somebody may have logged in for more meanwhile.
            self.look_up()?;
            let other = self.state().grant.as_ref().map(|grant| grant.access_token.clone());
            return match other.filter(|token| *token != bare(shown)) {
                Some(token) => header(&token),
                None => Err(self.refused_again(shown, refusal)),
            };
        }
        if shown.is_none() {
            self.wanted().again((self.now)());
        }
        self.challenge.lock().clone_from(&refusal.challenge);
        self.compare_issuer(refusal).await;
        let shown = bare(shown);
        self.state().refuse(&shown, (self.now)());
        match self.token().await? {
            // There is no other.
            token if token == shown => Err(self.human()),
            token => header(&token),
        }
    }

    fn refused_again(&self, shown: Option<&HeaderValue>, refusal: &Refusal) -> Failure {
        match (refusal.wanted_scope(), &self.machine) {
            (Some(scope), Some(_)) => {
                let scope: String =
                    scope.chars().filter(|c| c.is_ascii_graphic()).take(80).collect();
                return unauthorized(format!("a scope is missing: {scope}"));
            }
            (Some(scope), None) => return unauthorized(with_scope(&self.todo, &scope)),
            (None, _) => {}
        }
        self.state().refuse_again(&bare(shown), (self.now)());
        self.human()
    }

    fn accepted(&self) {
        self.wanted().forget();
        self.state().accept();
    }

    fn credential_health(&self) -> CredentialHealth {
        if self.is_unasked() && !self.wanted().is_standing() {
            return CredentialHealth::Fine;
        }
        if self.renewing.try_lock().is_err() {
            return CredentialHealth::Refreshing;
        }
        // Nothing was asked yet, or somebody may have logged in meanwhile.
        let stale = self.state().step((self.now)()) == Step::Human;
        if stale && let Err(Failure::Unauthorized { reason, .. }) = self.look_up() {
            return CredentialHealth::Broken { reason };
        }
        let step = self.state().step((self.now)());
        match step {
            Step::Use(_) | Step::Renew => CredentialHealth::Fine,
            Step::Wait(reason) => CredentialHealth::Broken { reason },
            Step::Human if self.introduces() => CredentialHealth::Fine,
            Step::Human => CredentialHealth::NeedsHuman { instruction: self.todo() },
        }
    }
}

/// What to do about a missing scope. The server named it, and a human pastes it.
fn with_scope(todo: &str, scope: &str) -> String {
    match (tool::shell::quoted(scope), todo.strip_suffix('`')) {
        (Some(scope), Some(command)) => format!("{command} --scope {scope}`"),
        _ => format!("{todo} with `--scope`: the server wants a scope with an odd name"),
    }
}

fn header(token: &str) -> Result<HeaderValue, Failure> {
    let unusable = |_| Failure::Unusable { reason: "the token is no header".to_owned() };
    let mut value = HeaderValue::from_str(&format!("Bearer {token}")).map_err(unusable)?;
    value.set_sensitive(true);
    Ok(value)
}

fn bare(shown: Option<&HeaderValue>) -> String {
    let text = shown.and_then(|value| value.to_str().ok()).unwrap_or_default();
    text.strip_prefix("Bearer ").unwrap_or(text).to_owned()
}

fn unavailable(reason: &str) -> Failure {
    Failure::Unavailable { reason: format!("its token cannot be renewed: {reason}") }
}

/// Asks for the next token, once.
async fn renew(
    grant: &Grant,
    certificates: &Certificates,
    seconds: u64,
) -> Result<Grant, Unrenewed> {
    let failed = |reason: String| Unrenewed::Failed { reason, after: None };
    let post = question(&web::client(certificates).map_err(failed)?, grant);
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
    read(grant, response, seconds).await
}

fn question(client: &reqwest::Client, grant: &Grant) -> reqwest::RequestBuilder {
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
    let post = grant.sign(client.post(&grant.token_endpoint), &mut form);
    let post = post.header(ACCEPT, "application/json");
    post.header(CONTENT_TYPE, "application/x-www-form-urlencoded").body(form.finish())
}

async fn read(
    grant: &Grant,
    response: reqwest::Response,
    seconds: u64,
) -> Result<Grant, Unrenewed> {
    let status = response.status();
    let after = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
    let after = after.and_then(|text| text.parse().ok()).map(Duration::from_secs);
    let after = after.map(|after| after.min(Duration::from_secs(3600)));
    let body = web::body(response).await.unwrap_or_default();
    if status.is_success() {
        let unusable = "the token endpoint gave no token".to_owned();
        let answer: Answer = serde_json::from_slice(&body)
            .map_err(|_| Unrenewed::Failed { reason: unusable, after })?;
        return Ok(renewed(grant, answer, seconds));
    }
    let complaint: Complaint = serde_json::from_slice(&body).unwrap_or_default();
    let is_final = matches!(
        complaint.error.as_str(),
        "invalid_grant" | "invalid_client" | "unauthorized_client" | "invalid_target"
    );
    let word: String = complaint.error.chars().filter(|c| c.is_ascii_graphic()).take(40).collect();
    if status == StatusCode::UNAUTHORIZED || (status == StatusCode::BAD_REQUEST && is_final) {
        return Err(Unrenewed::Rejected(format!("HTTP {} {word}", status.as_u16())));
    }
    let reason = format!("the token endpoint says HTTP {} {word}", status.as_u16());
    Err(Unrenewed::Failed { reason: reason.trim_end().to_owned(), after })
}

/// What a renewal does not mention stays as it was.
fn renewed(grant: &Grant, answer: Answer, seconds: u64) -> Grant {
    let scopes = answer.scope.map(|scope| scope.split_whitespace().map(str::to_owned).collect());
    Grant {
        access_token: answer.access_token,
        refresh_token: answer.refresh_token.or_else(|| grant.refresh_token.clone()),
        expires_at: answer.expires_in.map(|lifetime| seconds.saturating_add(lifetime)),
        scopes: scopes.unwrap_or_else(|| grant.scopes.clone()),
        ..grant.clone()
    }
}
