//! Scripts that the operator saved: functions like any other, in the namespace
//! `gatelet.recipes`.

use serde_json::json;
use tool::{Json, Tool};

use policy::pattern::{Named, Pattern};

/// What the names of recipes begin with, as functions of the namespace `gatelet`.
pub(crate) const PREFIX: &str = "recipes.";

/// A saved script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recipe {
    /// Lower case letters, digits and `_`.
    pub name: String,
    pub description: String,
    /// The schema of what it is given, which is its `inputs`.
    pub inputs: Json,
    /// The functions that it may call; all that its caller may call when empty.
    pub functions: Vec<Pattern>,
    /// Whether it says that it only reads.
    pub read_only: bool,
    pub code: String,
}

impl Recipe {
    /// Whether it may call a function.
    pub(crate) fn may_call(&self, named: Named<'_>) -> bool {
        self.functions.is_empty() || self.functions.iter().any(|pattern| pattern.means(named))
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

/// All of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recipes(Vec<Recipe>);

impl Recipes {
    /// Of several with one name, the first counts.
    pub fn new(mut recipes: Vec<Recipe>) -> Recipes {
        recipes.sort_by(|one, other| one.name.cmp(&other.name));
        recipes.dedup_by(|one, other| one.name == other.name);
        Recipes(recipes)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Recipe> {
        self.0.iter()
    }

    /// The recipe that a function of the namespace `gatelet` is.
    pub(crate) fn of_tool(&self, tool: &str) -> Option<&Recipe> {
        self.named(tool.strip_prefix(PREFIX)?)
    }

    pub(crate) fn named(&self, name: &str) -> Option<&Recipe> {
        self.0.iter().find(|recipe| recipe.name == name)
    }

    pub(crate) fn tools(&self) -> impl Iterator<Item = Tool> {
        self.0.iter().filter_map(Recipe::tool)
    }
}
