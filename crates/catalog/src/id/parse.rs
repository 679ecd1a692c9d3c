//! Parses and writes ids.

use std::fmt;
use std::str::FromStr;

use super::{InvalidId, Primitive, PrimitiveId, ToolId};

/// The most characters of an id.
const LONGEST: usize = 240;
const NAMESPACE: &str = "[a-z][a-z0-9_-]{0,63}";
const NAME: &str = "[A-Za-z_][A-Za-z0-9_.-]{0,127}";
const VERSION: &str = "[A-Za-z0-9._-]{1,32}";
const HASH8: &str = "[0-9a-f]{8}";

impl ToolId {
    /// An id of these parts, if each is within its grammar.
    pub fn new(
        namespace: &str,
        name: &str,
        version: Option<&str>,
        hash8: Option<&str>,
    ) -> Result<ToolId, InvalidId> {
        let part =
            |part, text: &str, grammar| InvalidId::Part { part, text: text.to_owned(), grammar };
        if !is_namespace(namespace) {
            return Err(part("namespace", namespace, NAMESPACE));
        }
        if !is_name(name) {
            return Err(part("name", name, NAME));
        }
        if let Some(version) = version.filter(|text| !is_version(text)) {
            return Err(part("version", version, VERSION));
        }
        if let Some(hash8) = hash8.filter(|text| !is_hash8(text)) {
            return Err(part("hash8", hash8, HASH8));
        }
        if version.is_none() && hash8.is_none() {
            return Err(InvalidId::Unpinned);
        }
        let own = |text: Option<&str>| text.map(str::to_owned);
        // The parts' own limits add up to 235, so the total needs no check here.
        Ok(ToolId {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            version: own(version),
            hash8: own(hash8),
        })
    }
}

impl FromStr for ToolId {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<ToolId, InvalidId> {
        let length = text.chars().count();
        if LONGEST < length {
            return Err(InvalidId::TooLong(length));
        }
        let (namespace, rest) =
            text.split_once(':').ok_or_else(|| InvalidId::NoNamespace(text.to_owned()))?;
        let (rest, hash8) = split_last(rest, '#');
        let (name, version) = split_last(rest, '@');
        ToolId::new(namespace, name, version, hash8)
    }
}

impl fmt::Display for ToolId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.namespace, self.name)?;
        if let Some(version) = &self.version {
            write!(f, "@{version}")?;
        }
        if let Some(hash8) = &self.hash8 {
            write!(f, "#{hash8}")?;
        }
        Ok(())
    }
}

impl FromStr for PrimitiveId {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<PrimitiveId, InvalidId> {
        let (kind, body) = match text.split_once("::") {
            None => (Primitive::Tool, text),
            Some(("resource", body)) => (Primitive::Resource, body),
            Some(("prompt", body)) => (Primitive::Prompt, body),
            Some((other, _)) => return Err(InvalidId::Kind(other.to_owned())),
        };
        Ok(PrimitiveId { kind, body: body.parse()? })
    }
}

impl fmt::Display for PrimitiveId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            Primitive::Tool => {}
            Primitive::Resource => f.write_str("resource::")?,
            Primitive::Prompt => f.write_str("prompt::")?,
        }
        self.body.fmt(f)
    }
}

pub(super) fn is_namespace(text: &str) -> bool {
    let rest = |b: u8| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-');
    text.len() <= 64
        && text.bytes().next().is_some_and(|first| first.is_ascii_lowercase())
        && text.bytes().all(rest)
}

pub(super) fn is_name(text: &str) -> bool {
    text.len() <= 128
        && text.bytes().next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && text.bytes().all(is_name_byte)
}

pub(super) fn is_name_byte(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-')
}

pub(super) fn is_version(text: &str) -> bool {
    (1..=32).contains(&text.len()) && text.bytes().all(is_name_byte)
}

fn is_hash8(text: &str) -> bool {
    text.len() == 8 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

fn split_last(text: &str, separator: char) -> (&str, Option<&str>) {
    match text.rsplit_once(separator) {
        Some((before, after)) => (before, Some(after)),
        None => (text, None),
    }
}
