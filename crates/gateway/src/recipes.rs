//! Recipes: saved scripts that are listed and called as functions of the namespace
//! `gatelet.recipes`.

use serde_json::json;
use tool::{Json, Tool};

use policy::pattern::{Names, Pattern};

/// The prefix of a recipe's name as a function of the namespace `gatelet`.
pub(crate) const PREFIX: &str = "recipes.";

/// The message for callers when scripts are switched off.
pub const SCRIPTS_OFF: &str = "Scripts are off. The operator switches them on with `[scripts] enabled = true` \
     in the configuration and a restart of gatelet";

/// A saved script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recipe {
    /// Lower case letters, digits and `_`.
    pub name: String,
    pub description: String,
    /// The JSON Schema of its arguments, which the script reads as `inputs`.
    pub inputs: Json,
    /// The functions that it may call; all that its caller may call when empty.
    pub functions: Vec<Pattern>,
    /// Whether the author declares that it only reads.
    pub read_only: bool,
    pub code: String,
}

impl Recipe {
    /// Returns whether the script may call a function, given by its names.
    pub(crate) fn may_call(&self, named: Names<'_>) -> bool {
        self.functions.is_empty()
            || self.functions.iter().any(|pattern| pattern.matches_exactly(named))
    }

    fn tool(&self) -> Option<Tool> {
        let raw = json!({
            "name": format!("{PREFIX}{}", self.name),
            "description": self.description,
            "inputSchema": self.inputs,
            "annotations": {"readOnlyHint": self.read_only},
        });
        Tool::parse(raw.into()).ok()
    }
}

/// A recipe that a model wants to save.
#[derive(Clone, Debug, serde::Deserialize)]
pub struct Draft {
    pub name: String,
    pub description: String,
    #[serde(default)]
    pub inputs: Option<serde_json::Value>,
    pub functions: Vec<String>,
    pub code: String,
}

/// Stores the recipes that models save.
pub trait RecipeStore: Send + Sync {
    /// Returns whether a draft could be saved; the error says what is wrong with it.
    fn check(&self, draft: &Draft) -> Result<(), String>;

    /// Saves a draft under its name, which must be new.
    fn save(&self, draft: &Draft) -> Result<(), String>;
}

/// The most bytes of a draft: whoever approves it has to read all of it.
const MAX_DRAFT_BYTES: usize = 12 << 10;

impl Draft {
    /// Parses the arguments of `save_recipe`.
    pub(crate) fn parse(arguments: &Json) -> Result<Draft, String> {
        if MAX_DRAFT_BYTES < arguments.as_bytes().len() {
            return Err(format!(
                "a recipe that a model saves has at most {MAX_DRAFT_BYTES} bytes, so that whoever agrees \
                 can read it"
            ));
        }
        arguments.parse_as().map_err(|error| error.to_string())
    }
}

/// All recipes, sorted by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recipes(Vec<Recipe>);

impl Recipes {
    /// Of several recipes with one name, the first counts.
    pub fn new(mut recipes: Vec<Recipe>) -> Recipes {
        recipes.sort_by(|one, other| one.name.cmp(&other.name));
        recipes.dedup_by(|one, other| one.name == other.name);
        Recipes(recipes)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Recipe> {
        self.0.iter()
    }

    /// Returns the recipe behind a function of the namespace `gatelet`, by the
    /// function's name.
    pub(crate) fn find_by_function(&self, function: &str) -> Option<&Recipe> {
        self.find(function.strip_prefix(PREFIX)?)
    }

    pub(crate) fn find(&self, name: &str) -> Option<&Recipe> {
        self.0.iter().find(|recipe| recipe.name == name)
    }

    pub(crate) fn tools(&self) -> impl Iterator<Item = Tool> {
        self.0.iter().filter_map(Recipe::tool)
    }
}
