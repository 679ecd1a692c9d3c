//! Encodes and decodes protobuf messages, as far as OTLP needs them.

/// Protobuf's wire types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WireType {
    Varint = 0,
    Fixed64 = 1,
    Length = 2,
    Fixed32 = 5,
}

/// A message that is being encoded. Fields with their default value are left out, except
/// by methods that say otherwise.
#[derive(Debug, Default)]
pub(super) struct Message(Vec<u8>);

impl Message {
    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    pub(super) fn string(&mut self, field: u32, text: &str) {
        self.bytes(field, text.as_bytes());
    }

    pub(super) fn bytes(&mut self, field: u32, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.length_delimited(field, bytes);
        }
    }

    /// Encodes a message inside this one, even an empty one.
    pub(super) fn message(&mut self, field: u32, write: impl FnOnce(&mut Message)) {
        let mut inner = Message::default();
        write(&mut inner);
        self.length_delimited(field, &inner.0);
    }

    pub(super) fn varint(&mut self, field: u32, value: u64) {
        if value != 0 {
            self.always_varint(field, value);
        }
    }

    /// Encodes a number even if it is 0, for a field with presence.
    pub(super) fn always_varint(&mut self, field: u32, value: u64) {
        self.key(field, WireType::Varint);
        self.push_varint(value);
    }

    pub(super) fn fixed32(&mut self, field: u32, value: u32) {
        if value != 0 {
            self.key(field, WireType::Fixed32);
            self.0.extend(value.to_le_bytes());
        }
    }

    pub(super) fn fixed64(&mut self, field: u32, value: u64) {
        if value != 0 {
            self.key(field, WireType::Fixed64);
            self.0.extend(value.to_le_bytes());
        }
    }

    /// Encodes a number even if it is 0, for a field with presence.
    pub(super) fn always_double(&mut self, field: u32, value: f64) {
        self.key(field, WireType::Fixed64);
        self.0.extend(value.to_le_bytes());
    }

    /// Encodes a packed list of numbers of eight bytes each.
    pub(super) fn packed(&mut self, field: u32, values: impl IntoIterator<Item = [u8; 8]>) {
        let bytes: Vec<u8> = values.into_iter().flatten().collect();
        self.bytes(field, &bytes);
    }

    fn length_delimited(&mut self, field: u32, bytes: &[u8]) {
        self.key(field, WireType::Length);
        self.push_varint(bytes.len() as u64);
        self.0.extend(bytes);
    }

    fn key(&mut self, field: u32, wire: WireType) {
        self.push_varint(u64::from(field) << 3 | wire as u64);
    }

    fn push_varint(&mut self, mut value: u64) {
        while 0x80 <= value {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}

/// The value of a decoded field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// Decodes the fields of a message in order, each with its number, and stops at damage.
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

impl<'a> Iterator for Fields<'a> {
    type Item = (u32, Field<'a>);

    fn next(&mut self) -> Option<(u32, Field<'a>)> {
        if self.0.is_empty() {
            return None;
        }
        let key = self.varint()?;
        let field = u32::try_from(key >> 3).ok()?;
        let value = match key & 7 {
            0 => Field::Number(self.varint()?),
            1 => Field::Number(u64::from_le_bytes(self.take(8)?.try_into().ok()?)),
            2 => {
                let n_bytes = usize::try_from(self.varint()?).ok()?;
                Field::Bytes(self.take(n_bytes)?)
            }
            5 => Field::Number(u32::from_le_bytes(self.take(4)?.try_into().ok()?).into()),
            _ => return None,
        };
        Some((field, value))
    }
}

impl<'a> Fields<'a> {
    fn take(&mut self, n_bytes: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(n_bytes)?;
        self.0 = rest;
        Some(taken)
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.take(1)?[0];
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_message_is_encoded_as_the_documentation_of_protobuf_has_it() {
        let mut message = Message::default();
        message.varint(1, 150);
        message.string(2, "testing");
        message.message(3, |inner| inner.varint(1, 150));
        let expected = b"\x08\x96\x01\x12\x07testing\x1a\x03\x08\x96\x01";
        assert_eq!(message.into_bytes(), expected);
    }

    #[test]
    fn defaults_are_left_out_where_they_mean_nothing() {
        let mut message = Message::default();
        message.varint(1, 0);
        message.string(2, "");
        message.fixed64(3, 0);
        assert!(message.0.is_empty());
        message.always_varint(1, 0);
        message.message(2, |_| ());
        assert_eq!(message.into_bytes(), b"\x08\x00\x12\x00");
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(number in any::<u64>(), short in any::<u32>(), text in ".*") {
            let mut message = Message::default();
            message.always_varint(1, number);
            message.fixed32(2, short);
            message.always_double(3, f64::from_bits(number));
            message.message(4, |inner| inner.string(1, &text));
            let bytes = message.into_bytes();
            let fields: Vec<_> = Fields(&bytes).filter(|(field, _)| *field != 2).collect();
            prop_assert_eq!(fields[0], (1, Field::Number(number)));
            prop_assert_eq!(fields[1], (3, Field::Number(number)));
            let Field::Bytes(inner) = fields[2].1 else { panic!("{fields:?}") };
            let inner = Fields(inner).next().map_or(Field::Bytes(b""), |(_, value)| value);
            prop_assert_eq!(inner, Field::Bytes(text.as_bytes()));
        }

        #[test]
        fn damaged_bytes_are_read_up_to_where_they_are_damaged(bytes in any::<Vec<u8>>()) {
            prop_assert!(Fields(&bytes).count() <= bytes.len());
        }
    }
}
