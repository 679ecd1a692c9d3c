//! The requests that a provider answers.
//!
//! The params that routing needs have fields; everything else that came with
//! the request (`_meta`, `inputResponses`, `requestState`, `task`, unknown
//! members) stays in `other_params` and is forwarded untouched.

use crate::json::{InvalidJson, write_string};
use crate::scan::{self, ValueText};
use crate::{Json, Object};

/// One request to a provider.
#[derive(Clone, Debug, PartialEq)]
pub enum Ask {
    Call(Call),
    ReadResource(ReadResource),
    Prompt(GetPrompt),
    /// `completion/complete`, with its whole params.
    Complete(Object),
    /// Any other method, with its whole params: subscriptions, extensions.
    Other {
        method: String,
        params: Object,
    },
}

/// A tool call (`tools/call`).
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    pub name: String,
    pub arguments: Option<Json>,
    pub other_params: Object,
}

/// The reading of a resource (`resources/read`).
#[derive(Clone, Debug, PartialEq)]
pub struct ReadResource {
    pub uri: String,
    pub other_params: Object,
}

/// The request for a prompt with its arguments (`prompts/get`).
#[derive(Clone, Debug, PartialEq)]
pub struct GetPrompt {
    pub name: String,
    pub arguments: Option<Json>,
    pub other_params: Object,
}

/// Why the params do not fit the method.
#[derive(Debug, thiserror::Error)]
pub enum InvalidAsk {
    #[error("params must be an object")]
    NoObject(#[source] InvalidJson),
    #[error("params need `{0}` as a string")]
    Missing(&'static str),
}

impl Ask {
    /// Parses a request from its method and its params on the wire.
    pub fn parse(method: &str, params: &Json) -> Result<Ask, InvalidAsk> {
        Ok(match method {
            "tools/call" => {
                let NamedParams { name, arguments, other_params: rest } =
                    NamedParams::parse(params)?;
                Ask::Call(Call { name, arguments, other_params: rest })
            }
            "prompts/get" => {
                let NamedParams { name, arguments, other_params: rest } =
                    NamedParams::parse(params)?;
                Ask::Prompt(GetPrompt { name, arguments, other_params: rest })
            }
            "resources/read" => {
                let mut rest = parse_object(params)?;
                Ask::ReadResource(ReadResource {
                    uri: take_string(&mut rest, "uri")?,
                    other_params: rest,
                })
            }
            "completion/complete" => Ask::Complete(parse_object(params)?),
            other => Ask::Other { method: other.to_owned(), params: parse_object(params)? },
        })
    }

    pub fn method(&self) -> &str {
        match self {
            Ask::Call(_) => "tools/call",
            Ask::ReadResource(_) => "resources/read",
            Ask::Prompt(_) => "prompts/get",
            Ask::Complete(_) => "completion/complete",
            Ask::Other { method, .. } => method,
        }
    }

    /// Returns the whole params, as they go on the wire.
    pub fn params(&self) -> Json {
        let mut text = String::new();
        self.write_params(&mut text);
        Json::from_trusted(text)
    }

    /// Appends the whole params to `text`.
    pub fn write_params(&self, text: &mut String) {
        match self {
            Ask::Call(Call { name, arguments, other_params: rest })
            | Ask::Prompt(GetPrompt { name, arguments, other_params: rest }) => {
                write_params(text, "name", name, arguments.as_ref(), rest);
            }
            Ask::ReadResource(ReadResource { uri, other_params: rest }) => {
                write_params(text, "uri", uri, None, rest)
            }
            Ask::Complete(params) | Ask::Other { params, .. } => params.write(text),
        }
    }

    /// Returns the params that have no field of their own here.
    pub fn other_params(&self) -> &Object {
        match self {
            Ask::Call(Call { other_params: rest, .. })
            | Ask::ReadResource(ReadResource { other_params: rest, .. })
            | Ask::Prompt(GetPrompt { other_params: rest, .. }) => rest,
            Ask::Complete(params) | Ask::Other { params, .. } => params,
        }
    }

    pub fn other_params_mut(&mut self) -> &mut Object {
        match self {
            Ask::Call(Call { other_params: rest, .. })
            | Ask::ReadResource(ReadResource { other_params: rest, .. })
            | Ask::Prompt(GetPrompt { other_params: rest, .. }) => rest,
            Ask::Complete(params) | Ask::Other { params, .. } => params,
        }
    }
}

impl Call {
    /// Creates a call without other params.
    pub fn new(name: &str, arguments: Json) -> Call {
        Call { name: name.to_owned(), arguments: Some(arguments), other_params: Object::new() }
    }
}

/// Params of a request that names a tool or a prompt.
struct NamedParams {
    name: String,
    arguments: Option<Json>,
    other_params: Object,
}

impl NamedParams {
    fn parse(params: &Json) -> Result<NamedParams, InvalidAsk> {
        let (mut name, mut arguments, mut rest) = (None, None, Object::new());
        let found = scan::scan_members(params.as_str(), |key, part| match key {
            "name" => name = Some(part),
            "arguments" => arguments = Some(part),
            _ => rest.push(key, params.subvalue(part)),
        });
        match (found, name.and_then(ValueText::unescaped_string)) {
            (Some(()), Some(name)) => {
                let arguments = arguments.map(|arguments| params.subvalue(arguments));
                Ok(NamedParams { name: name.to_owned(), arguments, other_params: rest })
            }
            _ => NamedParams::from_object(parse_object(params)?),
        }
    }

    /// Parses params in which the name is escaped or missing.
    fn from_object(mut params: Object) -> Result<NamedParams, InvalidAsk> {
        let name = take_string(&mut params, "name")?;
        let arguments = params.remove("arguments");
        Ok(NamedParams { name, arguments, other_params: params })
    }
}

fn parse_object(params: &Json) -> Result<Object, InvalidAsk> {
    Object::parse(params).map_err(InvalidAsk::NoObject)
}

fn take_string(params: &mut Object, key: &'static str) -> Result<String, InvalidAsk> {
    let text = params.remove(key).as_ref().and_then(Json::string_value);
    text.ok_or(InvalidAsk::Missing(key))
}

/// Appends params that begin with the member `key`: `name`. Every call passes
/// here, so the text is written in one go.
fn write_params(
    text: &mut String,
    key: &str,
    name: &str,
    arguments: Option<&Json>,
    other_params: &Object,
) {
    let n_bytes =
        arguments.map_or(0, |arguments| arguments.as_bytes().len()) + other_params.n_bytes();
    text.reserve(key.len() + name.len() + n_bytes + 32);
    text.push('{');
    write_string(text, key);
    text.push(':');
    write_string(text, name);
    if let Some(arguments) = arguments {
        text.push_str(",\"arguments\":");
        text.push_str(arguments.as_str());
    }
    if !other_params.is_empty() {
        text.push(',');
        other_params.write_members(text);
    }
    text.push('}');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(method: &str, params: &str) {
        let ask = Ask::parse(method, &Json::parse(params.to_owned()).unwrap()).unwrap();
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
            let ask = Ask::parse("tools/call", &Json::parse(params).unwrap()).unwrap();
            let Ask::Call(call) = ask else { panic!("{ask:?}") };
            assert_eq!((call.name.as_str(), call.other_params), (name, Object::new()));
            assert_eq!(call.arguments.as_ref().map(Json::as_str), arguments);
        }
    }

    #[test]
    fn a_call_without_a_name_says_so() {
        let error = Ask::parse("tools/call", &Json::parse(r#"{"name":7}"#).unwrap()).unwrap_err();
        assert_eq!(error.to_string(), "params need `name` as a string");
    }
}
