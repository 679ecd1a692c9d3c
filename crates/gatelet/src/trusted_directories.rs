//! The directories whose `gatelet.toml` is used without being named on the command line.
//!
//! A configuration names programs to start, and `${cmd:…}` in it runs one as soon as it is
//! read. So a file in the working directory, perhaps of a repository just cloned, is not
//! read before the user has trusted that directory once. The user's home and configuration
//! directory are always trusted.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::Context;
use store::file::{Safety, replace};

use crate::exit::CliError;
use crate::paths::{self, Paths};

/// The list of trusted directories in the state directory, one on each line.
const LIST: &str = "trusted-directories";

/// Refuses a configuration in the working directory that is neither named nor trusted.
pub(crate) fn check(paths: &Paths) -> anyhow::Result<()> {
    let Some(file) = paths.implicit_file() else { return Ok(()) };
    let directory = working_directory()?;
    if is_own(&directory) || trusted(&paths.state_directory()?)?.contains(&directory) {
        return Ok(());
    }
    let (file, directory) = (file.display(), directory.display());
    let why = format!(
        "`{file}` in {directory} is not trusted: a configuration can start programs. Look at it, then \
         trust this directory once with `gatelet config trust`; `--config {file}` reads it this \
         time, and `--config ~/.config/gatelet/gatelet.toml` your own instead"
    );
    Err(CliError::Usage(why).into())
}

/// Trusts the working directory, if `file` is its `gatelet.toml`, which a command just wrote.
pub(crate) fn trust_written(paths: &Paths, file: &Path) -> anyhow::Result<()> {
    let own = std::fs::canonicalize(file).ok();
    if own.is_some()
        && own == paths.implicit_file().and_then(|file| std::fs::canonicalize(file).ok())
    {
        trust(paths)?;
    }
    Ok(())
}

/// Trusts the working directory from now on, and returns it.
pub(crate) fn trust(paths: &Paths) -> anyhow::Result<PathBuf> {
    let (state, directory) = (paths.state_directory()?, working_directory()?);
    if directory.to_str().is_none_or(|path| path.contains('\n')) {
        let why = "a directory with such a name cannot be trusted: name the file with --config";
        return Err(CliError::Usage(why.to_owned()).into());
    }
    let mut all = trusted(&state)?;
    if all.insert(directory.clone()) {
        store::file::create_private_dir(&state)
            .with_context(|| format!("cannot make `{}`", state.display()))?;
        let lines: String = all.iter().map(|path| format!("{}\n", path.display())).collect();
        let list = state.join(LIST);
        replace(&list, lines.as_bytes(), Safety::Synced)
            .with_context(|| format!("cannot write `{}`", list.display()))?;
    }
    Ok(directory)
}

/// The directories that the user has trusted.
fn trusted(state: &Path) -> anyhow::Result<BTreeSet<PathBuf>> {
    let list = state.join(LIST);
    match std::fs::read_to_string(&list) {
        Ok(text) => Ok(text.lines().map(PathBuf::from).collect()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(BTreeSet::new()),
        Err(error) => Err(error).with_context(|| format!("cannot read `{}`", list.display())),
    }
}

/// The working directory, with links resolved.
fn working_directory() -> anyhow::Result<PathBuf> {
    let directory = std::env::current_dir().and_then(std::fs::canonicalize);
    directory.context("cannot find out which directory this is")
}

/// Whether a directory is the user's home or configuration directory.
fn is_own(directory: &Path) -> bool {
    let own = [paths::home(), paths::user_file().and_then(|file| Some(file.parent()?.to_owned()))];
    own.into_iter()
        .flatten()
        .any(|own| std::fs::canonicalize(own).is_ok_and(|own| own == directory))
}
