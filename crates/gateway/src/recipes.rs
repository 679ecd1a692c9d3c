//! Scripts that the operator saved: functions like any other, in the namespace
//! `gatelet.recipes`.

use serde_json::json;
use tool::{Json, Tool};

use policy::pattern::{Named, Pattern};

/// What the names of recipes begin with, as functions of the namespace `gatelet`.
pub(crate) const PREFIX: &str = "recipes.";

/// What is said where scripts are off; it says how they are switched on.
pub const SCRIPTS_OFF: &str = "Scripts are off. The operator switches them on with `[scripts] enabled = true` \
     in the configuration and a restart of gatelet";

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

/// Where recipes are saved.
pub trait RecipeStore: Send + Sync {
    /// Whether a draft could be saved; the error says what is wrong with it.
    fn check(&self, draft: &Draft) -> Result<(), String>;

    /// Saves a draft under its name, if there is none of that name yet.
    fn save(&self, draft: &Draft) -> Result<(), String>;
}

/// The longest arguments by which a recipe is saved: whoever agrees has to see all
/// of it.
const LONGEST_DRAFT: usize = 12 << 10;

impl Draft {
    /// Reads the arguments of the function that saves recipes.
    pub(crate) fn read(arguments: &Json) -> Result<Draft, String> {
        if LONGEST_DRAFT < arguments.as_bytes().len() {
            return Err(format!(
                "a recipe that a model saves has at most {LONGEST_DRAFT} bytes, so that whoever agrees \
                 can read it"
            ));
        }
        arguments.parse_as().map_err(|error| error.to_string())
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
