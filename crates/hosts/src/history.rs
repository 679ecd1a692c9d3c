//! The history of changes to hosts: for each change one directory with a manifest
//! and the files as they were before.
//!
//! The files may hold secrets, so only their owner reads them.

use std::io::Write;
use std::path::{Path, PathBuf};

use document::Format;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::change::{FileChange, Step};

/// One time that files were changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Counted from 1.
    pub number: u32,
    /// The command that did it.
    pub command: String,
    pub state: State,
    pub files: Vec<RecordedFile>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Begun; whether the files were written is seen in them.
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
    /// What was there before, beside the manifest; `None` when nothing was.
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

    /// All records, the oldest first. One that cannot be read is left out.
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

    /// Returns what a recorded file held before.
    pub fn before(&self, record: &Record, file: &RecordedFile) -> std::io::Result<Option<Vec<u8>>> {
        let Some(name) = &file.before else { return Ok(None) };
        // A manifest that somebody else wrote leads nowhere else.
        let name = Path::new(name).file_name().unwrap_or_default();
        std::fs::read(self.place(record.number).join(name)).map(Some)
    }

    /// Makes the directory, for its owner alone, unless it is there.
    pub(crate) fn make(&self) -> std::io::Result<()> {
        private(&self.directory)
    }

    /// Notes changes before they are made. What cannot be noted whole leaves nothing
    /// behind.
    pub(crate) fn begin(&self, command: &str, changes: &[FileChange]) -> std::io::Result<Record> {
        self.make()?;
        let (number, place) = self.free_place()?;
        let noted = self.note(number, &place, command, changes);
        if noted.is_err() {
            let _ = std::fs::remove_dir_all(&place);
        }
        noted
    }

    fn note(
        &self,
        number: u32,
        place: &Path,
        command: &str,
        changes: &[FileChange],
    ) -> std::io::Result<Record> {
        let mut files = Vec::new();
        for (at, change) in changes.iter().enumerate() {
            let name = format!("{at}.before");
            if let Some(before) = &change.before {
                write_private(&place.join(&name), before)?;
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

    /// Remembers how far a record got.
    pub fn mark(&self, record: &Record, state: State) -> std::io::Result<()> {
        self.save(&Record { state, ..record.clone() })
    }

    /// Forgets a record of what did not happen.
    pub(crate) fn forget(&self, record: &Record) {
        let _ = std::fs::remove_dir_all(self.place(record.number));
    }

    fn free_place(&self) -> std::io::Result<(u32, PathBuf)> {
        let numbers = std::fs::read_dir(&self.directory)?.flatten();
        let numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let number = numbers.max().unwrap_or(0).saturating_add(1);
        let place = self.place(number);
        private(&place)?;
        Ok((number, place))
    }

    fn place(&self, number: u32) -> PathBuf {
        self.directory.join(format!("{number:04}"))
    }

    fn save(&self, record: &Record) -> std::io::Result<()> {
        let text = serde_json::to_vec_pretty(record)?;
        let place = self.place(record.number);
        let fresh = place.join("manifest.new");
        write_private(&fresh, &text)?;
        std::fs::rename(fresh, place.join(MANIFEST))
    }
}

/// Returns what tells one content from another.
pub fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn private(directory: &Path) -> std::io::Result<()> {
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
