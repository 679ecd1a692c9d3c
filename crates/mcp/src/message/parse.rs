//! Parses bytes into a message or a batch.

use bytes::Bytes;
use bytestring::ByteString;
use tool::Json;
use tool::scan::ValueText;

use super::batch;
use super::envelope::Envelope;
use super::{BYTE_ORDER_MARK, Fault, Frame, Invalid, Message};

impl Message {
    /// Parses exactly one message.
    pub fn parse(bytes: &Bytes) -> Result<Message, Invalid> {
        let Ok(text) = ByteString::try_from(without_byte_order_mark(bytes)) else {
            // Invalid UTF-8: parse as far as it is valid, to find the id.
            let copy = |value: ValueText<'_>| Json::from(value);
            return parse_with(
                serde_json::Deserializer::from_slice(&without_byte_order_mark(bytes)),
                &copy,
            );
        };
        let to_json = |value: ValueText<'_>| Json::slice(&text, value);
        // On failure, the parser below finds out what is wrong.
        let scanned = Envelope::scan(&text).and_then(|found| found.into_message(&to_json).ok());
        match scanned {
            Some(message) => Ok(message),
            None => parse_with(serde_json::Deserializer::from_str(&text), &to_json),
        }
    }
}

/// Parses one message; `to_json` turns the text of a member into a payload.
fn parse_with<'a, R>(
    mut reader: serde_json::Deserializer<R>,
    to_json: &dyn Fn(ValueText<'_>) -> Json,
) -> Result<Message, Invalid>
where
    R: serde_json::de::Read<'a>,
{
    let mut envelope = Envelope::default();
    let ended = envelope.fill(&mut reader).and_then(|()| reader.end());
    if let Err(error) = ended {
        let fault = match error.classify() {
            serde_json::error::Category::Data => Fault::NotMessage,
            serde_json::error::Category::Io
            | serde_json::error::Category::Syntax
            | serde_json::error::Category::Eof => Fault::NotJson,
        };
        return Err(envelope.invalid(to_json, fault, error.to_string()));
    }
    envelope.into_message(to_json)
}

impl Frame {
    /// Parses one message or a batch.
    pub fn parse(bytes: &Bytes) -> Result<Frame, Invalid> {
        let text = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
        if text.trim_ascii_start().first() != Some(&b'[') {
            return Message::parse(bytes).map(Frame::One);
        }
        let members = batch::split_members(text)?;
        let message = |member: &str| Message::parse(&bytes.slice_ref(member.as_bytes()));
        Ok(Frame::Batch(members.into_iter().map(message).collect()))
    }
}

/// Returns the bytes without a leading byte order mark.
fn without_byte_order_mark(bytes: &Bytes) -> Bytes {
    if bytes.starts_with(BYTE_ORDER_MARK) {
        bytes.slice(BYTE_ORDER_MARK.len()..)
    } else {
        bytes.clone()
    }
}
