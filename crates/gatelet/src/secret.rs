//! Secrets on this machine: random bytes, and files that only their owner reads.

use std::path::Path;

use anyhow::Context;
use store::file::{Safety, replace};
use store::vault::Vault;

/// The vault (encrypted files) of a state directory.
pub(crate) fn vault(state: &Path) -> Vault {
    Vault::new(&state.join("credentials"), &state.join("credentials.key"))
}

/// Random bytes, good enough for keys.
pub(crate) fn random<const N: usize>() -> [u8; N] {
    rand::random()
}

/// Writes a file that only its owner can read, atomically.
pub(crate) fn write(file: &Path, text: &str) -> anyhow::Result<()> {
    let written = replace(file, text.as_bytes(), Safety::Synced);
    written.with_context(|| format!("cannot write `{}`", file.display()))
}
