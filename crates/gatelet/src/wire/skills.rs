//! Skills, read from their directories.

use std::path::{Path, PathBuf};

use gateway::skill::{File, Library, Lock, lock};
use tool::{Finding, Severity};

use crate::builtin;
use crate::config::Config;

/// Skills lie at most this deep below the directory that is named.
const DEEPEST: usize = 6;
const MOST: usize = 5_000;

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

/// All skills that are here, and what is odd about them.
pub(crate) fn read(config: &Config) -> (Library, Vec<Finding>) {
    let mut files = Vec::new();
    let mut lock = Lock::default();
    if config.builtin {
        let (path, text) = builtin::SKILL;
        files.push(File { path: path.to_owned(), text: text.to_owned() });
    }
    for directory in &config.skills.directories {
        if !directory.is_dir() {
            tracing::warn!(directory = %directory.display(), "there is no such skills directory");
        }
        collect(directory, &mut PathBuf::new(), &mut files);
        if let Ok(text) = std::fs::read_to_string(directory.join(lock::FILE)) {
            lock.extend(Lock::parse(&text));
        }
    }
    let (library, findings) = Library::read(&files);
    (library.with_lock(lock), findings)
}

/// Gathers every `SKILL.md` below `root`, in the order of their paths.
fn collect(root: &Path, below: &mut PathBuf, files: &mut Vec<File>) {
    let Ok(entries) = std::fs::read_dir(root.join(&*below)) else { return };
    let mut entries: Vec<std::fs::DirEntry> = entries.filter_map(Result::ok).collect();
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let name = entry.file_name();
        let is_skill = name.eq_ignore_ascii_case("SKILL.md");
        below.push(&name);
        let path = root.join(&*below);
        if is_skill && files.len() < MOST {
            match bounded(&path) {
                Ok(text) => files.push(File { path: below.to_string_lossy().into_owned(), text }),
                Err(error) => tracing::warn!(file = %path.display(), %error, "cannot read a skill"),
            }
        } else if path.is_dir()
            && below.components().count() <= DEEPEST
            && !name.to_string_lossy().starts_with('.')
        {
            collect(root, below, files);
        }
        below.pop();
    }
}

/// A file that is too large is not read to its end only to be left out.
fn bounded(path: &Path) -> std::io::Result<String> {
    use std::io::Read;
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take((1 << 20) + 1).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
