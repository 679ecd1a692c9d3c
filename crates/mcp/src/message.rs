//! JSON-RPC messages: their types, parsing and writing.
//!
//! Parsing reads only the envelope (`id`, `method`, ...); params, results and errors stay
//! slices of the received bytes. Writing a message appends those bytes again, so an
//! unchanged payload leaves exactly as it came in: duplicate keys, `1e400`, unknown
//! members and all.

mod batch;
mod envelope;
mod parse;

use std::borrow::Cow;

use memchr::memchr2;
use tool::json::write_string;
use tool::{Ask, Failure, Json, Reply, RpcError};

use crate::revision::code;

pub use batch::MEMBERS as BATCH_MEMBERS;

/// The UTF-8 byte order mark, which some senders put before a message.
pub(crate) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// One JSON-RPC message.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    Request(Request),
    Notification(Notification),
    Response(Response),
}

/// A request; its response carries the same id.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// The id as it was written: a number, a string, whatever was sent.
    pub id: Json,
    pub method: String,
    pub params: Option<Json>,
}

/// A message that gets no response.
#[derive(Clone, Debug, PartialEq)]
pub struct Notification {
    pub method: String,
    pub params: Option<Json>,
}

/// The response to the request with this id.
#[derive(Clone, Debug, PartialEq)]
pub struct Response {
    pub id: Json,
    pub reply: Reply,
}

/// The content of one line, HTTP body or event: a message, or a batch of them.
#[derive(Clone, Debug, PartialEq)]
pub enum Frame {
    One(Message),
    /// An array of messages, as in revision 2025-03-26, at most [`BATCH_MEMBERS`]. An
    /// invalid member does not affect the others.
    Batch(Vec<Result<Message, Invalid>>),
}

/// Why bytes are not a JSON-RPC message.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{reason}")]
pub struct Invalid {
    pub fault: Fault,
    pub reason: String,
    /// The id, if it could be parsed: it tells which request to fail or to answer.
    pub id: Option<Json>,
    /// The method, if there was one (empty if it could not be parsed): then the bytes
    /// were meant as a request or a notification.
    pub method: Option<String>,
    /// True for an array with too many members. It may hold the responses to any of the
    /// open requests.
    pub is_oversized_batch: bool,
}

/// The kind of an [`Invalid`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    NotJson,
    NotMessage,
}

impl Invalid {
    fn without_id(fault: Fault, reason: String) -> Invalid {
        Invalid { fault, reason, id: None, method: None, is_oversized_batch: false }
    }

    /// Returns the error to send back.
    pub fn to_error(&self) -> RpcError {
        match self.fault {
            Fault::NotJson => RpcError::new(code::PARSE, format!("not JSON: {}", self.reason)),
            Fault::NotMessage => RpcError::new(
                code::INVALID_REQUEST,
                format!("not a JSON-RPC message: {}", self.reason),
            ),
        }
    }
}

/// The params of a request to be written.
#[derive(Clone, Copy, Debug)]
pub enum Params<'a> {
    Absent,
    Json(&'a Json),
    /// The params of this `Ask`, serialized straight into the message.
    FromAsk(&'a Ask),
}

impl<'a> From<Option<&'a Json>> for Params<'a> {
    fn from(params: Option<&'a Json>) -> Params<'a> {
        params.map_or(Params::Absent, Params::Json)
    }
}

/// Appends a request to `out`. `id` is JSON text.
pub fn write_request<'a>(out: &mut String, id: &str, method: &str, params: impl Into<Params<'a>>) {
    out.push_str(r#"{"jsonrpc":"2.0","id":"#);
    out.push_str(id);
    out.push_str(r#","method":"#);
    write_method_and_params(out, method, params.into());
}

/// Appends a notification to `out`.
pub fn write_notification(out: &mut String, method: &str, params: Option<&Json>) {
    out.push_str(r#"{"jsonrpc":"2.0","method":"#);
    write_method_and_params(out, method, params.into());
}

/// Appends a response to `out`. `id` is JSON text.
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

/// Appends the responses to a batch to `out`, as an array. Each is an id with its reply.
pub fn write_responses(out: &mut String, answers: impl IntoIterator<Item = (Json, Reply)>) {
    out.push('[');
    for (at, (id, reply)) in answers.into_iter().enumerate() {
        if at != 0 {
            out.push(',');
        }
        write_response(out, id.as_str(), &reply);
    }
    out.push(']');
}

/// Returns the error code that tells the sender of a request that it failed. `unusable`
/// is the code for [`Failure::Unusable`], which depends on who sent the request.
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

/// Returns the JSON of a result or of an error.
pub(crate) fn payload(reply: &Reply) -> &Json {
    match reply {
        Reply::Result(result) => result,
        Reply::Error(error) => &error.raw,
    }
}

/// Returns the reply, or an error in its place if the replies of its batch would exceed
/// `limit` bytes together. `n_bytes` counts the replies so far and is updated.
pub(crate) fn limit_reply(reply: Reply, n_bytes: &mut usize, limit: usize) -> Reply {
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

/// Replaces line breaks from `start` on by spaces, so that the JSON text fits one line. A
/// raw line break in JSON is always white space, so the meaning stays.
pub fn replace_line_breaks(out: &mut [u8], start: usize) {
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
        Params::FromAsk(ask) => {
            out.push_str(r#","params":"#);
            ask.write_params(out);
        }
    }
    out.push('}');
}

/// Returns the first 120 bytes as text, for a log line.
pub fn excerpt(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(&bytes[..bytes.len().min(120)])
}

#[cfg(test)]
mod tests;
