//! What a model reads in place of an answer that is too long.
//!
//! A summary of what kind of data it is, facts that add something, and where
//! every part of it is kept. Never a cut in the middle of a value.

mod outline;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tool::reply::ToolResult;
use tool::{Json, Reply};

use crate::artifact::{Artifact, Reading, TooLong};
use crate::gate::{self, Over, Shape};
use crate::stage::cache::CACHE_HIT;
use crate::stage::tolerant::Repair;
use crate::view;
use outline::Outline;

/// One piece of a kept answer that can be looked at by itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    pub media_type: String,
    pub label: String,
    pub bytes: Vec<u8>,
}

/// What goes out.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Envelope {
    pub status: Status,
    pub summary: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub facts: Vec<String>,
    pub artifacts: Vec<Reference>,
    pub provenance: Map<String, Value>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    Ok,
    /// Part of a call's work was done.
    Partial,
    Error,
}

/// Where a part is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reference {
    pub handle: String,
    pub media_type: String,
    pub size_bytes: usize,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub label: String,
}

/// How many lines or rows the summary shows, and how long each may be.
const ROWS: usize = 3;
const ROW: usize = 160;
const FACTS: usize = 8;

/// The parts of a kept answer. The first is what a reader reads; binary
/// blocks, embedded resources and structured content follow.
pub fn parts(artifact: &Artifact) -> Vec<Part> {
    let reply = Reply::Result(artifact.result.clone());
    let Some(result) = reply.tool_result() else {
        return vec![Part {
            media_type: "application/json".to_owned(),
            label: String::new(),
            bytes: artifact.result.as_bytes().to_vec(),
        }];
    };
    let mut parts = Vec::new();
    let reading = Reading::of(&result);
    let read = |text: &str, label: &str| {
        let (media_type, label) = (media_type(text).to_owned(), label.to_owned());
        Part { media_type, label, bytes: text.as_bytes().to_vec() }
    };
    parts.extend(reading.main().map(|text| read(text, "")));
    if let Some(text) = reading.text.as_deref().filter(|_| reading.is_structured()) {
        parts.push(read(text, "text"));
    }
    parts.extend(result.content.iter().filter_map(block));
    if let Some(structured) = &result.structured
        && parts.first().is_none_or(|first| first.bytes != structured.as_bytes().as_ref())
    {
        parts.push(Part {
            media_type: "application/json".to_owned(),
            label: "structuredContent".to_owned(),
            bytes: structured.as_bytes().to_vec(),
        });
    }
    if parts.is_empty() {
        let bytes = artifact.result.as_bytes().to_vec();
        let media_type = "application/json".to_owned();
        parts.push(Part { media_type, label: String::new(), bytes });
    }
    parts
}

/// The part that a handle names: `handle` or `handle/2`.
pub fn part(artifact: &Artifact, at: usize) -> Option<Part> {
    let mut parts = parts(artifact);
    (at < parts.len()).then(|| parts.swap_remove(at))
}

/// Where each part of a kept answer is; see [`Artifact::parts`].
pub(crate) fn references(artifact: &Artifact) -> Vec<Reference> {
    let reference = |(at, part): (usize, Part)| Reference {
        handle: match at {
            0 => artifact.handle.clone(),
            at => format!("{}/{at}", artifact.handle),
        },
        media_type: part.media_type,
        size_bytes: part.bytes.len(),
        label: part.label,
    };
    parts(artifact).into_iter().enumerate().map(reference).collect()
}

/// A handle taken apart: the artifact's, and which part.
pub fn split_handle(handle: &str) -> (&str, usize) {
    let handle = handle.strip_prefix("artifact://").unwrap_or(handle);
    match handle.rsplit_once('/').and_then(|(own, at)| Some((own, at.parse().ok()?))) {
        Some((own, at)) => (own, at),
        None => (handle, 0),
    }
}

impl Envelope {
    /// The envelope of a kept answer.
    pub fn of(artifact: &Artifact, tool_id: &str, repairs: &[Repair], is_error: bool) -> Envelope {
        let reply = Reply::Result(artifact.result.clone());
        let result = reply.tool_result();
        let mut provenance = Map::new();
        provenance.insert("tool_id".to_owned(), tool_id.into());
        if !repairs.is_empty() {
            let repairs = serde_json::to_value(repairs).unwrap_or_default();
            provenance.insert("arg_repairs".to_owned(), repairs);
        }
        let meta = artifact.result.member("_meta");
        if meta.and_then(|meta| meta.member_as::<bool>(CACHE_HIT)) == Some(true) {
            provenance.insert("cache_hit".to_owned(), true.into());
        }
        let reading = result.as_ref().map(Reading::of);
        let text = reading.as_ref().and_then(Reading::main).unwrap_or_default();
        let outline = Outline::of(text);
        Envelope {
            status: if is_error { Status::Error } else { Status::Ok },
            summary: summary(result.as_ref(), text, &outline, artifact.chars),
            facts: facts(text, &outline),
            artifacts: artifact.parts().to_vec(),
            provenance,
        }
    }

    /// The envelope of an answer that could not be kept: its beginning, and
    /// why there is no more.
    #[must_use]
    pub fn unkept(self, artifact: &Artifact, over: &Over, why: TooLong) -> Envelope {
        let what = self.summary.split("; ").next().unwrap_or_default();
        let summary = format!(
            "{what}; {} chars, not kept: {why}. Executing it again runs it again. It begins:\n{}",
            over.chars,
            gate::beginning(artifact, over),
        );
        let status = match self.status {
            Status::Ok | Status::Partial => Status::Partial,
            Status::Error => Status::Error,
        };
        Envelope { status, summary, artifacts: Vec::new(), ..self }
    }

    /// The envelope as a tool result.
    pub fn to_reply(&self) -> Reply {
        let text = Json::encode(self);
        let content = serde_json::json!([{"type": "text", "text": text.as_str()}]);
        let result = match self.status {
            Status::Error => serde_json::json!({"content": content, "isError": true}),
            Status::Ok | Status::Partial => serde_json::json!({"content": content}),
        };
        Reply::Result(result.into())
    }
}

/// What kind of data it is, how much, and how it begins.
fn summary(result: Option<&ToolResult>, text: &str, outline: &Outline<'_>, chars: usize) -> String {
    let shape = result.map(Shape::of);
    let what = shape.as_ref().map_or_else(|| "result".to_owned(), Shape::describe);
    let mut summary = format!("{what}; {chars} chars, kept. ");
    match outline.first_rows() {
        Some(rows) => summary.push_str(&format!("First rows: {rows}")),
        None => {
            let lines: Vec<String> =
                text.lines().filter(|line| !line.trim().is_empty()).take(ROWS).map(short).collect();
            summary.push_str(&lines.join("\n"));
        }
    }
    summary.trim_end().to_owned()
}

/// Short `key: value` lines and scalar members that the summary does not show.
fn facts(text: &str, outline: &Outline<'_>) -> Vec<String> {
    if let Some(facts) = outline.facts() {
        return facts.take(FACTS).collect();
    }
    let told = ["error", "failed", "warning", "total", "exception", "success"];
    let telling = |line: &&str| {
        let folded = line.to_lowercase();
        line.chars().count() <= ROW && told.iter().any(|word| folded.contains(word))
    };
    let mut facts: Vec<String> = Vec::new();
    for line in text.lines().skip(ROWS).map(str::trim).filter(telling) {
        if facts.len() == FACTS {
            break;
        }
        if !facts.iter().any(|fact| fact == line) {
            facts.push(line.to_owned());
        }
    }
    facts
}

fn short(line: &str) -> String {
    catalog::summary::cut(line.trim(), ROW)
}

fn media_type(text: &str) -> &'static str {
    let start = text.trim_start();
    match start.starts_with(['{', '['])
        && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
    {
        true => "application/json",
        false => match view::delimiter(text) {
            Some('\t') => "text/tab-separated-values",
            Some(_) => "text/csv",
            None => "text/plain",
        },
    }
}

/// A block that is a part by itself: binary data, or an embedded resource.
fn block(block: &Json) -> Option<Part> {
    let text = |json: &Json, key: &str| json.member_as::<String>(key);
    let kind = text(block, "type").unwrap_or_default();
    let decoded = |data: String| BASE64.decode(&data).unwrap_or_else(|_| data.into_bytes());
    match kind.as_str() {
        "image" | "audio" => {
            let default = if kind == "image" { "image/png" } else { "audio/wav" };
            let media_type = text(block, "mimeType").unwrap_or_else(|| default.to_owned());
            Some(Part { media_type, label: kind, bytes: decoded(text(block, "data")?) })
        }
        "resource" => {
            let resource = block.member("resource")?;
            let bytes = match (text(&resource, "text"), text(&resource, "blob")) {
                (Some(text), _) => text.into_bytes(),
                (None, Some(blob)) => decoded(blob),
                (None, None) => return None,
            };
            let media_type = text(&resource, "mimeType");
            let media_type = media_type.unwrap_or_else(|| "application/octet-stream".to_owned());
            Some(Part { media_type, label: text(&resource, "uri").unwrap_or_default(), bytes })
        }
        "resource_link" => Some(Part {
            media_type: "text/uri-list".to_owned(),
            label: text(block, "name").unwrap_or_default(),
            bytes: text(block, "uri")?.into_bytes(),
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tool::Context;

    use super::*;
    use crate::artifact::Owner;

    fn artifact(result: Value) -> Artifact {
        Artifact {
            handle: "h1".to_owned(),
            owner: Owner::of(&Context::anonymous()),
            made: 0,
            upstream: "up".to_owned(),
            tool: "t".to_owned(),
            id: String::new(),
            key: String::new(),
            raw: None,
            parts: crate::artifact::Parts::default(),
            chars: result.to_string().chars().count(),
            result: result.into(),
        }
    }

    #[test]
    fn a_summary_says_what_it_is_and_shows_whole_rows() {
        let rows: Vec<Value> = (0..900).map(|n| json!({"id": n, "name": "x"})).collect();
        let text = json!({"total": 900, "items": rows}).to_string();
        let artifact = artifact(json!({"content": [{"type": "text", "text": text}]}));
        let envelope = Envelope::of(&artifact, "up:t#1", &[], false);
        assert_eq!(envelope.status, Status::Ok);
        assert!(
            envelope.summary.contains("900 items at `.items`, each with id, name"),
            "{envelope:?}"
        );
        assert!(
            envelope
                .summary
                .ends_with(r#"[{"id":0,"name":"x"},{"id":1,"name":"x"},{"id":2,"name":"x"}]"#),
            "{}",
            envelope.summary
        );
        assert_eq!(envelope.facts, ["total: 900"]);
        assert_eq!(envelope.artifacts[0].handle, "h1");
        assert_eq!(envelope.artifacts[0].media_type, "application/json");
    }

    #[test]
    fn every_part_is_listed_and_can_be_had() {
        let artifact = artifact(json!({
            "content": [
                {"type": "text", "text": "captured: ok"},
                {"type": "image", "data": "iVBORw==", "mimeType": "image/png"},
                {"type": "resource", "resource": {"uri": "a://b", "blob": "AAEC"}},
                {"type": "resource_link", "uri": "a://c", "name": "see"},
            ],
            "structuredContent": {"ok": true},
        }));
        let envelope = Envelope::of(&artifact, "up:t#1", &[], false);
        let handles: Vec<&str> =
            envelope.artifacts.iter().map(|part| part.handle.as_str()).collect();
        assert_eq!(handles, ["h1", "h1/1", "h1/2", "h1/3", "h1/4"]);
        let kinds: Vec<&str> =
            envelope.artifacts.iter().map(|part| part.media_type.as_str()).collect();
        assert_eq!(
            kinds,
            [
                "text/plain",
                "image/png",
                "application/octet-stream",
                "text/uri-list",
                "application/json"
            ]
        );
        for (at, handle) in handles.iter().enumerate() {
            assert_eq!(split_handle(handle), ("h1", at));
            assert!(part(&artifact, at).is_some());
        }
        assert_eq!(part(&artifact, 1).unwrap().bytes, [0x89, 0x50, 0x4e, 0x47]);
        assert_eq!(part(&artifact, 5), None);
    }

    #[test]
    fn facts_add_what_the_summary_does_not_show() {
        let mut lines: Vec<String> = (0..200).map(|n| format!("step {n}")).collect();
        lines.push("ERROR: disk full".to_owned());
        lines.push("total: 7".to_owned());
        let artifact = artifact(json!({"content": [{"type": "text", "text": lines.join("\n")}]}));
        let envelope = Envelope::of(&artifact, "up:t#1", &[], true);
        assert_eq!(envelope.facts, ["ERROR: disk full", "total: 7"]);
        assert_eq!(envelope.status, Status::Error);
        assert!(envelope.summary.contains("202 lines"), "{}", envelope.summary);
    }

    #[test]
    fn odd_results_have_a_part_too() {
        for odd in [json!({"content": []}), json!({"contents": [1]}), json!({"x": "y"})] {
            assert!(!parts(&artifact(odd)).is_empty());
        }
    }
}
