//! The built-in functions, in the reserved namespace `gatelet`.
//!
//! They are listed, documented, checked and called like any other function, but
//! answered in this process.

mod definitions;
mod find;
mod status;
mod view;

use std::sync::Arc;

use arc_swap::ArcSwap;
use async_trait::async_trait;
use catalog::source::Role;
use catalog::{Catalog, Slot, Source};
use tool::{Ask, Context, Failure, Json, Listing, Reply, RpcError};

use self::definitions::SAVE;
use crate::recipes::{self, Draft, RecipeStore, Recipes};
use crate::search::Search;
use artifacts::Store;
use policy::live::LiveStages;
use policy::validate::ValidCall;
use roster::{BUILTIN, Builtin, Snapshot};
use skills::skill_index::SkillIndex;

pub(crate) use definitions::{DEFAULT_RESULTS, Scripts};
pub(crate) use find::{find_functions, search_reply_config, unsearched};
pub(crate) use view::{AnswerBudget, is_media, view};

pub use roster::BUILTIN as LABEL;

/// Returns whether a call is of `gatelet.view`, which cuts its reply to the size limit
/// itself.
pub(crate) fn is_view(call: &ValidCall) -> bool {
    call.callee.upstream == BUILTIN && call.slot().is_some() && call.callee.tool == "view"
}

/// Returns whether a call runs a script: one in its arguments, or a recipe.
pub(crate) fn is_script(call: &ValidCall) -> bool {
    let tool = call.callee.tool.as_str();
    let is_own = call.callee.upstream == BUILTIN && call.slot().is_some();
    is_own && (tool == "run" || tool.starts_with(recipes::PREFIX))
}

/// Returns whether a call saves a recipe.
pub(crate) fn is_saving(call: &ValidCall) -> bool {
    call.callee.upstream == BUILTIN && call.slot().is_some() && call.callee.tool == SAVE
}

/// Lists and answers the functions of the namespace `gatelet`.
pub struct BuiltinTools {
    listing: Arc<Listing>,
    artifacts: Arc<dyn Store>,
    policies: Arc<LiveStages>,
    skills: Arc<SkillIndex>,
    search: Arc<Search>,
    recipes: Arc<ArcSwap<Recipes>>,
    recipe_store: Option<Arc<dyn RecipeStore>>,
}

impl BuiltinTools {
    pub(crate) fn new(
        artifacts: Arc<dyn Store>,
        policies: Arc<LiveStages>,
        skills: Arc<SkillIndex>,
        search: Arc<Search>,
        scripts: Scripts,
        recipes: Arc<ArcSwap<Recipes>>,
        recipe_store: Option<Arc<dyn RecipeStore>>,
    ) -> BuiltinTools {
        let listing = Arc::new(definitions::listing(scripts, recipe_store.is_some()));
        BuiltinTools { listing, artifacts, policies, skills, search, recipes, recipe_store }
    }
}

#[async_trait]
impl Builtin for BuiltinTools {
    fn source(&self) -> Source {
        let words = "This gate: search everything, read long results in parts, upstream health.";
        Source {
            description: Some(words.to_owned()),
            role: Role::Builtin,
            skills: self.skills.own().listed(),
            ..Source::new(BUILTIN, self.listing_with_recipes())
        }
    }

    async fn ask(
        &self,
        ask: Ask,
        snapshot: &Snapshot,
        context: &Context,
    ) -> Result<Reply, Failure> {
        let Ask::Call(call) = ask else {
            return Ok(Reply::Error(RpcError::new(-32601, "gatelet itself has functions only")));
        };
        let arguments = call.arguments.unwrap_or_else(Json::empty_object);
        Ok(match call.name.as_str() {
            "find" => self.find(&arguments, snapshot, context).await,
            "view" => view(&*self.artifacts, &arguments, &AnswerBudget::default(), context).await,
            "status" => Reply::text(&self.status(snapshot, context)),
            SAVE => self.save(&arguments),
            other => Reply::error_text(&format!("gatelet has no function `{other}`")),
        })
    }
}

impl BuiltinTools {
    /// Saves a recipe. Somebody has approved it by now.
    fn save(&self, arguments: &Json) -> Reply {
        let store =
            self.recipe_store.as_ref().ok_or_else(|| "recipes cannot be saved here".to_owned());
        let saved = store.and_then(|store| {
            let draft = Draft::parse(arguments)?;
            store.save(&draft).map(|()| draft.name)
        });
        match saved {
            Ok(name) => Reply::text(&format!(
                "Saved: call it as `{BUILTIN}.{}{name}` in a moment.",
                recipes::PREFIX
            )),
            Err(why) => Reply::error_text(&format!("**Error:** {why}.")),
        }
    }

    /// Returns the built-in functions together with the current recipes.
    fn listing_with_recipes(&self) -> Arc<Listing> {
        let recipes = self.recipes.load();
        if recipes.iter().next().is_none() {
            return Arc::clone(&self.listing);
        }
        let mut listing = Listing::clone(&self.listing);
        listing.tools.extend(recipes.tools());
        Arc::new(listing)
    }

    /// Reports which upstreams are unavailable, of those that the caller sees.
    fn status(&self, snapshot: &Snapshot, context: &Context) -> String {
        let visible = self.policies.visible_to(&context.caller);
        status::status(snapshot, &|at| visible.shows_source(&snapshot.catalog, at))
    }
}

/// Renders a function as a line:
/// `- orders / create(customer_id: string) — Create an order.`
pub(crate) fn function_line(catalog: &Catalog, slot: Slot) -> String {
    let away = catalog.source(slot).unavailable().map_or("", |_| " (unavailable)");
    let summary = catalog.summary(slot, 120);
    let dash = if summary.is_empty() { "" } else { " — " };
    format!("- {} / {}{dash}{summary}{away}", catalog.path(slot), catalog.signature(slot, 160))
}
