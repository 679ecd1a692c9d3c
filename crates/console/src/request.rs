//! An HTTP request with its path, query, form and cookies parsed.

use std::collections::HashMap;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, header};

/// A parsed request to the console.
pub(crate) struct PageRequest {
    pub(crate) method: Method,
    /// The segments of the path after `/console`, decoded.
    pub(crate) path: Vec<String>,
    pub(crate) query: Fields,
    pub(crate) form: Fields,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// The fields of a query or a form. Of several with the same name, the first is used.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fields(HashMap<String, String>);

impl Fields {
    pub(crate) fn parse(text: &[u8]) -> Fields {
        let mut fields = HashMap::new();
        for (name, value) in url::form_urlencoded::parse(text) {
            fields.entry(name.into_owned()).or_insert_with(|| value.into_owned());
        }
        Fields(fields)
    }

    /// Returns whether there is such a field, even an empty one.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Returns the value of a field; empty when it is missing.
    pub(crate) fn get(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }
}

impl PageRequest {
    pub(crate) fn new(request: Request<Bytes>) -> PageRequest {
        let (head, body) = request.into_parts();
        let path = head.uri.path().strip_prefix(crate::PATH).unwrap_or_default();
        let decoded = path.split('/').filter(|part| !part.is_empty()).map(decode);
        let is_form = head
            .headers
            .get(header::CONTENT_TYPE)
            .and_then(|value| value.to_str().ok())
            .is_some_and(|value| value.starts_with("application/x-www-form-urlencoded"));
        PageRequest {
            method: head.method,
            path: decoded.collect(),
            query: Fields::parse(head.uri.query().unwrap_or_default().as_bytes()),
            form: if is_form { Fields::parse(&body) } else { Fields::default() },
            headers: head.headers,
            body,
        }
    }

    pub(crate) fn header(&self, name: impl http::header::AsHeaderName) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// Returns the cookie of that name.
    pub(crate) fn cookie(&self, name: &str) -> Option<&str> {
        let all =
            self.headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut pairs =
            all.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
        pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
    }

    /// Returns whether the `Host` header is a loopback name.
    pub(crate) fn is_for_loopback(&self) -> bool {
        matches!(self.host(), "localhost" | "127.0.0.1" | "[::1]")
    }

    /// Returns the `Host` header without its port.
    pub(crate) fn host(&self) -> &str {
        let host = self.header(header::HOST).unwrap_or_default();
        match host.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
            Some(_) | None => host,
        }
    }
}

fn decode(part: &str) -> String {
    let fields = format!("x={}", part.replace('+', "%2B"));
    let mut pairs = url::form_urlencoded::parse(fields.as_bytes());
    pairs.next().map(|(_, value)| value.into_owned()).unwrap_or_default()
}

/// Encodes a text as one segment of a path.
pub(crate) fn encode(text: &str) -> String {
    let encoded: String = url::form_urlencoded::byte_serialize(text.as_bytes()).collect();
    encoded.replace('+', "%20")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(uri: &str, headers: &[(&str, &str)], body: &str) -> PageRequest {
        let mut builder = Request::builder().uri(uri);
        for (name, value) in headers {
            builder = builder.header(*name, *value);
        }
        PageRequest::new(builder.body(Bytes::from(body.to_owned())).unwrap())
    }

    #[test]
    fn paths_survive_being_written_and_read() {
        for name in ["files/read", "a b", "a+b", "100%", "é/ü", ".."] {
            let read = request(&format!("/console/tools/{}", encode(name)), &[], "");
            assert_eq!(read.path, ["tools", name]);
        }
    }

    #[test]
    fn forms_cookies_and_hosts_are_read() {
        let form = ("content-type", "application/x-www-form-urlencoded");
        let cookie = ("cookie", "a=1; gatelet=xyz");
        let read = request("/console?x=1&x=2", &[form, cookie, ("host", "[::1]:47")], "a.b=c+d");
        assert_eq!(read.query.get("x"), "1");
        assert_eq!(read.form.get("a.b"), "c d");
        assert_eq!(read.cookie("gatelet"), Some("xyz"));
        assert_eq!(read.host(), "[::1]");
        assert_eq!(request("/console", &[], "a=b").form.get("a"), "", "not a form");
    }
}
