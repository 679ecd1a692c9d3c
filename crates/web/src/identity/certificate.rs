//! Identifies callers by their TLS client certificate.
//!
//! Whether a certificate is good was decided when the connection was made (see
//! [`tls`](crate::tls)); here it is only read. Its holder is `cert:` and the
//! common name, and belongs to the groups that its organisational units name.

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
const UNIT: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.4.11");

/// Longer names are cut off from being names.
const LONGEST: usize = 256;

/// Who holds the certificate of a connection, in the request's extensions.
#[derive(Clone, Debug)]
pub struct CertificateHolder(pub Arc<Identity>);

/// Returns who a certificate says its holder is: by common name, else by its first
/// other name, else by the certificate itself.
pub fn holder(der: &[u8]) -> Identity {
    let certificate = Certificate::from_der(der).ok();
    let named = |wanted| certificate.iter().flat_map(move |known| named(known, wanted));
    let name = named(COMMON_NAME).next();
    let name = name.or_else(|| alternative(certificate.as_ref()?));
    let groups: BTreeSet<String> = named(UNIT).collect();
    let subject = format!("cert:{}", name.unwrap_or_else(|| fingerprint(der)));
    Identity { subject, groups, ..Identity::default() }
}

/// The values of one kind in the subject.
fn named(
    certificate: &Certificate,
    wanted: ObjectIdentifier,
) -> impl Iterator<Item = String> + use<'_> {
    let parts = certificate.tbs_certificate.subject.0.iter().flat_map(|part| part.0.iter());
    parts.filter(move |part| part.oid == wanted).filter_map(|part| text(&part.value))
}

fn text(value: &Any) -> Option<String> {
    let utf8 = value.decode_as::<Utf8StringRef<'_>>().map(|text| text.as_str().to_owned());
    let utf8 = utf8
        .or_else(|_| value.decode_as::<PrintableStringRef<'_>>().map(|t| t.as_str().to_owned()))
        .or_else(|_| value.decode_as::<Ia5StringRef<'_>>().map(|t| t.as_str().to_owned()))
        .or_else(|_| value.decode_as::<TeletexStringRef<'_>>().map(|t| t.as_str().to_owned()));
    utf8.ok().filter(|text| is_name(text))
}

fn alternative(certificate: &Certificate) -> Option<String> {
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
    !text.trim().is_empty() && text.len() <= LONGEST && !text.chars().any(char::is_control)
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
