//! `[auth]`: who may come in over HTTP.

use std::path::{Path as FilePath, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use web::identity::token::{Issuer, Keys};

use super::node::Path;
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
    /// Our own address as clients write it, such as `https://gate.example`.
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
}

#[derive(Clone, Debug)]
pub(crate) struct Auth {
    pub(crate) required: bool,
    pub(crate) scope: Option<String>,
    pub(crate) public_url: Option<String>,
    pub(crate) origins: Vec<String>,
    pub(crate) issuers: Vec<Issuer>,
}

/// Two are alike when they were written alike; secrets are not compared.
impl PartialEq for Auth {
    fn eq(&self, other: &Auth) -> bool {
        let shown = |auth: &Auth| format!("{:?}", auth.issuers);
        self.required == other.required
            && self.scope == other.scope
            && self.public_url == other.public_url
            && self.origins == other.origins
            && shown(self) == shown(other)
    }
}

pub(super) fn parse(
    raw: Raw,
    base: &FilePath,
    environment: &dyn Environment,
    problems: &mut Problems,
) -> Auth {
    let path = Path::default().key("auth").key("issuer");
    let mut issuers = Vec::new();
    for (at, raw) in raw.issuer.into_iter().enumerate() {
        issuers.extend(issuer(raw, base, environment, &path.index(at), problems));
    }
    let public_url = raw.public_url.map(|url| url.trim_end_matches('/').to_owned());
    Auth {
        required: raw.required.unwrap_or(false),
        scope: raw.scope,
        public_url,
        origins: raw.origins,
        issuers,
    }
}

fn issuer(
    raw: RawIssuer,
    base: &FilePath,
    environment: &dyn Environment,
    path: &Path,
    problems: &mut Problems,
) -> Option<Issuer> {
    let keys = match (raw.secret, raw.jwks) {
        (Some(secret), None) => {
            let fill = |text: &str| text::fill(text, environment);
            let secret = problems.parse(&path.key("secret"), &secret, fill)?;
            if secret.len() < 32 {
                problems.error(&path.key("secret"), "is shorter than 32 bytes", None);
                return None;
            }
            Keys::Secret(secret.into_bytes().into())
        }
        (None, Some(file)) => {
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
        (Some(_), Some(_)) | (None, None) => {
            problems.error(path, "an issuer has either `secret` or `jwks`", None);
            return None;
        }
    };
    if raw.audience.is_empty() {
        let hint = "a token for somebody else must not open this gate";
        problems.error(path, "an issuer needs `audience`", Some(hint));
        return None;
    }
    Some(Issuer { keys, issuer: raw.issuer, audiences: raw.audience })
}
