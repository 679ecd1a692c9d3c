//! What a worker and its gatelet say to each other: frames of JSON, each behind
//! its length.

use std::io::{self, Read, Write};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::limits::{Limit, Limits};

/// No frame is longer, in either direction.
pub const LONGEST: usize = 64 << 20;

/// To a worker.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToWorker {
    Run(Start),
    Answer(Answer),
}

/// From a worker.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FromWorker {
    /// It is confined, and waits. Says what the kernel could not enforce.
    Ready {
        unenforced: Option<String>,
    },
    Call(Call),
    Done(Finished),
}

/// A script to be run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Start {
    pub code: String,
    /// The value of `inputs`, as JSON.
    pub inputs: Box<RawValue>,
    pub limits: Limits,
}

/// A function that a script calls.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Call {
    /// The calls of a script are numbered as it makes them, from 0.
    pub number: u64,
    /// `tools.orders.retail.create` is `["orders", "retail", "create"]`.
    pub path: Vec<String>,
    pub arguments: Box<RawValue>,
}

/// What a call came to.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Answer {
    pub number: u64,
    /// The result as JSON, or what the script can catch.
    pub result: Result<Box<RawValue>, Thrown>,
}

/// An error as a script sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thrown {
    pub message: String,
    /// A stable word, such as `UPSTREAM_TIMEOUT`.
    pub code: Option<String>,
}

/// How a script ended.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Finished {
    /// What it returned, as JSON; nothing for `undefined`.
    pub outcome: Result<Option<Box<RawValue>>, ScriptError>,
    /// What it wrote with `console.log`.
    pub log: Vec<String>,
    /// How many lines of that did not fit.
    pub log_dropped: usize,
    pub steps: u64,
}

/// Why a script returned nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScriptError {
    /// It threw, and where.
    Thrown { message: String, place: String },
    /// It is not JavaScript.
    Syntax { message: String, place: String },
    /// It hit a limit.
    Limit(Limit),
    /// It waits for something that never comes.
    Stuck,
    /// What it returned cannot be written as JSON.
    Unwritable(String),
}

/// Writes one frame, in one piece: every piece would cost a system call of both
/// sides.
pub fn write<T: Serialize>(out: &mut impl Write, frame: &T) -> io::Result<()> {
    let mut bytes = vec![0; HEAD];
    serde_json::to_writer(&mut bytes, frame).map_err(io::Error::other)?;
    let head = head(bytes.len() - HEAD)?;
    bytes[..HEAD].copy_from_slice(&head);
    out.write_all(&bytes)
}

/// Reads one frame; `None` at the end of the stream.
pub fn read<T: DeserializeOwned>(from: &mut impl Read) -> io::Result<Option<T>> {
    let mut head = [0; HEAD];
    match from.read_exact(&mut head) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    }
    let mut text = vec![0; length(head)?];
    from.read_exact(&mut text)?;
    serde_json::from_slice(&text).map(Some).map_err(io::Error::other)
}

/// How many bytes stand before a frame.
pub(crate) const HEAD: usize = 4;

/// What stands before a frame of this length.
fn head(length: usize) -> io::Result<[u8; HEAD]> {
    let length = u32::try_from(length).ok().filter(|length| *length as usize <= LONGEST);
    length.map(u32::to_le_bytes).ok_or_else(too_long)
}

/// How long the frame behind it is.
pub(crate) fn length(head: [u8; HEAD]) -> io::Result<usize> {
    let length = u32::from_le_bytes(head) as usize;
    if length <= LONGEST { Ok(length) } else { Err(too_long()) }
}

fn too_long() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("a frame has over {LONGEST} bytes"))
}
