//! The views of JSON: members of an object and slices of an array.

use serde_json::{Value, json};

use crate::view::error::ViewError;
use crate::view::piece::{Budget, View, clip};
use crate::view::span::Span;

/// Shows the members `keys` of an object, pretty-printed, sorted and in ASCII.
///
/// For anything but an object the view is empty and its note says why.
pub(super) fn keys(text: &str, keys: &[String], budget: &Budget) -> View {
    let Ok(Value::Object(object)) = serde_json::from_str::<Value>(text) else {
        return View::text(
            "",
            "the artifact is no JSON object, so it has no keys".to_owned(),
            None,
        );
    };
    let mut wanted: Vec<(&String, &Value)> =
        object.iter().filter(|(key, _)| keys.contains(key)).collect();
    wanted.sort_by_key(|(key, _)| key.as_str());
    let mut out = String::new();
    write_pretty_object(&mut out, &wanted, 0);
    let (shown, whole) = clip(&out, budget.chars);
    let all: Vec<&str> = object.keys().map(String::as_str).take(40).collect();
    let more = if all.len() < object.len() { ", …" } else { "" };
    let cut = match whole {
        true => String::new(),
        false => format!(
            "cut after {} of {} chars; ask for fewer keys or use jq; ",
            budget.chars,
            out.chars().count()
        ),
    };
    let note = format!("{cut}{} of {} keys: {}{more}", wanted.len(), object.len(), all.join(", "));
    View::text(shown.into_owned(), note, None)
}

/// Shows elements of the array at `path` (`a.b[0].c`), one per line.
pub(super) fn slice(
    bytes: &[u8],
    media_type: &str,
    path: &str,
    span: Span,
    budget: &Budget,
) -> Result<View, ViewError> {
    let no_json = |_| ViewError::NotJson { media_type: media_type.to_owned() };
    let root: Value = serde_json::from_slice(bytes).map_err(no_json)?;
    let found = resolve_path(&root, path).ok_or_else(|| ViewError::NoPath(path.to_owned()))?;
    let Value::Array(array) = found else { return Err(ViewError::NoArray(path.to_owned())) };
    let range = span.within(array.len());
    let (mut body, mut end, mut cut) = (String::new(), range.start, String::new());
    for element in &array[range.clone()] {
        let line = element.to_string();
        let full = budget.chars < body.chars().count() + line.chars().count();
        if full && end != range.start {
            break;
        }
        if end != range.start {
            body.push('\n');
        }
        let (shown, whole) = clip(&line, budget.chars);
        body.push_str(&shown);
        if !whole {
            body.push('…');
            cut = format!(
                ", element {end} cut after {} of its {} chars: use a longer path, or jq",
                budget.chars,
                line.chars().count()
            );
        }
        end += 1;
    }
    let note = format!("elements {}-{end} of {}{cut}", range.start, array.len());
    let mut next = json!({"type": "slice", "path": path, "start": end});
    if range.end != array.len() {
        next["end"] = json!(range.end);
    }
    Ok(View::text(body, note, (end < range.end).then_some(next)))
}

/// Returns the value at a dotted path with `[n]` for elements.
fn resolve_path<'a>(root: &'a Value, path: &str) -> Option<&'a Value> {
    let path = path.trim_start_matches(['$', '.']);
    let steps = path.split(['.', '[', ']']).filter(|step| !step.is_empty());
    steps.into_iter().try_fold(root, |value, step| match value {
        Value::Array(array) => array.get(step.parse::<usize>().ok()?),
        Value::Object(object) => object.get(step),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    })
}

fn write_pretty(out: &mut String, value: &Value, depth: usize) {
    match value {
        Value::Object(object) => {
            let mut members: Vec<(&String, &Value)> = object.iter().collect();
            members.sort_by_key(|(key, _)| key.as_str());
            write_pretty_object(out, &members, depth);
        }
        Value::Array(array) if !array.is_empty() => {
            out.push('[');
            for (at, element) in array.iter().enumerate() {
                start_line(out, at, depth + 1);
                write_pretty(out, element, depth + 1);
            }
            start_line(out, 0, depth);
            out.push(']');
        }
        Value::Array(_) => out.push_str("[]"),
        Value::String(text) => out.push_str(&catalog::id::ascii_string(text)),
        Value::Null | Value::Bool(_) | Value::Number(_) => out.push_str(&value.to_string()),
    }
}

fn write_pretty_object(out: &mut String, members: &[(&String, &Value)], depth: usize) {
    if members.is_empty() {
        out.push_str("{}");
        return;
    }
    out.push('{');
    for (at, (key, value)) in members.iter().enumerate() {
        start_line(out, at, depth + 1);
        out.push_str(&catalog::id::ascii_string(key));
        out.push_str(": ");
        write_pretty(out, value, depth + 1);
    }
    start_line(out, 0, depth);
    out.push('}');
}

fn start_line(out: &mut String, at: usize, depth: usize) {
    if at != 0 {
        out.push(',');
    }
    out.push('\n');
    out.push_str(&"  ".repeat(depth));
}
