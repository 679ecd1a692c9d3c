//! Public keys as JSON (RFC 7517).

use ring::signature::{
    self, ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256,
    RSA_PSS_2048_8192_SHA256, RsaParameters, RsaPublicKeyComponents, UnparsedPublicKey,
    VerificationAlgorithm,
};
use serde::Deserialize;

use super::algorithm::{Algorithm, Invalid, decode};

/// The keys of an issuer.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct KeySet {
    pub keys: Vec<Jwk>,
}

/// One key. Of what kind it is, and what it may be used for, is looked at when
/// it is used: a key that we do not understand checks nothing, and the others of
/// its set go on.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Jwk {
    kty: String,
    kid: Option<String>,
    #[serde(rename = "use")]
    purpose: Option<String>,
    key_ops: Option<Vec<String>>,
    alg: Option<String>,
    crv: Option<String>,
    x: Option<String>,
    y: Option<String>,
    n: Option<String>,
    e: Option<String>,
}

impl KeySet {
    /// The key with this id; without one, the only key there is.
    pub fn find(&self, id: Option<&str>) -> Option<&Jwk> {
        match (id, self.keys.as_slice()) {
            (Some(id), keys) => keys.iter().find(|key| key.kid.as_deref() == Some(id)),
            (None, [only]) => Some(only),
            (None, _) => None,
        }
    }
}

impl Jwk {
    /// Returns whether a key is there to check signatures of this algorithm.
    pub fn is_for(&self, algorithm: Algorithm) -> bool {
        let signs = self.purpose.as_ref().is_none_or(|purpose| purpose == "sig");
        let verifies = self.key_ops.as_ref().is_none_or(|ops| ops.iter().any(|op| op == "verify"));
        let is_its_own = self.alg.as_ref().is_none_or(|own| own == algorithm.name());
        signs && verifies && is_its_own && self.kind().contains(&algorithm)
    }

    /// Returns what a kind of key can sign with, as far as we take it.
    fn kind(&self) -> &'static [Algorithm] {
        match (self.kty.as_str(), self.crv.as_deref()) {
            ("RSA", _) => &[Algorithm::RS256, Algorithm::PS256],
            ("EC", Some("P-256")) => &[Algorithm::ES256],
            ("EC", Some("P-384")) => &[Algorithm::ES384],
            ("OKP", Some("Ed25519")) => &[Algorithm::EdDSA],
            _ => &[],
        }
    }

    pub(super) fn verify(
        &self,
        algorithm: Algorithm,
        message: &[u8],
        signature: &[u8],
    ) -> Result<(), Invalid> {
        if !self.is_for(algorithm) {
            return Err(Invalid);
        }
        match algorithm {
            Algorithm::HS256 => Err(Invalid),
            Algorithm::RS256 => self.rsa(&RSA_PKCS1_2048_8192_SHA256, message, signature),
            Algorithm::PS256 => self.rsa(&RSA_PSS_2048_8192_SHA256, message, signature),
            Algorithm::ES256 => {
                check(&ECDSA_P256_SHA256_FIXED, &self.point(32)?, message, signature)
            }
            Algorithm::ES384 => {
                check(&ECDSA_P384_SHA384_FIXED, &self.point(48)?, message, signature)
            }
            Algorithm::EdDSA => check(&ED25519, &part(self.x.as_ref())?, message, signature),
        }
    }

    fn rsa(
        &self,
        parameters: &RsaParameters,
        message: &[u8],
        signature: &[u8],
    ) -> Result<(), Invalid> {
        let (n, e) = (part(self.n.as_ref())?, part(self.e.as_ref())?);
        // A number is written without zeros before it, by those who keep to that.
        let bare = |number: &[u8]| number.iter().copied().skip_while(|byte| *byte == 0).collect();
        let (n, e): (Vec<u8>, Vec<u8>) = (bare(&n), bare(&e));
        let key = RsaPublicKeyComponents { n, e };
        key.verify(parameters, message, signature).map_err(|_| Invalid)
    }

    /// The uncompressed point of a curve whose numbers have so many bytes.
    fn point(&self, n_bytes: usize) -> Result<Vec<u8>, Invalid> {
        let (x, y) = (part(self.x.as_ref())?, part(self.y.as_ref())?);
        if x.len() != n_bytes || y.len() != n_bytes {
            return Err(Invalid);
        }
        Ok([&[4], x.as_slice(), &y].concat())
    }
}

impl Algorithm {
    fn name(self) -> &'static str {
        match self {
            Algorithm::HS256 => "HS256",
            Algorithm::RS256 => "RS256",
            Algorithm::PS256 => "PS256",
            Algorithm::ES256 => "ES256",
            Algorithm::ES384 => "ES384",
            Algorithm::EdDSA => "EdDSA",
        }
    }
}

fn part(text: Option<&String>) -> Result<Vec<u8>, Invalid> {
    decode(text.ok_or(Invalid)?)
}

fn check(
    algorithm: &'static dyn VerificationAlgorithm,
    key: &[u8],
    message: &[u8],
    given: &[u8],
) -> Result<(), Invalid> {
    let key: UnparsedPublicKey<&[u8]> = signature::UnparsedPublicKey::new(algorithm, key);
    key.verify(message, given).map_err(|_| Invalid)
}
