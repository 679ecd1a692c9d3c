use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use proptest::prelude::*;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair,
    EcdsaSigningAlgorithm, Ed25519KeyPair, KeyPair,
};
use serde_json::json;

use super::*;

const SECRET: &[u8] = b"a secret of at least thirty-two bytes";

fn encode(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// A token with this header, signed by whoever signs.
fn token(header: &Value, sign: impl FnOnce(&[u8]) -> Vec<u8>) -> String {
    let claims = encode(br#"{"sub":"ann"}"#);
    let message = format!("{}.{claims}", encode(header.to_string().as_bytes()));
    let signature = encode(&sign(message.as_bytes()));
    format!("{message}.{signature}")
}

fn by_secret(header: &Value, secret: &[u8]) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
    token(header, |message| hmac::sign(&key, message).as_ref().to_vec())
}

fn shared() -> Keys {
    Keys::Secret(SECRET.into())
}

fn public(key: &Value) -> Keys {
    Keys::from_jwks(&json!({"keys": [key]}).to_string()).unwrap()
}

#[track_caller]
fn check(keys: &Keys, token: &str, expected: bool) {
    let claims = verify(keys, token);
    assert_eq!(claims.is_ok(), expected, "{token}");
    if let Ok(claims) = claims {
        assert_eq!(claims["sub"], "ann");
    }
}

#[test]
fn a_secret_checks_what_was_signed_with_it_and_nothing_else() {
    check(&shared(), &by_secret(&json!({"alg": "HS256"}), SECRET), true);
    check(&shared(), &by_secret(&json!({"alg": "HS256"}), b"another"), false);
    for alg in [json!("HS512"), json!("none"), json!("RS256"), json!("hs256"), json!(null)] {
        check(&shared(), &by_secret(&json!({"alg": alg}), SECRET), false);
    }
    check(&shared(), &by_secret(&json!({"alg": "HS256", "crit": ["b64"]}), SECRET), false);
    check(&shared(), &by_secret(&json!({}), SECRET), false);
    let unsigned = token(&json!({"alg": "none"}), |_| Vec::new());
    check(&shared(), &unsigned, false);
}

#[test]
fn a_key_of_either_curve_checks_its_own_signatures() {
    let random = SystemRandom::new();
    let sign = |algorithm: &'static EcdsaSigningAlgorithm, alg: &str, crv: &str, size: usize| {
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
        let pair = EcdsaKeyPair::from_pkcs8(algorithm, pkcs8.as_ref(), &random).unwrap();
        let point = pair.public_key().as_ref()[1..].to_vec();
        let key = json!({"kty": "EC", "crv": crv,
            "x": encode(&point[..size]), "y": encode(&point[size..])});
        let signed = token(&json!({"alg": alg}), |message| {
            pair.sign(&random, message).unwrap().as_ref().to_vec()
        });
        check(&public(&key), &signed, true);
        check(&public(&key), &format!("{signed}AA"), false);
        let mut other = key.clone();
        other["x"] = key["y"].clone();
        check(&public(&other), &signed, false);
        (key, signed)
    };
    let (small, by_small) = sign(&ECDSA_P256_SHA256_FIXED_SIGNING, "ES256", "P-256", 32);
    let (large, by_large) = sign(&ECDSA_P384_SHA384_FIXED_SIGNING, "ES384", "P-384", 48);
    check(&public(&small), &by_large, false);
    check(&public(&large), &by_small, false);
}

#[test]
fn an_edwards_key_checks_its_own_signatures() {
    let pkcs8 = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
    let pair = Ed25519KeyPair::from_pkcs8(pkcs8.as_ref()).unwrap();
    let key = json!({"kty": "OKP", "crv": "Ed25519", "x": encode(pair.public_key().as_ref())});
    let signed = token(&json!({"alg": "EdDSA"}), |message| pair.sign(message).as_ref().to_vec());
    check(&public(&key), &signed, true);
    // A public key is never a shared secret.
    let forged = by_secret(&json!({"alg": "HS256"}), pair.public_key().as_ref());
    check(&public(&key), &forged, false);
}

/// Made once with OpenSSL; the private key is gone.
const MODULUS: &str = "3dMCPjZChEYQY67lUWvgQ7DDW20KzeSK67lPNwbU1gLAMZ4Eob1mSwCAo3XgHw5HhJzZW20eLs-xDt6gq0mwpluLx78gk5S8UkTL3Q5HZ21BPbHQiIPmMXQ0LfVqvogX0d46ZJ9tesfS4aO9KnznCPlRR9h7iJ0CvuEwM3hzPqHkZ5BJnEWNMr4gCqseGGcFBcRDOYEXaAkw53Cw4aeyCbmEo3kY1jGMOdzUAO-XuzT4860OIKKuMXEbpSKC4Pt_LW9JAhxIvkL9ZEF82-PPDg3ulqe4BshaNFyFX5bd5CLdJOxooRSR_oE0Mrf3E7bnqynkTLYObLJFFM5tLnURwQ";
const RS256: &str = "eyJhbGciOiJSUzI1NiIsImtpZCI6InIifQ.eyJzdWIiOiJhbm4ifQ.ucP7Hn5jjBQXPTkfVybs8jMPXaLk-0zDPZIp9tiCGhQdIIJnwo9xf_qByxF7oN1pAd7a-E0nhotLd9Q7l4y3r7rIgrdxquqA1OjnXB2rI2G-aXQ1ECWd1MObyFQwG-pDnOAA5AjNm5RRmN6IYgQxVT_rhf3ENi9ncBtalIP9RMtGbGWT8IaNCdFsS94qhrbe8n0xKGVdeaJP4HiIoeRVxCmbnam2WQQACLXEbI8MFWmEQterHDeH3PJoUTVlU_U7WCzL5rpg-9a_Rt3B-ZTc0RrIvUSIKaWCxcLhGe3RbPS9NFAo5WOdoBQnLd-ty3Y_AoQ4T5TbRc5v5rh_whSJQw";
const PS256: &str = "eyJhbGciOiJQUzI1NiIsImtpZCI6InIifQ.eyJzdWIiOiJhbm4ifQ.HcKUrgxQ-XsKsRgqmtZy2k6IqPhUu88qabltOta2z0LNcIo6wtbwdvpGdpQh8ryjp1WGWBt-yYjrXAcfLAkiVpTESymkK3z8y8wjuSB6q18jEo2kRb4Iathy0pEcOorOEWZSMaSWgTYqonvjvudG6kwx-Tagml_xOB-Z65nbue-gGGAGc6ZgN8D5SvjZ7iKdtbrAkIjGqeLSww2yQRLFAUPCVfoDniqlTnAJt8rhnsHZfpBi_ghQoNcTHXQaL-nyUjz0nlWAKrbS7Iaas-yDBsFcwSZKpIIDeYWZUIJOMroWNncSPg8VPAF3__bCdCJPF2k6-8g_AX4aWaECmBfvwA";

#[test]
fn an_rsa_key_checks_both_kinds_of_padding() {
    let key = json!({"kty": "RSA", "kid": "r", "n": MODULUS, "e": "AQAB"});
    check(&public(&key), RS256, true);
    check(&public(&key), PS256, true);
    let (head, rest) = RS256.split_once('.').unwrap();
    assert!(!head.is_empty());
    let mixed = format!("{}.{rest}", PS256.split_once('.').unwrap().0);
    check(&public(&key), &mixed, false);
    let mut bound = key.clone();
    bound["alg"] = json!("PS256");
    check(&public(&bound), RS256, false);
    bound["kid"] = json!("another");
    check(&public(&bound), PS256, false);
}

#[test]
fn a_key_checks_what_it_is_there_for() {
    let rsa = r#""kty":"RSA","n":"AQAB","e":"AQAB""#;
    let curve = r#""kty":"EC","crv":"P-256","x":"AQ","y":"AQ""#;
    let edwards = r#""kty":"OKP","crv":"Ed25519","x":"AQ""#;
    let check = |members: &str, algorithm, expected| {
        let jwk: Jwk = serde_json::from_str(&format!("{{{members}}}")).unwrap();
        assert_eq!(jwk.allows(algorithm), expected, "{members} {algorithm:?}");
    };
    check(rsa, Algorithm::RS256, true);
    check(rsa, Algorithm::PS256, true);
    check(rsa, Algorithm::ES256, false);
    check(rsa, Algorithm::HS256, false);
    check(&format!(r#"{rsa},"alg":"RS256""#), Algorithm::RS256, true);
    check(&format!(r#"{rsa},"alg":"RS256""#), Algorithm::PS256, false);
    check(&format!(r#"{rsa},"alg":"RSA-OAEP""#), Algorithm::RS256, false);
    check(&format!(r#"{rsa},"use":"sig""#), Algorithm::RS256, true);
    check(&format!(r#"{rsa},"use":"enc""#), Algorithm::RS256, false);
    check(&format!(r#"{rsa},"key_ops":["encrypt"]"#), Algorithm::RS256, false);
    check(&format!(r#"{rsa},"key_ops":["verify"]"#), Algorithm::RS256, true);
    check(curve, Algorithm::ES256, true);
    check(curve, Algorithm::ES384, false);
    check(edwards, Algorithm::EdDSA, true);
    check(r#""kty":"oct","k":"AQ""#, Algorithm::HS256, false);
    check(r#""kty":"AKP""#, Algorithm::EdDSA, false);
}

#[test]
fn claims_that_are_nested_without_end_are_refused() {
    for depth in [100, 200, 20_000] {
        let nested = format!("{{\"a\":{}{}}}", "[".repeat(depth), "]".repeat(depth));
        let message = format!("{}.{}", encode(br#"{"alg":"HS256"}"#), encode(nested.as_bytes()));
        let key = hmac::Key::new(hmac::HMAC_SHA256, SECRET);
        let signature = encode(hmac::sign(&key, message.as_bytes()).as_ref());
        let read = verify(&shared(), &format!("{message}.{signature}"));
        assert_eq!(read.is_ok(), depth < 128, "{depth}");
    }
}

proptest! {
    /// No text makes it fall over, and none that nobody signed is believed.
    #[test]
    fn what_nobody_signed_is_refused(text in ".{0,200}", parts in "[a-zA-Z0-9_.=-]{0,200}") {
        prop_assert!(verify(&shared(), &text).is_err());
        prop_assert!(verify(&shared(), &parts).is_err());
    }

    /// Whatever is changed in a good token, it is no longer good.
    #[test]
    fn a_changed_token_is_refused(at in any::<prop::sample::Index>(), byte in 33..127u8) {
        let good = by_secret(&json!({"alg": "HS256"}), SECRET);
        let mut changed = good.clone().into_bytes();
        let at = at.index(changed.len());
        prop_assume!(changed[at] != byte);
        changed[at] = byte;
        let changed = String::from_utf8(changed).unwrap();
        prop_assert!(verify(&shared(), &changed).is_err());
    }
}
