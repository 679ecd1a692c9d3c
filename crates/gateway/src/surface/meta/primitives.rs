//! `resource_read` and `prompt_get`.

use catalog::directory::{Entry, Place, Section};
use catalog::selection::{self, Repairs};
use serde_json::{Value, json};
use tool::{Ask, GetPrompt, Json, Object, Read, Reply};

use super::{Answer, Meta, bad, members, missing, text};
use crate::artifact::{Artifact, Owner};
use crate::envelope::Envelope;
use crate::error::{Code, GatewayError};
use crate::gate;
use crate::record::{Ending, Open};

impl Meta<'_> {
    pub(super) async fn read(&self, arguments: Option<&Json>) -> Answer {
        let given = members(arguments)?;
        let id = text(&given, "resource_id")?.ok_or_else(|| missing("resource_id"))?;
        let entry = self.find(&self.directory().resources, &id, Code::ResourceNotFound)?;
        let Place::Resource { source, at } = entry.place else {
            return Err(missing("resource_id"));
        };
        let uri = self.snapshot.catalog.sources()[source].listing.resources[at].uri.clone();
        let ask = Ask::Read(Read { uri, rest: Object::new() });
        self.asked(entry, source, ask, read_as_result).await
    }

    pub(super) async fn prompt(&self, arguments: Option<&Json>) -> Answer {
        let given = members(arguments)?;
        let id = text(&given, "prompt_id")?.ok_or_else(|| missing("prompt_id"))?;
        let entry = self.find(&self.directory().prompts, &id, Code::PromptNotFound)?;
        let Place::Prompt { source, at } = entry.place else { return Err(missing("prompt_id")) };
        let prompt = &self.snapshot.catalog.sources()[source].listing.prompts[at];
        let args = arguments.and_then(|arguments| arguments.member("args"));
        let args = args.filter(|args| !args.is_null()).unwrap_or_else(Json::empty_object);
        let Ok(Value::Object(values)) = args.value() else {
            return Err(bad("`args` must be an object"));
        };
        let absent: Vec<&str> = prompt
            .arguments
            .iter()
            .filter(|argument| argument.required && !values.contains_key(&argument.name))
            .map(|argument| argument.name.as_str())
            .collect();
        if !absent.is_empty() {
            let message = format!("missing: {}", absent.join(", "));
            return Err(GatewayError::new(Code::ArgsInvalid, message, &entry.id));
        }
        let ask = Ask::Prompt(GetPrompt {
            name: prompt.name.clone(),
            arguments: Some(args),
            rest: Object::new(),
        });
        self.asked(entry, source, ask, prompt_as_result).await
    }

    /// What an id means, among what the caller sees.
    fn find<'s>(
        &self,
        section: &'s Section,
        id: &str,
        code: Code,
    ) -> Result<&'s Entry, GatewayError> {
        let exact = section.get(id).filter(|at| self.shows(&section.entries()[*at]));
        let at = exact.or_else(|| {
            let seen = section.entries().iter().filter(|entry| self.shows(entry));
            let ids: Vec<&str> = seen.map(|entry| entry.id.as_str()).collect();
            let (found, _) = selection::resolve(id.trim(), &ids, Repairs::Allowed).ok()?;
            section.get(found)
        });
        let unknown = || GatewayError::new(code, "nothing has this id; browse for it", id);
        at.map(|at| &section.entries()[at]).ok_or_else(unknown)
    }

    /// Asks, and passes the answer through the same gate as every other.
    async fn asked(
        &self,
        entry: &Entry,
        source: usize,
        ask: Ask,
        as_result: fn(&Json) -> Json,
    ) -> Answer {
        let dispatcher = &self.shared.dispatcher;
        let label = self.snapshot.catalog.sources()[source].label.clone();
        let mut record = dispatcher.desk.open(self.surface, self.context);
        record.note(|record| {
            record.upstream.clone_from(&label);
            record.tool.clone_from(&entry.id);
            record.attempts = 1;
        });
        let scrubber = &dispatcher.stages.scrubber;
        let answer = match self.snapshot.ask(source, ask, self.context).await {
            Ok(Reply::Result(json)) => {
                let result = scrubber.scrub_json(&as_result(&json));
                record.note(|record| {
                    record.raw = Some(json);
                    record.ending = Ending::Answered;
                });
                Ok(self.gated(entry, label, result, &mut record).await)
            }
            Ok(Reply::Error(refusal)) => {
                record.note(|record| record.ending = Ending::ToolError);
                Err(GatewayError::of_refusal(&refusal, &entry.id, scrubber))
            }
            Err(failure) => {
                record.note(|record| record.ending = Ending::Failed(failure.to_string()));
                Err(GatewayError::of_failure(&failure, &entry.id, scrubber))
            }
        };
        let reply = answer.unwrap_or_else(|error| error.to_reply());
        record.close(match &reply {
            Reply::Result(json) => json,
            Reply::Error(error) => &error.raw,
        });
        Ok(reply)
    }

    /// The answer when it is short enough, or what stands for it.
    async fn gated(&self, entry: &Entry, label: String, result: Json, record: &mut Open) -> Reply {
        let dispatcher = &self.shared.dispatcher;
        let gated = gate::decide(Reply::Result(result.clone()), dispatcher.gate.limit(None));
        let Some(over) = gated.over() else { return Reply::Result(result) };
        let owner = Owner::of(self.context);
        let artifact = Artifact {
            handle: Artifact::new_handle(&owner),
            owner,
            made: dispatcher.desk.clock.unix_millis(),
            upstream: label,
            tool: entry.id.clone(),
            key: String::new(),
            chars: over.chars,
            result,
        };
        dispatcher.artifacts.put(artifact.clone()).await;
        record.note(|record| record.ending = Ending::Gated);
        Envelope::of(&artifact, &entry.id, &[], false).to_reply()
    }
}

/// What was read, as the content of a tool result: text as text, images as
/// images, everything else as embedded resources.
fn read_as_result(json: &Json) -> Json {
    let contents: Vec<Json> = json.member_as("contents").unwrap_or_default();
    let block = |content: &Json| -> Json {
        if let Some(text) = content.member_as::<String>("text") {
            return json!({"type": "text", "text": text}).into();
        }
        let media_type = content.member_as::<String>("mimeType").unwrap_or_default();
        let blob = content.member_as::<String>("blob").unwrap_or_default();
        let native = ["image", "audio"].into_iter().find(|kind| media_type.starts_with(kind));
        match native {
            Some(kind) => json!({"type": kind, "data": blob, "mimeType": media_type}).into(),
            None => {
                let mut embedded = Object::new();
                embedded.push("type", Json::of("resource"));
                embedded.push("resource", content.clone());
                embedded.to_json()
            }
        }
    };
    result_of(&contents.iter().map(block).collect::<Vec<_>>())
}

/// A rendered prompt: every message, with who says it.
fn prompt_as_result(json: &Json) -> Json {
    let messages: Vec<Json> = json.member_as("messages").unwrap_or_default();
    let mut blocks: Vec<Json> = Vec::new();
    for message in &messages {
        let role: String = message.member_as("role").unwrap_or_default();
        let content = message.member("content").unwrap_or_else(Json::null);
        let text = content.member_as::<String>("text").or_else(|| content.read().ok());
        match text {
            Some(text) => {
                blocks.push(json!({"type": "text", "text": format!("[{role}] {text}")}).into())
            }
            None => {
                blocks.push(json!({"type": "text", "text": format!("[{role}]")}).into());
                blocks.push(content);
            }
        }
    }
    result_of(&blocks)
}

fn result_of(content: &[Json]) -> Json {
    let mut result = Object::new();
    result.push("content", Json::of(content));
    result.to_json()
}
