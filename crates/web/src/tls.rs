//! Builds the TLS configuration from our certificate and the CA of client certificates.
//!
//! Keys and certificates are passed in as PEM text. The result is one immutable value,
//! which is replaced as a whole when files change.

use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};

/// Our certificate and key, and the client CA, as PEM text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pem {
    /// Our certificate, followed by the intermediate ones.
    pub chain: Vec<u8>,
    /// Our private key.
    pub key: Vec<u8>,
    /// The CA of client certificates; when `None`, clients are not asked for one.
    pub callers: Option<Vec<u8>>,
}

/// Whether clients must have a certificate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClientCertificates {
    /// A client may have none, but an invalid one is refused.
    #[default]
    Optional,
    Required,
}

/// Why no TLS configuration can be built.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("there is no certificate in the chain")]
    NoCertificate,
    #[error("there is no private key")]
    NoKey,
    #[error("there is no certificate in the client CA")]
    NoCallers,
    #[error("they cannot be used: {0}")]
    Useless(String),
}

/// Builds the configuration of a TLS server.
pub fn server(
    pem: &Pem,
    client_certificates: ClientCertificates,
) -> Result<Arc<ServerConfig>, TlsError> {
    let useless = |error: &dyn std::fmt::Display| TlsError::Useless(error.to_string());
    let chain = certificates(&pem.chain).ok_or(TlsError::NoCertificate)?;
    let key = PrivateKeyDer::from_pem_slice(&pem.key).map_err(|_| TlsError::NoKey)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| useless(&error))?;
    let builder = match &pem.callers {
        None => builder.with_no_client_auth(),
        Some(authority) => {
            let mut roots = RootCertStore::empty();
            for root in certificates(authority).ok_or(TlsError::NoCallers)? {
                roots.add(root).map_err(|error| useless(&error))?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            let verifier = match client_certificates {
                ClientCertificates::Optional => verifier.allow_unauthenticated(),
                ClientCertificates::Required => verifier,
            };
            builder.with_client_cert_verifier(verifier.build().map_err(|error| useless(&error))?)
        }
    };
    let mut server = builder.with_single_cert(chain, key).map_err(|error| useless(&error))?;
    server.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(server))
}

/// Parses the certificates in a PEM text; `None` if there are none or one is malformed.
fn certificates(pem: &[u8]) -> Option<Vec<CertificateDer<'static>>> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    found.ok().filter(|found| !found.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pem() -> Pem {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".into()]).unwrap();
        let key = made.signing_key.serialize_pem().into_bytes();
        Pem { chain: made.cert.pem().into_bytes(), key, callers: None }
    }

    #[track_caller]
    fn check(change: impl FnOnce(&mut Pem), expected: &str) {
        let mut pem = pem();
        change(&mut pem);
        let made = server(&pem, ClientCertificates::Required);
        let told = made.map_or_else(|unfit| unfit.to_string(), |_| "good".to_owned());
        assert!(told.starts_with(expected), "{told}");
    }

    #[test]
    fn what_is_missing_or_does_not_belong_together_is_told() {
        check(|_| (), "good");
        check(|pem| pem.callers = Some(pem.chain.clone()), "good");
        check(|pem| pem.chain.clear(), "there is no certificate in the chain");
        check(|pem| pem.key = b"secret".to_vec(), "there is no private key");
        check(
            |pem| pem.callers = Some(b"nonsense".to_vec()),
            "there is no certificate in the client",
        );
        check(|pem| pem.key = self::pem().key, "they cannot be used");
    }
}
