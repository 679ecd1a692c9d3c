//! Unpacks a bundle (`.mcpb`) into a directory of its own below the state directory.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use packages::bundle::{Bundle, digest};
use packages::recipe::Recipe;

use crate::exit::CliError;
use config::Environment;
use config::ProcessEnvironment;

/// The directory of a bundle, by its label and a digest of its bytes.
pub(super) fn directory(state: &Path, label: &str, bytes: &[u8]) -> PathBuf {
    state.join("bundles").join(format!(
        "{}-{}",
        catalog::name::canonical(label),
        &digest(bytes)[..32]
    ))
}

/// Parses a bundle, and makes the recipe that runs its server from `directory`. `expected`
/// is the SHA-256 that it must have.
pub(super) fn recipe(
    bytes: &[u8],
    expected: Option<&str>,
    directory: &Path,
) -> anyhow::Result<(Bundle, Recipe)> {
    let bundle = Bundle::unpack(bytes, expected).map_err(|bad| CliError::Usage(bad.to_string()))?;
    let home = ProcessEnvironment.get("HOME").unwrap_or_default();
    let platform = if cfg!(target_os = "macos") { "darwin" } else { "linux" };
    let recipe = bundle
        .recipe(directory, &home, platform)
        .map_err(|bad| CliError::Usage(bad.to_string()))?;
    Ok((bundle, recipe))
}

/// Writes the files. An existing directory has the same bundle already.
pub(super) fn write(bundle: &Bundle, directory: &Path) -> anyhow::Result<()> {
    if directory.is_dir() {
        return Ok(());
    }
    let parent = directory.parent().unwrap_or(directory);
    store::file::create_private_dir(parent)?;
    // Whole or not at all.
    let fresh = parent.join(format!(".{:016x}.new", rand::random::<u64>()));
    let written =
        write_below(bundle, &fresh).and_then(|()| Ok(std::fs::rename(&fresh, directory)?));
    if written.is_err() {
        let _ = std::fs::remove_dir_all(&fresh);
    }
    written.with_context(|| format!("cannot unpack to `{}`", directory.display()))
}

fn write_below(bundle: &Bundle, fresh: &Path) -> anyhow::Result<()> {
    for file in &bundle.files {
        let path = fresh.join(&file.path);
        std::fs::create_dir_all(path.parent().unwrap_or(fresh))?;
        std::fs::write(&path, &file.bytes)?;
        if file.is_executable {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700))?;
        }
    }
    Ok(())
}
