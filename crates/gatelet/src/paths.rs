//! Finds the configuration file, the state directory, the user's directories and programs.

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

/// Parses a path; an empty one too, because an environment variable may be empty.
fn path() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().map(PathBuf::from)
}

impl Paths {
    /// The same, with empty paths as if they were not given.
    pub(crate) fn without_empty(self) -> Paths {
        let given = |path: Option<PathBuf>| path.filter(|path| !path.as_os_str().is_empty());
        Paths { config: given(self.config), state: given(self.state) }
    }

    /// The directory for everything that gatelet stores between runs.
    pub(crate) fn state_directory(&self) -> anyhow::Result<PathBuf> {
        if let Some(state) = &self.state {
            return Ok(state.clone());
        }
        let state = user_directory("XDG_STATE_HOME", ".local/state");
        Ok(state.context("no home directory: name a state directory with --state")?.join("gatelet"))
    }

    /// The `gatelet.toml` of the working directory, if it would be used because no
    /// configuration was named.
    pub(crate) fn implicit_file(&self) -> Option<PathBuf> {
        let nearest = candidates().into_iter().next();
        nearest.filter(|path| self.config.is_none() && path.is_file())
    }

    /// The configuration file, if there is one: named, in the working directory, or the
    /// user's own. The last counts also if it cannot be read.
    pub(crate) fn config_file(&self) -> Option<PathBuf> {
        let found = || self.implicit_file().or_else(|| user_file().filter(|path| exists(path)));
        self.config.clone().or_else(found)
    }

    /// Why a configuration that was found, not named, cannot be read. One that was named
    /// is read whatever it is; opening a named pipe waits for its writer.
    pub(crate) fn why_unreadable(&self, found: &Path) -> Option<std::io::Error> {
        let error = std::io::Error::other;
        match std::fs::metadata(found) {
            _ if self.config.is_some() => None,
            Ok(about) if !about.is_file() => Some(error("it is not a file")),
            Err(_) if found.is_symlink() => Some(error("it is a link to a file that is not there")),
            Ok(_) | Err(_) => None,
        }
    }
}

/// Whether a path exists; true also if that cannot be found out.
fn exists(path: &Path) -> bool {
    use std::io::ErrorKind::{NotADirectory, NotFound};
    let metadata = path.symlink_metadata();
    metadata.map_or_else(|error| !matches!(error.kind(), NotFound | NotADirectory), |_| true)
}

/// The user's home directory.
#[expect(clippy::disallowed_methods, reason = "where the user's directories are")]
pub(crate) fn home() -> Option<PathBuf> {
    std::env::var_os("HOME").filter(|path| !path.is_empty()).map(PathBuf::from)
}

/// Home directory and environment variables, by which the files of hosts are found.
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

/// The path of the user's own configuration, whether it exists or not.
pub(crate) fn user_file() -> Option<PathBuf> {
    candidates().into_iter().nth(1)
}

/// The files that are tried in order when no configuration is named: in the working
/// directory, then in the user's configuration directory.
pub(crate) fn candidates() -> Vec<PathBuf> {
    let mut files = vec![PathBuf::from("gatelet.toml")];
    let user = user_directory("XDG_CONFIG_HOME", ".config");
    files.extend(user.map(|user| user.join("gatelet").join("gatelet.toml")));
    files
}

/// The path of a program that is named as on a command line; searches `PATH`.
pub(crate) fn program(name: &str) -> Option<PathBuf> {
    program_in(name, &search_path())
}

/// Like [`program`], with another value of `PATH`.
pub(crate) fn program_in(name: &str, search_path: &str) -> Option<PathBuf> {
    let path = Path::new(name);
    if 1 < path.components().count() {
        return is_executable(path).then(|| path.to_owned());
    }
    std::env::split_paths(search_path)
        .map(|place| place.join(name))
        .find(|path| is_executable(path))
}

/// The value of `PATH`.
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

/// A directory of the user: the value of `variable`, or `usual` below the home directory.
#[expect(clippy::disallowed_methods, reason = "where the user's directories are")]
pub(crate) fn user_directory(variable: &str, usual: &str) -> Option<PathBuf> {
    let named = |name: &str| {
        let path = std::env::var_os(name).filter(|path| !path.is_empty());
        path.map(PathBuf::from)
    };
    named(variable).or_else(|| Some(home()?.join(usual)))
}
