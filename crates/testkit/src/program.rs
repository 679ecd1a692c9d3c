//! Finds the installed programs that tests start, such as database servers.

use std::path::{Path, PathBuf};

/// Returns the path of an installed program, in the directories of Debian and others.
pub fn program(name: &str) -> Option<PathBuf> {
    let mut directories: Vec<PathBuf> =
        ["/usr/sbin", "/usr/bin", "/usr/local/bin"].map(PathBuf::from).to_vec();
    if let Ok(versions) = std::fs::read_dir(Path::new("/usr/lib/postgresql")) {
        directories.splice(0..0, versions.flatten().map(|version| version.path().join("bin")));
    }
    directories.into_iter().map(|directory| directory.join(name)).find(|path| path.exists())
}
