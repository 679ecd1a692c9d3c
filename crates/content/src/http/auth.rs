//! Authenticates callers by a JWT that the site signed, or by a personal access token.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use ::http::{HeaderMap, header};
use serde_json::Value;
use tool::Identity;

use super::errors::Refusal;
use super::state::State;
use super::tokens;
use crate::viewer::OWNER_ROLE;

/// How callers authenticate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Auth {
    /// Everybody may do everything.
    Open,
    /// Personal access tokens.
    Tokens,
    Jwt(Jwt),
    /// Personal access tokens, recognised by their prefix, and JWTs.
    Both(Jwt),
}

/// How JWTs are verified (HS256).
#[derive(Clone, PartialEq, Eq)]
pub struct Jwt {
    pub secret: String,
    /// The `iss` claim that a token must have, if any.
    pub issuer: Option<String>,
}

impl std::fmt::Debug for Jwt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Jwt").field("issuer", &self.issuer).finish_non_exhaustive()
    }
}

/// The prefix of the subject of a caller with a personal token.
const PERSONAL_SUBJECT: &str = "token:";

/// An authenticated caller.
#[derive(Clone, Debug)]
pub(super) struct Caller {
    pub(super) identity: Arc<Identity>,
    /// The CMS user this caller acts for.
    pub(super) user: Option<i64>,
    /// Whether no credentials are needed, by [`Auth::Open`].
    pub(super) open: bool,
}

/// The key under which a caller's requests are counted. A user and a subject with the
/// same number are different keys.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum RateKey {
    User(i64),
    Subject(String),
    Address(Option<IpAddr>),
}

impl std::fmt::Display for RateKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            RateKey::User(user) => write!(f, "api:{user}"),
            RateKey::Subject(subject) => write!(f, "api:{subject}"),
            RateKey::Address(Some(address)) => write!(f, "ip:{address}"),
            RateKey::Address(None) => write!(f, "ip:unknown"),
        }
    }
}

impl Caller {
    /// Returns the key under which the caller's requests are counted.
    pub(super) fn rate_key(&self, peer: Option<IpAddr>) -> RateKey {
        match (self.user, self.identity.subject.as_str()) {
            (Some(user), _) => RateKey::User(user),
            (None, "") => RateKey::Address(peer),
            (None, subject) => RateKey::Subject(subject.to_owned()),
        }
    }

    /// Returns the name that owns the caller's tasks and idempotency keys. It is not the
    /// rate key: callers without a name share a rate limit by address, but must not share
    /// tasks, so they own none.
    pub(super) fn owner(&self) -> Option<String> {
        match (self.user, self.identity.subject.as_str()) {
            (Some(user), _) => Some(format!("user:{user}")),
            (None, "") if self.open => Some("everybody".to_owned()),
            (None, "") => None,
            (None, subject) => Some(format!("subject:{subject}")),
        }
    }

    /// A caller with the claims of its token.
    pub(super) fn new(subject: &str, user: Option<i64>, scopes: BTreeSet<String>) -> Caller {
        let roles = user.map(|user| format!("{OWNER_ROLE}{user}")).into_iter().collect();
        let subject = subject.to_owned();
        let identity = Identity { subject, scopes, roles, ..Identity::default() };
        Caller { identity: Arc::new(identity), user, open: false }
    }
}

/// Authenticates the caller of a request by its headers.
pub(super) async fn authenticate(
    auth: &Auth,
    headers: &HeaderMap,
    state: &State,
    now: Duration,
) -> Result<Caller, Refusal> {
    let bearer = bearer(headers);
    match (auth, bearer) {
        (Auth::Open, _) => {
            let identity = Arc::new(Identity::default());
            Ok(Caller { identity, user: None, open: true })
        }
        (Auth::Tokens | Auth::Jwt(_) | Auth::Both(_), None) => Err(Refusal::Unauthenticated),
        (Auth::Tokens, Some(token)) => authenticate_personal(token, state, now).await,
        (Auth::Both(_), Some(token)) if token.starts_with(tokens::TOKEN_PREFIX) => {
            authenticate_personal(token, state, now).await
        }
        (Auth::Jwt(jwt) | Auth::Both(jwt), Some(token)) => authenticate_jwt(jwt, token, now),
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

async fn authenticate_personal(
    token: &str,
    state: &State,
    now: Duration,
) -> Result<Caller, Refusal> {
    match tokens::find(state, token, now).await {
        Ok(Some(token)) => {
            let subject = format!("{PERSONAL_SUBJECT}{}", token.id);
            Ok(Caller::new(&subject, token.user_id, token.effective_scopes()))
        }
        Ok(None) => Err(Refusal::InvalidToken),
        Err(error) => {
            tracing::error!(%error, "tokens cannot be looked up");
            Err(Refusal::Internal)
        }
    }
}

fn authenticate_jwt(jwt: &Jwt, token: &str, now: Duration) -> Result<Caller, Refusal> {
    if jwt.secret.is_empty() {
        tracing::error!("no secret is configured for signed tokens");
        return Err(Refusal::Internal);
    }
    verify_jwt(jwt, token, now).ok_or(Refusal::Unauthenticated)
}

/// Verifies signature, times and issuer of a token, and returns its holder.
fn verify_jwt(jwt: &Jwt, token: &str, now: Duration) -> Option<Caller> {
    let keys = jwt::Keys::Secret(jwt.secret.as_bytes().into());
    let claims = Value::Object(jwt::verify(&keys, token).ok()?);
    let seconds = |name: &str| claims.get(name).map(|time| time.as_f64().unwrap_or(f64::NAN));
    let now = now.as_secs_f64();
    // A malformed time makes the token invalid. `exp` is required, because a token that
    // never expires cannot be revoked; the contract's own issuer always sets it.
    let expired = seconds("exp").is_none_or(|exp| exp.is_nan() || exp <= now);
    let early = seconds("nbf").is_some_and(|nbf| nbf.is_nan() || nbf > now);
    let stranger = jwt.issuer.as_ref().is_some_and(|issuer| claims["iss"] != issuer.as_str());
    if expired || early || stranger {
        return None;
    }
    let user = parse_user(&claims["user_id"])?;
    Some(Caller::new(&parse_subject(&claims["sub"])?, user, parse_scopes(&claims["scopes"])))
}

/// Parses the CMS user for whom the holder acts; the outer `None` refuses the token. A
/// caller without a user may see more than one with a user, so a malformed claim must not
/// count as a missing one.
fn parse_user(claim: &Value) -> Option<Option<i64>> {
    match claim {
        Value::Null => Some(None),
        Value::Number(number) => number.as_i64().map(Some),
        Value::String(text) => text.parse().ok().map(Some),
        Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Parses the subject of a token; `None` refuses the token. The operator may have
/// configured rights by subject, so a malformed claim must not count as a missing one.
fn parse_subject(claim: &Value) -> Option<String> {
    match claim {
        Value::Null => Some(String::new()),
        Value::Number(number) => number.as_i64().map(|number| number.to_string()),
        // A JWT must not pass for a personal token.
        Value::String(text) if text.starts_with(PERSONAL_SUBJECT) => None,
        Value::String(text) => Some(text.clone()),
        Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Parses scopes from a list, or from text with commas.
fn parse_scopes(claim: &Value) -> BTreeSet<String> {
    let texts: Vec<&str> = match claim {
        Value::String(text) => text.split(',').collect(),
        Value::Array(items) => items.iter().filter_map(Value::as_str).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => Vec::new(),
    };
    let filled = texts.into_iter().map(str::trim).filter(|scope| !scope.is_empty());
    filled.map(str::to_owned).collect()
}
