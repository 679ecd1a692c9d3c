//! Stores the history of changes to hosts' files: one directory for each change, with a
//! manifest and backups of the files.
//!
//! The files may hold secrets, so only their owner can read them.

use std::io::Write;
use std::path::{Path, PathBuf};

use document::Format;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::change::{FileChange, Step};

/// One command that changed files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Counted from 1.
    pub number: u32,
    /// The command that did it.
    pub command: String,
    pub state: State,
    pub files: Vec<RecordedFile>,
}

/// How far the change of a record got.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Begun; only the files themselves show whether they were written.
    Begun,
    Done,
    Undone,
}

/// A file that was changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedFile {
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub host: Option<String>,
    pub path: PathBuf,
    #[serde(with = "format_name")]
    pub format: Format,
    /// The name of the backup beside the manifest; `None` when there was no file.
    pub before: Option<String>,
    /// The SHA-256 of what was written; `None` when the file was removed.
    pub after: Option<String>,
    pub steps: Vec<Step>,
}

/// The directory that holds the records.
#[derive(Clone, Debug)]
pub struct History {
    directory: PathBuf,
}

const MANIFEST: &str = "manifest.json";

impl History {
    pub fn at(directory: PathBuf) -> History {
        History { directory }
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns all records, the oldest first. One that cannot be read is left out.
    pub fn records(&self) -> Vec<Record> {
        let entries = std::fs::read_dir(&self.directory).into_iter().flatten().flatten();
        let read = |entry: std::fs::DirEntry| {
            let bytes = std::fs::read(entry.path().join(MANIFEST)).ok()?;
            serde_json::from_slice::<Record>(&bytes).ok()
        };
        let mut records: Vec<Record> = entries.filter_map(read).collect();
        records.sort_by_key(|record| record.number);
        records
    }

    /// Returns the backup of a recorded file; `None` when there was no file.
    pub fn before(&self, record: &Record, file: &RecordedFile) -> std::io::Result<Option<Vec<u8>>> {
        let Some(name) = &file.before else { return Ok(None) };
        // A forged manifest must not name a file elsewhere.
        let name = Path::new(name).file_name().unwrap_or_default();
        std::fs::read(self.record_directory(record.number).join(name)).map(Some)
    }

    /// Creates the directory, readable by its owner only, unless it exists.
    pub(crate) fn create_directory(&self) -> std::io::Result<()> {
        create_private_directory(&self.directory)
    }

    /// Records changes, with backups, before they are made. On an error nothing is left
    /// behind.
    pub(crate) fn begin(&self, command: &str, changes: &[FileChange]) -> std::io::Result<Record> {
        self.create_directory()?;
        let (number, directory) = self.create_next_directory()?;
        let written = self.write_record(number, &directory, command, changes);
        if written.is_err() {
            let _ = std::fs::remove_dir_all(&directory);
        }
        written
    }

    fn write_record(
        &self,
        number: u32,
        directory: &Path,
        command: &str,
        changes: &[FileChange],
    ) -> std::io::Result<Record> {
        let mut files = Vec::new();
        for (at, change) in changes.iter().enumerate() {
            let name = format!("{at}.before");
            if let Some(before) = &change.before {
                write_private(&directory.join(&name), before)?;
            }
            files.push(RecordedFile {
                host: change.host.map(str::to_owned),
                path: change.path.clone(),
                format: change.format,
                before: change.before.is_some().then_some(name),
                after: change.after.as_deref().map(digest),
                steps: change.steps.clone(),
            });
        }
        let record = Record { number, command: command.to_owned(), state: State::Begun, files };
        self.save(&record)?;
        Ok(record)
    }

    /// Stores a new state of a record.
    pub fn mark(&self, record: &Record, state: State) -> std::io::Result<()> {
        self.save(&Record { state, ..record.clone() })
    }

    /// Deletes the record of a change that did not happen.
    pub(crate) fn discard(&self, record: &Record) {
        let _ = std::fs::remove_dir_all(self.record_directory(record.number));
    }

    /// Creates the directory for the next record, and returns its number and path.
    fn create_next_directory(&self) -> std::io::Result<(u32, PathBuf)> {
        let numbers = std::fs::read_dir(&self.directory)?.flatten();
        let numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let number = numbers.max().unwrap_or(0).saturating_add(1);
        let directory = self.record_directory(number);
        create_private_directory(&directory)?;
        Ok((number, directory))
    }

    fn record_directory(&self, number: u32) -> PathBuf {
        self.directory.join(format!("{number:04}"))
    }

    fn save(&self, record: &Record) -> std::io::Result<()> {
        let text = serde_json::to_vec_pretty(record)?;
        let directory = self.record_directory(record.number);
        let fresh = directory.join("manifest.new");
        write_private(&fresh, &text)?;
        std::fs::rename(fresh, directory.join(MANIFEST))
    }
}

/// Returns the SHA-256 of a file's bytes, in hexadecimal.
pub fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn create_private_directory(directory: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(directory)
}

fn write_private(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

mod format_name {
    use document::Format;
    use serde::{Deserialize, Deserializer, Serializer};

    const NAMES: &[(Format, &str)] =
        &[(Format::Json, "json"), (Format::Toml, "toml"), (Format::Yaml, "yaml")];

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
    pub(super) fn serialize<S: Serializer>(format: &Format, to: S) -> Result<S::Ok, S::Error> {
        let name = NAMES.iter().find(|(known, _)| known == format).map_or("json", |(_, name)| name);
        to.serialize_str(name)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Format, D::Error> {
        let name = String::deserialize(from)?;
        let known = NAMES.iter().find(|(_, known)| *known == name).map(|(format, _)| *format);
        known.ok_or_else(|| serde::de::Error::custom(format!("`{name}` is not a format")))
    }
}
