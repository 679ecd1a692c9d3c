//! `gatelet recipe`: saves, lists and removes recipes, which are scripts that clients call as
//! functions.

use std::path::PathBuf;

use super::output::Output;
use crate::config_loader;
use crate::exit::{CliError, Done};
use crate::paths::Paths;
use crate::recipe_files;
use crate::terminal::{out, say};

/// Save, list and remove recipes: scripts that are functions in `gatelet.recipes`
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Action {
    /// Save a script as a recipe, after looking at its head
    Add {
        /// A `.js` file whose head says name, description, inputs and functions
        file: PathBuf,
        /// Replace a recipe of the same name
        #[arg(long)]
        replace: bool,
    },
    /// List the recipes
    List {
        #[command(flatten)]
        output: Output,
    },
    /// Remove a recipe
    #[command(alias = "remove")]
    Rm { name: String },
}

pub(crate) fn run(action: &Action, paths: &Paths) -> anyhow::Result<Done> {
    let scripts = config_loader::load(paths)?.config.scripts;
    let place = |name: &str| scripts.recipes.join(format!("{name}.js"));
    match action {
        Action::Add { file, replace } => {
            let wrong = |why: String| CliError::Usage(format!("`{}`: {why}", file.display()));
            let text = std::fs::read_to_string(file).map_err(|error| wrong(error.to_string()))?;
            let recipe = recipe_files::parse(&text).map_err(wrong)?;
            let path = place(&recipe.name);
            if path.exists() && !replace {
                let why = format!("there is a recipe `{}` already: add --replace", recipe.name);
                return Err(CliError::Usage(why).into());
            }
            std::fs::create_dir_all(&scripts.recipes)?;
            std::fs::write(&path, text)?;
            say(&format!(
                "saved as {}; models call it as gatelet.recipes.{}",
                path.display(),
                recipe.name
            ));
            if !scripts.enabled {
                say("scripts are off: set `enabled = true` in `[scripts]`");
            }
        }
        Action::List { output } => {
            let recipes = recipe_files::load(&scripts.recipes);
            if output.is_json() {
                let told = recipes.iter().map(|recipe| {
                    let functions = recipe.functions.iter().map(policy::pattern::Pattern::as_str);
                    serde_json::json!({
                        "name": recipe.name,
                        "description": recipe.description,
                        "functions": functions.collect::<Vec<_>>(),
                    })
                });
                out(&crate::terminal::json_text(&told.collect::<Vec<_>>())?);
            } else if recipes.iter().next().is_none() {
                say("no recipes: `gatelet recipe add FILE.js` saves a script as one");
            } else {
                for recipe in recipes.iter() {
                    out(&format!("{}  {}", recipe.name, recipe.description));
                }
            }
        }
        Action::Rm { name } => {
            let recipes = recipe_files::files(&scripts.recipes);
            let is_meant = |path: &&PathBuf| {
                let text = std::fs::read_to_string(path).unwrap_or_default();
                recipe_files::parse(&text).is_ok_and(|recipe| recipe.name == *name)
            };
            let Some(path) = recipes.iter().find(is_meant) else {
                return Err(CliError::Usage(format!(
                    "there is no recipe `{name}`; see `gatelet recipe list`"
                ))
                .into());
            };
            std::fs::remove_file(path)?;
            say(&format!("removed {}", path.display()));
        }
    }
    Ok(Done::Fine)
}
