//! Writes server-sent events.

use bytes::Bytes;
use tool::{Json, Reply};

use super::answers::AnswerMemory;
use crate::message;

/// What keeps a quiet stream alive.
pub(super) const KEEP_ALIVE: Bytes = Bytes::from_static(b": \n\n");

/// One message as an event.
pub(super) fn encode(id: Option<&str>, text: &[u8]) -> Bytes {
    let mut event = begin(id, text.len()).into_bytes();
    let start = event.len();
    event.extend_from_slice(text);
    end(event, start).into()
}

/// One answer as an event, written in one piece; or what stands for it when
/// there is no memory for it.
pub(super) fn encode_answer(
    id: Option<&str>,
    to: &Json,
    reply: &Reply,
    memory: &AnswerMemory,
) -> Bytes {
    let n_bytes = message::payload(reply).as_str().len();
    let write = |reply: &Reply| {
        let mut event = begin(id, message::payload(reply).as_str().len() + to.as_str().len() + 40);
        let start = event.len();
        message::write_response(&mut event, to.as_str(), reply);
        end(event.into_bytes(), start)
    };
    memory.hold(n_bytes, || write(reply)).unwrap_or_else(|full| write(&Reply::Error(full)).into())
}

fn begin(id: Option<&str>, n_bytes: usize) -> String {
    let mut event = String::with_capacity(n_bytes + 32);
    if let Some(id) = id {
        event.push_str("id: ");
        event.push_str(id);
        event.push('\n');
    }
    event.push_str("data: ");
    event
}

fn end(mut event: Vec<u8>, start: usize) -> Vec<u8> {
    message::unbreak(&mut event, start);
    event.extend_from_slice(b"\n\n");
    event
}

/// The first event of a stream that can be resumed: an id, and when to come
/// back, before there is anything to say.
pub(super) fn prime(id: &str, retry_ms: u128) -> Bytes {
    format!("id: {id}\nretry: {retry_ms}\ndata: \n\n").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_with_line_breaks_stays_one_event() {
        let event = encode(Some("1-2"), b"{\"a\":\r\n1}");
        assert_eq!(event.as_ref(), b"id: 1-2\ndata: {\"a\":  1}\n\n");
        assert_eq!(encode(None, b"{}").as_ref(), b"data: {}\n\n");
    }
}
