//! Runs scripts that call functions: `gatelet.run` and recipes.
//!
//! Every call that a script makes goes through the pipeline like any other call, as
//! the script's caller. A script that has to wait for an approval pauses; its journal
//! is stored as an artifact of the caller, and it resumes later without doing
//! anything twice.

mod inner;
mod questions;
mod reply;
mod stored_journal;

use std::sync::Arc;

use script::{Ended, Journal};
use serde_json::value::RawValue;
use tool::{Context, Json, Reply};

use crate::dispatch::dispatcher::Dispatcher;
use crate::dispatch::origin::Origin;
use crate::dispatch::script_runner::ScriptRunner;
use crate::recipes::{Recipe, Recipes, SCRIPTS_OFF};
use artifacts::{Artifact, Log, Owner};
use inner::{InnerCalls, OuterCall};
use policy::validate::ValidCall;
use roster::Snapshot;
use stored_journal::{OpenJournal, Unfinished};

/// The arguments of a call that runs a script.
struct ScriptArguments {
    code: Option<String>,
    inputs: Option<Json>,
    /// The handle of the paused script that is to go on.
    resume: Option<String>,
    /// Whether the script starts again although it was begun before; that which is to go
    /// on, if it is named.
    fresh: bool,
    /// The name of the recipe, if the script is one.
    recipe: Option<String>,
}

impl ScriptArguments {
    /// Reads the arguments of `gatelet.run`.
    fn from_run(call: &ValidCall) -> ScriptArguments {
        let member = |key: &str| call.arguments()?.member(key).filter(|value| !value.is_null());
        let fresh = member("fresh").and_then(|fresh| fresh.parse_as().ok()).unwrap_or(false);
        // A client repeats the arguments of the call that it answers a question of.
        let answered = questions::journal_handle(call);
        ScriptArguments {
            code: member("code").and_then(|code| code.string_value()),
            inputs: member("inputs"),
            fresh: fresh && answered.is_none(),
            resume: answered.or_else(|| member("resume")?.string_value()),
            recipe: None,
        }
    }

    /// Makes the arguments of a recipe, whose own arguments are its inputs. Calling it
    /// twice runs it twice, unless it did not end.
    fn from_recipe(recipe: &Recipe, call: &ValidCall) -> ScriptArguments {
        ScriptArguments {
            code: Some(recipe.code.clone()),
            inputs: call.arguments().cloned(),
            resume: questions::journal_handle(call),
            fresh: false,
            recipe: Some(recipe.name.clone()),
        }
    }
}

/// A script that is ready to run, the handle of its journal, and the log of one that
/// was stored before.
struct ReadyScript {
    journal: Journal,
    handle: String,
    log: Option<Box<dyn Log>>,
}

/// Why a script is not started.
enum NotStarted {
    /// The arguments are wrong, in words.
    BadArguments(String),
    /// The same script was begun before and did not end.
    Unfinished(Unfinished),
}

impl From<String> for NotStarted {
    fn from(why: String) -> NotStarted {
        NotStarted::BadArguments(why)
    }
}

/// The most bytes of a script's code.
const MAX_CODE_BYTES: usize = 256 << 10;

impl Dispatcher {
    /// Starts or resumes a script. What it returns passes the gate like any other
    /// answer.
    pub(super) async fn run_script(
        &self,
        snapshot: &Arc<Snapshot>,
        call: &ValidCall,
        origin: Origin,
        context: &Context,
    ) -> Reply {
        let Some(scripting) = &self.scripting else {
            return reply::error(SCRIPTS_OFF);
        };
        let owner = Owner::from_context(context);
        let recipes = self.recipes.load_full();
        let arguments = match recipes.find_by_function(&call.callee.tool) {
            Some(recipe) => ScriptArguments::from_recipe(recipe, call),
            None => ScriptArguments::from_run(call),
        };
        // One that is resumed is marked before its journal is read: until it has ended,
        // nobody else may read what it is about to change.
        let is_resumed = arguments.resume.is_some();
        let handle = arguments.resume.clone().unwrap_or_else(|| Artifact::new_handle(&owner));
        let Some(_running) = scripting.mark_running(&handle) else {
            return reply::error(&stored_journal::under_way(&catalog::summary::echo(&handle)));
        };
        let ready = match self.prepare_script(scripting, arguments, &handle, &recipes, &owner).await
        {
            Ok(ready) => ready,
            Err(NotStarted::BadArguments(why)) => return reply::error(&why),
            Err(NotStarted::Unfinished(found)) => {
                return reply::unfinished(&found, origin.surface);
            }
        };
        let (marked, ReadyScript { mut journal, handle, log }) = (handle, ready);
        let _restarted = (marked != handle).then(|| scripting.mark_running(&handle));
        let recipe = journal.recipe.as_deref().and_then(|name| recipes.find(name));
        let outer = OuterCall { origin, context, handle: &handle, call };
        let inner = InnerCalls::new(self, snapshot, outer, recipe, &journal, log);
        let ended = scripting.pool.run(owner.as_str(), &mut journal, &inner).await;
        let questions = inner.questions();
        let is_finished = matches!(ended, Ok(Ended::Finished(_)));
        journal.record_stop(is_finished, inner.waiting(), questions.states());
        let lines = journal.take_lines();
        let report = reply::ScriptReport {
            limits: scripting.pool.limits(),
            handle: &handle,
            surface: origin.surface,
            journal: &journal,
            awaited: inner.awaited(),
            waits_for: inner.waits_for(),
            changed: inner.changed(),
        };
        match ended {
            Err(why) => reply::error(&why.to_string()),
            Ok(Ended::Finished(finished)) => {
                if inner.is_journal_stored() || is_resumed {
                    if let Err(why) = inner.store_rest(&journal, &lines).await {
                        tracing::warn!(handle, why, "that a script has ended cannot be stored");
                    }
                    self.artifacts.forget_call(&owner, &handle).await;
                }
                report.finished(&finished)
            }
            Ok(Ended::Paused) => {
                let stored = inner.store_rest(&journal, &lines).await;
                // Approvals come first; the questions of upstreams are asked again afterwards.
                match report.awaited.is_empty() && !questions.is_empty() && stored.is_ok() {
                    true => questions.to_reply(&handle),
                    false => report.paused(stored),
                }
            }
            Ok(Ended::Limit(limit)) => {
                let stored = inner.store_rest(&journal, &lines).await;
                report.stopped(&scripting.pool.limits().explain(limit), &stored)
            }
            Ok(Ended::Died(why)) => {
                let stored = inner.store_rest(&journal, &lines).await;
                report.stopped(&why, &stored)
            }
            Ok(Ended::TakenOver) => report.taken_over(),
            Ok(Ended::Diverged(why)) => reply::error(&format!(
                "the script does not do what it did before: {why}; nothing was done now. Look at what it \
                 did, and start it again with `\"fresh\": true`"
            )),
        }
    }

    /// Prepares a new script, or loads the journal of the one to resume.
    async fn prepare_script(
        &self,
        scripting: &ScriptRunner,
        arguments: ScriptArguments,
        handle: &str,
        recipes: &Recipes,
        owner: &Owner,
    ) -> Result<ReadyScript, NotStarted> {
        if arguments.resume.is_some() {
            let fresh = arguments.fresh;
            let ready = self.resumed_script(arguments, handle, recipes, owner).await?;
            return match fresh {
                true => Ok(self.restarted_script(ready, owner).await),
                false => Ok(ready),
            };
        }
        let ScriptArguments { code, inputs, resume: _, fresh, recipe } = arguments;
        let inputs = inputs.unwrap_or_else(Json::empty_object);
        let code = code.filter(|code| !code.trim().is_empty());
        let missing = "`code` is required: the body of an async JavaScript function";
        let code = code.ok_or_else(|| missing.to_owned())?;
        if MAX_CODE_BYTES < code.len() {
            let why = format!("`code` has over {MAX_CODE_BYTES} bytes: pass data in `inputs`");
            return Err(NotStarted::BadArguments(why));
        }
        if !fresh {
            let key = stored_journal::key(&code, &inputs);
            let unfinished = self.find_unfinished(scripting, owner, &key, recipe.is_some()).await;
            let unfinished = unfinished.map_err(|away| {
                format!(
                    "{away}; whether this script was begun before is not known. Try again later"
                )
            })?;
            if let Some(unfinished) = unfinished {
                return Err(NotStarted::Unfinished(unfinished));
            }
        }
        let inputs =
            RawValue::from_string(inputs.to_string()).map_err(|error| error.to_string())?;
        let mut journal = Journal::new(code, inputs);
        journal.recipe = recipe;
        Ok(ReadyScript { journal, handle: handle.to_owned(), log: None })
    }

    /// Loads the journal of a script that is to go on.
    async fn resumed_script(
        &self,
        arguments: ScriptArguments,
        handle: &str,
        recipes: &Recipes,
        owner: &Owner,
    ) -> Result<ReadyScript, String> {
        let ScriptArguments { code, inputs, .. } = arguments;
        let OpenJournal { journal, log } = self.open_journal(handle, owner).await?;
        if code.is_some_and(|code| code != journal.code) {
            return Err(format!(
                "the code is not that of `{handle}`: leave `code` out to go on with it"
            ));
        }
        let before: Option<serde_json::Value> = serde_json::from_str(journal.inputs.get()).ok();
        if inputs.is_some_and(|inputs| inputs.to_value().ok() != before) {
            return Err(format!(
                "the inputs are not those of `{handle}`: leave `inputs` out to go on with it"
            ));
        }
        let recipe = journal.recipe.as_deref();
        if recipe.is_some_and(|name| recipes.find(name).is_none_or(|now| now.code != journal.code))
        {
            return Err(format!("the recipe of `{handle}` has changed: run it again by its name"));
        }
        Ok(ReadyScript { journal, handle: handle.to_owned(), log })
    }

    /// Starts a script anew that was to go on, and gives up what it had done.
    async fn restarted_script(&self, ready: ReadyScript, owner: &Owner) -> ReadyScript {
        self.artifacts.forget_call(owner, &ready.handle).await;
        let Journal { code, inputs, recipe, .. } = ready.journal;
        let mut journal = Journal::new(code, inputs);
        journal.recipe = recipe;
        ReadyScript { journal, handle: Artifact::new_handle(owner), log: None }
    }
}
