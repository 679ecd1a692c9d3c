//! Checks that the headers of a modern request match its body.
//!
//! Modern clients mirror the method, the name and annotated arguments into headers, so
//! that a proxy can route without parsing the body. The server must check that both match.

use std::fmt::Display;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;
use http::header::AsHeaderName;
use tool::{Json, Listing, Object, RpcError};

use crate::message::Request;
use crate::revision::{code, header, method};

/// A header name for lookup and for error messages.
trait HeaderKey: AsHeaderName + Display + Copy {}
impl<N: AsHeaderName + Display + Copy> HeaderKey for N {}

/// Checks the headers that every modern request has: revision, method and name.
pub(super) fn check(
    headers: &HeaderMap,
    request: &Request,
    revision: &str,
) -> Result<(), RpcError> {
    check_header(headers, &header::PROTOCOL_VERSION, revision)?;
    check_header(headers, &header::METHOD, &request.method)?;
    let key = match request.method.as_str() {
        method::TOOLS_CALL | method::PROMPTS_GET => "name",
        method::RESOURCES_READ => "uri",
        _ => return Ok(()),
    };
    let name = request.params.as_ref().and_then(|params| params.member_as::<String>(key));
    // Params without a name are refused later.
    name.map_or(Ok(()), |name| check_header(headers, &header::NAME, &name))
}

/// Checks the headers that mirror arguments of a tool call.
pub(super) fn check_params(
    headers: &HeaderMap,
    request: &Request,
    listing: &Listing,
) -> Result<(), RpcError> {
    if request.method != method::TOOLS_CALL {
        return Ok(());
    }
    let params = request.params.as_ref();
    let name = params.and_then(|params| params.member_as::<String>("name")).unwrap_or_default();
    let Some(tool) = listing.tools.iter().find(|tool| tool.name == name) else { return Ok(()) };
    if !tool.input_schema.mentions("x-mcp-header") {
        return Ok(());
    }
    let arguments = params.and_then(|params| params.member("arguments"));
    check_mirrored(headers, &tool.input_schema, arguments.as_ref())
}

fn check_mirrored(
    headers: &HeaderMap,
    schema: &Json,
    value: Option<&Json>,
) -> Result<(), RpcError> {
    let properties = schema.member("properties");
    let properties = properties.and_then(|properties| Object::parse(&properties).ok());
    for (key, property) in properties.unwrap_or_default() {
        let value = value.and_then(|value| value.member(&key)).filter(|value| !value.is_null());
        match property.member_as::<String>("x-mcp-header") {
            Some(name) => {
                let name = format!("{}{name}", header::PARAM_PREFIX);
                check_mirrored_value(headers, &name, value.as_ref())?;
            }
            None => check_mirrored(headers, &property, value.as_ref())?,
        }
    }
    Ok(())
}

fn check_mirrored_value(
    headers: &HeaderMap,
    name: &str,
    value: Option<&Json>,
) -> Result<(), RpcError> {
    let Some(value) = value else {
        return match headers.contains_key(name) {
            true => Err(mismatch(&format!("`{name}` is given but the body has no such argument"))),
            false => Ok(()),
        };
    };
    if let Some(text) = value.string_value() {
        return check_header(headers, name, &text);
    }
    let given = header_value(headers, name)?;
    let number = |text: &str| text.parse::<f64>().ok();
    let equal = given == value.as_str()
        || number(&given).is_some_and(|given| Some(given) == number(value.as_str()));
    if equal { Ok(()) } else { Err(mismatch_between(name, &given, value.as_str())) }
}

fn check_header(headers: &HeaderMap, name: impl HeaderKey, expected: &str) -> Result<(), RpcError> {
    let given = header_value(headers, name)?;
    if given == expected { Ok(()) } else { Err(mismatch_between(name, &given, expected)) }
}

/// Returns the decoded value of a required header.
fn header_value(headers: &HeaderMap, name: impl HeaderKey) -> Result<String, RpcError> {
    let value = headers.get(name).ok_or_else(|| mismatch(&format!("`{name}` is missing")))?;
    let text = value.to_str().map_err(|_| mismatch(&format!("`{name}` has invalid characters")))?;
    let text = text.trim();
    let Some(encoded) = text.strip_prefix("=?base64?").and_then(|text| text.strip_suffix("?="))
    else {
        return Ok(text.to_owned());
    };
    let bytes = STANDARD.decode(encoded).ok();
    let decoded = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
    decoded.ok_or_else(|| mismatch(&format!("`{name}` is not valid Base64 of UTF-8 text")))
}

fn mismatch_between(name: impl HeaderKey, given: &str, expected: &str) -> RpcError {
    mismatch(&format!("`{name}` says `{given}` but the body says `{expected}`"))
}

fn mismatch(what: &str) -> RpcError {
    RpcError::new(code::HEADER_MISMATCH, format!("header mismatch: {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tool::Tool;

    fn headers(given: &[(&'static str, &str)]) -> HeaderMap {
        given.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    fn call(arguments: &str) -> Request {
        let params = format!(r#"{{"name":"t","arguments":{arguments}}}"#);
        Request {
            id: Json::encode(&1),
            method: "tools/call".into(),
            params: Some(Json::parse(params).unwrap()),
        }
    }

    #[track_caller]
    fn check_standard(given: &[(&'static str, &str)], fits: bool) {
        let checked = check(&headers(given), &call("{}"), "2026-07-28");
        assert_eq!(checked.is_ok(), fits, "{checked:?}");
    }

    #[test]
    fn the_standard_headers_must_be_there_and_agree() {
        let all = |name| {
            [
                ("mcp-protocol-version", "2026-07-28"),
                ("mcp-method", "tools/call"),
                ("mcp-name", name),
            ]
        };
        check_standard(&all("t"), true);
        check_standard(&all("=?base64?dA==?="), true);
        check_standard(&all("T"), false);
        check_standard(&all("=?base64?*?="), false);
        for missing in 0..3 {
            let mut some = all("t").to_vec();
            some.remove(missing);
            check_standard(&some, false);
        }
    }

    #[track_caller]
    fn check_mirrored(given: &[(&'static str, &str)], arguments: &str, fits: bool) {
        let schema = r#"{"name":"t","inputSchema":{"properties":{
            "region":{"type":"string","x-mcp-header":"Region"},
            "deep":{"properties":{"n":{"type":"integer","x-mcp-header":"N"}}}}}}"#;
        let tool = Tool::parse(Json::parse(schema).unwrap()).unwrap();
        let listing = Listing { tools: vec![tool], ..Listing::default() };
        let checked = check_params(&headers(given), &call(arguments), &listing);
        assert_eq!(checked.is_ok(), fits, "{checked:?}");
    }

    #[test]
    fn mirrored_arguments_must_agree_with_the_body() {
        check_mirrored(&[("mcp-param-region", "eu")], r#"{"region":"eu"}"#, true);
        check_mirrored(&[("mcp-param-region", "us")], r#"{"region":"eu"}"#, false);
        check_mirrored(&[], r#"{"region":"eu"}"#, false);
        check_mirrored(&[], r#"{"region":null}"#, true);
        check_mirrored(&[("mcp-param-region", "eu")], "{}", false);
        check_mirrored(&[("mcp-param-n", "42.0")], r#"{"deep":{"n":42}}"#, true);
        check_mirrored(&[("mcp-param-n", "43")], r#"{"deep":{"n":42}}"#, false);
        check_mirrored(&[("mcp-param-other", "x")], "{}", true);
    }
}
