//! Public keys in JSON form (JSON Web Keys, RFC 7517), and verification with them.

use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256,
    RSA_PSS_2048_8192_SHA256, RsaParameters, RsaPublicKeyComponents, UnparsedPublicKey,
    VerificationAlgorithm,
};
use serde::Deserialize;

use super::algorithm::{Algorithm, InvalidToken, decode_base64url};

/// The public keys of an issuer (a JWKS document).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct KeySet {
    pub keys: Vec<Jwk>,
}

/// One public key, with the member names of RFC 7517.
///
/// Its type and its purpose are checked when it is used, not when it is parsed: a
/// key of an unknown type verifies nothing and does not spoil its set.
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
    /// Finds the key with this id. Without an id, returns the key of a set of one.
    pub fn find(&self, id: Option<&str>) -> Option<&Jwk> {
        match (id, self.keys.as_slice()) {
            (Some(id), keys) => keys.iter().find(|key| key.kid.as_deref() == Some(id)),
            (None, [only]) => Some(only),
            (None, _) => None,
        }
    }
}

impl Jwk {
    /// Returns whether this key may verify signatures of this algorithm.
    pub fn allows(&self, algorithm: Algorithm) -> bool {
        let signs = self.purpose.as_ref().is_none_or(|purpose| purpose == "sig");
        let verifies = self.key_ops.as_ref().is_none_or(|ops| ops.iter().any(|op| op == "verify"));
        let is_its_own = self.alg.as_ref().is_none_or(|own| own == algorithm.name());
        signs && verifies && is_its_own && self.supported_algorithms().contains(&algorithm)
    }

    /// Returns the algorithms that we support for this type of key.
    fn supported_algorithms(&self) -> &'static [Algorithm] {
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
    ) -> Result<(), InvalidToken> {
        if !self.allows(algorithm) {
            return Err(InvalidToken);
        }
        match algorithm {
            Algorithm::HS256 => Err(InvalidToken),
            Algorithm::RS256 => self.verify_rsa(&RSA_PKCS1_2048_8192_SHA256, message, signature),
            Algorithm::PS256 => self.verify_rsa(&RSA_PSS_2048_8192_SHA256, message, signature),
            Algorithm::ES256 => {
                verify_with(&ECDSA_P256_SHA256_FIXED, &self.ec_point(32)?, message, signature)
            }
            Algorithm::ES384 => {
                verify_with(&ECDSA_P384_SHA384_FIXED, &self.ec_point(48)?, message, signature)
            }
            Algorithm::EdDSA => {
                verify_with(&ED25519, &decode_member(self.x.as_ref())?, message, signature)
            }
        }
    }

    fn verify_rsa(
        &self,
        parameters: &RsaParameters,
        message: &[u8],
        signature: &[u8],
    ) -> Result<(), InvalidToken> {
        let (n, e) = (decode_member(self.n.as_ref())?, decode_member(self.e.as_ref())?);
        // Some issuers write leading zeros, which RFC 7518 forbids and `ring` refuses.
        let bare = |number: &[u8]| number.iter().copied().skip_while(|byte| *byte == 0).collect();
        let (n, e): (Vec<u8>, Vec<u8>) = (bare(&n), bare(&e));
        let key = RsaPublicKeyComponents { n, e };
        key.verify(parameters, message, signature).map_err(|_| InvalidToken)
    }

    /// Returns the uncompressed point of a curve whose coordinates have `n_bytes` each.
    fn ec_point(&self, n_bytes: usize) -> Result<Vec<u8>, InvalidToken> {
        let (x, y) = (decode_member(self.x.as_ref())?, decode_member(self.y.as_ref())?);
        if x.len() != n_bytes || y.len() != n_bytes {
            return Err(InvalidToken);
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

/// Decodes one member of a key; a missing one is an error.
fn decode_member(member: Option<&String>) -> Result<Vec<u8>, InvalidToken> {
    decode_base64url(member.ok_or(InvalidToken)?)
}

fn verify_with(
    algorithm: &'static dyn VerificationAlgorithm,
    key: &[u8],
    message: &[u8],
    signature: &[u8],
) -> Result<(), InvalidToken> {
    let key: UnparsedPublicKey<&[u8]> = UnparsedPublicKey::new(algorithm, key);
    key.verify(message, signature).map_err(|_| InvalidToken)
}
