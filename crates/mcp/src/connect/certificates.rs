//! The TLS certificates that a connection trusts, and the one that it presents.

use std::fmt;

use sha2::{Digest, Sha256};
use tool::hex;

/// The operator's own certificates, in PEM.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Certificates {
    /// Certificate authorities to trust besides the system's.
    pub authority: Option<Vec<u8>>,
    /// The client certificate with its key, for mutual TLS.
    pub identity: Option<Vec<u8>>,
}

impl Certificates {
    pub fn is_empty(&self) -> bool {
        self.authority.is_none() && self.identity.is_none()
    }

    /// Returns a hash that differs when the certificates differ.
    pub fn digest(&self) -> String {
        let part = |pem: &Option<Vec<u8>>| {
            let pem = pem.as_deref().unwrap_or_default();
            hex::encode(&Sha256::digest(pem))
        };
        format!("{}{}", part(&self.authority), part(&self.identity))
    }

    /// Adds the certificates to a client builder. The error is one line for the operator.
    pub(crate) fn apply_to(
        &self,
        mut builder: reqwest::ClientBuilder,
    ) -> Result<reqwest::ClientBuilder, String> {
        if let Some(pem) = &self.authority {
            let authority = reqwest::Certificate::from_pem_bundle(pem).ok();
            let authority = authority.filter(|found| !found.is_empty());
            let none = || "there is no certificate in the given authority".to_owned();
            builder = builder.tls_certs_merge(authority.ok_or_else(none)?);
        }
        if let Some(pem) = &self.identity {
            let identity = reqwest::Identity::from_pem(pem);
            let none = |_| "there is no certificate with its key in the given files".to_owned();
            builder = builder.identity(identity.map_err(none)?);
        }
        Ok(builder)
    }
}

/// A key is never printed.
impl fmt::Debug for Certificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificates").finish_non_exhaustive()
    }
}
