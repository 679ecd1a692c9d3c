//! The envelope: what a model reads in place of a result that is too long.
//!
//! A summary of what kind of data it is, facts that add something, and where
//! every part of it is kept. Never a cut in the middle of a value.

use serde::Serialize;
use serde_json::{Map, Value};
use tool::{Json, Reply};

use crate::artifact::Artifact;
use crate::gate::Over;
use crate::part;
use crate::store::TooLarge;

pub use crate::part::{Part, PartRef, split_handle};

/// What goes out.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Envelope {
    pub status: Status,
    pub summary: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub facts: Vec<String>,
    pub artifacts: Vec<PartRef>,
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

/// Where an answer comes from.
#[derive(Clone, Copy, Debug)]
pub struct Provenance<'a> {
    pub tool_id: &'a str,
    /// How the call's arguments were repaired, as JSON; `None` when they were
    /// not.
    pub arg_repairs: Option<&'a Value>,
    /// Whether the answer is one that was given before.
    pub cache_hit: bool,
}

impl<'a> Provenance<'a> {
    /// From this tool, by a call that ran as it was written.
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

/// The parts of a kept answer.
pub fn parts(artifact: &Artifact) -> Vec<Part> {
    part::parts(&artifact.result)
}

/// One of them, by its number in the handle.
pub fn part(artifact: &Artifact, at: usize) -> Option<Part> {
    part::part(&artifact.result, at)
}

impl Envelope {
    /// The envelope of a kept answer.
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

    /// The envelope of an answer that could not be kept: its
    /// [beginning](crate::gate::beginning), and why there is no more.
    #[must_use]
    pub fn unkept(self, over: &Over, why: TooLarge, beginning: &str) -> Envelope {
        let what = self.summary.split("; ").next().unwrap_or_default();
        let summary = format!(
            "{what}; {} chars, not kept: {why}. Executing it again runs it again. It begins:\n{beginning}",
            over.chars,
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

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tool::Context;

    use super::*;
    use crate::artifact::{Owner, Parts};

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
            parts: Parts::default(),
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
