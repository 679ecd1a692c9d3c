//! Derives the identity of a caller from its TLS client certificate.
//!
//! The certificate was verified when the connection was made (see [`tls`](crate::tls)).
//! The subject of its holder is `cert:` and the common name; its organisational units
//! are the holder's groups.

use std::collections::BTreeSet;
use std::sync::Arc;

use sha2::{Digest, Sha256};
use tool::{Identity, hex};
use x509_cert::Certificate;
use x509_cert::der::asn1::{Ia5StringRef, PrintableStringRef, TeletexStringRef, Utf8StringRef};
use x509_cert::der::oid::ObjectIdentifier;
use x509_cert::der::{Any, Decode};
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;

const COMMON_NAME: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.4.3");
const ORGANIZATIONAL_UNIT: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.4.11");

/// The length of the longest name that is used; longer ones are ignored.
const MAX_NAME_BYTES: usize = 256;

/// The holder of the client certificate of a connection, in the request's extensions.
#[derive(Clone, Debug)]
pub struct CertificateHolder(pub Arc<Identity>);

/// Returns the identity of a certificate's holder: by the common name, else by the first
/// alternative name, else by the fingerprint.
pub fn holder(der: &[u8]) -> Identity {
    let certificate = Certificate::from_der(der).ok();
    let values = |oid| certificate.iter().flat_map(move |read| subject_values(read, oid));
    let name = values(COMMON_NAME).next();
    let name = name.or_else(|| alternative_name(certificate.as_ref()?));
    let groups: BTreeSet<String> = values(ORGANIZATIONAL_UNIT).collect();
    let subject = format!("cert:{}", name.unwrap_or_else(|| fingerprint(der)));
    Identity { subject, groups, ..Identity::default() }
}

/// The values of one attribute of the certificate's subject.
fn subject_values(
    certificate: &Certificate,
    attribute: ObjectIdentifier,
) -> impl Iterator<Item = String> + use<'_> {
    let parts = certificate.tbs_certificate.subject.0.iter().flat_map(|part| part.0.iter());
    parts.filter(move |part| part.oid == attribute).filter_map(|part| text(&part.value))
}

fn text(value: &Any) -> Option<String> {
    let utf8 = value.decode_as::<Utf8StringRef<'_>>().map(|text| text.as_str().to_owned());
    let utf8 = utf8
        .or_else(|_| value.decode_as::<PrintableStringRef<'_>>().map(|t| t.as_str().to_owned()))
        .or_else(|_| value.decode_as::<Ia5StringRef<'_>>().map(|t| t.as_str().to_owned()))
        .or_else(|_| value.decode_as::<TeletexStringRef<'_>>().map(|t| t.as_str().to_owned()));
    utf8.ok().filter(|text| is_name(text))
}

fn alternative_name(certificate: &Certificate) -> Option<String> {
    let (_, names) = certificate.tbs_certificate.get::<SubjectAltName>().ok()??;
    names.0.iter().find_map(|name| {
        #[expect(clippy::wildcard_enum_match_arm, reason = "the rest is no text")]
        let text = match name {
            GeneralName::UniformResourceIdentifier(text)
            | GeneralName::Rfc822Name(text)
            | GeneralName::DnsName(text) => text.as_str(),
            _ => return None,
        };
        is_name(text).then(|| text.to_owned())
    })
}

fn is_name(text: &str) -> bool {
    !text.trim().is_empty() && text.len() <= MAX_NAME_BYTES && !text.chars().any(char::is_control)
}

fn fingerprint(der: &[u8]) -> String {
    format!("sha256:{}", hex::encode(&Sha256::digest(der)))
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DnType, KeyPair};

    use super::*;

    #[track_caller]
    fn check(names: &[(DnType, &str)], others: &[&str], expected: &str) {
        let others: Vec<String> = others.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(others).unwrap();
        params.distinguished_name = rcgen::DistinguishedName::new();
        for (kind, name) in names {
            params.distinguished_name.push(kind.clone(), *name);
        }
        let made = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
        let who = holder(made.der());
        let groups = who.groups.iter().cloned().collect::<Vec<_>>().join(",");
        assert_eq!(format!("{} [{groups}]", who.subject), expected);
    }

    #[test]
    fn the_common_name_is_the_caller_and_the_unit_a_group() {
        let names = [(DnType::CommonName, "Ann"), (DnType::OrganizationalUnitName, "ops")];
        check(&names, &["ann.example"], "cert:Ann [ops]");
        check(&[], &["ann.example"], "cert:ann.example []");
    }

    #[test]
    fn what_has_no_name_is_called_by_what_it_is() {
        assert!(holder(b"nonsense").subject.starts_with("cert:sha256:"));
        let odd = [(DnType::CommonName, "a\nb")];
        let mut params = CertificateParams::new(vec![]).unwrap();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(odd[0].0.clone(), odd[0].1);
        let made = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
        assert!(holder(made.der()).subject.starts_with("cert:sha256:"));
    }
}
