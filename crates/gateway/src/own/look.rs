//! `gatelet.view`: from plain arguments to a piece of a kept result.

use serde_json::{Value, json};
use tool::reply::ToolResult;
use tool::{Context, Json, Reply};

use crate::artifact::{Artifact, Owner, Store, readable};
use crate::envelope;
use crate::gate::thousands;
use crate::view::{self, Limits, Selector};

pub(super) fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "handle": {"type": "string", "description": "From the gated answer."},
            "head": {"type": "integer", "description": "That many characters from the beginning."},
            "tail": {"type": "integer", "description": "That many characters at the end."},
            "lines": {"type": "string", "description": "A range of lines, such as 10-40."},
            "grep": {"type": "string", "description": "Lines that match a regular expression."},
            "jq": {"type": "string", "description": "A jq filter, for JSON."},
            "selector": {
                "type": "object",
                "description": "Any other selector, as given after `next:`.",
            },
        },
    })
}

pub(super) async fn view(store: &dyn Store, arguments: &Json, context: &Context) -> Reply {
    let owner = Owner::of(context);
    let Some(handle) = arguments.member_as::<String>("handle") else {
        return Reply::text(&kept(&store.list(&owner).await));
    };
    let (own, at) = envelope::split_handle(&handle);
    let artifact = store.get(&owner, own).await;
    let Some((artifact, part)) = artifact.and_then(|kept| {
        let part = envelope::part(&kept, at)?;
        Some((kept, part))
    }) else {
        let kept = kept(&store.list(&owner).await);
        return Reply::error_text(&format!("**Error:** Nothing is kept as `{handle}`. {kept}"));
    };
    let viewed = selector(arguments).and_then(|selector| match at {
        0 => {
            let (text, media_type) = content(&artifact, &selector);
            view::view(text.as_bytes(), media_type, &selector, &Limits::default())
        }
        _ => view::view(&part.bytes, &part.media_type, &selector, &Limits::default()),
    });
    match viewed {
        Ok(view) => Reply::Result(view.to_result()),
        Err(error) => Reply::error_text(&format!("**Error:** {error}")),
    }
}

/// What a selector works on: the text as a reader sees it, but for jq and its
/// like the structured content where the text is no JSON.
fn content(artifact: &Artifact, selector: &Selector) -> (String, &'static str) {
    let is_json = |text: &str| {
        text.trim_start().starts_with(['{', '[']) && Json::parse(text.to_owned()).is_ok()
    };
    let wants_json = match selector {
        Selector::Jq { .. } | Selector::JsonKeys { .. } | Selector::Slice { .. } => true,
        Selector::Head { .. }
        | Selector::Tail { .. }
        | Selector::Lines(_)
        | Selector::Rows(_)
        | Selector::Grep(_)
        | Selector::Bytes { .. }
        | Selector::Image => false,
    };
    let result: Option<ToolResult> = Reply::Result(artifact.result.clone()).tool_result();
    let text = result.as_ref().and_then(readable);
    match (text, result.and_then(|result| result.structured)) {
        (Some(text), _) if is_json(&text) => (text, "application/json"),
        (_, Some(structured)) if wants_json => (structured.to_string(), "application/json"),
        (Some(text), _) => (text, "text/plain"),
        (None, Some(structured)) => (structured.to_string(), "application/json"),
        (None, None) => (artifact.result.to_string(), "application/json"),
    }
}

fn selector(arguments: &Json) -> Result<Selector, view::ViewError> {
    let text = |key: &str| arguments.member_as::<String>(key);
    let number = |key: &str| arguments.member_as::<i64>(key);
    let wanted = if let Some(selector) = arguments.member("selector") {
        return Selector::parse(&selector);
    } else if let Some(filter) = text("jq") {
        json!({"type": "jq", "filter": filter})
    } else if let Some(pattern) = text("grep") {
        json!({"type": "grep", "pattern": pattern})
    } else if let Some(range) = text("lines") {
        let (start, end) = range.split_once(['-', ':', ',']).unwrap_or((&range, ""));
        let start: i64 = start.trim().parse().unwrap_or(0);
        let end = end.trim().parse::<i64>().ok();
        json!({"type": "lines", "start": start, "end": end.unwrap_or(start + 100)})
    } else if let Some(chars) = number("tail") {
        json!({"type": "tail", "chars": chars})
    } else {
        json!({"type": "head", "chars": number("head").unwrap_or(2_000)})
    };
    Selector::parse(&wanted.into())
}

fn kept(artifacts: &[std::sync::Arc<Artifact>]) -> String {
    if artifacts.is_empty() {
        return "Nothing is kept for you now.".to_owned();
    }
    let line = |artifact: &std::sync::Arc<Artifact>| {
        let Artifact { handle, upstream, tool, chars, .. } = &**artifact;
        format!("- {handle}: {upstream} {tool}, {} characters", thousands(*chars))
    };
    let lines: Vec<String> = artifacts.iter().take(20).map(line).collect();
    format!("Kept:\n{}", lines.join("\n"))
}
