//! The protocol between gatelet and a worker: frames of JSON, each preceded by its
//! length.

use std::io::{self, Read, Write};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::limits::{Limit, Limits};

/// The maximum length of a frame, in either direction.
pub const MAX_FRAME_BYTES: usize = 64 << 20;

/// A frame to a worker.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToWorker {
    Run(Start),
    Answer(Answer),
}

/// A frame from a worker.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FromWorker {
    /// The worker has confined itself and waits for a script. `unenforced` says what
    /// the kernel could not enforce.
    Ready {
        unenforced: Option<String>,
    },
    Call(Call),
    /// The script does nothing more until it gets another answer. Sent before each
    /// answer that the worker reads.
    Waiting,
    Done(Finished),
}

/// A script to run.
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

/// The answer to a call.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Answer {
    pub number: u64,
    /// The result as JSON, or an error that the script can catch.
    pub result: Result<Box<RawValue>, Thrown>,
}

/// An error as a script sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thrown {
    pub message: String,
    /// A stable error code, such as `UPSTREAM_TIMEOUT`.
    pub code: Option<String>,
}

/// How a script ended.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Finished {
    /// The returned value as JSON; `None` for `undefined`.
    pub outcome: Result<Option<Box<RawValue>>, ScriptError>,
    /// The lines that it wrote with `console.log`.
    pub log: Vec<String>,
    /// How many lines of the log did not fit.
    pub log_dropped: usize,
    pub steps: u64,
}

/// Why a script failed. `place` is a line of the script, such as `line 3`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScriptError {
    /// It threw an error.
    Thrown { message: String, place: String },
    /// It is not valid JavaScript.
    Syntax { message: String, place: String },
    /// It hit a limit.
    Limit(Limit),
    /// It awaits a promise that nothing will settle.
    Stuck,
    /// The value that it returned is not JSON.
    Unwritable(String),
}

/// Writes one frame with one write: each write would cost both sides a system call.
pub fn write<T: Serialize>(out: &mut impl Write, frame: &T) -> io::Result<()> {
    let mut bytes = vec![0; HEAD_BYTES];
    serde_json::to_writer(&mut bytes, frame).map_err(io::Error::other)?;
    let head = encode_head(bytes.len() - HEAD_BYTES)?;
    bytes[..HEAD_BYTES].copy_from_slice(&head);
    out.write_all(&bytes)
}

/// Reads one frame; `None` at the end of the stream.
pub fn read<T: DeserializeOwned>(from: &mut impl Read) -> io::Result<Option<T>> {
    let mut head = [0; HEAD_BYTES];
    match from.read_exact(&mut head) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    }
    let mut text = vec![0; decode_length(head)?];
    from.read_exact(&mut text)?;
    serde_json::from_slice(&text).map(Some).map_err(io::Error::other)
}

/// The size of the length before a frame.
pub(crate) const HEAD_BYTES: usize = 4;

/// Encodes the length of a frame.
fn encode_head(length: usize) -> io::Result<[u8; HEAD_BYTES]> {
    let length = u32::try_from(length).ok().filter(|length| *length as usize <= MAX_FRAME_BYTES);
    length.map(u32::to_le_bytes).ok_or_else(too_long)
}

/// Decodes the length of a frame.
pub(crate) fn decode_length(head: [u8; HEAD_BYTES]) -> io::Result<usize> {
    let length = u32::from_le_bytes(head) as usize;
    if length <= MAX_FRAME_BYTES { Ok(length) } else { Err(too_long()) }
}

fn too_long() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("a frame has over {MAX_FRAME_BYTES} bytes"))
}
