//! Makes the calls of a script, and collects what it waits for.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use catalog::{Catalog, Slot, typescript};
use parking_lot::Mutex;
use script::pool::NotStored;
use script::protocol::Thrown;
use script::{Call, Host, Journal, Verdict};
use serde_json::value::RawValue;
use tool::{Context, Json, Object, Reply};

use super::questions::{self, ClientResponses, Questions};
use crate::builtin::LABEL;
use crate::dispatch::dispatcher::Dispatcher;
use crate::dispatch::origin::{Origin, no_call_text};
use crate::dispatch::outcome::{CallError, Outcome};
use crate::recipes::{PREFIX, Recipe};
use artifacts::{Log, LogError, Owner, StoredIn, TooLarge, pick};
use policy::call::{CallMode, Request};
use policy::code::classify;
use policy::confirm;
use policy::refusal::RefusalCode;
use policy::validate::ValidCall;
use roster::Snapshot;

/// Makes the calls of one script, for its caller.
pub(super) struct InnerCalls<'a> {
    dispatcher: &'a Dispatcher,
    snapshot: &'a Arc<Snapshot>,
    origin: Origin,
    context: &'a Context,
    owner: Owner,
    /// The handle of the journal, which is the script's id in records.
    id: Arc<str>,
    /// The recipe that the script is, which may restrict what it calls.
    recipe: Option<&'a Recipe>,
    /// The approval token for the call that the script waited for.
    token: Option<String>,
    /// The number of that call.
    waited_for: Option<u64>,
    /// The client's responses to the questions of calls.
    responses: ClientResponses,
    /// The functions that paths were resolved to: a snapshot does not change.
    resolved: Mutex<HashMap<Vec<String>, Slot>>,
    /// The log of the journal, once it is stored.
    log: OnceLock<Box<dyn Log>>,
    progress: Mutex<Progress>,
}

/// The call that runs the script, and the handle of the script's journal.
#[derive(Clone, Copy)]
pub(super) struct OuterCall<'a> {
    pub(super) origin: Origin,
    pub(super) context: &'a Context,
    pub(super) handle: &'a str,
    pub(super) call: &'a ValidCall,
}

/// What happened while the script ran.
#[derive(Default)]
struct Progress {
    /// The calls that need approval before the script goes on, in words.
    awaited: Vec<String>,
    /// The tools of those calls, as `upstream/tool`.
    waits_for: Vec<String>,
    /// The number of the first of those calls.
    waiting: Option<u64>,
    /// The questions that the client has to be asked.
    questions: Questions,
    /// The calls that may have changed something.
    changed: Vec<String>,
    is_journal_stored: bool,
}

impl<'a> InnerCalls<'a> {
    pub(super) fn new(
        dispatcher: &'a Dispatcher,
        snapshot: &'a Arc<Snapshot>,
        outer: OuterCall<'a>,
        recipe: Option<&'a Recipe>,
        journal: &Journal,
        log: Option<Box<dyn Log>>,
    ) -> InnerCalls<'a> {
        let OuterCall { origin, context, handle, call } = outer;
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
            responses: ClientResponses::from_call(call, journal),
            resolved: Mutex::default(),
            log: log.map(OnceLock::from).unwrap_or_default(),
            progress: Mutex::default(),
        }
    }

    pub(super) fn awaited(&self) -> Vec<String> {
        self.progress.lock().awaited.clone()
    }

    pub(super) fn waits_for(&self) -> Vec<String> {
        self.progress.lock().waits_for.clone()
    }

    pub(super) fn waiting(&self) -> Option<u64> {
        self.progress.lock().waiting
    }

    /// Takes the questions that the client has to be asked.
    pub(super) fn questions(&self) -> Questions {
        std::mem::take(&mut self.progress.lock().questions)
    }

    pub(super) fn changed(&self) -> Vec<String> {
        self.progress.lock().changed.clone()
    }

    /// Stores what the journal lacks: the lines since it was stored, or all of it.
    pub(super) async fn store_rest(&self, journal: &Journal, lines: &[u8]) -> Result<(), String> {
        if let Some(log) = self.log.get() {
            log.add(lines);
            return log.flush().await.map_err(|why| why.to_string());
        }
        let stored = self.dispatcher.store_journal(journal, &self.id, &self.owner).await;
        stored.map(drop).map_err(|why| why.to_string())
    }

    /// Stores the whole journal, and opens its log for what happens next.
    async fn store_whole(&self, journal: &Journal) -> Result<(), LogError> {
        self.progress.lock().is_journal_stored = true;
        match self.dispatcher.store_journal(journal, &self.id, &self.owner).await {
            Ok(StoredIn::Stored) => {}
            Ok(StoredIn::MemoryFallback { reason }) => {
                return Err(LogError::Unavailable { reason });
            }
            Err(TooLarge { limit, .. }) => return Err(LogError::TooLarge { limit }),
        }
        // Without a log this store has been replaced by memory, of which the operator is told.
        if let Some(opened) = self.dispatcher.artifacts.open_log(&self.owner, &self.id).await? {
            let _ = self.log.set(opened.log);
        }
        Ok(())
    }

    pub(super) fn is_journal_stored(&self) -> bool {
        self.progress.lock().is_journal_stored
    }

    /// Resolves a path such as `orders.list` to a function that the caller may see.
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
        let near: Vec<String> =
            near.into_iter().map(|slot| format!("- {}", script_form(catalog, slot))).collect();
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
        if self.recipe.is_some_and(|recipe| !recipe.may_call(target.callee.names())) {
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
        // A script does not wait for an approval: it pauses, and resumes later.
        let token = self.token.as_deref().filter(|_| self.waited_for == Some(call.number));
        let mut meta = Object::new();
        meta.push(confirm::META_KEY, Json::encode(token.unwrap_or(confirm::DO_NOT_WAIT)));
        let mut rest = Object::new();
        rest.push("_meta", meta.to_json());
        self.responses.add_to(call.number, &mut rest);
        let script = Some(Arc::clone(&self.id));
        let request =
            Request { rest, mode: CallMode::FromScript, script, ..Request::new(target, arguments) };
        Ok((slot, request))
    }

    /// Turns the outcome of a call into what the script gets.
    fn verdict(&self, call: &Call, slot: Slot, outcome: Result<Outcome, CallError>) -> Verdict {
        let result = match outcome {
            Ok(Outcome::Reply(Reply::Result(json))) => {
                if questions::is_question(&json) {
                    self.progress.lock().questions.add(call.number, &json);
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
                let declared = script_form(&self.snapshot.catalog, slot);
                Err(thrown(format!("{}. It is {declared}", said.join("; ")), "ARGS_INVALID"))
            }
            Err(CallError::Refused(refusal)) if refusal.code == RefusalCode::ApprovalRequired => {
                let mut progress = self.progress.lock();
                let arguments = catalog::summary::cut(call.arguments.get(), 600);
                progress.awaited.push(format!(
                    "tools.{}({arguments}): {}",
                    call.path.join("."),
                    refusal.message
                ));
                let callee = self.snapshot.target(slot).callee;
                progress.waits_for.push(callee.path.clone());
                progress.waiting.get_or_insert(call.number);
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
        let to_reply = |outcome| {
            *ran.lock() = may_have_run(&outcome);
            *verdict.lock() = Some(self.verdict(call, slot, outcome));
            // No model reads it.
            Reply::Result(Json::empty_object())
        };
        let pipeline = self.dispatcher;
        pipeline.dispatch(self.snapshot, request, self.origin, self.context, to_reply).await;
        let verdict = verdict.into_inner();
        let verdict = verdict
            .unwrap_or_else(|| Verdict::Answer(Err(thrown("no answer".to_owned(), "UNUSABLE"))));
        if ran.into_inner() && !self.is_repeatable(call) {
            self.progress.lock().changed.push(call.path.join("."));
        }
        verdict
    }

    fn stores_journal(&self) -> bool {
        self.dispatcher.artifacts.survives_restart()
    }

    fn add_lines(&self, lines: &[u8]) {
        if let Some(log) = self.log.get() {
            log.add(lines);
        }
    }

    async fn store(&self, whole: Option<Journal>) -> Result<(), NotStored> {
        let stored = match (whole, self.log.get()) {
            (Some(journal), _) => self.store_whole(&journal).await,
            (None, Some(log)) => log.flush().await,
            (None, None) => Ok(()),
        };
        stored.map_err(|why| match why {
            LogError::Taken => NotStored::TakenOver,
            LogError::Void | LogError::TooLarge { .. } | LogError::Unavailable { .. } => {
                let message = format!(
                    "not run: what the script has done so far cannot be kept ({why}), and after a restart \
                     it could be done twice; take less of each result, or do it in several scripts"
                );
                NotStored::Unwritable(thrown(message, "JOURNAL_NOT_KEPT"))
            }
        })
    }
}

/// Writes a function as a script calls it: `tools.units.convert(args: {…}): Promise<…>`.
fn script_form(catalog: &Catalog, slot: Slot) -> String {
    let declared = typescript::declaration(&catalog.function(slot).name, catalog.tool(slot));
    let declared = declared.split_once("*/\n").map_or(declared.as_str(), |(_, after)| after);
    let path = catalog.path(slot);
    let called = match declared.strip_prefix('"').and_then(|rest| rest.split_once('"')) {
        Some((name, rest)) => format!("tools.{path}[\"{name}\"]{rest}"),
        None => format!("tools.{path}.{declared}"),
    };
    catalog::summary::cut(&called, 600)
}

/// Returns whether a call may have run: not if it was refused, or never reached its
/// upstream.
fn may_have_run(outcome: &Result<Outcome, CallError>) -> bool {
    match outcome {
        Ok(Outcome::Plan(_)) => false,
        Ok(_) => true,
        Err(CallError::BadArguments { .. } | CallError::Refused(_)) => false,
        Err(CallError::Failed { cause, .. }) => cause.sent() != tool::Sent::No,
    }
}

/// Returns the data of a result, or the error that it reports.
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
