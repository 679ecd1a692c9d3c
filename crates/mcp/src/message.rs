//! One JSON-RPC message.
//!
//! A message is read once, into its envelope; params, results and errors stay
//! slices of the bytes that came in. Writing a message appends those bytes
//! again, so what nobody changes goes out as it came in: duplicate keys,
//! `1e400`, unknown members and all.

mod batch;
mod envelope;
mod parse;

use std::borrow::Cow;

use memchr::memchr2;
use tool::json::write_string;
use tool::{Ask, Failure, Json, Reply, RpcError};

use crate::revision::code;

pub use batch::MEMBERS as BATCH_MEMBERS;

/// The byte order mark. It says nothing in UTF-8, and is sent all the same.
pub(crate) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// One message.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    Request(Request),
    Notification(Notification),
    Response(Response),
}

/// A question, to be answered under its id.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// The id as it was written: a number, a string, whatever was sent.
    pub id: Json,
    pub method: String,
    pub params: Option<Json>,
}

/// News that want no answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Notification {
    pub method: String,
    pub params: Option<Json>,
}

/// The answer to a question.
#[derive(Clone, Debug, PartialEq)]
pub struct Response {
    pub id: Json,
    pub reply: Reply,
}

/// What one line, body or event holds.
#[derive(Clone, Debug, PartialEq)]
pub enum Frame {
    One(Message),
    /// Revision 2025-03-26 allows several messages in an array, up to
    /// [`BATCH_MEMBERS`]. Each stands or falls alone.
    Batch(Vec<Result<Message, Invalid>>),
}

/// Bytes that are no message.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{reason}")]
pub struct Invalid {
    /// Whether it is not even JSON, or JSON but no message.
    pub fault: Fault,
    pub reason: String,
    /// The id, where it could be read: whoever waits for that answer need not
    /// wait any longer, and whoever asked can be told.
    pub id: Option<Json>,
    /// Whether it claimed to be a request or a notification.
    pub method: Option<String>,
    /// Whether it is an array of too many messages: any number of answers may be in
    /// it, and nobody knows whose. Noise that begins with `[` is none.
    pub is_batch: bool,
}

/// What is wrong with bytes that are no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    NoJson,
    NoMessage,
}

impl Invalid {
    fn plain(fault: Fault, reason: String) -> Invalid {
        Invalid { fault, reason, id: None, method: None, is_batch: false }
    }

    /// Returns what to answer to whoever sent it.
    pub fn to_error(&self) -> RpcError {
        match self.fault {
            Fault::NoJson => RpcError::new(code::PARSE, format!("not JSON: {}", self.reason)),
            Fault::NoMessage => RpcError::new(
                code::INVALID_REQUEST,
                format!("not a JSON-RPC message: {}", self.reason),
            ),
        }
    }
}

/// What a message says beside its method.
#[derive(Clone, Copy, Debug)]
pub enum Params<'a> {
    Absent,
    Json(&'a Json),
    /// Those of a question, written when the message is.
    Of(&'a Ask),
}

impl<'a> From<Option<&'a Json>> for Params<'a> {
    fn from(params: Option<&'a Json>) -> Params<'a> {
        params.map_or(Params::Absent, Params::Json)
    }
}

/// Appends a request. The id is JSON text.
pub fn write_request<'a>(out: &mut String, id: &str, method: &str, params: impl Into<Params<'a>>) {
    out.push_str(r#"{"jsonrpc":"2.0","id":"#);
    out.push_str(id);
    out.push_str(r#","method":"#);
    write_method_and_params(out, method, params.into());
}

/// Appends a notification.
pub fn write_notification(out: &mut String, method: &str, params: Option<&Json>) {
    out.push_str(r#"{"jsonrpc":"2.0","method":"#);
    write_method_and_params(out, method, params.into());
}

/// Appends an answer. The id is JSON text.
pub fn write_response(out: &mut String, id: &str, reply: &Reply) {
    let (member, payload) = match reply {
        Reply::Result(result) => (r#","result":"#, result),
        Reply::Error(error) => (r#","error":"#, &error.raw),
    };
    out.push_str(r#"{"jsonrpc":"2.0","id":"#);
    out.push_str(id);
    out.push_str(member);
    out.push_str(payload.as_str());
    out.push('}');
}

/// Appends the answers to a batch.
pub fn write_responses(out: &mut String, answers: &[(Json, Reply)]) {
    out.push('[');
    for (at, (id, reply)) in answers.iter().enumerate() {
        if at != 0 {
            out.push(',');
        }
        write_response(out, id.as_str(), reply);
    }
    out.push(']');
}

/// The code under which the other side learns that its question got no answer.
/// `unusable` is the code for an answer that came and could not be used: whose
/// fault that is depends on who asked.
pub(crate) fn failure_code(failure: &Failure, unusable: i64) -> i64 {
    match failure {
        Failure::Unsupported { .. } => code::METHOD_NOT_FOUND,
        Failure::Unusable { .. } => unusable,
        Failure::Unavailable { .. }
        | Failure::Timeout { .. }
        | Failure::Lost { .. }
        | Failure::Unauthorized { .. }
        | Failure::Forbidden { .. }
        | Failure::RateLimited { .. }
        | Failure::Cancelled => code::SERVER,
    }
}

/// Returns what an answer says beside its id.
pub(crate) fn payload(reply: &Reply) -> &Json {
    match reply {
        Reply::Result(result) => result,
        Reply::Error(error) => &error.raw,
    }
}

/// The answer, or what stands for one with which the answers of its batch would
/// have more than `limit` bytes together; `n_bytes` is what they have so far.
pub(crate) fn within(reply: Reply, n_bytes: &mut usize, limit: usize) -> Reply {
    let (before, length) = (*n_bytes, payload(&reply).as_str().len());
    if before + length <= limit {
        *n_bytes += length;
        return reply;
    }
    let message = if before == 0 {
        format!("the answer has {length} bytes, over the limit of {limit} here; ask for less of it")
    } else {
        format!(
            "the answers of this batch have more than {limit} bytes together; ask one at a time"
        )
    };
    Reply::Error(RpcError::new(code::INTERNAL, message))
}

/// Makes the text from `start` on safe for one line: a raw line break in JSON
/// can only be white space, so a space means the same.
pub fn unbreak(out: &mut [u8], start: usize) {
    let mut at = start;
    while let Some(found) = memchr2(b'\n', b'\r', &out[at..]) {
        out[at + found] = b' ';
        at += found + 1;
    }
}

fn write_method_and_params(out: &mut String, method: &str, params: Params<'_>) {
    write_string(out, method);
    match params {
        Params::Absent => {}
        Params::Json(params) => {
            out.push_str(r#","params":"#);
            out.push_str(params.as_str());
        }
        Params::Of(ask) => {
            out.push_str(r#","params":"#);
            ask.write_params(out);
        }
    }
    out.push('}');
}

/// A short piece of bytes for a log line.
pub fn excerpt(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(&bytes[..bytes.len().min(120)])
}

#[cfg(test)]
mod tests;
