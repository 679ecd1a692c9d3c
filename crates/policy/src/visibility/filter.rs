//! The visibility filter, and the view that one caller has through it.

use std::any::Any;
use std::sync::Arc;

use catalog::ItemRef;
use catalog::source::{Skill, Source};
use catalog::{Catalog, GuessBy, Namespace, Slot};
use tool::Identity;

use crate::call::{CompletionSubject, TargetKind};
use crate::refusal::{Refusal, RefusalCode};
use crate::uri::Readings;
use crate::validate::ValidCall;
use crate::visibility::rules::{Config, Item};

/// Rules that say who sees what.
pub trait VisibilityRules: Any + Send + Sync {
    /// Whether everybody sees everything, so that single items need not be checked.
    fn is_open(&self) -> bool;

    /// Whether a caller sees an item.
    fn shows(&self, caller: &Identity, item: &Item<'_>) -> bool;

    /// Whether some rule for this caller is about single resources; then a URI that
    /// is not listed must not be read either.
    fn hides_resources(&self, caller: &Identity) -> bool;

    /// Whether some rule hides single skills from this caller; then the files of
    /// skills must not be readable as plain resources either.
    fn hides_skills(&self, caller: &Identity) -> bool;

    /// A key for what a caller sees: two callers with the same key see the same.
    fn view_key(&self, caller: &Identity) -> String;
}

impl VisibilityRules for Config {
    fn is_open(&self) -> bool {
        Config::is_open(self)
    }

    fn shows(&self, caller: &Identity, item: &Item<'_>) -> bool {
        Config::shows(self, caller, item)
    }

    fn hides_resources(&self, caller: &Identity) -> bool {
        Config::hides_resources(self, caller)
    }

    fn hides_skills(&self, caller: &Identity) -> bool {
        Config::hides_skills(self, caller)
    }

    fn view_key(&self, caller: &Identity) -> String {
        Config::view_key(self, caller)
    }
}

/// The visibility rules in force. Use it through a [`CallerView`].
pub struct VisibilityFilter {
    rules: Arc<dyn VisibilityRules>,
    is_open: bool,
    /// Grows with every change of the rules.
    edition: u64,
}

impl Default for VisibilityFilter {
    /// Everybody sees everything.
    fn default() -> VisibilityFilter {
        Config::default().into()
    }
}

impl From<Config> for VisibilityFilter {
    fn from(rules: Config) -> VisibilityFilter {
        VisibilityFilter::new(Arc::new(rules))
    }
}

impl VisibilityFilter {
    pub fn new(rules: Arc<dyn VisibilityRules>) -> VisibilityFilter {
        let is_open = rules.is_open();
        VisibilityFilter { rules, is_open, edition: 0 }
    }

    /// Whether this filter already has these rules.
    pub(crate) fn has_rules(&self, rules: &Config) -> bool {
        (&*self.rules as &dyn Any).downcast_ref::<Config>() == Some(rules)
    }

    /// The next edition of this filter, with other rules.
    pub(crate) fn with_rules(&self, rules: Config) -> VisibilityFilter {
        VisibilityFilter { edition: self.edition + 1, ..rules.into() }
    }

    fn shows(&self, caller: &Identity, item: &Item<'_>) -> bool {
        self.is_open || self.rules.shows(caller, item)
    }

    fn shows_function(&self, caller: &Identity, catalog: &Catalog, slot: Slot) -> bool {
        self.is_open || self.rules.shows(caller, &Item::function(catalog, slot))
    }

    /// Refuses a call of something that the caller does not see (any more).
    pub(crate) fn admit(
        &self,
        catalog: &Catalog,
        call: &ValidCall,
        caller: &Identity,
    ) -> Result<(), Refusal> {
        let upstream = call.callee.upstream.as_str();
        let seen = match &call.kind {
            TargetKind::Tool(slot)
            | TargetKind::Task { slot, .. }
            | TargetKind::Help { slot, .. } => self.shows_function(caller, catalog, *slot),
            TargetKind::Skill { namespace, name, .. } => {
                self.shows(caller, &Item::Skill { namespace, name })
            }
            TargetKind::Resource { uri, .. }
            | TargetKind::Subscription { uri, .. }
            | TargetKind::Completion { subject: CompletionSubject::Resource(uri), .. } => {
                self.shows(caller, &Item::Resource { upstream, uri })
            }
            TargetKind::Prompt { name, .. }
            | TargetKind::Completion { subject: CompletionSubject::Prompt(name), .. } => {
                self.shows(caller, &Item::Prompt { upstream, name })
            }
        };
        if seen {
            return Ok(());
        }
        let message = "there is nothing of that name any more".to_owned();
        Err(Refusal { code: RefusalCode::UnknownFunction, message, retry_after: None })
    }
}

/// The part of the catalog that one caller sees.
#[derive(Clone)]
pub struct CallerView<'a> {
    filter: Arc<VisibilityFilter>,
    caller: &'a Identity,
}

impl<'a> CallerView<'a> {
    pub(crate) fn new(filter: Arc<VisibilityFilter>, caller: &'a Identity) -> CallerView<'a> {
        CallerView { filter, caller }
    }

    /// Whether nothing at all is hidden from this caller.
    pub fn shows_all(&self) -> bool {
        self.filter.is_open
    }

    /// Whether this caller sees an item.
    pub fn shows(&self, item: &Item<'_>) -> bool {
        self.filter.shows(self.caller, item)
    }

    /// Whether this caller may ask for an item by its own URI or name. Where some
    /// skills are hidden, a `skill:` URI may not be read as a plain resource, because
    /// it does not tell which skill the file belongs to.
    pub fn shows_directly(&self, item: &Item<'_>) -> bool {
        let is_skill_file = || match item {
            Item::Resource { uri, .. } => Readings::new(uri).may_have_scheme("skill"),
            Item::Namespace(_)
            | Item::Function { .. }
            | Item::Skill { .. }
            | Item::Prompt { .. } => false,
        };
        self.shows(item) && !(self.filter.rules.hides_skills(self.caller) && is_skill_file())
    }

    /// Whether this caller sees a function.
    pub fn shows_function(&self, catalog: &Catalog, slot: Slot) -> bool {
        self.filter.shows_function(self.caller, catalog, slot)
    }

    /// Whether some rule for this caller is about single resources.
    pub fn hides_resources(&self) -> bool {
        self.filter.rules.hides_resources(self.caller)
    }

    /// A key for what this caller sees: two views with the same key show the same.
    pub fn key(&self) -> String {
        match self.filter.is_open {
            true => String::new(),
            false => {
                format!("{}:{};", self.filter.edition, self.filter.rules.view_key(self.caller))
            }
        }
    }

    /// How to guess which function this caller meant: without the search index where
    /// something is hidden, because the index knows all functions.
    pub fn guesses_by(&self) -> GuessBy {
        if self.shows_all() { GuessBy::SpellingAndMeaning } else { GuessBy::Spelling }
    }

    /// Whether this caller sees an upstream: the rules show its namespace, or at
    /// least one of its functions.
    pub fn shows_upstream(&self, catalog: &Catalog, label: &str) -> bool {
        let named = |source: &Source| catalog::name::same(&source.label, label);
        let at = catalog.sources().iter().position(named);
        at.is_some_and(|at| self.shows_source(catalog, at))
    }

    /// [`CallerView::shows_upstream`] for an upstream by its position in the catalog.
    pub fn shows_source(&self, catalog: &Catalog, source: usize) -> bool {
        let mut own = catalog.slots().filter(|slot| catalog.function(*slot).source == source);
        self.shows(&Item::Namespace(&catalog.sources()[source].label))
            || own.any(|slot| self.shows_function(catalog, slot))
    }

    /// Whether this caller sees a namespace: something in it, or the namespace itself
    /// while it is still empty.
    pub fn shows_namespace(&self, catalog: &Catalog, namespace: &Namespace) -> bool {
        let empty = namespace.functions.is_empty()
            && namespace.children.is_empty()
            && self.shows(&Item::Namespace(&namespace.path));
        let below = |at: &usize| self.shows_namespace(catalog, &catalog.namespaces()[*at]);
        namespace.path.is_empty()
            || empty
            || namespace.functions.iter().any(|slot| self.shows_function(catalog, *slot))
            || namespace.children.iter().any(below)
    }

    /// Whether this caller sees the item at a position of the catalog.
    pub fn shows_item(&self, catalog: &Catalog, item: ItemRef) -> bool {
        let source = |source: usize| &catalog.sources()[source];
        match item {
            ItemRef::Tool(slot) => self.shows_function(catalog, slot),
            ItemRef::Resource { source: own, at } => {
                let (upstream, uri) = (&source(own).label, &source(own).listing.resources[at].uri);
                self.shows_directly(&Item::Resource { upstream, uri })
            }
            ItemRef::Template { source: own, at } => {
                let uri = &source(own).listing.templates[at].uri_template;
                self.shows_directly(&Item::Resource { upstream: &source(own).label, uri })
            }
            ItemRef::Prompt { source: own, at } => {
                let (upstream, name) = (&source(own).label, &source(own).listing.prompts[at].name);
                self.shows(&Item::Prompt { upstream, name })
            }
            ItemRef::Skill { source: own, at } => {
                let Skill { namespace, name, .. } = &source(own).skills[at];
                self.shows(&Item::Skill { namespace, name })
            }
        }
    }
}
