//! What runs scripts: workers that are our own executable.

use std::sync::Arc;

use gateway::dispatch::Scripting;
use gateway::recipes::{RecipeStore, Recipes};
use script::Pool;
use script::pool;

use crate::recipe_files::{self, RecipeDirectory};
use config::Scripts;

/// Scripts of one session that may wait for a worker.
const WAITING: usize = 1_024;

/// What runs scripts, if they are on.
pub(super) fn scripting(config: &Scripts) -> Option<Arc<Scripting>> {
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
        waiting: WAITING,
        limits: config.limits.clone(),
    });
    Some(Arc::new(Scripting::new(pool)))
}

/// Where models save recipes, while scripts are on.
pub(super) fn recipe_store(config: &Scripts) -> Option<Arc<dyn RecipeStore>> {
    config.enabled.then(|| Arc::new(RecipeDirectory(config.recipes.clone())) as _)
}

/// The recipes in force: none while scripts are off.
pub(super) fn recipes(config: &Scripts) -> Recipes {
    match config.enabled {
        true => recipe_files::read(&config.recipes),
        false => Recipes::default(),
    }
}
