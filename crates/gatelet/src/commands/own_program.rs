//! Where hosts and service managers find the gatelet executable.
//!
//! `npx` and `uvx` run a program out of a cache that may be emptied at any time. Then the
//! executable is copied to the user's data directory, and the copy is removed when no host
//! and no service starts it any more.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use hosts::plan::{self, Scope};
use hosts::{Disk, Environment, HOSTS, Reach};
use store::file::{Safety, replace_with};

use crate::paths;
use crate::terminal::{DIM, paint, say};

/// The executable that hosts and services start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::commands) struct OwnProgram {
    pub(in crate::commands) path: PathBuf,
    /// The running executable, if it is in a cache.
    cached: Option<PathBuf>,
}

impl OwnProgram {
    pub(in crate::commands) fn find() -> anyhow::Result<OwnProgram> {
        let running = std::env::current_exe()?;
        if !is_in_a_cache(&running) {
            return Ok(OwnProgram { path: running, cached: None });
        }
        let path = copy_path()
            .context("no home directory: install gatelet instead of running it from a cache")?;
        Ok(OwnProgram { path, cached: Some(running) })
    }

    /// A description of the copy that has to be made; `None` if none is needed.
    pub(super) fn needed_copy(&self) -> Option<String> {
        let cached = self.cached.as_deref().filter(|cached| !is_same(cached, &self.path))?;
        Some(format!("a copy of `{}`, which stands in a cache", cached.display()))
    }

    /// Copies the executable out of the cache, if that is needed.
    pub(super) fn copy_if_needed(&self) -> anyhow::Result<()> {
        let Some(cached) = self.cached.as_deref().filter(|_| self.needed_copy().is_some()) else {
            return Ok(());
        };
        let copy = || {
            let mut from = std::fs::File::open(cached)?;
            replace_with(&self.path, Safety::Synced, |to| {
                std::io::copy(&mut from, to)?;
                to.set_permissions(std::fs::Permissions::from_mode(0o755))
            })
        };
        copy().with_context(|| format!("cannot copy gatelet to `{}`", self.path.display()))
    }
}

/// Removes the copy when no host and none of the `services` (texts of unit files) starts it
/// any more.
pub(super) fn remove_unused_copy(environment: &Environment, disk: &Disk, services: &[String]) {
    let Some(copy) = copy_path().filter(|copy| copy.exists()) else { return };
    let shown = copy.display().to_string();
    let is_started = |host| {
        let files = plan::files(host, &Scope::User, environment, disk).unwrap_or_default();
        // A file that cannot be read may name it.
        files.iter().any(|file| {
            let entries = plan::entries(host, file, disk);
            !entries.is_ok_and(|entries| entries.iter().all(|(_, entry)| !starts(entry, &shown)))
        })
    };
    if HOSTS.iter().any(is_started) || services.iter().any(|unit| unit.contains(&shown)) {
        return;
    }
    if std::fs::remove_file(&copy).is_ok() {
        // Only where nothing else is in them.
        for directory in copy.ancestors().skip(1).take(2) {
            let _ = std::fs::remove_dir(directory);
        }
        say(&paint(DIM, format!("  took `{shown}` away: nothing starts it any more")));
    }
}

fn starts(entry: &serde_json::Value, program: &str) -> bool {
    matches!(Reach::from_entry(entry), Some(Reach::Program { command, .. }) if command == program)
}

/// The path of the copy.
fn copy_path() -> Option<PathBuf> {
    let data = paths::user_directory("XDG_DATA_HOME", ".local/share")?;
    Some(data.join("gatelet/bin/gatelet"))
}

/// Whether a program is in a cache of `npx`, `pnpm dlx`, `bunx` or `uvx`.
fn is_in_a_cache(program: &Path) -> bool {
    let mut words = program.components().filter_map(|part| part.as_os_str().to_str());
    let is_cache = |word: &str| {
        let numbered = |prefix: &str| {
            word.strip_prefix(prefix).is_some_and(|rest| rest.parse::<u32>().is_ok())
        };
        matches!(word, "_npx" | "dlx")
            || word.starts_with("bunx-")
            || ["archive-v", "environments-v", "builds-v"].into_iter().any(numbered)
    };
    words.any(is_cache)
}

/// Whether two files have the same contents.
fn is_same(one: &Path, other: &Path) -> bool {
    let length = |path: &Path| std::fs::metadata(path).ok().map(|about| about.len());
    if length(one).is_none() || length(one) != length(other) {
        return false;
    }
    match (std::fs::read(one), std::fs::read(other)) {
        (Ok(one), Ok(other)) => one == other,
        (Ok(_) | Err(_), Ok(_) | Err(_)) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caches_of_runners_are_known_and_places_of_installers_are_not() {
        for cache in [
            "/home/ann/.npm/_npx/8a1f/node_modules/@gatelet/linux-x64/bin/gatelet",
            "/home/ann/.cache/pnpm/dlx/ab/node_modules/@gatelet/linux-x64/bin/gatelet",
            "/tmp/bunx-1000-gatelet@latest/node_modules/@gatelet/linux-x64/bin/gatelet",
            "/home/ann/.cache/uv/archive-v0/Xy_1/bin/gatelet",
            "/tmp/x/environments-v2/9f/bin/gatelet",
        ] {
            assert!(is_in_a_cache(Path::new(cache)), "{cache}");
        }
        for stays in [
            "/usr/bin/gatelet",
            "/usr/lib/node_modules/gatelet/node_modules/@gatelet/linux-x64/bin/gatelet",
            "/home/ann/.local/share/uv/tools/gatelet/bin/gatelet",
            "/home/ann/.local/share/pipx/venvs/gatelet/bin/gatelet",
            "/home/ann/archive-vault/gatelet",
        ] {
            assert!(!is_in_a_cache(Path::new(stays)), "{stays}");
        }
    }
}
