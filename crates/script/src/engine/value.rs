//! Values of the engine as JSON and as text.

use rquickjs::{Ctx, Error, Exception, Function, Object, Persistent, Value};
use serde_json::value::RawValue;

use crate::limits::Limit;
use crate::protocol::{Answer, ScriptError, Thrown};

/// A value as JSON; `None` for what JSON leaves out, such as a function.
pub(super) fn json_of<'js>(ctx: &Ctx<'js>, value: Value<'js>) -> rquickjs::Result<Option<String>> {
    ctx.json_stringify(value)?.map(|text| text.to_string()).transpose()
}

/// What a script returned, as JSON.
pub(super) fn written<'js>(
    ctx: &Ctx<'js>,
    value: Value<'js>,
    limit: usize,
) -> Result<Option<Box<RawValue>>, ScriptError> {
    let text = json_of(ctx, value).map_err(|_| {
        let caught = ctx.catch();
        let said = caught.as_exception().map_or_else(|| described(&caught), message_of);
        ScriptError::Unwritable(said)
    })?;
    let Some(text) = text else {
        let why = "it returned a function or a symbol; return data".to_owned();
        return Err(ScriptError::Unwritable(why));
    };
    if limit < text.len() {
        return Err(ScriptError::Limit(Limit::Returned));
    }
    RawValue::from_string(text)
        .map(Some)
        .map_err(|error| ScriptError::Unwritable(error.to_string()))
}

/// Settles the promise of a call.
pub(super) fn settle<'js>(
    ctx: &Ctx<'js>,
    resolve: Persistent<Function<'static>>,
    reject: Persistent<Function<'static>>,
    answer: Answer,
) -> rquickjs::Result<()> {
    match answer.result {
        Ok(json) => {
            let value = ctx.json_parse(json.get())?;
            resolve.restore(ctx)?.call((value,))
        }
        Err(Thrown { message, code }) => {
            let exception = Exception::from_message(ctx.clone(), &message)?;
            exception.as_object().set("code", code)?;
            reject.restore(ctx)?.call((exception,))
        }
    }
}

/// A value as a line of the log: text as it is, everything else as JSON.
pub(super) fn shown<'js>(ctx: &Ctx<'js>, value: &Value<'js>) -> String {
    if let Some(text) = value.as_string() {
        return text.to_string().unwrap_or_default();
    }
    if let Some(exception) = value.as_exception() {
        return message_of(exception);
    }
    match json_of(ctx, value.clone()) {
        Ok(Some(json)) => json,
        Ok(None) => described(value),
        Err(_) => {
            ctx.catch();
            "(cannot be written as JSON)".to_owned()
        }
    }
}

/// What a value is, in a word, where it is not data.
pub(super) fn described(value: &Value<'_>) -> String {
    match value.as_string() {
        Some(text) => text.to_string().unwrap_or_default(),
        None => value.type_name().to_owned(),
    }
}

/// `TypeError: x is not a function`.
pub(super) fn message_of(exception: &Exception<'_>) -> String {
    let object: &Object<'_> = exception.as_object();
    let name: Option<String> = object.get("name").ok();
    let message = exception.message().unwrap_or_default();
    match name.filter(|name| !name.is_empty() && name != "Error") {
        Some(name) if message.is_empty() => name,
        Some(name) => format!("{name}: {message}"),
        None => message,
    }
}

/// The line of the script that a stack leads to: `line 3`.
pub(super) fn place(stack: &str) -> String {
    // The code is the body of a function whose head takes two lines.
    let line = |frame: &str| {
        let (_, rest) = frame.split_once("<input>:")?;
        let number = rest.split(|c: char| !c.is_ascii_digit()).next()?;
        number.parse::<usize>().ok()?.checked_sub(HEAD)
    };
    stack.lines().find_map(line).map(|line| format!("line {line}")).unwrap_or_default()
}

/// Lines that the engine puts before the code of a function.
const HEAD: usize = 2;

pub(super) fn type_error(ctx: &Ctx<'_>, message: &str) -> Error {
    Exception::throw_type(ctx, message)
}
