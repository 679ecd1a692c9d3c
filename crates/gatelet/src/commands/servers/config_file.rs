//! The configuration file as a command edits it: read once, and written only if nobody else
//! has changed it since.

use std::path::{Path, PathBuf};

use anyhow::Context;
use store::file::{Safety, replace};

use crate::config_loader;
use crate::exit::CliError;
use crate::paths::{self, Paths};
use crate::terminal::say;
use config::edit::{self, Edit};
use config::{RawUpstream, Upstream};

/// A configuration file and its text when it was opened.
#[derive(Debug)]
pub(in crate::commands) struct ConfigFile {
    path: PathBuf,
    /// `None` when the file does not exist yet.
    text: Option<String>,
}

/// The beginning of a new file. Without a file gatelet offers its built-in tools, so a new
/// file switches them on too.
const NEW: &str = "# The configuration of gatelet; `gatelet config check` says whether it is sound.\n\n\
                   [builtin]\ntools = true\n";

impl ConfigFile {
    /// Opens the file that is named or found, or else the user's own, which
    /// [`ConfigFile::write`] creates.
    pub(in crate::commands) fn open(paths: &Paths) -> anyhow::Result<ConfigFile> {
        let usual = || paths::candidates().into_iter().next_back();
        let path = paths.config_file().or_else(usual);
        let path = path.context("no home directory: name a configuration with --config")?;
        if let Some(why) = paths.why_unreadable(&path) {
            let why = format!("cannot use `{}`: {why}", path.display());
            return Err(CliError::Usage(why).into());
        }
        // The target of a link is changed, not the link.
        let path = std::fs::canonicalize(&path).unwrap_or(path);
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => Some(text),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => {
                let why = format!("cannot read `{}`: {error}", path.display());
                return Err(CliError::Usage(why).into());
            }
        };
        Ok(ConfigFile { path, text })
    }

    pub(in crate::commands) fn path(&self) -> &Path {
        &self.path
    }

    fn name(&self) -> String {
        self.path.display().to_string()
    }

    pub(in crate::commands) fn text(&self) -> &str {
        self.text.as_deref().unwrap_or(NEW)
    }

    /// The text after these edits, in order.
    pub(in crate::commands) fn edited(&self, edits: &[Edit<'_>]) -> anyhow::Result<String> {
        let mut text = self.text().to_owned();
        for edit in edits {
            text = edit::apply(&self.name(), &text, edit)?;
        }
        Ok(text)
    }

    /// The entry of an upstream.
    pub(in crate::commands) fn upstream(&self, label: &str) -> anyhow::Result<RawUpstream> {
        Ok(edit::find(&self.name(), self.text(), label)?)
    }

    /// The labels of disabled upstreams.
    pub(in crate::commands) fn disabled_labels(&self) -> Vec<String> {
        let written = self.upstreams().unwrap_or_default();
        let off = written.into_iter().filter(|upstream| upstream.disabled);
        off.filter_map(|upstream| upstream.label).collect()
    }

    /// The entries of all upstreams.
    pub(super) fn upstreams(&self) -> anyhow::Result<Vec<RawUpstream>> {
        Ok(edit::upstreams(&self.name(), self.text())?)
    }

    /// Parses an entry as it would be in this file, and prints its warnings.
    pub(super) fn parse(&self, raw: &RawUpstream, paths: &Paths) -> anyhow::Result<Upstream> {
        let (upstream, warnings) =
            edit::parse_upstream(raw, &self.path, &config_loader::environment(paths))?;
        if !warnings.is_empty() {
            say(&warnings.to_string());
        }
        Ok(upstream)
    }

    /// Replaces the text of the file, if nobody has changed it since. Its permissions stay.
    pub(in crate::commands) fn write(&self, text: &str) -> anyhow::Result<()> {
        let now = std::fs::read_to_string(&self.path).ok();
        if now != self.text {
            let why = format!("`{}` was changed meanwhile: run the command again", self.name());
            return Err(CliError::Refused(why).into());
        }
        let permissions = std::fs::metadata(&self.path).ok().map(|about| about.permissions());
        replace(&self.path, text.as_bytes(), Safety::Synced)
            .with_context(|| format!("cannot write `{}`", self.name()))?;
        if let Some(permissions) = permissions {
            let _ = std::fs::set_permissions(&self.path, permissions);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn open(path: PathBuf) -> ConfigFile {
        ConfigFile::open(&Paths { config: Some(path), state: None }).unwrap()
    }

    #[test]
    fn a_file_that_changed_meanwhile_is_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("gatelet.toml");
        let file = open(path.clone());
        std::fs::write(&path, "[gate]\n").unwrap();
        assert!(file.write("x").unwrap_err().to_string().contains("changed meanwhile"));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "[gate]\n");
    }

    #[test]
    fn a_link_stays_one_and_rights_stay_as_they_were() {
        let directory = tempfile::tempdir().unwrap();
        let (real, link) = (directory.path().join("real.toml"), directory.path().join("link.toml"));
        std::fs::write(&real, "").unwrap();
        std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o644)).unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        open(link.clone()).write("[gate]\n").unwrap();
        assert!(link.is_symlink());
        assert_eq!(std::fs::read_to_string(&real).unwrap(), "[gate]\n");
        assert_eq!(std::fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o644);
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 2);
    }
}
