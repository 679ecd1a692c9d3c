//! Creates a certificate authority for a test, with certificates, clients and servers.

use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore, ServerConfig};

/// A certificate authority.
pub struct Authority {
    /// Its own certificate, in PEM.
    pub pem: String,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate and its key, both in PEM.
pub type Signed = (String, String);

impl Authority {
    /// Creates a new authority.
    pub fn fresh() -> Authority {
        let mut params = CertificateParams::new(vec![]).expect("no name is a bad one");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = pair();
        let pem = params.self_signed(&key).expect("the key is good").pem();
        Authority { pem, issuer: Issuer::new(params, key) }
    }

    /// Creates a certificate and its key for this host name and common name.
    pub fn sign(&self, host: &str, name: &str) -> Signed {
        let mut params = CertificateParams::new(vec![host.to_owned()]).expect("a host has a name");
        params.distinguished_name.push(DnType::CommonName, name);
        let key = pair();
        let signed = params.signed_by(&key, &self.issuer).expect("the key is good");
        (signed.pem(), key.serialize_pem())
    }

    /// Creates a client that trusts this authority, and may show a certificate of its own.
    pub fn client(&self, own: Option<Signed>) -> Arc<ClientConfig> {
        let mut roots = RootCertStore::empty();
        roots.add(certificate(&self.pem)).expect("it is an authority");
        let builder = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .expect("ring knows them")
            .with_root_certificates(roots);
        Arc::new(match own {
            None => builder.with_no_client_auth(),
            Some((chain, key)) => builder
                .with_client_auth_cert(vec![certificate(&chain)], private(&key))
                .expect("they belong together"),
        })
    }

    /// Creates a server for this machine that asks clients for no certificate.
    pub fn server(&self) -> Arc<ServerConfig> {
        let (chain, key) = self.sign("localhost", "the server");
        let config = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .expect("ring knows them")
            .with_no_client_auth()
            .with_single_cert(vec![certificate(&chain)], private(&key))
            .expect("they belong together");
        Arc::new(config)
    }
}

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

fn pair() -> KeyPair {
    KeyPair::generate().expect("there is randomness")
}

fn certificate(pem: &str) -> CertificateDer<'static> {
    CertificateDer::from_pem_slice(pem.as_bytes()).expect("we wrote it")
}

fn private(pem: &str) -> PrivateKeyDer<'static> {
    PrivateKeyDer::from_pem_slice(pem.as_bytes()).expect("we wrote it")
}
