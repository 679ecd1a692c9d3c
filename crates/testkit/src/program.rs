//! Where the programs of others are that tests start.

use std::path::{Path, PathBuf};

/// The path of a program, such as a database's, where Debian and others put it.
pub fn program(name: &str) -> Option<PathBuf> {
    let mut places: Vec<PathBuf> =
        ["/usr/sbin", "/usr/bin", "/usr/local/bin"].map(PathBuf::from).to_vec();
    if let Ok(versions) = std::fs::read_dir(Path::new("/usr/lib/postgresql")) {
        places.splice(0..0, versions.flatten().map(|version| version.path().join("bin")));
    }
    places.into_iter().map(|place| place.join(name)).find(|path| path.exists())
}
