//! Serializes server-sent events.

use bytes::Bytes;
use tool::{Json, Reply};

use super::answer_memory::AnswerRoom;
use crate::message;

/// The comment that keeps an idle stream alive.
pub(super) const KEEP_ALIVE: Bytes = Bytes::from_static(b": \n\n");

/// Serializes a message as an event.
pub(super) fn encode(id: Option<&str>, text: &[u8]) -> Bytes {
    let mut event = begin(id, text.len()).into_bytes();
    let start = event.len();
    event.extend_from_slice(text);
    end(event, start).into()
}

/// Serializes the answer to a request as an event.
pub(super) fn encode_answer(
    event_id: Option<&str>,
    request_id: &Json,
    reply: &Reply,
    room: AnswerRoom,
) -> Bytes {
    let n_payload = message::payload(reply).as_str().len();
    let mut event = begin(event_id, n_payload + request_id.as_str().len() + 40);
    let start = event.len();
    message::write_response(&mut event, request_id.as_str(), reply);
    room.hold(end(event.into_bytes(), start))
}

fn begin(event_id: Option<&str>, n_bytes: usize) -> String {
    let mut event = String::with_capacity(n_bytes + 32);
    if let Some(id) = event_id {
        event.push_str("id: ");
        event.push_str(id);
        event.push('\n');
    }
    event.push_str("data: ");
    event
}

fn end(mut event: Vec<u8>, start: usize) -> Vec<u8> {
    message::replace_line_breaks(&mut event, start);
    event.extend_from_slice(b"\n\n");
    event
}

/// Returns the first event of a resumable stream: an id and a reconnect pause, without
/// data.
pub(super) fn priming_event(id: &str, retry_ms: u128) -> Bytes {
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
