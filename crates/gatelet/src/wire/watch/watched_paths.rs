//! The paths to watch in order to notice changes of a file or a directory.
//!
//! The path or any directory on the way to it may be a link, and changing the link changes
//! what the path means, so links are watched too. For a path that does not exist, its
//! first missing component is watched.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// How many links are followed; a longer chain is a cycle.
const MAX_LINKS: usize = 40;

/// The paths to watch for one configuration. Two values differ also when a directory was
/// replaced by another of the same name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct WatchedPaths {
    /// Files and links; their parent directories are watched.
    names: Vec<(PathBuf, DirectoryId)>,
    /// Directories that are watched with everything below them.
    trees: Vec<(PathBuf, DirectoryId)>,
}

/// Device and inode of a directory; `None` when it does not exist.
type DirectoryId = Option<(u64, u64)>;

impl WatchedPaths {
    /// The paths for the configuration at `file` and its `directories` of skills and
    /// recipes.
    pub(super) fn new(file: &Path, directories: &[PathBuf]) -> WatchedPaths {
        let mut names = Vec::new();
        add_names(&absolute(file), &mut names, MAX_LINKS);
        let mut trees = Vec::new();
        for directory in directories {
            let directory = absolute(directory);
            add_names(&directory, &mut names, MAX_LINKS);
            if directory.is_dir() {
                trees.push(directory);
            }
        }
        let with_ids = |paths: Vec<PathBuf>, id: fn(&Path) -> DirectoryId| {
            paths.into_iter().map(|path| (path.clone(), id(&path))).collect()
        };
        WatchedPaths {
            // A replaced file is noticed by its name; a replaced directory must be
            // watched anew.
            names: with_ids(names, |name| directory_id(parent(name))),
            trees: with_ids(trees, directory_id),
        }
    }

    /// The parent directories of the names, that of the configuration file first.
    pub(super) fn parents(&self) -> Vec<PathBuf> {
        self.names.iter().map(|(name, _)| parent(name).to_owned()).collect()
    }

    pub(super) fn trees(&self) -> impl Iterator<Item = &Path> {
        self.trees.iter().map(|(tree, _)| tree.as_path())
    }

    /// Whether a change of the path `changed` matters. A directory may have two paths, so
    /// only the last component of a name is compared.
    pub(super) fn is_affected_by(&self, changed: &Path) -> bool {
        let named = |(name, _): &(PathBuf, DirectoryId)| name.file_name() == changed.file_name();
        self.names.iter().any(named) || self.trees().any(|tree| changed.starts_with(tree))
    }
}

/// Adds every link on the way to `path`, then its target or the first component that is
/// missing. Follows at most `links_left` links.
fn add_names(path: &Path, names: &mut Vec<PathBuf>, links_left: usize) {
    let mut here = PathBuf::new();
    let mut rest = path.components();
    while let Some(component) = rest.next() {
        here.push(component);
        if let Ok(target) = std::fs::read_link(&here) {
            let target = parent(&here).join(target).join(rest.as_path());
            names.push(here);
            if 0 < links_left {
                add_names(&target, names, links_left - 1);
            }
            return;
        }
        if here.symlink_metadata().is_err() {
            break;
        }
    }
    names.push(here);
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

fn parent(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("/"))
}

fn directory_id(path: &Path) -> DirectoryId {
    let metadata = path.metadata().ok()?;
    Some((metadata.dev(), metadata.ino()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// The names that are looked at, below a directory.
    fn names(home: &Path, file: &str) -> Vec<String> {
        let paths = WatchedPaths::new(&home.join(file), &[]);
        let below = |(name, _): &(PathBuf, DirectoryId)| {
            name.strip_prefix(home).unwrap().display().to_string()
        };
        paths.names.iter().map(below).collect()
    }

    #[test]
    fn every_link_on_the_way_is_looked_at() {
        let home = tempfile::tempdir().unwrap();
        let home = &home.path().canonicalize().unwrap();
        std::fs::create_dir(home.join("v1")).unwrap();
        std::fs::write(home.join("v1/gatelet.toml"), "").unwrap();
        symlink("v1", home.join("..data")).unwrap();
        symlink("..data/gatelet.toml", home.join("gatelet.toml")).unwrap();
        assert_eq!(names(home, "gatelet.toml"), ["gatelet.toml", "..data", "v1/gatelet.toml"]);
        assert_eq!(names(home, "v1/gatelet.toml"), ["v1/gatelet.toml"]);
        symlink("round", home.join("round")).unwrap();
        assert_eq!(names(home, "round").len(), MAX_LINKS + 1, "a circle ends");
    }

    #[test]
    fn what_is_missing_is_awaited_where_it_would_appear() {
        let home = tempfile::tempdir().unwrap();
        let home = &home.path().canonicalize().unwrap();
        assert_eq!(names(home, "a/b/c"), ["a"]);
        let skills = [home.join("skills")];
        let before = WatchedPaths::new(&home.join("f"), &skills);
        assert!(before.is_affected_by(&home.join("skills")));
        std::fs::create_dir(home.join("skills")).unwrap();
        let after = WatchedPaths::new(&home.join("f"), &skills);
        assert_ne!(before, after, "it is watched anew");
        assert!(after.is_affected_by(&home.join("skills/s/SKILL.md")));
        assert!(!after.is_affected_by(&home.join("other")));
    }
}
