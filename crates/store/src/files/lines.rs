//! Logs: files that are appended to, line by line and each in one piece.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;

use super::Files;
use super::attempt::{Attempt, run};
use super::documents::read;
use crate::file::{named, private};
use crate::state::{Lines, StateError, StateFuture, fits, ready};

impl Lines for Files {
    fn append<'a>(&'a self, log: &'a str, line: Bytes, within: Duration) -> StateFuture<'a, ()> {
        let file = match fits(line.len(), self.0.limits.value_bytes) {
            Ok(()) => self.0.file(log),
            Err(error) => Err(error),
        };
        let limit = self.0.limits.log_bytes;
        match file {
            Ok(file) => run(within, move || {
                let added = add(&file, &line, limit).map_err(named("write", &file));
                added.map(Attempt::Done).map_err(StateError::unavailable)
            }),
            Err(error) => ready(Err(error)),
        }
    }

    fn last<'a>(
        &'a self,
        log: &'a str,
        n_lines: usize,
        within: Duration,
    ) -> StateFuture<'a, Vec<Bytes>> {
        // A line may be added while the log is at its limit.
        let limit = self.0.limits.log_bytes.saturating_add(self.0.limits.value_bytes);
        match self.0.file(log) {
            Ok(file) => run(within, move || {
                let before = read(&older(&file), limit)?.unwrap_or_default();
                let now = read(&file, limit)?.unwrap_or_default();
                let text = [before, now].concat();
                // What a process that died began is no line.
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

/// Where the older half of a log is.
fn older(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".1");
    name.into()
}

fn add(file: &Path, line: &[u8], limit: u64) -> std::io::Result<()> {
    private(file.parent().unwrap_or(Path::new("")))?;
    let open = || OpenOptions::new().create(true).append(true).mode(0o600).open(file);
    let mut opened = open()?;
    if limit / 2 < opened.metadata()?.len() {
        std::fs::rename(file, older(file))?;
        opened = open()?;
    }
    opened.write_all(&[line, b"\n"].concat())
}
