//! Scripts that call functions: `gatelet.run`.
//!
//! Every call that a script makes takes the way of any other call, with the
//! script's caller. A script that has to wait for somebody stops; its journal is
//! kept as an artifact of the caller, and it goes on later without doing anything
//! twice.

mod inner;
mod kept_journal;
mod questions;
mod reply;

use std::sync::Arc;

use script::{Ended, Journal};
use serde_json::value::RawValue;
use tool::{Context, Json, Reply};

use crate::dispatch::origin::Origin;
use crate::dispatch::pipeline::Dispatcher;
use crate::recipes::{Recipe, Recipes, SCRIPTS_OFF};
use artifacts::{Artifact, Owner};
use inner::{Asked, InnerCalls};
use policy::validate::ValidCall;
use roster::Snapshot;

/// What `run` was given.
struct Given {
    code: Option<String>,
    inputs: Option<Json>,
    resume: Option<String>,
    fresh: bool,
    recipe: Option<String>,
}

impl Given {
    fn read(call: &ValidCall) -> Given {
        let member = |key: &str| call.arguments()?.member(key).filter(|value| !value.is_null());
        Given {
            code: member("code").and_then(|code| code.string_value()),
            inputs: member("inputs"),
            resume: member("resume")
                .and_then(|handle| handle.string_value())
                .or_else(|| questions::handle(call)),
            fresh: member("fresh").and_then(|fresh| fresh.parse_as().ok()).unwrap_or(false),
            recipe: None,
        }
    }

    /// A recipe, whose arguments are its inputs. Who calls it twice means it twice.
    fn of_recipe(recipe: &Recipe, call: &ValidCall) -> Given {
        Given {
            code: Some(recipe.code.clone()),
            inputs: call.arguments().cloned(),
            resume: questions::handle(call),
            fresh: true,
            recipe: Some(recipe.name.clone()),
        }
    }
}

/// A script that is about to run, and the handle of its journal.
struct Begun {
    journal: Journal,
    handle: String,
}

/// Why a script does not run.
enum Unbegun {
    /// What was given is wrong, in words.
    Wrong(String),
    /// It was begun before and did not end.
    Unfinished { handle: String },
}

impl From<String> for Unbegun {
    fn from(why: String) -> Unbegun {
        Unbegun::Wrong(why)
    }
}

/// The code of a script may have so many bytes.
const LONGEST: usize = 256 << 10;

impl Dispatcher {
    /// Runs a script, or goes on with one. What it returns passes the gate like
    /// any other answer.
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
        let given = match recipes.of_tool(&call.callee.tool) {
            Some(recipe) => Given::of_recipe(recipe, call),
            None => Given::read(call),
        };
        let begun = match self.begin_script(given, &recipes, &owner).await {
            Ok(begun) => begun,
            Err(Unbegun::Wrong(why)) => return reply::error(&why),
            Err(Unbegun::Unfinished { handle }) => return reply::unfinished(&handle),
        };
        let Begun { mut journal, handle } = begun;
        let Some(_under_way) = scripting.enter(&handle) else {
            return reply::error(&format!("the script `{handle}` is under way already"));
        };
        let recipe = journal.recipe.as_deref().and_then(|name| recipes.named(name));
        let asked = Asked { origin, context, handle: &handle, call };
        let inner = InnerCalls::new(self, snapshot, asked, recipe, &journal);
        journal.waiting = None;
        journal.questions.clear();
        let n_before = journal.n_answered();
        let ended = scripting.pool.run(owner.as_str(), &mut journal, &inner).await;
        journal.waiting = inner.waiting();
        let questions = inner.questions();
        journal.questions = questions.states();
        journal.finished = matches!(ended, Ok(Ended::Finished(_)));
        let told = reply::Told {
            limits: scripting.pool.limits(),
            handle: &handle,
            surface: origin.surface,
            journal: &journal,
            asked: inner.asked(),
            waits_for: inner.waits_for(),
            changed: inner.changed(),
        };
        match ended {
            Err(why) => reply::error(&why.to_string()),
            Ok(Ended::Finished(finished)) => {
                if inner.is_kept() || n_before != 0 {
                    let _ = self.keep_journal(&journal, &handle, &owner).await;
                    self.artifacts.forget_call(&owner, &handle).await;
                }
                told.finished(&finished)
            }
            Ok(Ended::Paused) => {
                let kept = self.keep_journal(&journal, &handle, &owner).await.map(drop);
                // What somebody has to agree to is settled first; whoever asks asks again.
                match told.asked.is_empty() && !questions.is_empty() && kept.is_ok() {
                    true => questions.to_reply(&handle),
                    false => told.paused(kept),
                }
            }
            Ok(Ended::Limit(limit)) => {
                let kept = self.keep_journal(&journal, &handle, &owner).await.map(drop);
                told.stopped(&scripting.pool.limits().explain(limit), kept)
            }
            Ok(Ended::Died(why)) => {
                let kept = self.keep_journal(&journal, &handle, &owner).await.map(drop);
                told.stopped(&why, kept)
            }
            Ok(Ended::Diverged(why)) => reply::error(&format!(
                "the script does not do what it did before: {why}; nothing was done now. Look at what it \
                 did, and start it again with `\"fresh\": true`"
            )),
        }
    }

    /// The script that is meant: a new one, or one that stopped.
    async fn begin_script(
        &self,
        given: Given,
        recipes: &Recipes,
        owner: &Owner,
    ) -> Result<Begun, Unbegun> {
        let Given { code, inputs, resume, fresh, recipe } = given;
        if let Some(handle) = resume {
            let journal = self.kept_journal(&handle, owner).await?;
            if code.is_some_and(|code| code != journal.code) {
                return Err(Unbegun::Wrong(format!(
                    "the code is not that of `{handle}`: leave `code` out to go on with it"
                )));
            }
            let before: Option<serde_json::Value> = serde_json::from_str(journal.inputs.get()).ok();
            if inputs.is_some_and(|inputs| inputs.to_value().ok() != before) {
                return Err(Unbegun::Wrong(format!(
                    "the inputs are not those of `{handle}`: leave `inputs` out to go on with it"
                )));
            }
            let recipe = journal.recipe.as_deref();
            if recipe
                .is_some_and(|name| recipes.named(name).is_none_or(|now| now.code != journal.code))
            {
                return Err(Unbegun::Wrong(format!(
                    "the recipe of `{handle}` has changed: run it again by its name"
                )));
            }
            return Ok(Begun { journal, handle });
        }
        let inputs = inputs.unwrap_or_else(Json::empty_object);
        let code = code.filter(|code| !code.trim().is_empty());
        let missing = "`code` is required: the body of an async JavaScript function";
        let code = code.ok_or_else(|| missing.to_owned())?;
        if LONGEST < code.len() {
            let why = format!("`code` has over {LONGEST} bytes: pass data in `inputs`");
            return Err(Unbegun::Wrong(why));
        }
        let key = kept_journal::key(&code, &inputs);
        let unfinished = self.artifacts.find_by_call(owner, &key).await;
        let unfinished = unfinished.map_err(|away| {
            format!("{away}; whether this script was begun before is not known. Try again later")
        })?;
        if let Some(artifact) = unfinished.filter(|_| !fresh) {
            return Err(Unbegun::Unfinished { handle: artifact.handle.clone() });
        }
        let inputs =
            RawValue::from_string(inputs.to_string()).map_err(|error| error.to_string())?;
        let mut journal = Journal::new(code, inputs);
        journal.recipe = recipe;
        Ok(Begun { journal, handle: Artifact::new_handle(owner) })
    }
}
