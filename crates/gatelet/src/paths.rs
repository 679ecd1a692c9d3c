//! Where the configuration is read and where things are remembered, as the
//! command line says.

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::builder::{OsStringValueParser, TypedValueParser};

/// The flags that every command shares.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Paths {
    /// The configuration: gatelet's own TOML, or the `mcpServers` JSON of another client as it is
    ///
    /// Without it gatelet reads `gatelet.toml` in the working directory, if that is
    /// trusted (`gatelet config trust`), or in the user's configuration directory,
    /// and runs its built-in tools when there is neither.
    #[arg(long, short, global = true, value_name = "FILE", env = "GATELET_CONFIG",
          value_parser = path())]
    pub(crate) config: Option<PathBuf>,

    /// The directory in which listings and kept results are remembered
    /// [default: $XDG_STATE_HOME/gatelet or ~/.local/state/gatelet]
    #[arg(long, global = true, value_name = "DIR", env = "GATELET_STATE", value_parser = path())]
    pub(crate) state: Option<PathBuf>,
}

/// A path that may be empty, as a variable that is set to nothing is.
fn path() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().map(PathBuf::from)
}

impl Paths {
    /// Takes what is empty for what is not given.
    pub(crate) fn without_empty(self) -> Paths {
        let given = |path: Option<PathBuf>| path.filter(|path| !path.as_os_str().is_empty());
        Paths { config: given(self.config), state: given(self.state) }
    }

    /// The directory in which things are remembered between runs.
    pub(crate) fn state_directory(&self) -> anyhow::Result<PathBuf> {
        if let Some(state) = &self.state {
            return Ok(state.clone());
        }
        let state = user_directory("XDG_STATE_HOME", ".local/state");
        Ok(state.context("no home directory: name a state directory with --state")?.join("gatelet"))
    }

    /// The configuration in the working directory, where it would be read though
    /// nobody named it.
    pub(crate) fn unnamed_file(&self) -> Option<PathBuf> {
        let nearest = candidates().into_iter().next();
        nearest.filter(|path| self.config.is_none() && path.is_file())
    }

    /// The file of the configuration, where there is one. Whatever stands in the place
    /// of the user's own is meant for it, also when it cannot be read.
    pub(crate) fn config_file(&self) -> Option<PathBuf> {
        let found = || self.unnamed_file().or_else(|| user_file().filter(|path| is_there(path)));
        self.config.clone().or_else(found)
    }

    /// Why the configuration that was found cannot be read; to open a pipe would be to
    /// wait for its writer. One that somebody named is read, whatever it is.
    pub(crate) fn unreadable(&self, found: &Path) -> Option<std::io::Error> {
        let error = std::io::Error::other;
        match std::fs::metadata(found) {
            _ if self.config.is_some() => None,
            Ok(about) if !about.is_file() => Some(error("it is not a file")),
            Err(_) if found.is_symlink() => Some(error("it is a link to a file that is not there")),
            Ok(_) | Err(_) => None,
        }
    }
}

/// Whether there is something of this name, or nobody can tell.
fn is_there(path: &Path) -> bool {
    use std::io::ErrorKind::{NotADirectory, NotFound};
    let about = path.symlink_metadata();
    about.map_or_else(|error| !matches!(error.kind(), NotFound | NotADirectory), |_| true)
}

/// The user's home directory.
#[expect(clippy::disallowed_methods, reason = "where the user's directories are")]
pub(crate) fn home() -> Option<PathBuf> {
    std::env::var_os("HOME").filter(|path| !path.is_empty()).map(PathBuf::from)
}

/// What this user's environment says about where programs keep their files.
pub(crate) fn host_environment() -> anyhow::Result<hosts::Environment> {
    let text = |value: std::ffi::OsString| value.into_string().ok();
    let variables: std::collections::BTreeMap<String, String> =
        std::env::vars_os().filter_map(|(name, value)| Some((text(name)?, text(value)?))).collect();
    let platform = hosts::Platform::current();
    let name = if platform == hosts::Platform::Windows { "USERPROFILE" } else { "HOME" };
    let home = variables.get(name).filter(|home| !home.is_empty()).cloned();
    let home = home.with_context(|| format!("no home directory: {name} is not set"))?;
    Ok(hosts::Environment { platform, home, variables })
}

/// The configuration of the user's own, there or not.
pub(crate) fn user_file() -> Option<PathBuf> {
    candidates().into_iter().nth(1)
}

/// Where a configuration is looked for when none is named.
pub(crate) fn candidates() -> Vec<PathBuf> {
    let mut files = vec![PathBuf::from("gatelet.toml")];
    let user = user_directory("XDG_CONFIG_HOME", ".config");
    files.extend(user.map(|user| user.join("gatelet").join("gatelet.toml")));
    files
}

/// Where a program is that is named as on a command line.
pub(crate) fn program(name: &str) -> Option<PathBuf> {
    let path = Path::new(name);
    if 1 < path.components().count() {
        return is_executable(path).then(|| path.to_owned());
    }
    std::env::split_paths(&search_path())
        .map(|place| place.join(name))
        .find(|path| is_executable(path))
}

/// Where programs are looked for.
pub(crate) fn search_path() -> String {
    #[expect(clippy::disallowed_methods, reason = "where programs are looked for")]
    let places = std::env::var_os("PATH").unwrap_or_default();
    places.to_string_lossy().into_owned()
}

fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    let about = std::fs::metadata(path);
    about.is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
}

/// A directory of the user: what the variable says, or its usual place.
#[expect(clippy::disallowed_methods, reason = "where the user's directories are")]
pub(crate) fn user_directory(variable: &str, usual: &str) -> Option<PathBuf> {
    let named = |name: &str| {
        let path = std::env::var_os(name).filter(|path| !path.is_empty());
        path.map(PathBuf::from)
    };
    named(variable).or_else(|| Some(home()?.join(usual)))
}
