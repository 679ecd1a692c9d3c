//! Parses bytes into messages.

use bytes::Bytes;
use bytestring::ByteString;
use tool::Json;
use tool::scan::ValueText;

use super::batch;
use super::envelope::Envelope;
use super::{BYTE_ORDER_MARK, Fault, Frame, Invalid, Message};

impl Message {
    /// Reads exactly one message.
    pub fn parse(bytes: &Bytes) -> Result<Message, Invalid> {
        let Ok(text) = ByteString::try_from(unmarked(bytes)) else {
            // What is no UTF-8 is read as far as it is.
            let copy = |part: ValueText<'_>| Json::from(part);
            return read(serde_json::Deserializer::from_slice(&unmarked(bytes)), &copy);
        };
        let share = |part: ValueText<'_>| Json::slice(&text, part);
        // What is wrong with it, if anything, the parser has to say.
        let scanned = Envelope::scan(&text).and_then(|found| found.into_message(&share).ok());
        match scanned {
            Some(message) => Ok(message),
            None => read(serde_json::Deserializer::from_str(&text), &share),
        }
    }
}

/// Reads one message; `share` makes what is kept of it.
fn read<'a, R>(
    mut reader: serde_json::Deserializer<R>,
    share: &dyn Fn(ValueText<'_>) -> Json,
) -> Result<Message, Invalid>
where
    R: serde_json::de::Read<'a>,
{
    let mut envelope = Envelope::default();
    let ended = envelope.fill(&mut reader).and_then(|()| reader.end());
    if let Err(error) = ended {
        let fault = match error.classify() {
            serde_json::error::Category::Data => Fault::NoMessage,
            serde_json::error::Category::Io
            | serde_json::error::Category::Syntax
            | serde_json::error::Category::Eof => Fault::NoJson,
        };
        return Err(envelope.invalid(share, fault, error.to_string()));
    }
    envelope.into_message(share)
}

impl Frame {
    /// Reads one message or a batch of them.
    pub fn parse(bytes: &Bytes) -> Result<Frame, Invalid> {
        let text = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
        if text.trim_ascii_start().first() != Some(&b'[') {
            return Message::parse(bytes).map(Frame::One);
        }
        let members = batch::members(text)?;
        let message = |member: &str| Message::parse(&bytes.slice_ref(member.as_bytes()));
        Ok(Frame::Batch(members.into_iter().map(message).collect()))
    }
}

/// The bytes without a mark before them.
fn unmarked(bytes: &Bytes) -> Bytes {
    if bytes.starts_with(BYTE_ORDER_MARK) {
        bytes.slice(BYTE_ORDER_MARK.len()..)
    } else {
        bytes.clone()
    }
}
