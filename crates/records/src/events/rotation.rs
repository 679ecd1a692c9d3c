//! Rotates a file of lines: it is renamed when it is full, and deleted when it is old.
//!
//! `calls.jsonl` becomes `calls-20261118T031500.123Z.jsonl`, and a new `calls.jsonl`
//! is started. Several processes may write to the same file: each notices when another
//! has renamed it, and continues in the new one. Ages are measured by the times of the
//! file system only.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// When a file is rotated, and when rotated files are deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rotation {
    /// The size at which the file is rotated.
    pub bytes: u64,
    /// How long a rotated file is kept; for ever if `None`.
    pub keep: Option<Duration>,
}

/// A file of lines that is rotated when it is full.
pub(super) struct RotatingFile {
    path: PathBuf,
    file: File,
    rotation: Rotation,
    /// Whether the last line is complete. Files are rotated only between two lines.
    at_line_start: bool,
}

impl RotatingFile {
    pub(super) fn open(path: &Path, rotation: Rotation) -> io::Result<RotatingFile> {
        let (path, file) = (path.to_owned(), append_to(path)?);
        let opened = RotatingFile { path, file, rotation, at_line_start: true };
        opened.delete_old();
        Ok(opened)
    }

    /// Reopens the file if another process has rotated it, and rotates it if it is full.
    fn rotate_if_full(&mut self) -> io::Result<()> {
        if !has_name(&self.file, &self.path) {
            self.file = append_to(&self.path)?;
        }
        let about = self.file.metadata()?;
        if about.len() < self.rotation.bytes {
            return Ok(());
        }
        fs::rename(&self.path, rotated_name(&self.path, about.modified()?))?;
        self.file = append_to(&self.path)?;
        self.delete_old();
        Ok(())
    }

    /// Deletes rotated files that are too old.
    fn delete_old(&self) {
        let Some(keep) = self.rotation.keep else { return };
        let modified = |path: &Path| fs::metadata(path).and_then(|about| about.modified());
        let Ok(now) = self.file.metadata().and_then(|about| about.modified()) else { return };
        for old in rotated_files(&self.path) {
            let age = modified(&old).map(|then| now.duration_since(then).unwrap_or_default());
            if age.is_ok_and(|age| keep < age)
                && let Err(error) = fs::remove_file(&old)
            {
                tracing::warn!(file = %old.display(), %error, "old records cannot be deleted");
            }
        }
    }
}

impl Write for RotatingFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.at_line_start
            && let Err(error) = self.rotate_if_full()
        {
            // A file that is too large is better than a lost record.
            tracing::warn!(%error, "the file of records cannot be put aside");
        }
        let written = self.file.write(bytes)?;
        self.at_line_start = bytes[..written].last().is_none_or(|last| *last == b'\n');
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Returns all files of records, the oldest first: the rotated ones, then the current
/// one.
pub fn all_files(path: &Path) -> Vec<PathBuf> {
    let mut files = rotated_files(path);
    files.push(path.to_owned());
    files
}

/// Returns the rotated files, the oldest first.
fn rotated_files(path: &Path) -> Vec<PathBuf> {
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        Some(_) | None => Path::new("."),
    };
    let (stem, extension) = split_name(path);
    let is_rotated = |name: &str| {
        let time = name.strip_prefix(&format!("{stem}-"));
        let time = time.and_then(|rest| rest.strip_suffix(&extension));
        time.is_some_and(|time| {
            time.starts_with(|c: char| c.is_ascii_digit())
                && time.chars().all(|c| c.is_ascii_digit() || "TZ.-".contains(c))
        })
    };
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries
        .filter(|entry| entry.file_name().to_str().is_some_and(is_rotated))
        .map(|entry| directory.join(entry.file_name()))
        .collect();
    found.sort_by_key(|path| sort_key(path));
    found
}

/// Returns the time in the name of a rotated file, and the number after it if several
/// have the same time.
fn sort_key(path: &Path) -> (String, u32) {
    let (stem, _) = split_name(path);
    match stem.rsplit_once("Z-") {
        Some((time, number)) => (format!("{time}Z"), number.parse().unwrap_or(u32::MAX)),
        None => (stem, 0),
    }
}

/// Returns a new name with the time in it.
fn rotated_name(path: &Path, at: SystemTime) -> PathBuf {
    let moment = jiff::Timestamp::try_from(at).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    let time = format!("{moment:.3}").replace([':'], "").replace('-', "");
    let (stem, extension) = split_name(path);
    let name = |n: usize| match n {
        0 => format!("{stem}-{time}{extension}"),
        n => format!("{stem}-{time}-{n}{extension}"),
    };
    let free = (0..).map(|n| path.with_file_name(name(n))).find(|path| !path.exists());
    free.unwrap_or_else(|| path.with_file_name(name(0)))
}

/// Splits the name of a file into its stem and its extension with the dot.
fn split_name(path: &Path) -> (String, String) {
    let text = |part: Option<&std::ffi::OsStr>| {
        part.map_or_else(String::new, |part| part.to_string_lossy().into_owned())
    };
    let extension =
        path.extension().map_or_else(String::new, |_| format!(".{}", text(path.extension())));
    (text(path.file_stem()), extension)
}

fn append_to(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).append(true);
    // Only the operator may read who called what.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Returns whether an open file is still the one at `path`.
#[cfg(unix)]
fn has_name(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    match (file.metadata(), fs::metadata(path)) {
        (Ok(open), Ok(named)) => (open.dev(), open.ino()) == (named.dev(), named.ino()),
        (_, Err(_)) | (Err(_), _) => false,
    }
}

#[cfg(not(unix))]
fn has_name(_: &File, path: &Path) -> bool {
    path.exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &Path) -> Vec<String> {
        let text = |file: PathBuf| fs::read_to_string(file).unwrap();
        all_files(path)
            .into_iter()
            .flat_map(|f| text(f).lines().map(str::to_owned).collect::<Vec<_>>())
            .collect()
    }

    fn put(file: &mut RotatingFile, line: &str) {
        file.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    #[test]
    fn a_full_file_is_put_aside_and_no_line_is_lost() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("calls.jsonl");
        fs::write(directory.path().join("calls-notes.jsonl"), "somebody else's").unwrap();
        let mut file = RotatingFile::open(&path, Rotation { bytes: 20, keep: None }).unwrap();
        let expected: Vec<String> = (0..50).map(|n| format!("line {n}")).collect();
        expected.iter().for_each(|line| put(&mut file, line));
        assert_eq!(lines(&path), expected);
        assert!(10 < all_files(&path).len(), "{:?}", all_files(&path));
        assert!(all_files(&path).iter().all(|f| fs::metadata(f).unwrap().len() < 40));
    }

    #[test]
    fn who_writes_to_the_same_file_follows() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("calls");
        let rotation = Rotation { bytes: 20, keep: None };
        let mut one = RotatingFile::open(&path, rotation).unwrap();
        let mut other = RotatingFile::open(&path, rotation).unwrap();
        for n in 0..20 {
            put(&mut one, &format!("one {n}"));
            put(&mut other, &format!("other {n}"));
        }
        assert_eq!(lines(&path).len(), 40);
        // Somebody deletes it: it is begun anew.
        fs::remove_file(&path).unwrap();
        put(&mut one, "after");
        assert_eq!(fs::read_to_string(&path).unwrap(), "after\n");
    }

    #[test]
    fn a_line_in_two_pieces_stays_whole() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("calls.jsonl");
        let mut file = RotatingFile::open(&path, Rotation { bytes: 4, keep: None }).unwrap();
        file.write_all(b"half of").unwrap();
        file.write_all(b" a line\n").unwrap();
        put(&mut file, "next");
        assert_eq!(lines(&path), ["half of a line", "next"]);
    }

    #[test]
    fn old_files_are_deleted_and_others_are_not() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("calls.jsonl");
        let at = |name: &str, days: u64| {
            let file = File::create(directory.path().join(name)).unwrap();
            let age = Duration::from_secs(days * 24 * 60 * 60);
            let now = file.metadata().unwrap().modified().unwrap();
            file.set_modified(now - age).unwrap();
        };
        at("calls-20260101T000000.000Z.jsonl", 100);
        at("calls-20261101T000000.000Z.jsonl", 10);
        at("calls-old.jsonl", 100);
        at("other-20260101T000000.000Z.jsonl", 100);
        let keep = Some(Duration::from_secs(30 * 24 * 60 * 60));
        let mut file = RotatingFile::open(&path, Rotation { bytes: 1 << 20, keep }).unwrap();
        put(&mut file, "x");
        let mut names: Vec<String> = fs::read_dir(directory.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        let expected = [
            "calls-20261101T000000.000Z.jsonl",
            "calls-old.jsonl",
            "calls.jsonl",
            "other-20260101T000000.000Z.jsonl",
        ];
        assert_eq!(names, expected);
    }
}
