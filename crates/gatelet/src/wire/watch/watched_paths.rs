//! Where to look for changes of a file or a directory.
//!
//! A name may be a link, and so may every directory on the way: whoever swaps
//! one of them changes what the name stands for. What is not there yet is
//! looked for where the first missing piece of it would appear.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Longer ways go in circles.
const LONGEST: usize = 40;

/// Names, each in a directory that is watched, and directories that are
/// watched with everything in them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct WatchedPaths {
    names: Vec<(PathBuf, Identity)>,
    trees: Vec<(PathBuf, Identity)>,
}

/// Which directory it is that a name stands for; `None` when there is none.
type Identity = Option<(u64, u64)>;

impl WatchedPaths {
    /// The configuration at `file` and its directories of skills and recipes.
    pub(super) fn new(file: &Path, directories: &[PathBuf]) -> WatchedPaths {
        let mut names = Vec::new();
        way(&whole(file), &mut names, LONGEST);
        let mut trees = Vec::new();
        for directory in directories {
            let directory = whole(directory);
            way(&directory, &mut names, LONGEST);
            if directory.is_dir() {
                trees.push(directory);
            }
        }
        let identified = |paths: Vec<PathBuf>, of: fn(&Path) -> Identity| {
            paths.into_iter().map(|path| (path.clone(), of(&path))).collect()
        };
        WatchedPaths {
            // Files come and go under a name; directories must be watched anew.
            names: identified(names, |name| identity(parent(name))),
            trees: identified(trees, identity),
        }
    }

    /// The directories in which the names are, that of the file first.
    pub(super) fn parents(&self) -> Vec<PathBuf> {
        self.names.iter().map(|(name, _)| parent(name).to_owned()).collect()
    }

    pub(super) fn trees(&self) -> impl Iterator<Item = &Path> {
        self.trees.iter().map(|(tree, _)| tree.as_path())
    }

    /// Whether a change there is one of ours. A directory may be known by two
    /// names, so the last part of a path decides.
    pub(super) fn concern(&self, changed: &Path) -> bool {
        let named = |(name, _): &(PathBuf, Identity)| name.file_name() == changed.file_name();
        self.names.iter().any(named) || self.trees().any(|tree| changed.starts_with(tree))
    }
}

/// Every link on the way to `path`, then what is at its end, or the first
/// piece of it that is missing.
fn way(path: &Path, names: &mut Vec<PathBuf>, left: usize) {
    let mut here = PathBuf::new();
    let mut rest = path.components();
    while let Some(component) = rest.next() {
        here.push(component);
        if let Ok(target) = std::fs::read_link(&here) {
            let target = parent(&here).join(target).join(rest.as_path());
            names.push(here);
            if 0 < left {
                way(&target, names, left - 1);
            }
            return;
        }
        if here.symlink_metadata().is_err() {
            break;
        }
    }
    names.push(here);
}

fn whole(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

fn parent(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("/"))
}

fn identity(path: &Path) -> Identity {
    let known = path.metadata().ok()?;
    Some((known.dev(), known.ino()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// The names that are looked at, below a directory.
    fn names(home: &Path, file: &str) -> Vec<String> {
        let paths = WatchedPaths::new(&home.join(file), &[]);
        let below = |(name, _): &(PathBuf, Identity)| {
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
        assert_eq!(names(home, "round").len(), LONGEST + 1, "a circle ends");
    }

    #[test]
    fn what_is_missing_is_awaited_where_it_would_appear() {
        let home = tempfile::tempdir().unwrap();
        let home = &home.path().canonicalize().unwrap();
        assert_eq!(names(home, "a/b/c"), ["a"]);
        let skills = [home.join("skills")];
        let before = WatchedPaths::new(&home.join("f"), &skills);
        assert!(before.concern(&home.join("skills")));
        std::fs::create_dir(home.join("skills")).unwrap();
        let after = WatchedPaths::new(&home.join("f"), &skills);
        assert_ne!(before, after, "it is watched anew");
        assert!(after.concern(&home.join("skills/s/SKILL.md")));
        assert!(!after.concern(&home.join("other")));
    }
}
