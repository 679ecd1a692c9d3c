//! The calls that a script makes.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use catalog::Slot;
use parking_lot::Mutex;
use script::protocol::Thrown;
use script::{Call, Host, Journal, Verdict};
use serde_json::value::RawValue;
use tool::{Context, Json, Object, Reply};

use super::questions::{self, Input, Questions};
use crate::builtin::{LABEL, line};
use crate::dispatch::origin::{Origin, no_call_text};
use crate::dispatch::outcome::{CallError, Outcome};
use crate::dispatch::pipeline::Dispatcher;
use crate::recipes::{PREFIX, Recipe};
use artifacts::{Owner, StoredIn, pick};
use policy::call::{Mode, Request};
use policy::code::classify;
use policy::confirm;
use policy::refusal::Refused;
use policy::validate::ValidCall;
use roster::Snapshot;

/// Makes the calls of one script, for its caller.
pub(super) struct InnerCalls<'a> {
    dispatcher: &'a Dispatcher,
    snapshot: &'a Arc<Snapshot>,
    origin: Origin,
    context: &'a Context,
    owner: Owner,
    /// The handle of the journal, by which records know the script.
    id: Arc<str>,
    /// The recipe that it is, which may bound what it calls.
    recipe: Option<&'a Recipe>,
    /// By which somebody agreed to the call that the script waited for.
    token: Option<String>,
    waited_for: Option<u64>,
    /// What the client says to the calls that asked.
    input: Input,
    /// The functions that were called already: a snapshot does not change.
    resolved: Mutex<HashMap<Vec<String>, Slot>>,
    seen: Mutex<Seen>,
}

/// The call that the script came with, and by which handle it is known.
#[derive(Clone, Copy)]
pub(super) struct Asked<'a> {
    pub(super) origin: Origin,
    pub(super) context: &'a Context,
    pub(super) handle: &'a str,
    pub(super) call: &'a ValidCall,
}

/// What happened on the way.
#[derive(Default)]
struct Seen {
    /// What has to be agreed to, or answered, before the script goes on.
    asked: Vec<String>,
    /// The tools of those calls, as `upstream/tool`.
    waits_for: Vec<String>,
    waiting: Option<u64>,
    /// What the client has to be asked.
    questions: Questions,
    /// The calls that may have changed something.
    changed: Vec<String>,
    is_kept: bool,
}

impl<'a> InnerCalls<'a> {
    pub(super) fn new(
        dispatcher: &'a Dispatcher,
        snapshot: &'a Arc<Snapshot>,
        asked: Asked<'a>,
        recipe: Option<&'a Recipe>,
        journal: &Journal,
    ) -> InnerCalls<'a> {
        let Asked { origin, context, handle, call } = asked;
        InnerCalls {
            dispatcher,
            snapshot,
            origin: Origin { call_text: no_call_text, ..origin },
            context,
            owner: Owner::from_context(context),
            id: handle.into(),
            recipe,
            token: call.token().map(str::to_owned),
            waited_for: journal.waiting,
            input: Input::read(call, journal),
            resolved: Mutex::default(),
            seen: Mutex::default(),
        }
    }

    pub(super) fn asked(&self) -> Vec<String> {
        self.seen.lock().asked.clone()
    }

    pub(super) fn waits_for(&self) -> Vec<String> {
        self.seen.lock().waits_for.clone()
    }

    pub(super) fn waiting(&self) -> Option<u64> {
        self.seen.lock().waiting
    }

    /// What the client has to be asked, once.
    pub(super) fn questions(&self) -> Questions {
        std::mem::take(&mut self.seen.lock().questions)
    }

    pub(super) fn changed(&self) -> Vec<String> {
        self.seen.lock().changed.clone()
    }

    pub(super) fn is_kept(&self) -> bool {
        self.seen.lock().is_kept
    }

    /// The function that a path means, of those that the caller may see.
    fn resolve(&self, path: &[String]) -> Result<Slot, Thrown> {
        if let Some(slot) = self.resolved.lock().get(path) {
            return Ok(*slot);
        }
        let slot = self.look_up(path)?;
        self.resolved.lock().insert(path.to_vec(), slot);
        Ok(slot)
    }

    fn look_up(&self, path: &[String]) -> Result<Slot, Thrown> {
        let catalog = &self.snapshot.catalog;
        let visible = self.dispatcher.live.visible_to(&self.context.caller);
        let sees = |slot: Slot| visible.shows_function(catalog, slot);
        let (namespace, function) = match path {
            // A search needs no namespace.
            [only] if only == "find" => (LABEL.to_owned(), "find"),
            [namespace @ .., function] => (namespace.join("."), function.as_str()),
            [] => (String::new(), ""),
        };
        match catalog.resolve(&namespace, function) {
            Ok(slot) if sees(slot) => return Ok(slot),
            Ok(_) | Err(_) => {}
        }
        let near = catalog.nearest_functions(&namespace, function, 3, visible.guesses_by(), &sees);
        let near: Vec<String> = near.into_iter().map(|slot| line(catalog, slot)).collect();
        let near = match near.as_slice() {
            [] => " Look for it with `help`.".to_owned(),
            near => format!(" Nearest:\n{}", near.join("\n")),
        };
        let name = catalog::summary::echo(&path.join("."));
        Err(thrown(format!("there is no function tools.{name}.{near}"), "UNKNOWN_FUNCTION"))
    }

    fn request(&self, call: &Call) -> Result<(Slot, Request), Thrown> {
        let slot = self.resolve(&call.path)?;
        let target = self.snapshot.target(slot);
        let is_script = target.callee.tool == "run" || target.callee.tool.starts_with(PREFIX);
        if target.callee.upstream == LABEL && is_script {
            return Err(thrown("a script cannot run scripts".to_owned(), "POLICY_DENIED"));
        }
        if self.recipe.is_some_and(|recipe| !recipe.may_call(target.callee.named())) {
            let name = call.path.join(".");
            let message =
                format!("the head of this recipe does not name tools.{name} in `functions`");
            return Err(thrown(message, "POLICY_DENIED"));
        }
        let given = Json::from_trusted(call.arguments.get().to_owned());
        let arguments = match given.string_value() {
            // `tools.find("words")`.
            Some(words) if call.path.len() == 1 => serde_json::json!({"query": words}).into(),
            _ => given,
        };
        if !arguments.is_object() {
            let name = call.path.join(".");
            let message = format!("tools.{name} takes an object with its arguments");
            return Err(thrown(message, "ARGS_INVALID"));
        }
        // A script does not wait for somebody to agree: it stops, and goes on later.
        let agreed = self.token.as_deref().filter(|_| self.waited_for == Some(call.number));
        let mut meta = Object::new();
        meta.push(confirm::META_KEY, Json::encode(agreed.unwrap_or(confirm::LATER)));
        let mut rest = Object::new();
        rest.push("_meta", meta.to_json());
        self.input.give(call.number, &mut rest);
        let script = Some(Arc::clone(&self.id));
        let request =
            Request { rest, mode: Mode::Inner, script, ..Request::new(target, arguments) };
        Ok((slot, request))
    }

    /// What a call came to, for the script.
    fn verdict(&self, call: &Call, slot: Slot, outcome: Result<Outcome, CallError>) -> Verdict {
        let result = match outcome {
            Ok(Outcome::Reply(Reply::Result(json))) => {
                if questions::is_question(&json) {
                    self.seen.lock().questions.add(call.number, &json);
                    return Verdict::Pause;
                }
                data(json)
            }
            Ok(
                Outcome::Kept { artifact, .. }
                | Outcome::Unkept { artifact, .. }
                | Outcome::Unpicked { artifact, .. },
            ) => data(artifact.result.clone()),
            Ok(Outcome::Reply(Reply::Error(error))) => Err(thrown(error.message, "UPSTREAM_ERROR")),
            Ok(Outcome::Plan(_)) => Ok(Json::null()),
            Err(CallError::BadArguments { problems }) => {
                let said: Vec<String> = problems.iter().map(ToString::to_string).collect();
                let signature = self.snapshot.catalog.shaped_signature(slot, 600);
                Err(thrown(format!("{}. Signature: {signature}", said.join("; ")), "ARGS_INVALID"))
            }
            Err(CallError::Refused(refusal)) if refusal.code == Refused::ApprovalRequired => {
                let mut seen = self.seen.lock();
                let arguments = catalog::summary::cut(call.arguments.get(), 600);
                seen.asked.push(format!(
                    "tools.{}({arguments}): {}",
                    call.path.join("."),
                    refusal.message
                ));
                let callee = self.snapshot.target(slot).callee;
                seen.waits_for.push(callee.path.clone());
                seen.waiting.get_or_insert(call.number);
                return Verdict::Pause;
            }
            Err(CallError::Refused(refusal)) => {
                Err(thrown(refusal.message.clone(), refusal.code.as_str()))
            }
            Err(CallError::Failed { upstream, cause }) => {
                let code = Json::encode(&classify(&cause)).string_value().unwrap_or_default();
                let ran = match cause.sent() {
                    tool::Sent::No => "",
                    tool::Sent::Perhaps => "; it may have run",
                };
                let text = format!("`{upstream}`: {cause}{ran}");
                Err(thrown(self.dispatcher.scrubber.scrub(&text).to_string(), &code))
            }
        };
        Verdict::Answer(result.and_then(|json| {
            let raw = RawValue::from_string(json.to_string());
            raw.map_err(|error| thrown(error.to_string(), "UNUSABLE"))
        }))
    }
}

#[async_trait]
impl Host for InnerCalls<'_> {
    fn is_repeatable(&self, call: &Call) -> bool {
        // What does not exist changes nothing.
        let Ok(slot) = self.resolve(&call.path) else { return true };
        self.snapshot.catalog.tool(slot).annotations.read_only == Some(true)
    }

    async fn call(&self, call: &Call) -> Verdict {
        let (slot, request) = match self.request(call) {
            Ok(request) => request,
            Err(thrown) => return Verdict::Answer(Err(thrown)),
        };
        let (verdict, ran) = (Mutex::new(None), Mutex::new(false));
        let say = |outcome| {
            *ran.lock() = may_have_run(&outcome);
            *verdict.lock() = Some(self.verdict(call, slot, outcome));
            // No model reads it.
            Reply::Result(Json::empty_object())
        };
        let pipeline = self.dispatcher;
        pipeline.dispatch(self.snapshot, request, self.origin, self.context, say).await;
        let verdict = verdict.into_inner();
        let verdict = verdict
            .unwrap_or_else(|| Verdict::Answer(Err(thrown("no answer".to_owned(), "UNUSABLE"))));
        if ran.into_inner() && !self.is_repeatable(call) {
            self.seen.lock().changed.push(call.path.join("."));
        }
        verdict
    }

    async fn keep(&self, journal: &Journal) -> Result<(), Thrown> {
        if !self.dispatcher.artifacts.survives_restart() {
            return Ok(());
        }
        self.seen.lock().is_kept = true;
        let kept = self.dispatcher.keep_journal(journal, &self.id, &self.owner).await;
        let why = match kept {
            Ok(StoredIn::Stored) => return Ok(()),
            Ok(StoredIn::MemoryFallback { reason }) => reason,
            Err(large) => large.to_string(),
        };
        let message = format!(
            "not run: what the script has done so far cannot be kept ({why}), and after a restart it \
             could be done twice; take less of each result, or do it in several scripts"
        );
        Err(thrown(message, "JOURNAL_NOT_KEPT"))
    }
}

/// Whether a call may have done something: not if it was refused, or never got
/// to its upstream.
fn may_have_run(outcome: &Result<Outcome, CallError>) -> bool {
    match outcome {
        Ok(Outcome::Plan(_)) => false,
        Ok(_) => true,
        Err(CallError::BadArguments { .. } | CallError::Refused(_)) => false,
        Err(CallError::Failed { cause, .. }) => cause.sent() != tool::Sent::No,
    }
}

/// The data of a result, or the error that it reports.
fn data(json: Json) -> Result<Json, Thrown> {
    let reply = Reply::Result(json);
    let Some(result) = reply.tool_result() else {
        let Reply::Result(json) = reply else { return Ok(Json::null()) };
        return Ok(json);
    };
    if result.is_error {
        return Err(thrown(result.text(), "TOOL_ERROR"));
    }
    Ok(match pick::data(&result) {
        Some(text) => Json::from_trusted(text.into_owned()),
        None => Json::encode(&result.content),
    })
}

fn thrown(message: String, code: &str) -> Thrown {
    Thrown { message, code: Some(code.to_owned()) }
}
