//! The envelope of a message: the members that JSON-RPC defines.

use std::fmt;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use tool::scan::{self, ValueText};
use tool::{Json, Reply, RpcError};

use super::{Fault, Invalid, Message, Notification, Request, Response};

/// The members found so far. Of duplicate members the last one counts, as in every
/// common parser. Members found before a parse error stay available.
#[derive(Default)]
pub(super) struct Envelope<'a> {
    id: Option<ValueText<'a>>,
    method: Option<Method>,
    params: Option<ValueText<'a>>,
    result: Option<ValueText<'a>>,
    error: Option<ValueText<'a>>,
}

enum Method {
    Name(String),
    /// The method is not a string.
    NotString,
}

impl<'a> Envelope<'a> {
    /// Finds the members by a fast scan; `None` when the text needs a real parser.
    pub(super) fn scan(text: &'a str) -> Option<Envelope<'a>> {
        let mut envelope = Envelope::default();
        scan::scan_members(text, |name, value| envelope.set(Key::parse(name), value))?;
        Some(envelope)
    }

    fn set(&mut self, key: Key, value: ValueText<'a>) {
        match key {
            Key::Id => self.id = Some(value),
            Key::Method => self.method = Some(Method::parse(value)),
            Key::Params => self.params = Some(value),
            Key::Result => self.result = Some(value),
            Key::Error => self.error = Some(value),
            Key::Other => {}
        }
    }

    /// Fills in the members with a parser.
    pub(super) fn fill<R>(
        &mut self,
        reader: &mut serde_json::Deserializer<R>,
    ) -> serde_json::Result<()>
    where
        R: serde_json::de::Read<'a>,
    {
        EnvelopeVisitor(self).deserialize(reader)
    }

    /// Makes the message; `to_json` turns the text of a member into a payload.
    pub(super) fn into_message(
        self,
        to_json: &dyn Fn(ValueText<'_>) -> Json,
    ) -> Result<Message, Invalid> {
        let params = self.params.map(to_json).filter(|params| !params.is_null());
        match (self.method, self.id) {
            (Some(Method::Name(method)), Some(id)) => {
                Ok(Message::Request(Request { id: to_json(id), method, params }))
            }
            (Some(Method::Name(method)), None) => {
                Ok(Message::Notification(Notification { method, params }))
            }
            (Some(Method::NotString), id) => {
                let reason = "`method` is no string".to_owned();
                let id = id.map(to_json);
                Err(Invalid {
                    fault: Fault::NotMessage,
                    reason,
                    id,
                    method: Some(String::new()),
                    is_oversized_batch: false,
                })
            }
            (None, Some(id)) => {
                response(self.result.map(to_json), self.error.map(to_json), to_json(id))
            }
            (None, None) => {
                let reason = "neither `method` nor `id`".to_owned();
                Err(Invalid::without_id(Fault::NotMessage, reason))
            }
        }
    }

    /// Makes the error for a message that could not be parsed to its end.
    pub(super) fn invalid(
        &self,
        to_json: &dyn Fn(ValueText<'_>) -> Json,
        fault: Fault,
        reason: String,
    ) -> Invalid {
        let method = self.method.as_ref().map(|method| match method {
            Method::Name(name) => name.clone(),
            Method::NotString => String::new(),
        });
        Invalid { fault, reason, id: self.id.map(to_json), method, is_oversized_batch: false }
    }
}

fn response(result: Option<Json>, error: Option<Json>, id: Json) -> Result<Message, Invalid> {
    let error = error.filter(|error| !error.is_null());
    let reply = match (result, error) {
        (_, Some(error)) => Reply::Error(RpcError::parse(error)),
        (Some(result), None) => Reply::Result(result),
        (None, None) => {
            let reason = "an answer with neither `result` nor `error`".to_owned();
            return Err(Invalid {
                fault: Fault::NotMessage,
                reason,
                id: Some(id),
                method: None,
                is_oversized_batch: false,
            });
        }
    };
    Ok(Message::Response(Response { id, reply }))
}

struct EnvelopeVisitor<'e, 'a>(&'e mut Envelope<'a>);

impl<'de> DeserializeSeed<'de> for EnvelopeVisitor<'_, 'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for EnvelopeVisitor<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some((key, value)) = map.next_entry::<Key, &RawValue>()? {
            self.0.set(key, value.into());
        }
        Ok(())
    }
}

impl Method {
    fn parse(value: ValueText<'_>) -> Method {
        match value.unescaped_string() {
            Some(name) => Method::Name(name.to_owned()),
            None => serde_json::from_str(value.as_str()).map_or(Method::NotString, Method::Name),
        }
    }
}

#[derive(Clone, Copy)]
enum Key {
    Id,
    Method,
    Params,
    Result,
    Error,
    Other,
}

impl Key {
    fn parse(name: &str) -> Key {
        match name {
            "id" => Key::Id,
            "method" => Key::Method,
            "params" => Key::Params,
            "result" => Key::Result,
            "error" => Key::Error,
            _ => Key::Other,
        }
    }
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Key, D::Error> {
        struct Name;
        impl Visitor<'_> for Name {
            type Value = Key;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a member name")
            }

            fn visit_str<E>(self, name: &str) -> Result<Key, E> {
                Ok(Key::parse(name))
            }
        }
        deserializer.deserialize_identifier(Name)
    }
}
