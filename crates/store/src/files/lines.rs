//! Logs: files to which lines are appended, each with one write.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;

use super::Files;
use super::attempt::{Attempt, run};
use super::documents::read_file;
use crate::file::{create_private_dir, with_path};
use crate::state::{Lines, StateError, StateFuture, check_size, ready};

impl Lines for Files {
    fn append<'a>(&'a self, log: &'a str, line: Bytes, timeout: Duration) -> StateFuture<'a, ()> {
        let file = match check_size(line.len(), self.0.limits.value_bytes) {
            Ok(()) => self.0.file(log),
            Err(error) => Err(error),
        };
        let limit = self.0.limits.log_bytes;
        match file {
            Ok(file) => run(timeout, move || {
                let added = append_line(&file, &line, limit).map_err(with_path("write", &file));
                added.map(Attempt::Done).map_err(StateError::unavailable)
            }),
            Err(error) => ready(Err(error)),
        }
    }

    fn last<'a>(
        &'a self,
        log: &'a str,
        n_lines: usize,
        timeout: Duration,
    ) -> StateFuture<'a, Vec<Bytes>> {
        // A line may be added while the log is at its limit.
        let limit = self.0.limits.log_bytes.saturating_add(self.0.limits.value_bytes);
        match self.0.file(log) {
            Ok(file) => run(timeout, move || {
                let before = read_file(&older_file(&file), limit)?.unwrap_or_default();
                let now = read_file(&file, limit)?.unwrap_or_default();
                let text = [before, now].concat();
                // A process that died may have left part of a line at the end.
                let whole = text.iter().rposition(|byte| *byte == b'\n').unwrap_or(0);
                let lines: Vec<&[u8]> = text[..whole].split(|byte| *byte == b'\n').collect();
                let lines = lines.iter().filter(|line| !line.is_empty());
                let lines: Vec<Bytes> = lines.map(|line| Bytes::copy_from_slice(line)).collect();
                let skipped = lines.len().saturating_sub(n_lines);
                Ok(Attempt::Done(lines[skipped..].to_vec()))
            }),
            Err(error) => ready(Err(error)),
        }
    }
}

/// Returns the file with the older half of a log.
fn older_file(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".1");
    name.into()
}

fn append_line(file: &Path, line: &[u8], limit: u64) -> std::io::Result<()> {
    create_private_dir(file.parent().unwrap_or(Path::new("")))?;
    let open = || OpenOptions::new().create(true).append(true).mode(0o600).open(file);
    let mut opened = open()?;
    if limit / 2 < opened.metadata()?.len() {
        std::fs::rename(file, older_file(file))?;
        opened = open()?;
    }
    opened.write_all(&[line, b"\n"].concat())
}
