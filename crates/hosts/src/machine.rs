//! Read access to the files and programs of a machine, as a trait with one
//! implementation for this machine.

use std::io::{Error, ErrorKind, Read};
use std::path::{Path, PathBuf};

use crate::environment::{Environment, Platform};

/// A longer file is refused.
pub const MAX_FILE_BYTES: u64 = 64 << 20;

/// The files and programs of a machine, as far as a plan needs to know them.
pub trait Machine {
    /// Returns the bytes of a file; `None` when it does not exist.
    fn read(&self, path: &Path) -> std::io::Result<Option<Vec<u8>>>;
    /// Returns whether there is a file or directory at this path.
    fn exists(&self, path: &Path) -> bool;
    /// Returns the names in a directory, sorted; none when it does not exist.
    fn names_in(&self, directory: &Path) -> Vec<String>;
    /// Returns whether a program is in the `PATH`.
    fn has_program(&self, name: &str) -> bool;
    /// Returns why a file must not be replaced; `None` when it is not write-protected.
    fn protection(&self, path: &Path) -> Option<&'static str>;
}

/// This machine.
#[derive(Clone, Debug)]
pub struct Disk {
    /// The directories of the `PATH`.
    search: Vec<PathBuf>,
    platform: Platform,
}

impl Disk {
    pub fn new(environment: &Environment) -> Disk {
        let path = environment.variable("PATH").unwrap_or_default();
        let is_whole = |directory: &PathBuf| directory.is_absolute();
        let search = std::env::split_paths(path).filter(is_whole).collect();
        Disk { search, platform: environment.platform }
    }
}

impl Machine for Disk {
    fn read(&self, path: &Path) -> std::io::Result<Option<Vec<u8>>> {
        // Opening a pipe would wait for its writer, so check the type first.
        let kind = match std::fs::metadata(path) {
            Ok(kind) => kind,
            // A dangling link is an error, not a missing file.
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return match path.symlink_metadata() {
                    Ok(_) => Err(Error::other("it is a link to a file that is not there")),
                    Err(_) => Ok(None),
                };
            }
            Err(error) => return Err(error),
        };
        if !kind.is_file() {
            return Err(Error::other("it is not a file"));
        }
        let file = std::fs::File::open(path)?;
        let mut bytes = Vec::new();
        file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > MAX_FILE_BYTES {
            return Err(Error::other(format!("it is longer than {} MiB", MAX_FILE_BYTES >> 20)));
        }
        Ok(Some(bytes))
    }

    fn exists(&self, path: &Path) -> bool {
        path.symlink_metadata().is_ok()
    }

    fn names_in(&self, directory: &Path) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
        let name =
            |entry: std::io::Result<std::fs::DirEntry>| entry.ok()?.file_name().into_string().ok();
        let mut names: Vec<String> = entries.filter_map(name).collect();
        names.sort();
        names
    }

    fn has_program(&self, name: &str) -> bool {
        let endings: &[&str] =
            if self.platform == Platform::Windows { &[".exe", ".cmd"] } else { &[""] };
        let is_in = |directory: &PathBuf| {
            endings.iter().any(|ending| directory.join(format!("{name}{ending}")).is_file())
        };
        self.search.iter().any(is_in)
    }

    fn protection(&self, path: &Path) -> Option<&'static str> {
        // The target of a link is replaced, in its own directory.
        let target = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let is_readonly =
            |path: &Path| std::fs::metadata(path).is_ok_and(|about| about.permissions().readonly());
        if is_readonly(&target) {
            return Some("it is write-protected");
        }
        let directory = target.parent().filter(|directory| is_readonly(directory));
        directory.map(|_| "its directory is write-protected")
    }
}
