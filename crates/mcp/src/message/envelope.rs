//! The members of a message that JSON-RPC names.

use std::fmt;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use tool::scan::{self, ValueText};
use tool::{Json, Reply, RpcError};

use super::{Fault, Invalid, Message, Notification, Request, Response};

/// What has been read of a message. Of duplicate members the last counts, as
/// in every common parser; what was read before an error stays readable.
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
    /// A method that is no string.
    Odd,
}

impl<'a> Envelope<'a> {
    /// Finds the members, if that takes no parser.
    pub(super) fn scan(text: &'a str) -> Option<Envelope<'a>> {
        let mut envelope = Envelope::default();
        scan::scan_members(text, |name, part| envelope.set(Key::parse(name), part))?;
        Some(envelope)
    }

    fn set(&mut self, key: Key, part: ValueText<'a>) {
        match key {
            Key::Id => self.id = Some(part),
            Key::Method => self.method = Some(Method::parse(part)),
            Key::Params => self.params = Some(part),
            Key::Result => self.result = Some(part),
            Key::Error => self.error = Some(part),
            Key::Other => {}
        }
    }

    pub(super) fn fill<R>(
        &mut self,
        reader: &mut serde_json::Deserializer<R>,
    ) -> serde_json::Result<()>
    where
        R: serde_json::de::Read<'a>,
    {
        Fill(self).deserialize(reader)
    }

    pub(super) fn into_message(
        self,
        share: &dyn Fn(ValueText<'_>) -> Json,
    ) -> Result<Message, Invalid> {
        let params = self.params.map(share).filter(|params| !params.is_null());
        match (self.method, self.id) {
            (Some(Method::Name(method)), Some(id)) => {
                Ok(Message::Request(Request { id: share(id), method, params }))
            }
            (Some(Method::Name(method)), None) => {
                Ok(Message::Notification(Notification { method, params }))
            }
            (Some(Method::Odd), id) => {
                let reason = "`method` is no string".to_owned();
                let id = id.map(share);
                Err(Invalid {
                    fault: Fault::NoMessage,
                    reason,
                    id,
                    method: Some(String::new()),
                    is_batch: false,
                })
            }
            (None, Some(id)) => answer(self.result.map(share), self.error.map(share), share(id)),
            (None, None) => {
                let reason = "neither `method` nor `id`".to_owned();
                Err(Invalid::plain(Fault::NoMessage, reason))
            }
        }
    }

    pub(super) fn invalid(
        &self,
        share: &dyn Fn(ValueText<'_>) -> Json,
        fault: Fault,
        reason: String,
    ) -> Invalid {
        let method = self.method.as_ref().map(|method| match method {
            Method::Name(name) => name.clone(),
            Method::Odd => String::new(),
        });
        Invalid { fault, reason, id: self.id.map(share), method, is_batch: false }
    }
}

fn answer(result: Option<Json>, error: Option<Json>, id: Json) -> Result<Message, Invalid> {
    let error = error.filter(|error| !error.is_null());
    let reply = match (result, error) {
        (_, Some(error)) => Reply::Error(RpcError::parse(error)),
        (Some(result), None) => Reply::Result(result),
        (None, None) => {
            let reason = "an answer with neither `result` nor `error`".to_owned();
            return Err(Invalid {
                fault: Fault::NoMessage,
                reason,
                id: Some(id),
                method: None,
                is_batch: false,
            });
        }
    };
    Ok(Message::Response(Response { id, reply }))
}

struct Fill<'e, 'a>(&'e mut Envelope<'a>);

impl<'de> DeserializeSeed<'de> for Fill<'_, 'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Fill<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some((key, part)) = map.next_entry::<Key, &RawValue>()? {
            self.0.set(key, part.into());
        }
        Ok(())
    }
}

impl Method {
    fn parse(part: ValueText<'_>) -> Method {
        match part.unescaped_string() {
            Some(name) => Method::Name(name.to_owned()),
            None => serde_json::from_str(part.as_str()).map_or(Method::Odd, Method::Name),
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
