//! `tool_execute`: runs one tool by its id, or a batch.

use catalog::directory::Entry;
use catalog::selection::{self, Reason, Repair, Repairs};
use catalog::summary::cut;
use catalog::{ItemRef, Problem, Slot};
use serde_json::{Map, Value, json};
use tool::{Json, Object, Reply};

use super::arguments::NamedUpstream;
use super::batch;
use super::request::{
    Answer, MAX_SUGGESTIONS, Meta, MetaTools, bad_argument, missing_argument, parse_arguments,
    refusal_error, string_argument,
};
use crate::choice::Surface;
use crate::dispatch::{CallError, Outcome, Plan};
use crate::error::GatewayError;
use crate::surface::answer::{Effect, polish};
use crate::surface::artifact_resources;
use crate::surface::batch::Oversized;
use crate::surface::stripped::{StrippedTools, encode};
use artifacts::envelope::{Envelope, Provenance};
use artifacts::pick::{Pick, PickError};
use artifacts::{Artifact, TooLarge};
use policy::admission::Admission;
use policy::argument_repair;
use policy::call::{CallMode, Request};
use policy::code::Code;
use policy::confirm;

/// The most characters of a signature in an error.
const MAX_SIGNATURE: usize = 300;

/// Which part of an answer is returned, and how long it may be.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReplyPart {
    /// The part that the caller picks; `None` for all of it.
    pub(crate) pick: Option<Pick>,
    /// The most characters of the answer, if the call is one of a batch.
    pub(crate) share: Option<usize>,
}

impl Meta<'_> {
    /// Answers `tool_execute`.
    pub(super) async fn execute(&self, arguments: Option<&Json>) -> Answer {
        match batch::calls(arguments) {
            Some(calls) => self.execute_batch(&calls).await,
            None => self.execute_one(arguments, self.rest.clone(), None).await,
        }
    }

    /// Runs one tool, whose answer may have at most `share` characters.
    pub(super) async fn execute_one(
        &self,
        arguments: Option<&Json>,
        rest: Object,
        share: Option<usize>,
    ) -> Answer {
        let given = parse_arguments(arguments)?;
        let id = string_argument(&given, "tool_id")?.ok_or_else(|| missing_argument("tool_id"))?;
        let mode = match given.get("dry_run") {
            None | Some(Value::Null | Value::Bool(false)) => CallMode::Strict,
            Some(Value::Bool(true)) => CallMode::DryRun,
            Some(_) => return Err(bad_argument("`dry_run` must be true or false")),
        };
        let member = |key| arguments.and_then(|arguments| arguments.member(key));
        let pick = member("pick").filter(|pick| !pick.is_null());
        let pick = pick.map(|pick| Pick::parse(&pick)).transpose();
        let pick = pick.map_err(|why| bad_argument(&format!("`pick`: {why}")))?;
        self.execute_by_id(&id, member("args"), rest, ReplyPart { pick, share }, mode).await
    }

    /// Runs a tool by its id, with unchecked arguments. `rest` is the parameters beside
    /// them.
    pub(crate) async fn execute_by_id(
        &self,
        id: &str,
        args: Option<Json>,
        mut rest: Object,
        part: ReplyPart,
        mode: CallMode,
    ) -> Answer {
        let ReplyPart { pick, share } = part;
        let (entry, slot, repaired) = self.resolve(id)?;
        let contract = self.snapshot.catalog.contract(slot);
        if let Some(damage) = contract.schema_error() {
            let message = self.tools.pipeline.scrubber.scrub_to_line(damage);
            return Err(GatewayError::new(Code::SchemaInvalid, message, &entry.id));
        }
        let mut args = args.filter(|args| !args.is_null()).unwrap_or_else(Json::empty_object);
        confirm::move_to_meta_unless_declared(&mut args, contract, &mut rest);
        if let Some(problem) = confirm::find_yes_instead_of_token(&args, contract) {
            return Err(bad_argument(&problem.to_string()));
        }
        let (args, repairs) = self.repaired_args(args, slot);
        if !args.is_object() {
            return Err(bad_argument("`args` must be an object"));
        }
        let target = self.snapshot.target(slot);
        let request = Request { rest, pick, share, mode, ..Request::new(target, args) };
        let note = repaired.map(|_| format!("[tool_id read as {}]", entry.id));
        let to_reply = |outcome| {
            let oversized = share.and_then(|_| Oversized::of_outcome(&outcome));
            let reply = self.call_reply(entry, slot, &repairs, note.as_deref(), outcome);
            let reply = reply.unwrap_or_else(|error| error.to_reply());
            match oversized {
                Some(oversized) => oversized.mark(reply),
                None => reply,
            }
        };
        let MetaTools { pipeline, origin, .. } = self.tools;
        Ok(pipeline.dispatch(self.snapshot, request, *origin, self.context, to_reply).await)
    }

    /// Turns the outcome of a call into a reply. `note` is added to it.
    fn call_reply(
        &self,
        entry: &Entry,
        slot: Slot,
        repairs: &[argument_repair::Repair],
        note: Option<&str>,
        outcome: Result<Outcome, CallError>,
    ) -> Answer {
        match outcome {
            Ok(Outcome::Reply(Reply::Error(refusal))) => {
                let scrubber = &self.tools.pipeline.scrubber;
                Err(GatewayError::from_rpc_error(&refusal, &entry.id, scrubber))
            }
            Ok(Outcome::Reply(reply)) => {
                self.tools.tasks.remember_call(self.snapshot, slot, self.context, &reply);
                self.note(&entry.id);
                let same_data = self.tools.pipeline.gate.load().same_data;
                let effect = Effect::of_tool(self.snapshot.catalog.tool(slot));
                let reply = polish(reply, same_data, effect);
                Ok(with_note(with_repairs(reply, repairs), note))
            }
            Ok(Outcome::Kept { artifact, over }) => {
                self.note(&entry.id);
                let envelope = envelope_of(&artifact, entry, repairs, over.is_error);
                Ok(with_note(envelope.to_reply(), note))
            }
            Ok(Outcome::Unkept { artifact, over, why, beginning }) => {
                self.note(&entry.id);
                let envelope = envelope_of(&artifact, entry, repairs, over.is_error);
                Ok(with_note(envelope.unkept(&over, why, &beginning).to_reply(), note))
            }
            Ok(Outcome::Unpicked { artifact, why, stored }) => {
                self.note(&entry.id);
                Ok(with_note(pick_failed(&artifact, &why, stored), note))
            }
            Ok(Outcome::Plan(plan)) => Ok(Reply::text(&self.plan(entry, slot, &plan).to_string())),
            Err(error) => Err(self.call_error(entry, slot, &error)),
        }
    }

    /// Resolves an id to a tool that the caller sees. Returns how the id was repaired, if it
    /// was.
    pub(crate) fn resolve(&self, id: &str) -> Result<(&Entry, Slot, Option<Repair>), GatewayError> {
        let section = &self.directory().tools;
        // A tool that the caller may not see counts as unknown.
        let exact = |id: &str| section.get(id).filter(|at| self.shows(&section.entries()[*at]));
        // If tools are listed by name, the name may be given instead of the id.
        let id_of_name = self.id_of_name(id);
        let exact = exact(id).or_else(|| exact(id_of_name.as_deref()?));
        let (at, repair) = match exact {
            Some(at) => (at, None),
            None => {
                let ids: Vec<&str> = section
                    .entries()
                    .iter()
                    .filter(|entry| self.shows(entry))
                    .map(|entry| entry.id.as_str())
                    .collect();
                let found = selection::resolve(id.trim(), &ids, Repairs::Allowed);
                let found = found.or_else(|reason| {
                    let id_of_name = id_of_name.as_deref().ok_or(reason)?;
                    selection::resolve(id_of_name, &ids, Repairs::Allowed).map_err(|_| reason)
                });
                let (found, repair) = found.map_err(|reason| self.unknown(id, reason, &ids))?;
                let at = section
                    .get(found)
                    .ok_or_else(|| self.unknown(id, Reason::NotACandidate, &[]))?;
                (at, Some(repair.unwrap_or(Repair::Strip)))
            }
        };
        let entry = &section.entries()[at];
        match entry.item {
            ItemRef::Tool(slot) if self.sees(slot) => Ok((entry, slot, repair)),
            ItemRef::Tool(_)
            | ItemRef::Resource { .. }
            | ItemRef::Template { .. }
            | ItemRef::Prompt { .. }
            | ItemRef::Skill { .. } => Err(self.unknown(id, Reason::NotACandidate, &[])),
        }
    }

    /// Returns whether the surface lists every tool under a name made of its id.
    fn lists_names(&self) -> bool {
        self.tools.origin.surface == Surface::Proxy
    }

    /// Returns the id of a listed name.
    fn id_of_name(&self, name: &str) -> Option<String> {
        if self.lists_names() {
            StrippedTools::of(self.snapshot).id_of_name(name.trim())
        } else {
            None
        }
    }

    /// Makes the error for an unknown id, with suggestions: ids that begin like it, else
    /// similar ones.
    fn unknown(&self, id: &str, reason: Reason, ids: &[&str]) -> GatewayError {
        if let Some(error) = self.unlisted_error(id) {
            return error;
        }
        let head = id.trim().to_lowercase();
        let message = match reason {
            Reason::AmbiguousPrefix | Reason::AmbiguousCaseFold => {
                "several tools begin like this id"
            }
            Reason::EmptySelection | Reason::NotACandidate if self.lists_names() => {
                "no tool has this name or id; tools/list has them all"
            }
            Reason::EmptySelection | Reason::NotACandidate => {
                "no tool has this id; find it with tool_browse"
            }
        };
        let error = GatewayError::new(Code::HydrateFailed, message, id);
        let begins = |id: &&&str| !head.is_empty() && id.to_lowercase().starts_with(&head);
        let mut near: Vec<&str> =
            ids.iter().filter(begins).take(MAX_SUGGESTIONS).copied().collect();
        if near.is_empty() && !head.is_empty() {
            near = self.similar_ids(id.trim());
        }
        if near.is_empty() {
            return error;
        }
        let written = |id: &str| if self.lists_names() { encode(id) } else { id.to_owned() };
        error.detail("candidates", near.into_iter().map(written).collect::<Vec<_>>())
    }

    /// Makes the error for an id of an upstream that was never listed, which may have the
    /// tool.
    fn unlisted_error(&self, id: &str) -> Option<GatewayError> {
        let label = NamedUpstream::by_id(self.id_of_name(id).as_deref().unwrap_or(id)).upstream;
        let (label, reason) = self.unlisted_upstream(&label)?;
        let message = format!("nothing is known of `{label}` now: {reason}");
        Some(GatewayError::new(Code::UpstreamUnavailable, message, id).retryable(true))
    }

    /// Returns similar ids of tools that the caller sees.
    fn similar_ids(&self, id: &str) -> Vec<&str> {
        let (catalog, directory) = (&self.snapshot.catalog, self.directory());
        let id = id.split('#').next().unwrap_or(id);
        let (label, name) = id.split_once([':', '/', '.']).unwrap_or(("", id));
        let entry =
            |slot: Slot| Some(&directory.tools.entries()[directory.position(ItemRef::Tool(slot))?]);
        let keep = |slot| self.sees(slot) && entry(slot).is_some_and(|entry| self.shows(entry));
        let by = self.guessed_by();
        let near = catalog.nearest_functions(label, name, MAX_SUGGESTIONS, by, &keep);
        near.into_iter().filter_map(|slot| entry(slot).map(|entry| entry.id.as_str())).collect()
    }

    /// Repairs arguments if that is configured. Returns what was repaired, too.
    fn repaired_args(&self, args: Json, slot: Slot) -> (Json, Vec<argument_repair::Repair>) {
        if !self.config().tolerant {
            return (args, Vec::new());
        }
        let schema = self.snapshot.catalog.tool(slot).input_schema.to_value();
        let (Ok(value), Ok(schema)) = (args.to_value(), schema) else { return (args, Vec::new()) };
        let (repaired, repairs) = argument_repair::repair(value, &schema);
        match repairs.is_empty() {
            true => (args, repairs),
            false => (repaired.into(), repairs),
        }
    }

    /// Renders a dry run, with the checks that the call would pass or fail.
    fn plan(&self, entry: &Entry, slot: Slot, plan: &Plan) -> Value {
        let in_force = self.tools.pipeline.live.now();
        let Plan { call, is_within_limits } = plan;
        let annotations = self.snapshot.catalog.tool(slot).raw.member("annotations");
        let annotations = annotations.and_then(|annotations| annotations.to_value().ok());
        let mut declared: Map<String, Value> = match annotations {
            Some(Value::Object(declared)) => declared,
            _ => Map::new(),
        };
        declared.insert("verified".to_owned(), false.into());
        let verdict = |passed: bool| if passed { "pass" } else { "fail" };
        let mut checks = vec![
            json!({"name": "schema_validation", "status": "pass"}),
            json!({"name": "rate_limit", "status": verdict(*is_within_limits)}),
        ];
        let policy = match in_force.admit(&self.snapshot.catalog, call, self.context) {
            Ok(Admission::Free) => None,
            Ok(Admission::Ask(_)) => Some(Code::AuthRequired),
            Err(refusal) => Some(refusal_error(&refusal, "").code),
        };
        if let Some(code) = policy {
            checks.push(json!({"name": "policy", "status": code}));
        }
        json!({
            "dry_run": true,
            "tool_id": entry.id,
            "upstream_name": entry.card.name(),
            "args_valid": true,
            "annotations": declared,
            "checks": checks,
        })
    }

    /// Turns a call error into an error of this surface.
    fn call_error(&self, entry: &Entry, slot: Slot, error: &CallError) -> GatewayError {
        match error {
            CallError::BadArguments { problems } => {
                let messages: Vec<String> = problems.iter().map(Problem::to_string).collect();
                let each: Vec<Value> = problems
                    .iter()
                    .map(|problem| json!({"at": problem.at, "message": problem.message}))
                    .collect();
                GatewayError::new(Code::ArgsInvalid, messages.join("; "), &entry.id)
                    .detail("problems", each)
                    .detail(
                        "signature",
                        self.snapshot.catalog.shaped_signature(slot, MAX_SIGNATURE),
                    )
            }
            CallError::Refused(refusal) => refusal_error(refusal, &entry.id),
            CallError::Failed { cause, .. } => {
                let scrubber = &self.tools.pipeline.scrubber;
                GatewayError::from_failure(cause, &entry.id, scrubber)
            }
        }
    }
}

/// Makes the envelope of a stored answer.
fn envelope_of(
    artifact: &Artifact,
    entry: &Entry,
    repairs: &[argument_repair::Repair],
    is_error: bool,
) -> Envelope {
    let arg_repairs = (!repairs.is_empty()).then(|| json!(repairs));
    let provenance = artifact_resources::provenance(artifact, &entry.id);
    let provenance = Provenance { arg_repairs: arg_repairs.as_ref(), ..provenance };
    Envelope::new(artifact, provenance, is_error)
}

/// Says that the part of a result that was asked for could not be picked, what the result
/// looks like, and where it is stored.
fn pick_failed(artifact: &Artifact, why: &PickError, stored: Result<(), TooLarge>) -> Reply {
    let shape = why.shape().or(artifact.overview().shape.as_ref());
    let mut report = json!({
        "status": if matches!(why, PickError::TooLong { .. }) { "partial" } else { "error" },
        "pick": why.to_string(),
        "result": shape.map(|shape| cut(&shape.describe(), 300)),
        "chars": artifact.chars,
    });
    match stored {
        Ok(()) => {
            report["handle"] = json!(artifact.handle);
            report["next"] = json!(
                "the tool ran: read its result with tool_view, or execute it with another \
                 `pick`, which does not run it again"
            );
        }
        Err(large) => {
            report["next"] = json!(format!("the tool ran; its result is not kept: {large}"))
        }
    }
    match why {
        PickError::TooLong { .. } => Reply::text(&report.to_string()),
        PickError::NoData | PickError::Program { .. } => Reply::error_text(&report.to_string()),
    }
}

/// Adds the repairs to the `_meta` of a reply, where they cost no tokens.
fn with_repairs(reply: Reply, repairs: &[argument_repair::Repair]) -> Reply {
    let Reply::Result(json) = &reply else { return reply };
    if repairs.is_empty() {
        return reply;
    }
    let Ok(mut result) = Object::parse(json) else { return reply };
    let meta = result.get("_meta").and_then(|meta| Object::parse(meta).ok());
    let mut meta = meta.unwrap_or_default();
    meta.set("gatelet/arg_repairs", Json::encode(repairs));
    result.set("_meta", meta.to_json());
    Reply::Result(result.to_json())
}

/// Adds a line to the content of a reply, if one is given.
fn with_note(reply: Reply, line: Option<&str>) -> Reply {
    let (Reply::Result(json), Some(line)) = (&reply, line) else { return reply };
    let Ok(mut result) = Object::parse(json) else { return reply };
    let content = result.get("content").and_then(|content| content.parse_as::<Vec<Json>>().ok());
    let mut content = content.unwrap_or_default();
    content.push(json!({"type": "text", "text": line}).into());
    result.set("content", Json::encode(&content));
    Reply::Result(result.to_json())
}
