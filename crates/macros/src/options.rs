//! Parses the options in the parentheses of `#[tool(…)]`.

use std::time::Duration;

use proc_macro2::{Span, TokenStream};
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::{Error, Ident, LitBool, LitStr, Token, bracketed};

const OPTION_NAMES: &str = "`name`, `title`, `description`, `read_only`, `destructive`, `idempotent`, \
                     `open_world`, `category`, `tags`, `version`, `deprecated_in`, `cache_ttl`, \
                     `timeout` and `manual`";

/// The options of one `#[tool]`; the attribute's documentation says what each means.
#[derive(Default)]
pub(crate) struct Options {
    pub(crate) name: Option<LitStr>,
    pub(crate) title: Option<LitStr>,
    pub(crate) description: Option<LitStr>,
    pub(crate) read_only: Option<bool>,
    pub(crate) destructive: Option<bool>,
    pub(crate) idempotent: Option<bool>,
    pub(crate) open_world: Option<bool>,
    pub(crate) category: Option<LitStr>,
    pub(crate) tags: Vec<LitStr>,
    pub(crate) version: Option<LitStr>,
    pub(crate) deprecated_in: Option<LitStr>,
    pub(crate) cache_ttl: Option<Duration>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) manual: bool,
}

impl Options {
    pub(crate) fn parse(tokens: TokenStream) -> syn::Result<Options> {
        let entries = Punctuated::<Entry, Token![,]>::parse_terminated.parse2(tokens)?;
        let mut options = Options::default();
        let mut seen: Vec<String> = Vec::new();
        for entry in entries {
            let key = entry.key.unraw().to_string();
            if seen.contains(&key) {
                return Err(Error::new(entry.key.span(), format!("`{key}` is given twice")));
            }
            options.set(&key, &entry)?;
            seen.push(key);
        }
        options.check_hints()?;
        Ok(options)
    }

    fn set(&mut self, key: &str, entry: &Entry) -> syn::Result<()> {
        match key {
            "name" => self.name = Some(tool_name(entry.text()?)?),
            "title" => self.title = Some(entry.text()?),
            "description" => self.description = Some(entry.text()?),
            "read_only" => self.read_only = Some(entry.flag()?),
            "destructive" => self.destructive = Some(entry.flag()?),
            "idempotent" => self.idempotent = Some(entry.flag()?),
            "open_world" => self.open_world = Some(entry.flag()?),
            "category" => self.category = Some(entry.text()?),
            "tags" => self.tags = entry.texts()?,
            "version" => self.version = Some(entry.text()?),
            "deprecated_in" => self.deprecated_in = Some(entry.text()?),
            "cache_ttl" => self.cache_ttl = Some(duration(&entry.text()?)?),
            "timeout" => self.timeout = Some(duration(&entry.text()?)?),
            "manual" => self.manual = entry.flag()?,
            unknown => {
                let message = format!("no option is called `{unknown}`; there are {OPTION_NAMES}");
                return Err(Error::new(entry.key.span(), message));
            }
        }
        Ok(())
    }

    fn check_hints(&self) -> syn::Result<()> {
        if self.read_only == Some(true) && self.destructive == Some(true) {
            let message = "a tool cannot be `read_only` and `destructive`";
            return Err(Error::new(Span::call_site(), message));
        }
        Ok(())
    }
}

/// Returns whether MCP allows this as the name of a tool.
pub(crate) fn is_tool_name(name: &str) -> bool {
    let legal = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b'/');
    !name.is_empty() && name.len() <= 128 && name.bytes().all(legal)
}

fn tool_name(name: LitStr) -> syn::Result<LitStr> {
    if is_tool_name(&name.value()) {
        return Ok(name);
    }
    let message = "a tool's name is 1 to 128 of `A-Z a-z 0-9 _ - . /`";
    Err(Error::new(name.span(), message))
}

/// Parses a duration such as `500ms`, `30s`, `5m` or `2h`.
fn duration(text: &LitStr) -> syn::Result<Duration> {
    let value = text.value();
    let digits = value.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = value.split_at(digits);
    let per_unit = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => 0,
    };
    let millis = number.parse::<u64>().ok().and_then(|n| n.checked_mul(per_unit));
    match millis {
        Some(millis) if millis != 0 => Ok(Duration::from_millis(millis)),
        Some(_) | None => {
            let message = "a duration is a whole number above zero with a unit: \
                           `500ms`, `30s`, `5m` or `2h`";
            Err(Error::new(text.span(), message))
        }
    }
}

/// One option as written: `key` or `key = value`.
struct Entry {
    key: Ident,
    value: Option<Value>,
}

enum Value {
    Text(LitStr),
    Flag(LitBool),
    Texts(Vec<LitStr>),
}

impl Parse for Entry {
    fn parse(input: ParseStream<'_>) -> syn::Result<Entry> {
        let key = input.call(Ident::parse_any)?;
        if input.parse::<Option<Token![=]>>()?.is_none() {
            return Ok(Entry { key, value: None });
        }
        let value = if input.peek(syn::token::Bracket) {
            let list;
            bracketed!(list in input);
            let texts = Punctuated::<LitStr, Token![,]>::parse_terminated(&list)?;
            Value::Texts(texts.into_iter().collect())
        } else if input.peek(LitBool) {
            Value::Flag(input.parse()?)
        } else {
            Value::Text(input.parse()?)
        };
        Ok(Entry { key, value: Some(value) })
    }
}

impl Entry {
    fn text(&self) -> syn::Result<LitStr> {
        match &self.value {
            Some(Value::Text(text)) => Ok(text.clone()),
            Some(Value::Flag(_) | Value::Texts(_)) | None => Err(self.wrong_value("= \"text\"")),
        }
    }

    fn flag(&self) -> syn::Result<bool> {
        match &self.value {
            None => Ok(true),
            Some(Value::Flag(flag)) => Ok(flag.value),
            Some(Value::Text(_) | Value::Texts(_)) => Err(self.wrong_value("alone, or `= false`")),
        }
    }

    fn texts(&self) -> syn::Result<Vec<LitStr>> {
        match &self.value {
            Some(Value::Texts(texts)) => Ok(texts.clone()),
            Some(Value::Text(_) | Value::Flag(_)) | None => {
                Err(self.wrong_value("= [\"one\", \"two\"]"))
            }
        }
    }

    /// The error for a value of the wrong type; `form` shows how it is written.
    fn wrong_value(&self, form: &str) -> Error {
        Error::new(self.key.span(), format!("`{}` is written `{} {form}`", self.key, self.key))
    }
}
