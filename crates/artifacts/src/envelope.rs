//! The envelope: what a model reads in place of a result that is too long.
//!
//! It has a summary of the data, short facts, and the handle of every part. It
//! never shows a value that is cut in the middle.

use serde::Serialize;
use serde_json::{Map, Value};
use tool::{Json, Reply};

use crate::artifact::Artifact;
use crate::gate::Excess;
use crate::part;
use crate::store::TooLarge;

pub use crate::part::{Part, PartRef, split_handle};

/// The JSON that is sent instead of a result.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Envelope {
    pub status: Status,
    pub summary: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub facts: Vec<String>,
    pub artifacts: Vec<PartRef>,
    pub provenance: Map<String, Value>,
}

/// How the call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    Ok,
    /// The call ran, and only part of its result is available.
    Partial,
    Error,
}

/// Where a result comes from.
#[derive(Clone, Copy, Debug)]
pub struct Provenance<'a> {
    pub tool_id: &'a str,
    /// How the arguments of the call were repaired; `None` if they were not.
    pub arg_repairs: Option<&'a Value>,
    /// Whether the result is that of an earlier call.
    pub cache_hit: bool,
}

impl<'a> Provenance<'a> {
    /// Creates the provenance of a call that ran with its arguments as they were.
    pub fn of_tool(tool_id: &'a str) -> Provenance<'a> {
        Provenance { tool_id, arg_repairs: None, cache_hit: false }
    }

    fn members(self) -> Map<String, Value> {
        let mut members = Map::new();
        members.insert("tool_id".to_owned(), self.tool_id.into());
        if let Some(repairs) = self.arg_repairs {
            members.insert("arg_repairs".to_owned(), repairs.clone());
        }
        if self.cache_hit {
            members.insert("cache_hit".to_owned(), true.into());
        }
        members
    }
}

/// Returns the parts of a stored result.
pub fn parts(artifact: &Artifact) -> Vec<Part> {
    part::parts(&artifact.result)
}

/// Returns one part of a stored result, by its index in the handle.
pub fn part(artifact: &Artifact, index: usize) -> Option<Part> {
    part::part(&artifact.result, index)
}

impl Envelope {
    /// Creates the envelope of a stored result.
    pub fn new(artifact: &Artifact, provenance: Provenance<'_>, is_error: bool) -> Envelope {
        let overview = artifact.overview();
        Envelope {
            status: if is_error { Status::Error } else { Status::Ok },
            summary: overview.summary.clone(),
            facts: overview.facts.clone(),
            artifacts: artifact.parts().to_vec(),
            provenance: provenance.members(),
        }
    }

    /// Turns this into the envelope of a result that could not be stored: its
    /// [beginning](crate::gate::beginning), and why the rest is lost.
    #[must_use]
    pub fn unkept(self, excess: &Excess, why: TooLarge, beginning: &str) -> Envelope {
        let kind = self.summary.split("; ").next().unwrap_or_default();
        let summary = format!(
            "{kind}; {} chars, not kept: {why}. Executing it again runs it again. It begins:\n{beginning}",
            excess.chars,
        );
        let status = match self.status {
            Status::Ok | Status::Partial => Status::Partial,
            Status::Error => Status::Error,
        };
        Envelope { status, summary, artifacts: Vec::new(), ..self }
    }

    /// Makes a tool result of the envelope.
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

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tool::Context;

    use super::*;
    use crate::artifact::{Owner, PartIndex};

    fn artifact(result: Value) -> Artifact {
        Artifact {
            handle: "h1".to_owned(),
            owner: Owner::from_context(&Context::anonymous()),
            made: 0,
            upstream: "up".to_owned(),
            tool: "t".to_owned(),
            id: String::new(),
            key: String::new(),
            raw: None,
            parts: PartIndex::default(),
            chars: result.to_string().chars().count(),
            result: result.into(),
        }
    }

    #[test]
    fn a_summary_says_what_it_is_and_shows_whole_rows() {
        let rows: Vec<Value> = (0..900).map(|n| json!({"id": n, "name": "x"})).collect();
        let text = json!({"total": 900, "items": rows}).to_string();
        let artifact = artifact(json!({"content": [{"type": "text", "text": text}]}));
        let envelope = Envelope::new(&artifact, Provenance::of_tool("up:t#1"), false);
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
        let envelope = Envelope::new(&artifact, Provenance::of_tool("up:t#1"), false);
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
        let envelope = Envelope::new(&artifact, Provenance::of_tool("up:t#1"), true);
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
