//! Splits a JSON-RPC batch into its members, up to a maximum number.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::{Fault, Invalid};

/// The maximum number of messages in a batch. A parsed member takes many times its
/// length in memory, so a limit on the size of the array is not enough.
pub const MEMBERS: usize = 1000;

/// Returns the JSON text of every member of an array. Stops at the first member over the
/// maximum.
pub(super) fn split_members(text: &[u8]) -> Result<Vec<&str>, Invalid> {
    let mut found = Members::default();
    let mut reader = serde_json::Deserializer::from_slice(text);
    let read = MemberVisitor(&mut found).deserialize(&mut reader).and_then(|()| reader.end());
    if found.too_many {
        let reason = format!("a batch of more than {MEMBERS} messages; send fewer at a time");
        return Err(Invalid {
            is_oversized_batch: true,
            ..Invalid::without_id(Fault::NotMessage, reason)
        });
    }
    read.map_err(|error| Invalid::without_id(Fault::NotJson, error.to_string()))?;
    if found.texts.is_empty() {
        return Err(Invalid::without_id(Fault::NotMessage, "an empty batch".to_owned()));
    }
    Ok(found.texts)
}

#[derive(Default)]
struct Members<'a> {
    texts: Vec<&'a str>,
    too_many: bool,
}

struct MemberVisitor<'m, 'a>(&'m mut Members<'a>);

impl<'de> DeserializeSeed<'de> for MemberVisitor<'_, 'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for MemberVisitor<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        while let Some(member) = members.next_element::<&RawValue>()? {
            if self.0.texts.len() == MEMBERS {
                self.0.too_many = true;
                return Err(serde::de::Error::custom("too many members"));
            }
            self.0.texts.push(member.get());
        }
        Ok(())
    }
}
