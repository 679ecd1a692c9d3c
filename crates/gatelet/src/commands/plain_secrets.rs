//! Moves secrets that stand in an upstream's entry as plain text into the secret store.

use crate::secrets::{SecretError, Secrets, legal_name};
use config::RawUpstream;

/// Moves the plain secrets of an entry into the store. Returns their names there.
pub(crate) fn move_to_store(
    store: &Secrets,
    raw: &mut RawUpstream,
) -> Result<Vec<String>, SecretError> {
    let secrets = replace_by_references(raw);
    store_all(store, &secrets)?;
    Ok(secrets.into_iter().map(|(name, _)| name).collect())
}

/// Replaces the plain secrets of an entry by references such as `${keyring:NAME}`. Returns
/// names and secrets, which are not stored yet.
pub(crate) fn replace_by_references(raw: &mut RawUpstream) -> Vec<(String, String)> {
    let label = raw.label.clone().unwrap_or_default();
    let mut secrets = Vec::new();
    for (name, value) in raw.env.iter_mut().chain(raw.headers.iter_mut()) {
        let Some((before, secret)) = secret_in(name, value) else { continue };
        let secret_name = legal_name(&format!("{label}/{name}"));
        let secret = secret.replace("$${", "${");
        *value = format!("{before}${{keyring:{secret_name}}}");
        secrets.push((secret_name, secret));
    }
    secrets
}

/// Stores secrets, given as names and values.
pub(crate) fn store_all(store: &Secrets, secrets: &[(String, String)]) -> Result<(), SecretError> {
    secrets.iter().try_for_each(|(name, secret)| store.set(name, secret, store.default_location()))
}

/// How many plain secrets an entry holds.
pub(crate) fn count(raw: &RawUpstream) -> usize {
    let pairs = raw.env.iter().chain(&raw.headers);
    pairs.filter(|(name, value)| secret_in(name, value).is_some()).count()
}

/// Splits a value into the scheme (such as `Bearer `) and the secret, if it has one.
fn secret_in<'a>(name: &str, value: &'a str) -> Option<(&'a str, &'a str)> {
    let has_reference = value.replace("$${", "").contains("${");
    let schemes = ["Bearer ", "bearer ", "Basic ", "Token ", "token "];
    let scheme = schemes.into_iter().find(|scheme| value.starts_with(scheme)).unwrap_or("");
    let secret = &value[scheme.len()..];
    let is_authorization = name.eq_ignore_ascii_case("authorization") && 8 <= secret.len();
    let is_secret = is_authorization || redact::looks_like_secret(name, secret);
    (is_secret && !has_reference).then_some((&value[..scheme.len()], secret))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_secrets_of_an_entry_are_moved_and_everything_else_stays() {
        let state = tempfile::tempdir().unwrap();
        let secrets = Secrets::at(state.path());
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let mut raw = RawUpstream {
            label: Some("git hub".to_owned()),
            env: [
                pair("API_TOKEN", "ghp_0123456789"),
                pair("MODE", "read-only-mode"),
                pair("OTHER_KEY", "${env:OTHER_KEY}"),
                pair("DB_PASSWORD", "odd$${x}value1"),
            ]
            .into(),
            headers: [pair("Authorization", "Bearer abcdefgh12345")].into(),
            ..RawUpstream::default()
        };
        assert_eq!(count(&raw), 3);
        let moved = move_to_store(&secrets, &mut raw).unwrap();
        assert_eq!(moved, ["git-hub/API_TOKEN", "git-hub/DB_PASSWORD", "git-hub/Authorization"]);
        assert_eq!(raw.env["API_TOKEN"], "${keyring:git-hub/API_TOKEN}");
        assert_eq!(raw.headers["Authorization"], "Bearer ${keyring:git-hub/Authorization}");
        assert_eq!(
            (raw.env["MODE"].as_str(), raw.env["OTHER_KEY"].as_str()),
            ("read-only-mode", "${env:OTHER_KEY}")
        );
        assert_eq!(secrets.get("git-hub/DB_PASSWORD").unwrap(), "odd${x}value1");
        assert_eq!(move_to_store(&secrets, &mut raw).unwrap(), Vec::<String>::new(), "once");
    }
}
