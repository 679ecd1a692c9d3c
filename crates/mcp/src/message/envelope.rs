//! The members of a message that JSON-RPC names.

use std::fmt;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;
use tool::{Json, Reply, RpcError};

use super::{Fault, Invalid, Message, Notification, Request, Response};

/// What has been read of a message. Of duplicate members the last counts, as
/// in every common parser; what was read before an error stays readable.
#[derive(Default)]
pub(super) struct Envelope<'a> {
    id: Option<&'a RawValue>,
    method: Option<Method>,
    params: Option<&'a RawValue>,
    result: Option<&'a RawValue>,
    error: Option<&'a RawValue>,
}

enum Method {
    Name(String),
    /// A method that is no string.
    Odd,
}

impl<'a> Envelope<'a> {
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
        share: &dyn Fn(&RawValue) -> Json,
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
                Err(Invalid { fault: Fault::NoMessage, reason, id, method: Some(String::new()) })
            }
            (None, Some(id)) => answer(self.result.map(share), self.error.map(share), share(id)),
            (None, None) => {
                let reason = "neither `method` nor `id`".to_owned();
                Err(Invalid { fault: Fault::NoMessage, reason, id: None, method: None })
            }
        }
    }

    pub(super) fn invalid(
        &self,
        share: &dyn Fn(&RawValue) -> Json,
        fault: Fault,
        reason: String,
    ) -> Invalid {
        let method = self.method.as_ref().map(|method| match method {
            Method::Name(name) => name.clone(),
            Method::Odd => String::new(),
        });
        Invalid { fault, reason, id: self.id.map(share), method }
    }
}

fn answer(result: Option<Json>, error: Option<Json>, id: Json) -> Result<Message, Invalid> {
    let error = error.filter(|error| !error.is_null());
    let reply = match (result, error) {
        (_, Some(error)) => Reply::Error(RpcError::read(error)),
        (Some(result), None) => Reply::Result(result),
        (None, None) => {
            let reason = "an answer with neither `result` nor `error`".to_owned();
            return Err(Invalid { fault: Fault::NoMessage, reason, id: Some(id), method: None });
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
        while let Some(key) = map.next_key::<Key>()? {
            match key {
                Key::Id => self.0.id = Some(map.next_value()?),
                Key::Method => self.0.method = Some(map.next_value()?),
                Key::Params => self.0.params = Some(map.next_value()?),
                Key::Result => self.0.result = Some(map.next_value()?),
                Key::Error => self.0.error = Some(map.next_value()?),
                Key::Other => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

impl<'de> Deserialize<'de> for Method {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Method, D::Error> {
        let raw = <&RawValue>::deserialize(deserializer)?;
        Ok(serde_json::from_str(raw.get()).map_or(Method::Odd, Method::Name))
    }
}

enum Key {
    Id,
    Method,
    Params,
    Result,
    Error,
    Other,
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
                Ok(match name {
                    "id" => Key::Id,
                    "method" => Key::Method,
                    "params" => Key::Params,
                    "result" => Key::Result,
                    "error" => Key::Error,
                    _ => Key::Other,
                })
            }
        }
        deserializer.deserialize_identifier(Name)
    }
}
