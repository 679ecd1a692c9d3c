//! What one caller sees of a catalog, by the rules in force.

use std::any::Any;
use std::sync::Arc;

use catalog::ItemRef;
use catalog::source::{Skill, Source};
use catalog::{Catalog, GuessBy, Namespace, Slot};
use tool::Identity;

use crate::call::{Completed, What};
use crate::refusal::{Refusal, Refused};
use crate::validate::ValidCall;
use crate::visibility::rules::{Config, Thing};

/// Rules that say who sees what.
pub trait VisibilityRules: Any + Send + Sync {
    /// Whether everybody sees everything, so that nobody need ask about every
    /// single thing.
    fn is_open(&self) -> bool;

    /// Whether something exists as far as a caller is concerned.
    fn shows(&self, caller: &Identity, thing: &Thing<'_>) -> bool;

    /// Whether resources are hidden from a caller one by one, so that a URI
    /// that nobody listed must not be asked for either.
    fn hides_resources(&self, caller: &Identity) -> bool;

    /// Whether skills are hidden from a caller one by one, so that their files must
    /// not be read past the skills either.
    fn hides_skills(&self, caller: &Identity) -> bool;

    /// What tells apart callers who see different things: two with the same
    /// key see the same.
    fn view_key(&self, caller: &Identity) -> String;
}

impl VisibilityRules for Config {
    fn is_open(&self) -> bool {
        Config::is_open(self)
    }

    fn shows(&self, caller: &Identity, thing: &Thing<'_>) -> bool {
        Config::shows(self, caller, thing)
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

/// The rules in force. Ask through [`Visible`], which is for one caller.
pub struct VisibilityFilter {
    rules: Arc<dyn VisibilityRules>,
    is_open: bool,
    /// Tells these rules from those before and after them.
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

    /// Whether these are the rules in force.
    pub(crate) fn follows(&self, rules: &Config) -> bool {
        (&*self.rules as &dyn Any).downcast_ref::<Config>() == Some(rules)
    }

    /// A filter that follows these, told apart from all before it.
    pub(crate) fn next(&self, rules: Config) -> VisibilityFilter {
        VisibilityFilter { edition: self.edition + 1, ..rules.into() }
    }

    fn shows(&self, caller: &Identity, thing: &Thing<'_>) -> bool {
        self.is_open || self.rules.shows(caller, thing)
    }

    fn shows_function(&self, caller: &Identity, catalog: &Catalog, slot: Slot) -> bool {
        self.is_open || self.rules.shows(caller, &Thing::function(catalog, slot))
    }

    /// Whether the caller still sees what is called.
    pub(crate) fn admit(
        &self,
        catalog: &Catalog,
        call: &ValidCall,
        caller: &Identity,
    ) -> Result<(), Refusal> {
        let upstream = call.callee.upstream.as_str();
        let seen = match &call.what {
            What::Tool(slot) | What::Task { slot, .. } | What::Help { slot, .. } => {
                self.shows_function(caller, catalog, *slot)
            }
            What::Skill { namespace, name, .. } => {
                self.shows(caller, &Thing::Skill { namespace, name })
            }
            What::Resource { uri, .. }
            | What::Subscription { uri, .. }
            | What::Completion { of: Completed::Resource(uri), .. } => {
                self.shows(caller, &Thing::Resource { upstream, uri })
            }
            What::Prompt { name, .. } | What::Completion { of: Completed::Prompt(name), .. } => {
                self.shows(caller, &Thing::Prompt { upstream, name })
            }
        };
        if seen {
            return Ok(());
        }
        let message = "there is nothing of that name any more".to_owned();
        Err(Refusal { code: Refused::UnknownFunction, message, retry_after: None })
    }
}

/// What one caller sees.
#[derive(Clone)]
pub struct Visible<'a> {
    filter: Arc<VisibilityFilter>,
    caller: &'a Identity,
}

impl<'a> Visible<'a> {
    pub(crate) fn new(filter: Arc<VisibilityFilter>, caller: &'a Identity) -> Visible<'a> {
        Visible { filter, caller }
    }

    /// Whether nothing at all is hidden from this caller.
    pub fn shows_all(&self) -> bool {
        self.filter.is_open
    }

    /// Whether something exists as far as this caller is concerned.
    pub fn shows(&self, thing: &Thing<'_>) -> bool {
        self.filter.shows(self.caller, thing)
    }

    /// Whether something exists for who asks for it directly. A file of a skill is read as
    /// the skill's where some skills are hidden: its address as a resource knows nothing
    /// of them.
    pub fn shows_directly(&self, thing: &Thing<'_>) -> bool {
        let is_skill_file = match thing {
            Thing::Resource { uri, .. } => {
                uri.split_once(':').is_some_and(|(scheme, _)| scheme.eq_ignore_ascii_case("skill"))
            }
            Thing::Namespace(_)
            | Thing::Function { .. }
            | Thing::Skill { .. }
            | Thing::Prompt { .. } => false,
        };
        self.shows(thing) && !(is_skill_file && self.filter.rules.hides_skills(self.caller))
    }

    /// Whether a function does.
    pub fn shows_function(&self, catalog: &Catalog, slot: Slot) -> bool {
        self.filter.shows_function(self.caller, catalog, slot)
    }

    /// Whether resources are hidden from this caller one by one.
    pub fn hides_resources(&self) -> bool {
        self.filter.rules.hides_resources(self.caller)
    }

    /// What tells apart callers who see different things: two with the same
    /// key see the same.
    pub fn key(&self) -> String {
        match self.filter.is_open {
            true => String::new(),
            false => {
                format!("{}:{};", self.filter.edition, self.filter.rules.view_key(self.caller))
            }
        }
    }

    /// How what this caller may have meant is guessed: without the index where
    /// that knows of what they may not see.
    pub fn guesses_by(&self) -> GuessBy {
        if self.shows_all() { GuessBy::SpellingAndMeaning } else { GuessBy::Spelling }
    }

    /// Whether an upstream is there: it may be named, or something of it is seen.
    pub fn shows_upstream(&self, catalog: &Catalog, label: &str) -> bool {
        let named = |source: &Source| catalog::name::same(&source.label, label);
        let at = catalog.sources().iter().position(named);
        at.is_some_and(|at| self.shows_source(catalog, at))
    }

    /// The same for an upstream at its position in the catalog.
    pub fn shows_source(&self, catalog: &Catalog, source: usize) -> bool {
        let mut own = catalog.slots().filter(|slot| catalog.function(*slot).source == source);
        self.shows(&Thing::Namespace(&catalog.sources()[source].label))
            || own.any(|slot| self.shows_function(catalog, slot))
    }

    /// Whether a namespace exists: something in it does, or nothing is known of
    /// it yet.
    pub fn shows_namespace(&self, catalog: &Catalog, namespace: &Namespace) -> bool {
        let empty = namespace.functions.is_empty()
            && namespace.children.is_empty()
            && self.shows(&Thing::Namespace(&namespace.path));
        let below = |at: &usize| self.shows_namespace(catalog, &catalog.namespaces()[*at]);
        namespace.path.is_empty()
            || empty
            || namespace.functions.iter().any(|slot| self.shows_function(catalog, *slot))
            || namespace.children.iter().any(below)
    }

    /// Whether what is at a place exists.
    pub fn shows_item(&self, catalog: &Catalog, place: ItemRef) -> bool {
        let source = |source: usize| &catalog.sources()[source];
        match place {
            ItemRef::Tool(slot) => self.shows_function(catalog, slot),
            ItemRef::Resource { source: own, at } => {
                let (upstream, uri) = (&source(own).label, &source(own).listing.resources[at].uri);
                self.shows_directly(&Thing::Resource { upstream, uri })
            }
            ItemRef::Template { source: own, at } => {
                let uri = &source(own).listing.templates[at].uri_template;
                self.shows_directly(&Thing::Resource { upstream: &source(own).label, uri })
            }
            ItemRef::Prompt { source: own, at } => {
                let (upstream, name) = (&source(own).label, &source(own).listing.prompts[at].name);
                self.shows(&Thing::Prompt { upstream, name })
            }
            ItemRef::Skill { source: own, at } => {
                let Skill { namespace, name, .. } = &source(own).skills[at];
                self.shows(&Thing::Skill { namespace, name })
            }
        }
    }
}
