//! What happens in a script after its journal was stored whole: a line of JSON each.
//!
//! A process that is killed may leave part of a line, which the next run of the script
//! ends by a line of its own. Any other line that cannot be read means that it is not
//! known what was done.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use crate::protocol::{Call, Thrown};

/// One thing that happened. `A` is an answer, borrowed where it is written.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Event<A> {
    /// A call is about to be made.
    Begun { number: u64, call: CallDigest },
    /// A call was answered.
    Answered(A),
    /// A call was not made after all.
    Forgotten(u64),
    /// The script runs again.
    Resumed(u64),
    /// A run of the script ended.
    Stopped { finished: bool, waiting: Option<u64>, questions: BTreeMap<u64, Option<String>> },
}

/// A line cannot be read, so it is not known what the script has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of its journal is damaged")]
pub struct DamagedLog {
    pub line: usize,
}

/// A call with a digest in place of its arguments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallDigest {
    pub path: Vec<String>,
    digest: String,
}

/// A call and its answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Answered {
    pub(super) number: u64,
    pub(super) call: CallDigest,
    pub(super) result: Result<Box<RawValue>, Thrown>,
}

impl CallDigest {
    pub(super) fn new(call: &Call) -> CallDigest {
        let mut hash = Sha256::new();
        for part in call.path.iter().map(String::as_str).chain([call.arguments.get()]) {
            hash.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
            hash.update(part.as_bytes());
        }
        let digest = hash.finalize();
        let hex = |half: u8| char::from_digit(u32::from(half), 16).unwrap_or_default();
        let digest = digest.iter().flat_map(|byte| [hex(byte >> 4), hex(byte & 15)]).collect();
        CallDigest { path: call.path.clone(), digest }
    }
}

/// Adds an event to lines.
pub(super) fn write(lines: &mut Vec<u8>, event: &Event<&Answered>) {
    let start = lines.len();
    serde_json::to_writer(&mut *lines, event).expect("an event is always JSON");
    // Upstreams may break their JSON into lines, between its tokens only.
    lines[start..].iter_mut().filter(|byte| **byte == b'\n').for_each(|byte| *byte = b' ');
    lines.push(b'\n');
}

/// Reads the events of lines, without a line that was cut.
pub(super) fn read(lines: &[u8]) -> Result<Vec<Event<Answered>>, DamagedLog> {
    let (mut events, mut cut) = (Vec::new(), None);
    let lines = lines.split_inclusive(|byte| *byte == b'\n').enumerate();
    for (at, line) in lines.filter(|(_, line)| *line != b"\n") {
        let event = serde_json::from_slice::<Event<Answered>>(line).ok();
        let event = event.filter(|_| line.ends_with(b"\n"));
        match (event, cut) {
            (None, None) => cut = Some(at + 1),
            (Some(Event::Resumed(_)), Some(_)) => cut = None,
            (_, Some(line)) => return Err(DamagedLog { line }),
            (Some(event), None) => events.push(event),
        }
    }
    Ok(events)
}
