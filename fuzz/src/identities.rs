//! What callers show: tokens, keys of issuers, certificates, headers.

use testkit::fuzz::Dictionary;
use web::identity::{self, certificate, token};

use crate::{JSON, Target, text};

static TOKENS: Dictionary = Dictionary {
    seeds: &[
        "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiJhbm4iLCJleHAiOjE4OTM0NTYwMDB9.c2lnbmF0dXJl",
        "Bearer gk_0123456789abcdef",
        "{\"keys\":[{\"kty\":\"RSA\",\"n\":\"AQAB\",\"e\":\"AQAB\",\"alg\":\"RS256\",\"kid\":\"1\"}]}",
    ],
    words: &[".", "e30", "eyJhbGciOiJub25lIn0", "Bearer ", "=", "_", "-", "{", "[", "\"", "gk_"],
};

static DER: Dictionary = Dictionary { seeds: &["0\u{1}\u{2}\u{3}"], words: JSON };

pub(crate) const TARGETS: &[Target] = &[
    Target { name: "token", dictionary: &TOKENS, check: token },
    Target { name: "certificate", dictionary: &DER, check: certificate },
];

fn token(bytes: &[u8]) {
    let text = text(bytes);
    let _ = token::Keys::from_jwks(&text);
    let shown = identity::credential(&[&text], &[]);
    assert!(
        token::identify(&[], shown.ok().flatten().unwrap_or(&text), 0).is_err(),
        "nobody signed it"
    );
    let _ = identity::key::has_key_prefix(&text);
}

fn certificate(bytes: &[u8]) {
    let _ = certificate::holder(bytes);
}
