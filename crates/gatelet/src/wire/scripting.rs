//! Sets up scripts and recipes as the configuration asks for: the pool of worker
//! processes (each is our own executable), the recipes, and where they are saved.

use std::sync::Arc;
use std::time::Duration;

use gateway::dispatch::ScriptRunner;
use gateway::recipes::{RecipeStore, Recipes};
use script::Pool;
use script::pool;

use crate::recipe_files::{self, RecipeDirectory};
use config::Scripts;

/// How many scripts of one session may wait for a worker.
const MAX_WAITING: usize = 1_024;

/// How long a process that ran a script is kept for the next one of the same caller.
const IDLE: Duration = Duration::from_secs(300);

/// The engine that runs scripts; `None` where scripts are off.
pub(super) fn scripting(config: &Scripts) -> Option<Arc<ScriptRunner>> {
    if !config.enabled {
        return None;
    }
    let program = match std::env::current_exe() {
        Ok(program) => program,
        Err(error) => {
            tracing::error!(%error, "scripts are off: where our own program is cannot be told");
            return None;
        }
    };
    let pool = Pool::new(pool::Config {
        program,
        arguments: Vec::new(),
        workers: config.workers,
        waiting: MAX_WAITING,
        idle: IDLE,
        limits: config.limits.clone(),
    });
    Some(Arc::new(ScriptRunner::new(pool)))
}

/// The store in which models save recipes; `None` where scripts are off.
pub(super) fn recipe_store(config: &Scripts) -> Option<Arc<dyn RecipeStore>> {
    config.enabled.then(|| Arc::new(RecipeDirectory(config.recipes.clone())) as _)
}

/// The recipes in force: none while scripts are off.
pub(super) fn recipes(config: &Scripts) -> Recipes {
    match config.enabled {
        true => recipe_files::load(&config.recipes),
        false => Recipes::default(),
    }
}
