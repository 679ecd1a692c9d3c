//! Why a secret cannot be read or stored.

/// Why a secret cannot be read or stored. One variant per remedy.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SecretError {
    #[error(
        "`{0}` cannot be the name of a secret: 1 to 128 letters, digits, `.`, `_`, `-` and `/`"
    )]
    BadName(String),
    #[error("there is no secret called `{0}`: keep it with `gatelet secret set {0}`")]
    Missing(String),
    #[error("there is no keyring here: {0}")]
    NoKeyring(&'static str),
    #[error("the keyring did not answer: {0}")]
    Keyring(String),
    #[error(transparent)]
    Vault(#[from] store::vault::VaultError),
    #[error("`secrets.json` cannot be used: {0}")]
    Index(String),
}
