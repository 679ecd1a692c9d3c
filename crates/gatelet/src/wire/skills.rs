//! Loads skills from the directories that the configuration names.
//!
//! Whoever can write into a skills directory must not be able to show other files of this
//! machine, so links count only where they lead into one of those directories.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use ::skills::{File, Library, SkillLock, lock};
use sha2::{Digest, Sha256};
use tool::{Finding, Severity};

use crate::recipe_files;
use config::Config;

/// How many directories deep a skill may lie below the named directory.
const MAX_DEPTH: usize = 6;
/// How deep the search goes, so that skills that lie too deep are reported.
const SEARCH_DEPTH: usize = 16;
/// How many skills are loaded.
const MAX_SKILLS: usize = 5_000;
/// How many bytes of a file are read: one more than a skill may have, so that a longer
/// file is noticed.
const READ_BYTES: u64 = (1 << 20) + 1;
/// How many bytes of a lock file are read.
const READ_LOCK_BYTES: u64 = 16 << 20;

const OUTSIDE: &str = "leads out of the skills directories; name where it leads in `directories`";

/// Loads all skills of a configuration, and logs the findings.
pub(super) fn library(config: &Config) -> Library {
    let (library, findings) = load(config);
    for finding in findings {
        match finding.severity {
            Severity::Info => tracing::debug!("{finding}"),
            Severity::Warning | Severity::Error => tracing::warn!("{finding}"),
        }
    }
    let prompts = config.upstreams.iter().filter(|upstream| upstream.prompts_as_skills);
    library.with_prompts(prompts.map(|upstream| upstream.label.clone()))
}

/// A digest of the files of skills and recipes.
pub(super) fn digest(config: &Config) -> [u8; 32] {
    let (search, lock) = find_files(config);
    let mut digest = Sha256::new();
    for text in search.files.iter().flat_map(|file| [&file.path, &file.text]) {
        digest.update(text.len().to_le_bytes());
        digest.update(text);
    }
    digest.update(format!("{lock:?}"));
    digest.update(recipe_files::digest(&config.scripts.recipes));
    digest.finalize().into()
}

/// Loads all skills on this machine, with findings about files that are left out or odd.
pub(crate) fn load(config: &Config) -> (Library, Vec<Finding>) {
    let (mut search, lock) = find_files(config);
    let (library, findings) = Library::parse(&search.files);
    search.findings.extend(findings);
    (library.with_lock(lock), search.findings)
}

/// Finds the files of all skills, and the lock that pins their contents.
fn find_files(config: &Config) -> (Search, SkillLock) {
    let mut search = Search::new(&config.skills.directories);
    let mut lock = SkillLock::default();
    if config.builtin {
        let (path, text) = builtin::SKILL;
        search.files.push(File { path: path.to_owned(), text: text.to_owned() });
    }
    for directory in &config.skills.directories {
        search.visit_root(directory);
        if let Ok(text) = read_regular(&directory.join(lock::LOCK_FILE_NAME), READ_LOCK_BYTES) {
            lock.extend(SkillLock::parse(&text));
        }
    }
    (search, lock)
}

/// A search for the files of skills. It visits every real directory once, so links may
/// form cycles.
struct Search {
    /// The named directories, with links resolved.
    roots: Vec<PathBuf>,
    /// The directories that were visited, with links resolved.
    visited: HashSet<PathBuf>,
    files: Vec<File>,
    findings: Vec<Finding>,
}

impl Search {
    fn new(directories: &[PathBuf]) -> Search {
        let roots = directories.iter().filter_map(|directory| directory.canonicalize().ok());
        let (files, findings) = (Vec::new(), Vec::new());
        Search { roots: roots.collect(), visited: HashSet::new(), files, findings }
    }

    fn visit_root(&mut self, root: &Path) {
        if !root.is_dir() {
            let shown = root.display().to_string();
            let message = "there is no such skills directory";
            self.findings.push(Finding::new(Severity::Error, "skill-directory", shown, message));
        }
        self.visit_directory(root, &mut PathBuf::new());
    }

    /// Collects every `SKILL.md` in and below the directory `below` of `root`, in the
    /// order of their paths; real files and directories come before links.
    fn visit_directory(&mut self, root: &Path, below: &mut PathBuf) {
        let path = root.join(&*below);
        let Ok(real) = path.canonicalize() else { return };
        if !self.is_inside(&real) {
            return self.report(below, "skill-link", OUTSIDE);
        }
        if !self.visited.insert(real) {
            return;
        }
        let Ok(entries) = std::fs::read_dir(&path) else {
            return self.report(below, "skill-directory", "cannot be read");
        };
        let mut entries: Vec<std::fs::DirEntry> = entries.filter_map(Result::ok).collect();
        let is_link = |entry: &std::fs::DirEntry| entry.file_type().is_ok_and(|t| t.is_symlink());
        entries.sort_by_key(|entry| (is_link(entry), entry.file_name()));
        for entry in entries {
            below.push(entry.file_name());
            self.visit_entry(root, below);
            below.pop();
        }
    }

    fn visit_entry(&mut self, root: &Path, below: &mut PathBuf) {
        let name = below.file_name().unwrap_or_default();
        let depth = below.components().count();
        if name.eq_ignore_ascii_case("SKILL.md") {
            self.add_skill(root, below);
        } else if !name.to_string_lossy().starts_with('.')
            && depth <= SEARCH_DEPTH
            && root.join(&*below).is_dir()
        {
            self.visit_directory(root, below);
        }
    }

    fn add_skill(&mut self, root: &Path, below: &Path) {
        let path = root.join(below);
        if MAX_DEPTH + 1 < below.components().count() {
            let message = format!("lies more than {MAX_DEPTH} directories deep and was left out");
            return self.report(below, "skill-depth", &message);
        }
        if !path.canonicalize().is_ok_and(|real| self.is_inside(&real)) {
            return self.report(below, "skill-link", OUTSIDE);
        }
        if MAX_SKILLS <= self.files.len() {
            let message = format!("is one more than {MAX_SKILLS} skills and was left out");
            return self.report(below, "skill-count", &message);
        }
        match read_regular(&path, READ_BYTES) {
            Ok(text) => {
                self.files.push(File { path: below.to_string_lossy().into_owned(), text });
            }
            Err(error) => self.report(below, "skill-file", &format!("cannot be read: {error}")),
        }
    }

    fn is_inside(&self, real: &Path) -> bool {
        self.roots.iter().any(|root| real.starts_with(root))
    }

    fn report(&mut self, below: &Path, code: &str, message: &str) {
        let subject = below.display().to_string();
        self.findings.push(Finding::new(Severity::Error, code, subject, message));
    }
}

/// Reads a regular file, at most `limit` bytes of it. Nothing else is opened: opening a
/// named pipe would wait for its writer.
fn read_regular(path: &Path, limit: u64) -> std::io::Result<String> {
    use std::io::Read;
    if !std::fs::metadata(path)?.is_file() {
        return Err(std::io::Error::other("it is no regular file"));
    }
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(limit).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests;
