//! Converts values of the engine to JSON and to text.

use rquickjs::{Ctx, Error, Exception, Function, Object, Persistent, Value};
use serde_json::value::RawValue;

use crate::limits::Limit;
use crate::protocol::{Answer, ScriptError, Thrown};

/// Converts a value to JSON; `None` for values that JSON leaves out, such as functions.
pub(super) fn to_json<'js>(ctx: &Ctx<'js>, value: Value<'js>) -> rquickjs::Result<Option<String>> {
    ctx.json_stringify(value)?.map(|text| text.to_string()).transpose()
}

/// Converts the returned value of a script to JSON of at most `limit` bytes.
pub(super) fn returned_json<'js>(
    ctx: &Ctx<'js>,
    value: Value<'js>,
    limit: usize,
) -> Result<Option<Box<RawValue>>, ScriptError> {
    let text = to_json(ctx, value).map_err(|_| {
        let caught = ctx.catch();
        let reason = caught.as_exception().map_or_else(|| describe(&caught), exception_message);
        ScriptError::Unwritable(reason)
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

/// Settles the promise of a call with its answer.
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

/// Renders a value for the log: text as it is, everything else as JSON.
pub(super) fn log_text<'js>(ctx: &Ctx<'js>, value: &Value<'js>) -> String {
    if let Some(text) = value.as_string() {
        return text.to_string().unwrap_or_default();
    }
    if let Some(exception) = value.as_exception() {
        return exception_message(exception);
    }
    match to_json(ctx, value.clone()) {
        Ok(Some(json)) => json,
        Ok(None) => describe(value),
        Err(_) => {
            ctx.catch();
            "(cannot be written as JSON)".to_owned()
        }
    }
}

/// Returns the text, or the name of the type of any other value.
pub(super) fn describe(value: &Value<'_>) -> String {
    match value.as_string() {
        Some(text) => text.to_string().unwrap_or_default(),
        None => value.type_name().to_owned(),
    }
}

/// Renders an exception, such as `TypeError: x is not a function`.
pub(super) fn exception_message(exception: &Exception<'_>) -> String {
    let object: &Object<'_> = exception.as_object();
    let name: Option<String> = object.get("name").ok();
    let message = exception.message().unwrap_or_default();
    match name.filter(|name| !name.is_empty() && name != "Error") {
        Some(name) if message.is_empty() => name,
        Some(name) => format!("{name}: {message}"),
        None => message,
    }
}

/// Returns the line of the script in a stack trace, such as `line 3`.
pub(super) fn script_line(stack: &str) -> String {
    // The code is the body of a function whose head takes two lines.
    let line = |frame: &str| {
        let (_, rest) = frame.split_once("<input>:")?;
        let number = rest.split(|c: char| !c.is_ascii_digit()).next()?;
        number.parse::<usize>().ok()?.checked_sub(HEAD_LINES)
    };
    stack.lines().find_map(line).map(|line| format!("line {line}")).unwrap_or_default()
}

/// Lines that the engine puts before the code of a function.
const HEAD_LINES: usize = 2;

pub(super) fn type_error(ctx: &Ctx<'_>, message: &str) -> Error {
    Exception::throw_type(ctx, message)
}
