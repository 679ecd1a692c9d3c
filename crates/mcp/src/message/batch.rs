//! The members of a batch, within a bound.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::{Fault, Invalid};

/// How many messages a batch may have. A short member costs its reader many
/// times its own length, so the size of the array alone bounds nothing.
pub const MEMBERS: usize = 1000;

/// The text of every member of an array. Reading stops at the member after the
/// last one that is allowed.
pub(super) fn members(text: &[u8]) -> Result<Vec<&str>, Invalid> {
    let mut found = Members::default();
    let mut reader = serde_json::Deserializer::from_slice(text);
    let read = Fill(&mut found).deserialize(&mut reader).and_then(|()| reader.end());
    if found.too_many {
        let reason = format!("a batch of more than {MEMBERS} messages; send fewer at a time");
        return Err(Invalid { is_batch: true, ..Invalid::plain(Fault::NoMessage, reason) });
    }
    read.map_err(|error| Invalid::plain(Fault::NoJson, error.to_string()))?;
    if found.texts.is_empty() {
        return Err(Invalid::plain(Fault::NoMessage, "an empty batch".to_owned()));
    }
    Ok(found.texts)
}

#[derive(Default)]
struct Members<'a> {
    texts: Vec<&'a str>,
    too_many: bool,
}

struct Fill<'m, 'a>(&'m mut Members<'a>);

impl<'de> DeserializeSeed<'de> for Fill<'_, 'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Fill<'_, 'de> {
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
