//! Authenticates callers: by a signed token of the site, or a personal access token.

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
    /// Either; personal tokens are known by how they start.
    Both(Jwt),
}

/// Tokens signed with HS256.
#[derive(Clone, PartialEq, Eq)]
pub struct Jwt {
    pub secret: String,
    /// Who must have signed, when that matters.
    pub issuer: Option<String>,
}

impl std::fmt::Debug for Jwt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Jwt").field("issuer", &self.issuer).finish_non_exhaustive()
    }
}

/// How the name of the holder of a personal token begins.
const PERSONAL: &str = "token:";

/// Somebody who was let in.
#[derive(Clone, Debug)]
pub(super) struct Caller {
    pub(super) identity: Arc<Identity>,
    /// The CMS user this caller acts for.
    pub(super) user: Option<i64>,
    /// Nobody was asked for credentials.
    pub(super) open: bool,
}

/// Whose rate limit a request counts against. A user and a subject with the same
/// number are different keys.
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
    /// Under whom requests are counted.
    pub(super) fn counted(&self, peer: Option<IpAddr>) -> RateKey {
        match (self.user, self.identity.subject.as_str()) {
            (Some(user), _) => RateKey::User(user),
            (None, "") => RateKey::Address(peer),
            (None, subject) => RateKey::Subject(subject.to_owned()),
        }
    }

    /// Whose tasks and idempotency keys these are. Not the name that requests
    /// are counted under: callers who cannot be told apart are counted as one,
    /// and own nothing. A user and a subject of the same number are not the same.
    pub(super) fn owner(&self) -> Option<String> {
        match (self.user, self.identity.subject.as_str()) {
            (Some(user), _) => Some(format!("user:{user}")),
            (None, "") if self.open => Some("everybody".to_owned()),
            (None, "") => None,
            (None, subject) => Some(format!("subject:{subject}")),
        }
    }

    /// A caller by what its token says.
    pub(super) fn new(subject: &str, user: Option<i64>, scopes: BTreeSet<String>) -> Caller {
        let roles = user.map(|user| format!("{OWNER_ROLE}{user}")).into_iter().collect();
        let subject = subject.to_owned();
        let identity = Identity { subject, scopes, roles, ..Identity::default() };
        Caller { identity: Arc::new(identity), user, open: false }
    }
}

pub(super) async fn identify(
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
        (Auth::Tokens, Some(token)) => personal(token, state, now).await,
        (Auth::Both(_), Some(token)) if token.starts_with(tokens::MARK) => {
            personal(token, state, now).await
        }
        (Auth::Jwt(jwt) | Auth::Both(jwt), Some(token)) => signed(jwt, token, now),
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

async fn personal(token: &str, state: &State, now: Duration) -> Result<Caller, Refusal> {
    match tokens::find(state, token, now).await {
        Ok(Some(token)) => {
            let subject = format!("{PERSONAL}{}", token.id);
            Ok(Caller::new(&subject, token.user_id, token.granted()))
        }
        Ok(None) => Err(Refusal::InvalidToken),
        Err(error) => {
            tracing::error!(%error, "tokens cannot be looked up");
            Err(Refusal::Internal)
        }
    }
}

/// A token of three parts, of which the last signs the first two.
fn signed(jwt: &Jwt, token: &str, now: Duration) -> Result<Caller, Refusal> {
    if jwt.secret.is_empty() {
        tracing::error!("no secret is configured for signed tokens");
        return Err(Refusal::Internal);
    }
    claims(jwt, token, now).ok_or(Refusal::Unauthenticated)
}

fn claims(jwt: &Jwt, token: &str, now: Duration) -> Option<Caller> {
    let keys = jwt::Keys::Secret(jwt.secret.as_bytes().into());
    let claims = Value::Object(jwt::verify(&keys, token).ok()?);
    let seconds = |name: &str| claims.get(name).map(|time| time.as_f64().unwrap_or(f64::NAN));
    let now = now.as_secs_f64();
    // A time that cannot be read is not a time that was kept, and a token that
    // never ends is one that cannot be taken back: the contract's own issuer
    // always says `exp`.
    let expired = seconds("exp").is_none_or(|exp| exp.is_nan() || exp <= now);
    let early = seconds("nbf").is_some_and(|nbf| nbf.is_nan() || nbf > now);
    let stranger = jwt.issuer.as_ref().is_some_and(|issuer| claims["iss"] != issuer.as_str());
    if expired || early || stranger {
        return None;
    }
    let user = owner(&claims["user_id"])?;
    Some(Caller::new(&subject(&claims["sub"])?, user, scopes(&claims["scopes"])))
}

/// The CMS user that a token acts for. Whoever has none may see more than
/// whoever has one, so a claim that cannot be read is not a claim that is not
/// there: `None` refuses the token.
fn owner(claim: &Value) -> Option<Option<i64>> {
    match claim {
        Value::Null => Some(None),
        Value::Number(number) => number.as_i64().map(Some),
        Value::String(text) => text.parse().ok().map(Some),
        Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Returns what a token calls its holder. The operator may have said what that name
/// may see, so here too only what can be read passes.
fn subject(claim: &Value) -> Option<String> {
    match claim {
        Value::Null => Some(String::new()),
        Value::Number(number) => number.as_i64().map(|number| number.to_string()),
        // Nobody signs himself into being the holder of a personal token.
        Value::String(text) if text.starts_with(PERSONAL) => None,
        Value::String(text) => Some(text.clone()),
        Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// A list, or text with commas.
fn scopes(claim: &Value) -> BTreeSet<String> {
    let texts: Vec<&str> = match claim {
        Value::String(text) => text.split(',').collect(),
        Value::Array(items) => items.iter().filter_map(Value::as_str).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => Vec::new(),
    };
    let filled = texts.into_iter().map(str::trim).filter(|scope| !scope.is_empty());
    filled.map(str::to_owned).collect()
}
