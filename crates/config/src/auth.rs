//! `[auth]`: how callers over HTTP are authenticated.

use std::path::{Path as FilePath, PathBuf};

use document::tree::Path;
use reqwest::Url;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use web::identity::token::{Issuer, Keys};

use super::problem::Problems;
use super::text::{self, Environment};

/// Who may come in over HTTP.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Auth")]
pub(crate) struct Raw {
    /// Whether every caller must show an API key (`gatelet key`) or a token. Off when left out.
    required: Option<bool>,
    /// A scope that every caller needs.
    scope: Option<String>,
    /// Our own address as clients write it, such as `https://gate.example`. Its host is served.
    public_url: Option<String>,
    /// Origins of web pages that may call us, such as `https://app.example`.
    #[serde(default)]
    origins: Vec<String>,
    /// Whose tokens (JWT) are accepted.
    #[serde(default)]
    issuer: Vec<RawIssuer>,
}

/// Somebody whose tokens are accepted.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Issuer")]
pub(crate) struct RawIssuer {
    /// The `iss` of its tokens, and where clients get one.
    issuer: Option<String>,
    /// One of these must be the `aud` of a token: our own address, usually.
    #[serde(default)]
    audience: Vec<String>,
    /// The shared secret of HS256 tokens; `${env:NAME}` keeps it out of the file.
    secret: Option<String>,
    /// A file with the issuer's public keys (JWKS), relative to this file.
    jwks: Option<PathBuf>,
    /// Where the issuer publishes them. With neither `secret`, `jwks` nor this, the issuer is asked
    /// where they are (OpenID Connect discovery).
    jwks_url: Option<String>,
}

/// The validated `[auth]` section.
#[derive(Clone, Debug)]
pub struct Auth {
    /// Whether every caller must be authenticated.
    pub required: bool,
    /// The scope that every caller needs.
    pub scope: Option<String>,
    /// Without a slash at the end.
    pub public_url: Option<String>,
    /// Origins of web pages that may call gatelet, in the form that browsers send.
    pub origins: Vec<String>,
    pub issuers: Vec<Issuer>,
    /// Index in `issuers` and key source of each issuer whose keys must be fetched.
    pub key_sources: Vec<(usize, KeySource)>,
}

/// Where an issuer's public keys are fetched from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeySource {
    /// A JWKS document.
    Jwks(Url),
    /// The issuer's URL; its OpenID Connect metadata names the JWKS document.
    Discovery(Url),
}

impl KeySource {
    /// Returns the URL that the operator wrote.
    pub fn url(&self) -> &Url {
        match self {
            KeySource::Jwks(url) | KeySource::Discovery(url) => url,
        }
    }
}

impl std::fmt::Display for KeySource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.url().fmt(f)
    }
}

/// Compares what was written, except for secrets.
impl PartialEq for Auth {
    fn eq(&self, other: &Auth) -> bool {
        let shown = |auth: &Auth| format!("{:?}", auth.issuers);
        self.required == other.required
            && self.scope == other.scope
            && self.public_url == other.public_url
            && self.origins == other.origins
            && self.key_sources == other.key_sources
            && shown(self) == shown(other)
    }
}

pub(crate) fn parse(
    raw: Raw,
    base: &FilePath,
    environment: &dyn Environment,
    problems: &mut Problems,
) -> Auth {
    let path = Path::default().key("auth").key("issuer");
    let (mut issuers, mut key_sources) = (Vec::new(), Vec::new());
    for (at, raw) in raw.issuer.into_iter().enumerate() {
        if let Some((issuer, source)) = issuer(raw, base, environment, &path.index(at), problems) {
            key_sources.extend(source.map(|source| (issuers.len(), source)));
            issuers.push(issuer);
        }
    }
    let key = |name: &str| Path::default().key("auth").key(name);
    let public_url =
        raw.public_url.and_then(|url| problems.parse(&key("public_url"), &url, public_url));
    let scope = raw.scope.and_then(|scope| problems.parse(&key("scope"), &scope, scope_name));
    let mut origins = Vec::new();
    for (at, text) in raw.origins.iter().enumerate() {
        origins.extend(problems.parse(&key("origins").index(at), text, origin));
    }
    let required = raw.required.unwrap_or(false);
    Auth { required, scope, public_url, origins, issuers, key_sources }
}

/// Parses an origin into the form that browsers send: `https://app.example`, with a port
/// only when it is not the default one.
fn origin(text: &str) -> Result<String, String> {
    if text == "*" {
        return Err("must name each page: `*` would let every web page use this gate".to_owned());
    }
    let url = web_url(text)?;
    if url.path() != "/" || url.query().is_some() || text.contains('*') {
        return Err(format!("must be scheme, host and port, such as `{EXAMPLE}`"));
    }
    Ok(url.origin().ascii_serialization())
}

/// Parses gatelet's own URL and drops a slash at the end.
fn public_url(text: &str) -> Result<String, String> {
    let url = web_url(text)?;
    if url.query().is_some() {
        return Err("has a query: only scheme, host, port and path".to_owned());
    }
    Ok(text.trim_end_matches('/').to_owned())
}

const EXAMPLE: &str = "https://app.example";

/// Parses an http or https URL without credentials and fragment.
fn web_url(text: &str) -> Result<Url, String> {
    if !text.starts_with("https://") && !text.starts_with("http://") {
        return Err(format!("must start with `https://` or `http://`, such as `{EXAMPLE}`"));
    }
    let url = Url::parse(text).map_err(|error| format!("is no address: {error}"))?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err("has a name or a password in it".to_owned());
    }
    if url.fragment().is_some() {
        return Err("has a fragment: leave out `#` and what follows".to_owned());
    }
    Ok(url)
}

fn scope_name(text: &str) -> Result<String, String> {
    match text {
        "" => Err("is empty: name a scope, or leave it out".to_owned()),
        _ if text.contains(char::is_whitespace) => Err("must be one scope".to_owned()),
        _ => Ok(text.to_owned()),
    }
}

/// Parses an issuer, and where its keys are fetched from if they are not configured.
fn issuer(
    raw: RawIssuer,
    base: &FilePath,
    environment: &dyn Environment,
    path: &Path,
    problems: &mut Problems,
) -> Option<(Issuer, Option<KeySource>)> {
    let mut source = None;
    let keys = match (raw.secret, raw.jwks, raw.jwks_url) {
        (Some(secret), None, None) => {
            let fill = |text: &str| text::fill_placeholders(text, base, environment);
            let secret = problems.parse(&path.key("secret"), &secret, fill)?;
            if secret.len() < 32 {
                problems.error(&path.key("secret"), "is shorter than 32 bytes", None);
                return None;
            }
            Keys::Secret(secret.into_bytes().into())
        }
        (None, Some(file), None) => {
            let file = base.join(file);
            let text = std::fs::read_to_string(&file).map_err(|error| error.to_string());
            let keys = text.and_then(|text| Keys::from_jwks(&text).map_err(|e| e.to_string()));
            match keys {
                Ok(keys) => keys,
                Err(error) => {
                    let message = format!("`{}` is no JWKS: {error}", file.display());
                    problems.error(&path.key("jwks"), message, None);
                    return None;
                }
            }
        }
        (None, None, Some(url)) => {
            source =
                Some(KeySource::Jwks(problems.parse(&path.key("jwks_url"), &url, secure_url)?));
            Keys::none()
        }
        (None, None, None) => {
            let Some(issuer) = &raw.issuer else {
                let message = "an issuer has `secret`, `jwks`, `jwks_url`, or `issuer` to be asked";
                problems.error(path, message, None);
                return None;
            };
            source = Some(KeySource::Discovery(problems.parse(
                &path.key("issuer"),
                issuer,
                secure_url,
            )?));
            Keys::none()
        }
        _ => {
            let message = "an issuer has only one of `secret`, `jwks` and `jwks_url`";
            problems.error(path, message, None);
            return None;
        }
    };
    if raw.audience.is_empty() {
        let hint = "a token for somebody else must not open this gate";
        problems.error(path, "an issuer needs `audience`", Some(hint));
        return None;
    }
    Some((Issuer { keys, issuer: raw.issuer, audiences: raw.audience }, source))
}

/// Parses a URL that keys are fetched from. It must be https, because anybody in between
/// could inject keys; only this machine may be asked over http.
fn secure_url(text: &str) -> Result<Url, String> {
    let url = web_url(text)?;
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    let is_here = host == "localhost"
        || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
    if url.scheme() != "https" && !is_here {
        return Err("must start with `https://`".to_owned());
    }
    Ok(url)
}
