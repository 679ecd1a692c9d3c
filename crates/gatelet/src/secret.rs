//! Secrets on this machine: random bytes, and files that only their owner reads.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use anyhow::Context;

/// Bytes from the system's generator.
pub(crate) fn random<const N: usize>() -> [u8; N] {
    rand::random()
}

/// Writes a file that only its owner can read, whole or not at all.
pub(crate) fn write(file: &Path, text: &str) -> anyhow::Result<()> {
    let shown = file.display();
    if let Some(directory) = file.parent() {
        std::fs::create_dir_all(directory)
            .with_context(|| format!("cannot create `{}`", directory.display()))?;
    }
    let fresh = file.with_extension(format!("new-{}", std::process::id()));
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    let mut handle = options.open(&fresh).with_context(|| format!("cannot write `{shown}`"))?;
    handle.write_all(text.as_bytes())?;
    handle.sync_all()?;
    std::fs::rename(&fresh, file).with_context(|| format!("cannot write `{shown}`"))
}
