//! The certificates that a connection trusts, and the one that it presents.

use std::fmt;

use sha2::{Digest, Sha256};
use tool::hex;

/// Certificates of the operator's own, in PEM.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Certificates {
    /// Who else may have signed the server's certificate.
    pub authority: Option<Vec<u8>>,
    /// What we show a server that wants to know its clients: a certificate and
    /// its key.
    pub identity: Option<Vec<u8>>,
}

impl Certificates {
    pub fn is_empty(&self) -> bool {
        self.authority.is_none() && self.identity.is_none()
    }

    /// Tells two apart without telling what is in them.
    pub fn digest(&self) -> String {
        let part = |pem: &Option<Vec<u8>>| {
            let pem = pem.as_deref().unwrap_or_default();
            hex::encode(&Sha256::digest(pem))
        };
        format!("{}{}", part(&self.authority), part(&self.identity))
    }

    /// A client that uses them.
    pub(crate) fn put_on(
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
