//! Server-sent events.

use bytes::Bytes;

use crate::message;

/// What keeps a quiet stream alive.
pub(super) const ALIVE: Bytes = Bytes::from_static(b": \n\n");

/// One message as an event.
pub(super) fn encode(id: Option<&str>, text: &[u8]) -> Bytes {
    let mut event = Vec::with_capacity(text.len() + 32);
    if let Some(id) = id {
        event.extend_from_slice(b"id: ");
        event.extend_from_slice(id.as_bytes());
        event.push(b'\n');
    }
    event.extend_from_slice(b"data: ");
    let start = event.len();
    event.extend_from_slice(text);
    message::unbreak(&mut event, start);
    event.extend_from_slice(b"\n\n");
    event.into()
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
