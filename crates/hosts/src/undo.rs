//! Plans the changes that undo a recorded change.
//!
//! A file that is still as it was written gets its old bytes back. In a file that has
//! changed since, only the recorded steps are undone: added values are removed, removed
//! and replaced values are restored, and everything else stays.

use document::edit::EditError;

use crate::HOSTS;
use crate::change::{FileChange, Step};
use crate::history::{History, Record, RecordedFile, State, digest};
use crate::machine::Machine;
use crate::plan::Refusal;

/// Plans the changes that undo a record; `is_selected` chooses among its files.
pub fn plan(
    record: &Record,
    history: &History,
    machine: &dyn Machine,
    is_selected: impl Fn(&RecordedFile) -> bool,
) -> Result<Vec<FileChange>, Refusal> {
    let files = record.files.iter().filter(|file| is_selected(file));
    files.map(|file| undo_file(record, file, history, machine)).collect()
}

/// Returns the newest record that can be undone.
pub fn latest(records: &[Record]) -> Option<&Record> {
    records.iter().rev().find(|record| record.state != State::Undone)
}

fn undo_file(
    record: &Record,
    file: &RecordedFile,
    history: &History,
    machine: &dyn Machine,
) -> Result<FileChange, Refusal> {
    let shown = file.path.display().to_string();
    let unreadable = |source| Refusal::Unreadable { file: shown.clone(), source };
    let now = machine.read(&file.path).map_err(unreadable)?;
    let before = history.before(record, file).map_err(unreadable)?;
    let host = file.host.as_deref();
    let host = HOSTS.iter().find(|known| Some(known.id) == host).map(|host| host.id);
    let steps = |is_same: bool| match is_same {
        true => Vec::new(),
        false => file.steps.iter().rev().filter_map(Step::inverse).collect(),
    };
    let change = |after: Option<Vec<u8>>, notes| FileChange {
        host,
        path: file.path.clone(),
        format: file.format,
        before: now.clone(),
        steps: steps(after == now),
        after,
        private: false,
        notes,
    };
    if now == before {
        return Ok(change(before, Vec::new()));
    }
    if now.as_deref().map(digest) == file.after {
        return Ok(change(before, vec!["exactly as it was before".to_owned()]));
    }
    let Some(bytes) = &now else {
        let note = "the file is gone, and stays gone".to_owned();
        return Ok(change(None, vec![note]));
    };
    let text = String::from_utf8(bytes.clone());
    let mut text = text.map_err(|_| Refusal::NotText { file: shown.clone() })?;
    for step in file.steps.iter().rev() {
        let reverted = step.revert(&text, file.format);
        text = reverted
            .map_err(|source: EditError| Refusal::Uneditable { file: shown.clone(), source })?;
    }
    let note = "changed since, so only what was written then is taken back".to_owned();
    Ok(change(Some(text.into_bytes()), vec![note]))
}
