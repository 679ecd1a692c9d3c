//! Bearer tokens that somebody we trust signed (JWT).
//!
//! An issuer has a shared secret or a set of public keys (JWKS), and says for
//! whom it must have signed. The algorithm follows from our key, never from
//! the token, and `none` does not exist here.

use std::collections::BTreeSet;
use std::sync::Arc;

use jsonwebtoken::jwk::JwkSet;
use jsonwebtoken::{Algorithm, DecodingKey, Validation};
use serde_json::Value;
use tool::Identity;

use super::Denied;

/// How far clocks may differ, in seconds.
const LEEWAY: u64 = 30;

/// Somebody whose tokens are accepted.
#[derive(Clone)]
pub struct Issuer {
    pub keys: Keys,
    /// The `iss` that a token must have.
    pub issuer: Option<String>,
    /// One of these must be in `aud`. A resource server always sets this.
    pub audiences: Vec<String>,
}

/// What signatures are checked with.
#[derive(Clone)]
pub enum Keys {
    /// HS256 with a shared secret.
    Secret(Arc<[u8]>),
    /// RS256, PS256, ES256, ES384 or EdDSA with the keys of a JWKS.
    Public(Arc<JwkSet>),
}

impl std::fmt::Debug for Issuer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Issuer")
            .field("issuer", &self.issuer)
            .field("audiences", &self.audiences)
            .finish_non_exhaustive()
    }
}

impl Keys {
    /// Reads a JWKS document.
    pub fn from_jwks(text: &str) -> Result<Keys, serde_json::Error> {
        serde_json::from_str(text).map(|set| Keys::Public(Arc::new(set)))
    }
}

impl Issuer {
    /// Who the token says it is for, if it is good.
    pub fn identify(&self, token: &str, now: u64) -> Result<Identity, Denied> {
        let (key, algorithm) = self.key(token)?;
        let mut validation = Validation::new(algorithm);
        // Time is checked below, against our clock.
        validation.validate_exp = false;
        validation.required_spec_claims.clear();
        match self.audiences.as_slice() {
            [] => validation.validate_aud = false,
            audiences => {
                validation.set_audience(audiences);
                validation.required_spec_claims.insert("aud".to_owned());
            }
        }
        if let Some(issuer) = &self.issuer {
            validation.set_issuer(&[issuer]);
            validation.required_spec_claims.insert("iss".to_owned());
        }
        let decoded = jsonwebtoken::decode::<Value>(token, &key, &validation);
        let claims = decoded.map_err(|_| Denied::Invalid)?.claims;
        in_time(&claims, now)?;
        identity(&claims)
    }

    fn key(&self, token: &str) -> Result<(DecodingKey, Algorithm), Denied> {
        let header = jsonwebtoken::decode_header(token).map_err(|_| Denied::Invalid)?;
        match &self.keys {
            Keys::Secret(secret) if header.alg == Algorithm::HS256 => {
                Ok((DecodingKey::from_secret(secret), Algorithm::HS256))
            }
            Keys::Secret(_) => Err(Denied::Invalid),
            Keys::Public(set) => {
                let symmetric = [Algorithm::HS256, Algorithm::HS384, Algorithm::HS512];
                if symmetric.contains(&header.alg) {
                    return Err(Denied::Invalid);
                }
                let jwk = match &header.kid {
                    Some(id) => set.find(id),
                    None if set.keys.len() == 1 => set.keys.first(),
                    None => None,
                };
                let jwk = jwk.ok_or(Denied::Invalid)?;
                let key = DecodingKey::from_jwk(jwk).map_err(|_| Denied::Invalid)?;
                Ok((key, header.alg))
            }
        }
    }
}

/// A token must end, and be within its time.
fn in_time(claims: &Value, now: u64) -> Result<(), Denied> {
    let seconds = |name: &str| claims[name].as_f64().map(|time| time.max(0.0) as u64);
    let end = seconds("exp").ok_or(Denied::Invalid)?;
    if end.saturating_add(LEEWAY) <= now {
        return Err(Denied::Expired);
    }
    match seconds("nbf") {
        Some(start) if now + LEEWAY < start => Err(Denied::Invalid),
        _ => Ok(()),
    }
}

fn identity(claims: &Value) -> Result<Identity, Denied> {
    // Holders of our keys and of certificates are called so; nobody signs
    // himself into being one of them.
    let ours = |subject: &str| ["key:", "cert:"].iter().any(|kind| subject.starts_with(kind));
    let subject = claims["sub"].as_str().filter(|subject| !subject.is_empty() && !ours(subject));
    let subject = subject.ok_or(Denied::Invalid)?.to_owned();
    let mut scopes = words(&claims["scope"]);
    scopes.extend(words(&claims["scp"]));
    Ok(Identity {
        subject,
        scopes,
        roles: words(&claims["roles"]),
        groups: words(&claims["groups"]),
    })
}

/// Words of a string, or the strings of a list.
fn words(value: &Value) -> BTreeSet<String> {
    let list = value.as_array().into_iter().flatten().filter_map(Value::as_str);
    let text = value.as_str().into_iter().flat_map(str::split_whitespace);
    list.chain(text).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use jsonwebtoken::{EncodingKey, Header, encode};
    use serde_json::json;

    use super::*;

    const SECRET: &[u8] = b"a secret of at least thirty-two bytes";

    fn issuer() -> Issuer {
        Issuer {
            keys: Keys::Secret(SECRET.into()),
            issuer: Some("https://login.example".into()),
            audiences: vec!["https://gate.example/mcp".into()],
        }
    }

    fn token(changes: &[(&str, Value)]) -> String {
        let mut claims = json!({
            "sub": "ann", "iss": "https://login.example", "aud": "https://gate.example/mcp",
            "exp": 1000, "scope": "mcp:read mcp:call", "roles": ["ops"],
        });
        for (name, value) in changes {
            claims[*name] = value.clone();
        }
        encode(&Header::default(), &claims, &EncodingKey::from_secret(SECRET)).unwrap()
    }

    #[test]
    fn a_good_token_gives_its_subject_with_scopes_and_roles() {
        let who = issuer().identify(&token(&[]), 900).unwrap();
        assert_eq!(who.subject, "ann");
        assert!(who.scopes.contains("mcp:call") && who.roles.contains("ops"));
    }

    #[test]
    fn time_audience_issuer_and_subject_are_checked() {
        let check = |changes: &[(&str, Value)], now| {
            issuer().identify(&token(changes), now).map(|who| who.subject)
        };
        assert_eq!(check(&[], 1029), Ok("ann".into()));
        assert_eq!(check(&[], 1030), Err(Denied::Expired));
        assert_eq!(check(&[("nbf", json!(2000)), ("exp", json!(3000))], 900), Err(Denied::Invalid));
        assert_eq!(check(&[("aud", json!("https://other.example"))], 900), Err(Denied::Invalid));
        assert_eq!(check(&[("aud", Value::Null)], 900), Err(Denied::Invalid));
        assert_eq!(check(&[("iss", json!("https://evil.example"))], 900), Err(Denied::Invalid));
        assert_eq!(check(&[("exp", Value::Null)], 900), Err(Denied::Invalid));
        for subject in ["", "key:ci", "cert:ann"] {
            assert_eq!(check(&[("sub", json!(subject))], 900), Err(Denied::Invalid));
        }
    }

    #[test]
    fn forged_and_unsigned_tokens_are_refused() {
        let good = token(&[]);
        let other = EncodingKey::from_secret(b"another secret of thirty-two bytes!!");
        let forged = encode(&Header::default(), &json!({"sub": "x", "exp": 1000}), &other).unwrap();
        let payload = good.split('.').nth(1).unwrap();
        let unsigned = format!("eyJhbGciOiJub25lIn0.{payload}.");
        for bad in [forged.as_str(), &unsigned, &good[..good.len() - 2], "a.b.c", "", "...."] {
            assert_eq!(issuer().identify(bad, 900), Err(Denied::Invalid), "{bad}");
        }
    }

    #[test]
    fn a_public_key_is_never_used_as_a_shared_secret() {
        let jwks = r#"{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"1","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}"#;
        let issuer = Issuer { keys: Keys::from_jwks(jwks).unwrap(), ..issuer() };
        assert_eq!(issuer.identify(&token(&[]), 900), Err(Denied::Invalid));
    }
}
