//! Authenticates callers by bearer tokens (JWT) of trusted issuers.
//!
//! An issuer has a shared secret or a set of public keys (JWKS), and the audiences that
//! its tokens must be for. Signatures are verified by [`jwt`].
//!
//! Two issuers may use the same subject for different people. So where several issuers
//! are trusted, [`identify`] makes the issuer a part of the subject.

use std::collections::BTreeSet;

use serde_json::Value;
use tool::Identity;

use super::denied::Denied;

pub use jwt::Keys;

/// How far the clocks of an issuer and ours may differ, in seconds.
const LEEWAY: u64 = 30;

/// An issuer whose tokens are accepted.
#[derive(Clone)]
pub struct Issuer {
    pub keys: Keys,
    /// The `iss` that a token must have.
    pub issuer: Option<String>,
    /// One of these must be in `aud`; if empty, every audience is accepted.
    pub audiences: Vec<String>,
}

impl std::fmt::Debug for Issuer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Issuer")
            .field("issuer", &self.issuer)
            .field("audiences", &self.audiences)
            .finish_non_exhaustive()
    }
}

/// Returns the identity of a token's holder, by the first of these issuers that signed it.
///
/// With one issuer, its subject is that of the token. With several, it is the issuer's
/// URL, `#` and that subject; for an issuer without a URL, its number is used. No URL of
/// an issuer contains `#`, so the result is unambiguous.
pub fn identify(issuers: &[Issuer], token: &str, now: u64) -> Result<Identity, Denied> {
    let several = issuers.iter().any(|one| one.issuer.is_none() || one.issuer != issuers[0].issuer);
    let mut denied = Denied::Invalid;
    for (at, issuer) in issuers.iter().enumerate() {
        match issuer.identify(token, now) {
            Ok(who) if several && 1 < issuers.len() => {
                let address = issuer.issuer.clone().unwrap_or_else(|| (at + 1).to_string());
                let subject = format!("{address}#{}", who.subject);
                return Ok(Identity { subject, ..who });
            }
            Ok(who) => return Ok(who),
            // Only the issuer of a token can tell that it expired.
            Err(Denied::Expired) => denied = Denied::Expired,
            Err(Denied::Missing | Denied::Invalid | Denied::Insufficient(_)) => {}
        }
    }
    Err(denied)
}

/// Returns the `current` issuers with the public keys that they have in `reloaded`, or
/// `None` if no key changed. Issuers are not added or removed, and secrets stay.
pub fn with_new_keys(current: &[Issuer], reloaded: &[Issuer]) -> Option<Vec<Issuer>> {
    let is_like = |one: &Issuer, other: &Issuer| {
        one.issuer == other.issuer && one.audiences == other.audiences
    };
    let mut is_new = false;
    let renew = |(at, issuer): (usize, &Issuer)| {
        // Of several issuers that are alike, the first belongs to the first, and so on.
        let position = current[..at].iter().filter(|other| is_like(issuer, other)).count();
        let same = reloaded.iter().filter(|other| is_like(issuer, other)).nth(position);
        let keys = match (&issuer.keys, same.map(|same| &same.keys)) {
            (Keys::Public(old), Some(keys @ Keys::Public(new))) if old != new => {
                is_new = true;
                keys
            }
            (keys, _) => keys,
        };
        Issuer { keys: keys.clone(), ..issuer.clone() }
    };
    let issuers = current.iter().enumerate().map(renew).collect();
    is_new.then_some(issuers)
}

impl Issuer {
    /// Returns the identity of a token's holder, if this issuer signed it and it is valid.
    pub fn identify(&self, token: &str, now: u64) -> Result<Identity, Denied> {
        let claims = jwt::verify(&self.keys, token).map_err(|_| Denied::Invalid)?;
        let claims = Value::Object(claims);
        let is_theirs =
            self.issuer.as_ref().is_none_or(|issuer| claims["iss"].as_str() == Some(issuer));
        if !is_theirs || !self.is_for_us(&claims["aud"]) {
            return Err(Denied::Invalid);
        }
        check_times(&claims, now)?;
        identity(&claims)
    }

    /// Returns whether a token's `aud` names one of our audiences.
    fn is_for_us(&self, audience: &Value) -> bool {
        let several = audience.as_array().into_iter().flatten();
        let mut named = several.chain([audience]).filter_map(Value::as_str);
        self.audiences.is_empty() || named.any(|name| self.audiences.iter().any(|own| own == name))
    }
}

/// Checks `exp`, which is required, and `nbf`.
fn check_times(claims: &Value, now: u64) -> Result<(), Denied> {
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
    // These are the subjects of holders of our keys and of certificates; a token must not
    // claim to be one of them.
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
        ..Identity::default()
    })
}

/// Returns the words of a string, or the strings of a list.
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
    fn the_same_subject_of_two_issuers_is_two_callers() {
        let other = Issuer {
            keys: Keys::Secret(b"another secret of thirty-two bytes!!"[..].into()),
            issuer: Some("https://other.example".into()),
            ..issuer()
        };
        let nameless = Issuer { issuer: None, ..other.clone() };
        let foreign = {
            let claims = json!({"sub": "ann", "iss": "https://other.example",
                "aud": "https://gate.example/mcp", "exp": 1000});
            let key = EncodingKey::from_secret(b"another secret of thirty-two bytes!!");
            encode(&Header::default(), &claims, &key).unwrap()
        };
        let who =
            |issuers: &[Issuer], token: &str| identify(issuers, token, 900).map(|who| who.subject);
        let both = [issuer(), other];
        assert_eq!(who(&both, &token(&[])), Ok("https://login.example#ann".into()));
        assert_eq!(who(&both, &foreign), Ok("https://other.example#ann".into()));
        assert_eq!(who(&[issuer(), nameless], &foreign), Ok("2#ann".into()));
        // One issuer with two keys is one issuer.
        let old = Issuer {
            keys: Keys::Secret(b"an old secret of thirty-two bytes!!!"[..].into()),
            ..issuer()
        };
        assert_eq!(who(&[old, issuer()], &token(&[])), Ok("ann".into()));
        assert_eq!(who(&both, "nonsense"), Err(Denied::Invalid));
        assert_eq!(identify(&both, &token(&[]), 2000), Err(Denied::Expired));
        assert_eq!(who(&[], &token(&[])), Err(Denied::Invalid));
    }

    #[test]
    fn only_public_keys_are_renewed() {
        let set = |id: &str| {
            let key = format!(r#"{{"kty":"OKP","crv":"Ed25519","kid":"{id}","x":"AQ"}}"#);
            Keys::from_jwks(&format!(r#"{{"keys":[{key}]}}"#)).unwrap()
        };
        let with = |keys| Issuer { keys, ..issuer() };
        let known = [with(set("1"))];
        assert!(with_new_keys(&known, &known).is_none());
        let fresh = with_new_keys(&known, &[with(set("2"))]).unwrap();
        let Keys::Public(keys) = &fresh[0].keys else { panic!() };
        assert!(keys.find(Some("2")).is_some() && keys.find(Some("1")).is_none());
        let stranger = Issuer { issuer: Some("https://evil.example".into()), ..with(set("2")) };
        assert!(with_new_keys(&known, &[stranger]).is_none());
        assert!(with_new_keys(&known, &[with(Keys::Secret(SECRET.into()))]).is_none());
        assert!(
            with_new_keys(&known, &[]).is_none(),
            "a file that says nothing takes nothing away"
        );
    }

    #[test]
    fn a_header_that_must_be_understood_is_not() {
        let header = Header { crit: Some(vec!["b64".into()]), ..Header::default() };
        let claims = json!({"sub": "ann", "iss": "https://login.example",
            "aud": "https://gate.example/mcp", "exp": 1000});
        let critical = encode(&header, &claims, &EncodingKey::from_secret(SECRET)).unwrap();
        assert_eq!(issuer().identify(&critical, 900), Err(Denied::Invalid));
    }

    #[test]
    fn a_public_key_is_never_used_as_a_shared_secret() {
        let jwks = r#"{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"1","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}"#;
        let issuer = Issuer { keys: Keys::from_jwks(jwks).unwrap(), ..issuer() };
        assert_eq!(issuer.identify(&token(&[]), 900), Err(Denied::Invalid));
    }
}
