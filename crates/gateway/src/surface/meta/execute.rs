//! `tool_execute`.

use catalog::directory::Entry;
use catalog::selection::{self, Reason, Repair, Repairs};
use catalog::summary::cut;
use catalog::{ItemRef, Problem, Slot};
use serde_json::{Map, Value, json};
use tool::{Json, Object, Reply};

use super::arguments::Named;
use super::batch;
use super::request::{Answer, Meta, MetaTools, NEAR, bad, members, missing, refused, text};
use crate::choice::Surface;
use crate::dispatch::{CallError, Outcome, Plan};
use crate::error::GatewayError;
use crate::surface::answer::{Effect, finished};
use crate::surface::artifact_resources;
use crate::surface::batch::Over;
use crate::surface::stripped::{Stripped, encode};
use artifacts::envelope::{Envelope, Provenance};
use artifacts::pick::{Pick, PickError};
use artifacts::{Artifact, TooLarge};
use policy::admission::Admission;
use policy::call::{Mode, Request};
use policy::code::Code;
use policy::confirm;
use policy::tolerant;

/// How much of a signature goes with an error.
const SIGNATURE: usize = 300;

/// How much of an answer is wanted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wanted {
    /// Which part, if not all of it.
    pub(crate) pick: Option<Pick>,
    /// How many characters it may have where it is one of several.
    pub(crate) share: Option<usize>,
}

impl Meta<'_> {
    /// Runs a tool, or several.
    pub(super) async fn execute(&self, arguments: Option<&Json>) -> Answer {
        match batch::calls(arguments) {
            Some(calls) => self.execute_several(&calls).await,
            None => self.execute_one(arguments, self.rest.clone(), None).await,
        }
    }

    /// Runs a tool, whose answer may have at most `share` characters.
    pub(super) async fn execute_one(
        &self,
        arguments: Option<&Json>,
        rest: Object,
        share: Option<usize>,
    ) -> Answer {
        let given = members(arguments)?;
        let id = text(&given, "tool_id")?.ok_or_else(|| missing("tool_id"))?;
        let mode = match given.get("dry_run") {
            None | Some(Value::Null | Value::Bool(false)) => Mode::Strict,
            Some(Value::Bool(true)) => Mode::Plan,
            Some(_) => return Err(bad("`dry_run` must be true or false")),
        };
        let member = |key| arguments.and_then(|arguments| arguments.member(key));
        let pick = member("pick").filter(|pick| !pick.is_null());
        let pick = pick.map(|pick| Pick::read(&pick)).transpose();
        let pick = pick.map_err(|why| bad(&format!("`pick`: {why}")))?;
        self.run(&id, member("args"), rest, Wanted { pick, share }, mode).await
    }

    /// Runs a tool by its id, with its arguments as they came.
    pub(crate) async fn run(
        &self,
        id: &str,
        args: Option<Json>,
        mut rest: Object,
        wanted: Wanted,
        mode: Mode,
    ) -> Answer {
        let Wanted { pick, share } = wanted;
        let (entry, slot, repaired) = self.resolve(id)?;
        let contract = self.snapshot.catalog.contract(slot);
        if let Some(damage) = contract.damage() {
            let message = self.tools.pipeline.scrubber.scrub_to_line(damage);
            return Err(GatewayError::new(Code::SchemaInvalid, message, &entry.id));
        }
        let mut args = args.filter(|args| !args.is_null()).unwrap_or_else(Json::empty_object);
        confirm::lift_from(&mut args, contract, &mut rest);
        if let Some(problem) = confirm::misread(&args, contract) {
            return Err(bad(&problem.to_string()));
        }
        let (args, repairs) = self.tolerated(args, slot);
        if !args.is_object() {
            return Err(bad("`args` must be an object"));
        }
        let target = self.snapshot.target(slot);
        let request = Request { rest, pick, share, mode, ..Request::new(target, args) };
        let note = repaired.map(|_| format!("[tool_id read as {}]", entry.id));
        let say = |outcome| {
            let over = share.and_then(|_| Over::of_outcome(&outcome));
            let said = self.say(entry, slot, &repairs, note.as_deref(), outcome);
            let reply = said.unwrap_or_else(|error| error.to_reply());
            match over {
                Some(over) => over.noted_in(reply),
                None => reply,
            }
        };
        let MetaTools { pipeline, origin, .. } = self.tools;
        Ok(pipeline.dispatch(self.snapshot, request, *origin, self.context, say).await)
    }

    fn say(
        &self,
        entry: &Entry,
        slot: Slot,
        repairs: &[tolerant::Repair],
        note: Option<&str>,
        outcome: Result<Outcome, CallError>,
    ) -> Answer {
        match outcome {
            Ok(Outcome::Reply(Reply::Error(refusal))) => {
                let scrubber = &self.tools.pipeline.scrubber;
                Err(GatewayError::of_refusal(&refusal, &entry.id, scrubber))
            }
            Ok(Outcome::Reply(reply)) => {
                self.tools.tasks.notice_call(self.snapshot, slot, self.context, &reply);
                self.note(&entry.id);
                let same_data = self.tools.pipeline.gate.load().same_data;
                let effect = Effect::of_tool(self.snapshot.catalog.tool(slot));
                let reply = finished(reply, same_data, effect);
                Ok(noted(with_repairs(reply, repairs), note))
            }
            Ok(Outcome::Kept { artifact, over }) => {
                self.note(&entry.id);
                let envelope = enveloped(&artifact, entry, repairs, over.is_error);
                Ok(noted(envelope.to_reply(), note))
            }
            Ok(Outcome::Unkept { artifact, over, why, beginning }) => {
                self.note(&entry.id);
                let envelope = enveloped(&artifact, entry, repairs, over.is_error);
                Ok(noted(envelope.unkept(&over, why, &beginning).to_reply(), note))
            }
            Ok(Outcome::Unpicked { artifact, why, stored }) => {
                self.note(&entry.id);
                Ok(noted(unpicked(&artifact, &why, stored), note))
            }
            Ok(Outcome::Plan(plan)) => Ok(Reply::text(&self.plan(entry, slot, &plan).to_string())),
            Err(error) => Err(self.failed(entry, slot, &error)),
        }
    }

    /// The tool that an id means, and how it was repaired if it was.
    pub(crate) fn resolve(&self, id: &str) -> Result<(&Entry, Slot, Option<Repair>), GatewayError> {
        let section = &self.directory().tools;
        // What the caller may not see is as unknown as what is not there.
        let exact = |id: &str| section.get(id).filter(|at| self.shows(&section.entries()[*at]));
        // Where tools are listed by name, the name means the same.
        let named = self.named(id);
        let exact = exact(id).or_else(|| exact(named.as_deref()?));
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
                    let named = named.as_deref().ok_or(reason)?;
                    selection::resolve(named, &ids, Repairs::Allowed).map_err(|_| reason)
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

    /// Whether every tool is listed, under a name made of its id.
    fn lists_names(&self) -> bool {
        self.tools.origin.surface == Surface::Proxy
    }

    /// The id that a listed name stands for.
    fn named(&self, name: &str) -> Option<String> {
        if self.lists_names() { Stripped::of(self.snapshot).id(name.trim()) } else { None }
    }

    /// What an id that leads nowhere may mean: what begins like it, then what is
    /// spelt or does like it.
    fn unknown(&self, id: &str, reason: Reason, ids: &[&str]) -> GatewayError {
        if let Some(error) = self.away(id) {
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
        let mut near: Vec<&str> = ids.iter().filter(begins).take(NEAR).copied().collect();
        if near.is_empty() && !head.is_empty() {
            near = self.guesses(id.trim());
        }
        if near.is_empty() {
            return error;
        }
        let written = |id: &str| if self.lists_names() { encode(id) } else { id.to_owned() };
        error.detail("candidates", near.into_iter().map(written).collect::<Vec<_>>())
    }

    /// Why nothing is known of the upstream that an id names, if so: whether it
    /// has the tool, nobody can say now.
    fn away(&self, id: &str) -> Option<GatewayError> {
        let label = Named::by_id(self.named(id).as_deref().unwrap_or(id)).upstream;
        let (label, reason) = self.blank(&label)?;
        let message = format!("nothing is known of `{label}` now: {reason}");
        Some(GatewayError::new(Code::UpstreamUnavailable, message, id).retryable(true))
    }

    /// The ids of the tools that an id may mean, of those that the caller sees.
    fn guesses(&self, id: &str) -> Vec<&str> {
        let (catalog, directory) = (&self.snapshot.catalog, self.directory());
        let id = id.split('#').next().unwrap_or(id);
        let (label, name) = id.split_once([':', '/', '.']).unwrap_or(("", id));
        let entry =
            |slot: Slot| Some(&directory.tools.entries()[directory.at(ItemRef::Tool(slot))?]);
        let keep = |slot| self.sees(slot) && entry(slot).is_some_and(|entry| self.shows(entry));
        let by = self.guessed_by();
        let near = catalog.nearest_functions(label, name, NEAR, by, &keep);
        near.into_iter().filter_map(|slot| entry(slot).map(|entry| entry.id.as_str())).collect()
    }

    fn tolerated(&self, args: Json, slot: Slot) -> (Json, Vec<tolerant::Repair>) {
        if !self.config().tolerant {
            return (args, Vec::new());
        }
        let schema = self.snapshot.catalog.tool(slot).input_schema.to_value();
        let (Ok(value), Ok(schema)) = (args.to_value(), schema) else { return (args, Vec::new()) };
        let (repaired, repairs) = tolerant::repair(value, &schema);
        match repairs.is_empty() {
            true => (args, repairs),
            false => (repaired.into(), repairs),
        }
    }

    /// What would happen, with every check that it would meet.
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
            Err(refusal) => Some(refused(&refusal, "").code),
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

    fn failed(&self, entry: &Entry, slot: Slot, error: &CallError) -> GatewayError {
        match error {
            CallError::BadArguments { problems } => {
                let said: Vec<String> = problems.iter().map(Problem::to_string).collect();
                let each: Vec<Value> = problems
                    .iter()
                    .map(|problem| json!({"at": problem.at, "message": problem.message}))
                    .collect();
                GatewayError::new(Code::ArgsInvalid, said.join("; "), &entry.id)
                    .detail("problems", each)
                    .detail("signature", self.snapshot.catalog.shaped_signature(slot, SIGNATURE))
            }
            CallError::Refused(refusal) => refused(refusal, &entry.id),
            CallError::Failed { cause, .. } => {
                let scrubber = &self.tools.pipeline.scrubber;
                GatewayError::of_failure(cause, &entry.id, scrubber)
            }
        }
    }
}

/// The envelope of a tool's kept answer.
fn enveloped(
    artifact: &Artifact,
    entry: &Entry,
    repairs: &[tolerant::Repair],
    is_error: bool,
) -> Envelope {
    let arg_repairs = (!repairs.is_empty()).then(|| json!(repairs));
    let provenance = artifact_resources::provenance(artifact, &entry.id);
    let provenance = Provenance { arg_repairs: arg_repairs.as_ref(), ..provenance };
    Envelope::new(artifact, provenance, is_error)
}

/// Says that the part of a result that was asked for cannot be had, what the
/// result looks like, and where it is kept.
fn unpicked(artifact: &Artifact, why: &PickError, stored: Result<(), TooLarge>) -> Reply {
    let shape = why.shape().or(artifact.overview().shape.as_ref());
    let mut told = json!({
        "status": if matches!(why, PickError::TooLong { .. }) { "partial" } else { "error" },
        "pick": why.to_string(),
        "result": shape.map(|shape| cut(&shape.describe(), 300)),
        "chars": artifact.chars,
    });
    match stored {
        Ok(()) => {
            told["handle"] = json!(artifact.handle);
            told["next"] = json!(
                "the tool ran: read its result with tool_view, or execute it with another \
                 `pick`, which does not run it again"
            );
        }
        Err(large) => {
            told["next"] = json!(format!("the tool ran; its result is not kept: {large}"))
        }
    }
    match why {
        PickError::TooLong { .. } => Reply::text(&told.to_string()),
        PickError::NoData | PickError::Program { .. } => Reply::error_text(&told.to_string()),
    }
}

/// The reply with what was repaired in its `_meta`, which costs no tokens.
fn with_repairs(reply: Reply, repairs: &[tolerant::Repair]) -> Reply {
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

/// The reply with a line of ours after its content, if there is one to say.
fn noted(reply: Reply, line: Option<&str>) -> Reply {
    let (Reply::Result(json), Some(line)) = (&reply, line) else { return reply };
    let Ok(mut result) = Object::parse(json) else { return reply };
    let content = result.get("content").and_then(|content| content.parse_as::<Vec<Json>>().ok());
    let mut content = content.unwrap_or_default();
    content.push(json!({"type": "text", "text": line}).into());
    result.set("content", Json::encode(&content));
    Reply::Result(result.to_json())
}
