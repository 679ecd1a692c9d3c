//! The requests that a provider answers.
//!
//! The members that routing needs have fields; everything else that came with
//! the request (`_meta`, `inputResponses`, `requestState`, `task`, unknown
//! members) stays in `rest` and is forwarded untouched.

use crate::json::{InvalidJson, write_text};
use crate::scan::{self, Part};
use crate::{Json, Object};

/// One question to a provider.
#[derive(Clone, Debug, PartialEq)]
pub enum Ask {
    Call(Call),
    Read(Read),
    Prompt(GetPrompt),
    /// `completion/complete`, with its whole params.
    Complete(Object),
    /// Any other method, with its whole params: subscriptions, extensions.
    Other {
        method: String,
        params: Object,
    },
}

/// A tool call.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    pub name: String,
    pub arguments: Option<Json>,
    pub rest: Object,
}

/// A resource read.
#[derive(Clone, Debug, PartialEq)]
pub struct Read {
    pub uri: String,
    pub rest: Object,
}

/// A prompt, with its arguments.
#[derive(Clone, Debug, PartialEq)]
pub struct GetPrompt {
    pub name: String,
    pub arguments: Option<Json>,
    pub rest: Object,
}

/// Why params cannot be read as the question they claim to be.
#[derive(Debug, thiserror::Error)]
pub enum InvalidAsk {
    #[error("params must be an object")]
    NoObject(#[source] InvalidJson),
    #[error("params need `{0}` as a string")]
    Missing(&'static str),
}

impl Ask {
    /// Reads a request as it stands on the wire.
    pub fn read(method: &str, params: &Json) -> Result<Ask, InvalidAsk> {
        Ok(match method {
            "tools/call" => {
                let Named { name, arguments, rest } = Named::read(params)?;
                Ask::Call(Call { name, arguments, rest })
            }
            "prompts/get" => {
                let Named { name, arguments, rest } = Named::read(params)?;
                Ask::Prompt(GetPrompt { name, arguments, rest })
            }
            "resources/read" => {
                let mut rest = object(params)?;
                Ask::Read(Read { uri: take(&mut rest, "uri")?, rest })
            }
            "completion/complete" => Ask::Complete(object(params)?),
            other => Ask::Other { method: other.to_owned(), params: object(params)? },
        })
    }

    pub fn method(&self) -> &str {
        match self {
            Ask::Call(_) => "tools/call",
            Ask::Read(_) => "resources/read",
            Ask::Prompt(_) => "prompts/get",
            Ask::Complete(_) => "completion/complete",
            Ask::Other { method, .. } => method,
        }
    }

    /// The whole params, as they go on the wire.
    pub fn params(&self) -> Json {
        let mut text = String::new();
        self.write_params(&mut text);
        Json::trusted(text)
    }

    /// Appends the whole params.
    pub fn write_params(&self, text: &mut String) {
        match self {
            Ask::Call(Call { name, arguments, rest })
            | Ask::Prompt(GetPrompt { name, arguments, rest }) => {
                write(text, "name", name, arguments.as_ref(), rest);
            }
            Ask::Read(Read { uri, rest }) => write(text, "uri", uri, None, rest),
            Ask::Complete(params) | Ask::Other { params, .. } => params.write(text),
        }
    }

    /// Returns what came with the request beside the members that have fields.
    pub fn rest(&self) -> &Object {
        match self {
            Ask::Call(Call { rest, .. })
            | Ask::Read(Read { rest, .. })
            | Ask::Prompt(GetPrompt { rest, .. }) => rest,
            Ask::Complete(params) | Ask::Other { params, .. } => params,
        }
    }

    pub fn rest_mut(&mut self) -> &mut Object {
        match self {
            Ask::Call(Call { rest, .. })
            | Ask::Read(Read { rest, .. })
            | Ask::Prompt(GetPrompt { rest, .. }) => rest,
            Ask::Complete(params) | Ask::Other { params, .. } => params,
        }
    }
}

impl Call {
    /// A call with nothing beside it.
    pub fn new(name: &str, arguments: Json) -> Call {
        Call { name: name.to_owned(), arguments: Some(arguments), rest: Object::new() }
    }
}

/// Params with a name.
struct Named {
    name: String,
    arguments: Option<Json>,
    rest: Object,
}

impl Named {
    fn read(params: &Json) -> Result<Named, InvalidAsk> {
        let (mut name, mut arguments, mut rest) = (None, None, Object::new());
        let found = scan::members(params.as_str(), |key, part| match key {
            "name" => name = Some(part),
            "arguments" => arguments = Some(part),
            _ => rest.push(key, params.part(part)),
        });
        match (found, name.and_then(Part::plain)) {
            (Some(()), Some(name)) => {
                let arguments = arguments.map(|arguments| params.part(arguments));
                Ok(Named { name: name.to_owned(), arguments, rest })
            }
            _ => Named::take(object(params)?),
        }
    }

    /// The same where a name is escaped or missing.
    fn take(mut params: Object) -> Result<Named, InvalidAsk> {
        let name = take(&mut params, "name")?;
        let arguments = params.remove("arguments");
        Ok(Named { name, arguments, rest: params })
    }
}

fn object(params: &Json) -> Result<Object, InvalidAsk> {
    Object::parse(params).map_err(InvalidAsk::NoObject)
}

fn take(params: &mut Object, key: &'static str) -> Result<String, InvalidAsk> {
    let text = params.remove(key).as_ref().and_then(Json::text);
    text.ok_or(InvalidAsk::Missing(key))
}

/// Params with a name in front, written in one go: every call passes here.
fn write(text: &mut String, key: &str, name: &str, arguments: Option<&Json>, rest: &Object) {
    let n_bytes = arguments.map_or(0, |arguments| arguments.as_bytes().len()) + rest.n_bytes();
    text.reserve(key.len() + name.len() + n_bytes + 32);
    text.push('{');
    write_text(text, key);
    text.push(':');
    write_text(text, name);
    if let Some(arguments) = arguments {
        text.push_str(",\"arguments\":");
        text.push_str(arguments.as_str());
    }
    if !rest.is_empty() {
        text.push(',');
        rest.write_members(text);
    }
    text.push('}');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(method: &str, params: &str) {
        let ask = Ask::read(method, &Json::parse(params.to_owned()).unwrap()).unwrap();
        assert_eq!((ask.method(), ask.params().as_str()), (method, params));
    }

    #[test]
    fn what_is_read_is_written_back_byte_for_byte() {
        check("tools/call", r#"{"name":"t","arguments":{"n":1e400},"_meta":{"x": 1},"odd":[ ]}"#);
        check("tools/call", r#"{"name":"t"}"#);
        check("resources/read", r#"{"uri":"a://b","_meta":{}}"#);
        check("prompts/get", r#"{"name":"p","arguments":{}}"#);
        check("completion/complete", r#"{"ref":{},"argument":{}}"#);
        check("tasks/get", r#"{"taskId":"1"}"#);
    }

    #[test]
    fn names_with_escapes_are_read_and_of_several_the_last_counts() {
        for (params, name, arguments) in [
            (r#"{"name":"a\u0062\"","arguments":{}}"#, "ab\"", Some("{}")),
            (r#"{"name":"a","name":"b"}"#, "b", None),
            (r#"{"name":5,"arguments":1,"arguments":2,"name":"b"}"#, "b", Some("2")),
            (r#"{"n\u0061me":"a"}"#, "a", None),
        ] {
            let ask = Ask::read("tools/call", &Json::parse(params).unwrap()).unwrap();
            let Ask::Call(call) = ask else { panic!("{ask:?}") };
            assert_eq!((call.name.as_str(), call.rest), (name, Object::new()));
            assert_eq!(call.arguments.as_ref().map(Json::as_str), arguments);
        }
    }

    #[test]
    fn a_call_without_a_name_says_so() {
        let error = Ask::read("tools/call", &Json::parse(r#"{"name":7}"#).unwrap()).unwrap_err();
        assert_eq!(error.to_string(), "params need `name` as a string");
    }
}
