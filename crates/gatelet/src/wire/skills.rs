//! Skills, read from their directories.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use ::skills::{File, Library, Lock, lock};
use sha2::{Digest, Sha256};
use tool::{Finding, Severity};

use crate::recipe_files;
use config::Config;

/// Skills lie at most this deep below the directory that is named.
const DEEPEST: usize = 6;
/// How far down one is looked for, so that what lies too deep is said to.
const LOOKED: usize = 16;
const MOST: usize = 5_000;
/// Larger files are no instructions; one byte more shows that a file is.
const LARGEST: u64 = (1 << 20) + 1;
const LARGEST_LOCK: u64 = 16 << 20;

const OUTSIDE: &str = "leads out of the skills directories; name where it leads in `directories`";

/// All skills of a configuration. What is odd about one goes to the log.
pub(super) fn library(config: &Config) -> Library {
    let (library, findings) = read(config);
    for finding in findings {
        match finding.severity {
            Severity::Info => tracing::debug!("{finding}"),
            Severity::Warning | Severity::Error => tracing::warn!("{finding}"),
        }
    }
    let prompts = config.upstreams.iter().filter(|upstream| upstream.prompts_as_skills);
    library.with_prompts(prompts.map(|upstream| upstream.label.clone()))
}

/// Changes whenever the files of skills or recipes do.
pub(super) fn digest(config: &Config) -> [u8; 32] {
    let (walk, lock) = files(config);
    let mut digest = Sha256::new();
    for text in walk.files.iter().flat_map(|file| [&file.path, &file.text]) {
        digest.update(text.len().to_le_bytes());
        digest.update(text);
    }
    digest.update(format!("{lock:?}"));
    digest.update(recipe_files::digest(&config.scripts.recipes));
    digest.finalize().into()
}

/// All skills that are here, and what is odd about them.
pub(crate) fn read(config: &Config) -> (Library, Vec<Finding>) {
    let (mut walk, lock) = files(config);
    let (library, findings) = Library::read(&walk.files);
    walk.findings.extend(findings);
    (library.with_lock(lock), walk.findings)
}

/// The files of all skills, and what they are locked to.
fn files(config: &Config) -> (Walk, Lock) {
    let mut walk = Walk::new(&config.skills.directories);
    let mut lock = Lock::default();
    if config.builtin {
        let (path, text) = builtin::SKILL;
        walk.files.push(File { path: path.to_owned(), text: text.to_owned() });
    }
    for directory in &config.skills.directories {
        walk.root(directory);
        if let Ok(text) = regular(&directory.join(lock::FILE), LARGEST_LOCK) {
            lock.extend(Lock::parse(&text));
        }
    }
    (walk, lock)
}

/// A search for skills. Whoever can write into a skills directory must not be
/// able to show other files of this machine, so links lead nowhere but into
/// the directories that are named; and every real directory is read once, so
/// links may go in circles.
struct Walk {
    /// Where the named directories really are.
    roots: Vec<PathBuf>,
    seen: HashSet<PathBuf>,
    files: Vec<File>,
    findings: Vec<Finding>,
}

impl Walk {
    fn new(directories: &[PathBuf]) -> Walk {
        let roots = directories.iter().filter_map(|directory| directory.canonicalize().ok());
        let (files, findings) = (Vec::new(), Vec::new());
        Walk { roots: roots.collect(), seen: HashSet::new(), files, findings }
    }

    fn root(&mut self, root: &Path) {
        if !root.is_dir() {
            let shown = root.display().to_string();
            let message = "there is no such skills directory";
            self.findings.push(Finding::new(Severity::Error, "skill-directory", shown, message));
        }
        self.directory(root, &mut PathBuf::new());
    }

    /// Gathers every `SKILL.md` in and below a directory, in the order of
    /// their paths; what is really there comes before links to it.
    fn directory(&mut self, root: &Path, below: &mut PathBuf) {
        let path = root.join(&*below);
        let Ok(real) = path.canonicalize() else { return };
        if !self.is_inside(&real) {
            return self.note(below, "skill-link", OUTSIDE);
        }
        if !self.seen.insert(real) {
            return;
        }
        let Ok(entries) = std::fs::read_dir(&path) else {
            return self.note(below, "skill-directory", "cannot be read");
        };
        let mut entries: Vec<std::fs::DirEntry> = entries.filter_map(Result::ok).collect();
        let is_link = |entry: &std::fs::DirEntry| entry.file_type().is_ok_and(|t| t.is_symlink());
        entries.sort_by_key(|entry| (is_link(entry), entry.file_name()));
        for entry in entries {
            below.push(entry.file_name());
            self.entry(root, below);
            below.pop();
        }
    }

    fn entry(&mut self, root: &Path, below: &mut PathBuf) {
        let name = below.file_name().unwrap_or_default();
        let depth = below.components().count();
        if name.eq_ignore_ascii_case("SKILL.md") {
            self.skill(root, below);
        } else if !name.to_string_lossy().starts_with('.')
            && depth <= LOOKED
            && root.join(&*below).is_dir()
        {
            self.directory(root, below);
        }
    }

    fn skill(&mut self, root: &Path, below: &Path) {
        let path = root.join(below);
        if DEEPEST + 1 < below.components().count() {
            let message = format!("lies more than {DEEPEST} directories deep and was left out");
            return self.note(below, "skill-depth", &message);
        }
        if !path.canonicalize().is_ok_and(|real| self.is_inside(&real)) {
            return self.note(below, "skill-link", OUTSIDE);
        }
        if MOST <= self.files.len() {
            let message = format!("is one more than {MOST} skills and was left out");
            return self.note(below, "skill-count", &message);
        }
        match regular(&path, LARGEST) {
            Ok(text) => {
                self.files.push(File { path: below.to_string_lossy().into_owned(), text });
            }
            Err(error) => self.note(below, "skill-file", &format!("cannot be read: {error}")),
        }
    }

    fn is_inside(&self, real: &Path) -> bool {
        self.roots.iter().any(|root| real.starts_with(root))
    }

    fn note(&mut self, below: &Path, code: &str, message: &str) {
        let subject = below.display().to_string();
        self.findings.push(Finding::new(Severity::Error, code, subject, message));
    }
}

/// The text of a regular file, up to so many bytes. Whoever opens a pipe waits
/// until somebody writes into it, so nothing else is opened.
fn regular(path: &Path, most: u64) -> std::io::Result<String> {
    use std::io::Read;
    if !std::fs::metadata(path)?.is_file() {
        return Err(std::io::Error::other("it is no regular file"));
    }
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(most).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests;
