//! Selectors: which part of a stored result a caller asks for.

use serde_json::Value;
use tool::Json;

use crate::view::error::ViewError;
use crate::view::grep::Grep;
use crate::view::span::Span;

/// Names a part of a stored result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selector {
    /// So many characters from `start` on; a negative number means all but so many.
    Head {
        start: usize,
        chars: i64,
    },
    /// The last characters.
    Tail {
        chars: usize,
    },
    Lines(Span),
    /// Records of a table, or lines where there is no table.
    Rows(Span),
    /// Members of an object.
    JsonKeys {
        keys: Vec<String>,
    },
    /// Elements of the array at `path`.
    Slice {
        path: String,
        span: Span,
    },
    Grep(Grep),
    Jq {
        filter: String,
    },
    /// Bytes as base64.
    Bytes {
        start: usize,
        length: usize,
    },
    /// The whole image or audio.
    Image,
}

impl Selector {
    /// Parses a selector as models write it: an object, or a string with its type.
    pub fn parse(json: &Json) -> Result<Selector, ViewError> {
        let value = json.to_value().map_err(|_| ViewError::NoObject)?;
        let fields = match value {
            Value::String(kind) => [("type".to_owned(), Value::String(kind))].into_iter().collect(),
            Value::Object(fields) => fields,
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => {
                return Err(ViewError::NoObject);
            }
        };
        let kind = fields.get("type").and_then(Value::as_str).unwrap_or_default();
        let take = |selector| Fields { selector, fields: &fields };
        Ok(match kind {
            "head" => {
                let take = take("head");
                Selector::Head { start: take.size("start", 0)?, chars: take.int("chars", 500)? }
            }
            "tail" => Selector::Tail { chars: take("tail").size("chars", 500)? },
            "lines" => Selector::Lines(take("lines").span()?),
            "rows" => Selector::Rows(take("rows").span()?),
            "json_keys" => Selector::JsonKeys { keys: take("json_keys").keys()? },
            "slice" => {
                let take = take("slice");
                Selector::Slice { path: take.text("path")?.unwrap_or_default(), span: take.span()? }
            }
            "grep" => Selector::Grep(take("grep").grep()?),
            "jq" => {
                let take = take("jq");
                let filter = take.text("filter")?;
                let expected = "such as \".items[0].name\"";
                let filter = filter.ok_or(take.missing("filter", expected))?;
                Selector::Jq { filter }
            }
            "bytes" | "base64" => {
                let take = take("bytes");
                Selector::Bytes {
                    start: take.size("start", 0)?,
                    length: take.size("length", 3_000)?,
                }
            }
            "image" | "audio" => Selector::Image,
            other => return Err(ViewError::Unknown(other.to_owned())),
        })
    }

    /// Returns the type of the selector, for records.
    pub fn name(&self) -> &'static str {
        match self {
            Selector::Head { .. } => "head",
            Selector::Tail { .. } => "tail",
            Selector::Lines(_) => "lines",
            Selector::Rows(_) => "rows",
            Selector::JsonKeys { .. } => "json_keys",
            Selector::Slice { .. } => "slice",
            Selector::Grep(_) => "grep",
            Selector::Jq { .. } => "jq",
            Selector::Bytes { .. } => "bytes",
            Selector::Image => "image",
        }
    }
}

/// The parameters of one selector, and its type for error messages.
struct Fields<'a> {
    selector: &'static str,
    fields: &'a serde_json::Map<String, Value>,
}

impl Fields<'_> {
    /// Returns a parameter; `None` if it is missing or null.
    fn get(&self, key: &str) -> Option<&Value> {
        self.fields.get(key).filter(|value| !value.is_null())
    }

    fn wrong(&self, parameter: &'static str, expected: &'static str) -> ViewError {
        ViewError::Parameter { selector: self.selector, parameter, expected }
    }

    fn missing(&self, parameter: &'static str, expected: &'static str) -> ViewError {
        ViewError::Missing { selector: self.selector, parameter, expected }
    }

    fn int(&self, key: &'static str, default: i64) -> Result<i64, ViewError> {
        let Some(value) = self.get(key) else { return Ok(default) };
        value.as_i64().ok_or(self.wrong(key, "an integer"))
    }

    fn size(&self, key: &'static str, default: usize) -> Result<usize, ViewError> {
        let Some(value) = self.get(key) else { return Ok(default) };
        let size = value.as_u64().and_then(|size| usize::try_from(size).ok());
        size.ok_or(self.wrong(key, "a number from 0 on"))
    }

    fn text(&self, key: &'static str) -> Result<Option<String>, ViewError> {
        let Some(value) = self.get(key) else { return Ok(None) };
        value.as_str().map(|text| Some(text.to_owned())).ok_or(self.wrong(key, "a string"))
    }

    fn flag(&self, key: &'static str) -> Result<bool, ViewError> {
        let Some(value) = self.get(key) else { return Ok(false) };
        value.as_bool().ok_or(self.wrong(key, "true or false"))
    }

    fn span(&self) -> Result<Span, ViewError> {
        let end = match self.get("end") {
            Some(_) => Some(self.int("end", 0)?),
            None => None,
        };
        Ok(Span { start: self.int("start", 0)?, end })
    }

    fn keys(&self) -> Result<Vec<String>, ViewError> {
        let Some(value) = self.get("keys") else { return Ok(Vec::new()) };
        let wrong = || self.wrong("keys", "an array of strings");
        let text = |key: &Value| key.as_str().map(str::to_owned);
        let keys = value.as_array().ok_or_else(wrong)?;
        keys.iter().map(text).collect::<Option<_>>().ok_or_else(wrong)
    }

    fn grep(&self) -> Result<Grep, ViewError> {
        let expected = "a regular expression such as \"error|failed\"";
        let pattern = self.text("pattern")?.ok_or(self.missing("pattern", expected))?;
        Ok(Grep {
            pattern,
            context: self.size("context", 0)?,
            ignore_case: self.flag("ignore_case")?,
            start: self.size("start", 0)?,
            count: self.flag("count")?,
        })
    }
}
