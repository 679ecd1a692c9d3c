//! The files of a directory of artifacts.

use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use crate::file;

/// The extension of artifacts.
pub(super) const ARTIFACT: &str = "artifact";
/// The extension of their logs.
pub(super) const LOG: &str = "log";

/// Returns the file of an artifact.
pub(super) fn file_of(directory: &Path, handle: &str) -> PathBuf {
    directory.join(format!("{handle}.{ARTIFACT}"))
}

/// Returns the log of the artifact in this file.
pub(super) fn log_of(artifact: &Path) -> PathBuf {
    artifact.with_extension(LOG)
}

/// Removes an artifact and its log. A file that is gone already is fine.
pub(super) fn remove_files(artifact: &Path) {
    let _ = std::fs::remove_file(artifact);
    let _ = std::fs::remove_file(log_of(artifact));
}

/// Returns the size of an artifact's log, and when it was written, in milliseconds
/// since 1970.
pub(super) fn measure_log(artifact: &Path) -> (usize, u64) {
    let Some((when, bytes)) = file::stamp(&log_of(artifact)) else { return (0, 0) };
    let since = when.duration_since(UNIX_EPOCH).unwrap_or_default();
    let millis = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
    (usize::try_from(bytes).unwrap_or(usize::MAX), millis)
}
