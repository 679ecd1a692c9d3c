//! The operator's visibility rules: which callers see which namespaces, functions,
//! skills, resources and prompts.
//!
//! The first rule that matches both the caller and the item decides; where none
//! does, the default does.

use std::cell::OnceCell;
use std::str::FromStr;

use catalog::{Catalog, Slot};
use tool::Identity;

use crate::pattern::{Breadth, ExposedNameRef, Names, Path, Pattern};
use crate::uri::Readings;

/// The operator's rules. Everybody sees everything by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    pub default: DefaultVisibility,
    pub rules: Vec<Rule>,
}

/// Whether an item that no rule mentions is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DefaultVisibility {
    #[default]
    Shown,
    Hidden,
}

/// One rule: what some callers see and do not see. An item in both lists is seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    /// The rule applies to callers that match one of these; to all when empty.
    pub callers: Vec<CallerPattern>,
    pub show: Vec<ItemPattern>,
    pub hide: Vec<ItemPattern>,
}

/// A pattern that matches callers, such as `role:admin`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallerPattern {
    Everybody,
    Anonymous,
    Role(Pattern),
    Scope(Pattern),
    Group(Pattern),
    /// By the name of the identity: `key:ci`, `cert:ann`, or a token's subject.
    Subject(Pattern),
}

/// A pattern that matches items. `*` and `?` are wildcards in all of them; case,
/// `_` and `-` do not matter in names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ItemPattern {
    /// A namespace with everything in it, or one function:
    /// `orders`, `orders.retail`, `orders.delete_*`.
    Namespace(Pattern),
    Function(Pattern),
    Skill(Pattern),
    /// By its URI.
    Resource(Pattern),
    Prompt(Pattern),
}

/// Something in the catalog that a caller sees or does not see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item<'a> {
    Namespace(&'a str),
    Function {
        /// The dotted path of its namespace.
        path: &'a str,
        /// The name that `help` shows.
        name: &'a str,
        /// The upstream's own name.
        upstream_name: &'a str,
        /// Whether another function's path differs from this one only in spelling.
        has_lookalike: bool,
    },
    Skill {
        namespace: &'a str,
        name: &'a str,
    },
    /// A resource or a resource template.
    Resource {
        upstream: &'a str,
        uri: &'a str,
    },
    Prompt {
        upstream: &'a str,
        name: &'a str,
    },
}

/// A text that is not a pattern of callers or of items.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPattern {
    #[error(
        "`{0}` is no caller: use `role:…`, `scope:…`, `group:…`, `key:…`, `cert:…`, `subject:…`, \
         `anonymous` or `*`"
    )]
    Caller(String),
    #[error(
        "`{0}` is nothing to see: use a namespace such as `orders` or `orders.delete_*`, or \
         `function:…`, `skill:…`, `resource:…`, `prompt:…`"
    )]
    Item(String),
}

impl FromStr for CallerPattern {
    type Err = InvalidPattern;

    fn from_str(text: &str) -> Result<CallerPattern, InvalidPattern> {
        let invalid = || InvalidPattern::Caller(text.to_owned());
        if let Some(who) =
            [("*", CallerPattern::Everybody), ("anonymous", CallerPattern::Anonymous)]
                .into_iter()
                .find_map(|(word, who)| (word == text).then_some(who))
        {
            return Ok(who);
        }
        let (kind, rest) = text.split_once(':').ok_or_else(invalid)?;
        let pattern = Pattern::new(rest);
        match kind {
            _ if rest.is_empty() => Err(invalid()),
            "role" => Ok(CallerPattern::Role(pattern)),
            "scope" => Ok(CallerPattern::Scope(pattern)),
            "group" => Ok(CallerPattern::Group(pattern)),
            "subject" => Ok(CallerPattern::Subject(pattern)),
            "key" | "cert" => Ok(CallerPattern::Subject(Pattern::new(text))),
            _ => Err(invalid()),
        }
    }
}

impl FromStr for ItemPattern {
    type Err = InvalidPattern;

    fn from_str(text: &str) -> Result<ItemPattern, InvalidPattern> {
        let named = |text: &str| Pattern::new(text);
        match text.split_once(':') {
            None if !text.is_empty() => Ok(ItemPattern::Namespace(named(text))),
            Some(("function", rest)) if !rest.is_empty() => Ok(ItemPattern::Function(named(rest))),
            Some(("skill", rest)) if !rest.is_empty() => Ok(ItemPattern::Skill(named(rest))),
            Some(("prompt", rest)) if !rest.is_empty() => Ok(ItemPattern::Prompt(named(rest))),
            Some(("resource", rest)) if !rest.is_empty() => Ok(ItemPattern::Resource(named(rest))),
            None | Some(_) => Err(InvalidPattern::Item(text.to_owned())),
        }
    }
}

impl Config {
    /// Whether everybody sees everything.
    pub fn is_open(&self) -> bool {
        self.default == DefaultVisibility::Shown
            && self.rules.iter().all(|rule| rule.hide.is_empty())
    }

    /// Whether a caller sees an item.
    pub fn shows(&self, caller: &Identity, item: &Item<'_>) -> bool {
        let item = ItemWithPath::new(item);
        let decides = |rule: &Rule| {
            // A name or a URI may be read in several ways: one reading is enough to hide
            // it, and all of them are needed to show it.
            let shows = rule.show.iter().any(|what| what.fits(&item, Breadth::Exact));
            let hides = rule.hide.iter().any(|what| what.fits(&item, Breadth::Wide));
            match (shows, hides) {
                (true, _) => Some(DefaultVisibility::Shown),
                (false, true) => Some(DefaultVisibility::Hidden),
                (false, false) => None,
            }
        };
        let mut rules = self.rules.iter().filter(|rule| rule.concerns(caller));
        rules.find_map(decides).unwrap_or(self.default) == DefaultVisibility::Shown
    }

    /// Whether some rule for this caller is about single resources; then a URI that
    /// is not listed must not be read either.
    pub fn hides_resources(&self, caller: &Identity) -> bool {
        let picks = |what: &ItemPattern| matches!(what, ItemPattern::Resource(_));
        let mut rules = self.rules.iter().filter(|rule| rule.concerns(caller));
        rules.any(|rule| rule.hide.iter().chain(&rule.show).any(picks))
    }

    /// Whether some rule hides single skills from this caller; then the files of
    /// skills must not be readable as plain resources either.
    pub fn hides_skills(&self, caller: &Identity) -> bool {
        let picks = |what: &ItemPattern| matches!(what, ItemPattern::Skill(_));
        let mut rules = self.rules.iter().filter(|rule| rule.concerns(caller));
        rules.any(|rule| rule.hide.iter().any(picks))
    }

    /// The positions of the rules that apply to a caller: two callers with the same
    /// key see the same.
    pub fn view_key(&self, caller: &Identity) -> String {
        let rules = self.rules.iter().enumerate().filter(|(_, rule)| rule.concerns(caller));
        rules.map(|(at, _)| format!("{at},")).collect()
    }
}

impl<'a> Item<'a> {
    /// A function of a catalog.
    pub fn function(catalog: &'a Catalog, slot: Slot) -> Item<'a> {
        Item::Function {
            path: catalog.path(slot),
            name: &catalog.function(slot).name,
            upstream_name: &catalog.tool(slot).name,
            has_lookalike: catalog.has_lookalike(slot),
        }
    }
}

impl Rule {
    fn concerns(&self, caller: &Identity) -> bool {
        self.callers.is_empty() || self.callers.iter().any(|who| who.fits(caller))
    }
}

impl CallerPattern {
    fn fits(&self, caller: &Identity) -> bool {
        match self {
            CallerPattern::Everybody => true,
            CallerPattern::Anonymous => caller.is_anonymous(),
            CallerPattern::Role(pattern) => caller.roles.iter().any(|role| pattern.matches(role)),
            CallerPattern::Scope(pattern) => {
                caller.scopes.iter().any(|scope| pattern.matches(scope))
            }
            CallerPattern::Group(pattern) => {
                caller.groups.iter().any(|group| pattern.matches(group))
            }
            CallerPattern::Subject(pattern) => {
                !caller.is_anonymous() && pattern.matches(&caller.subject)
            }
        }
    }
}

impl ItemPattern {
    /// Whether the pattern matches an item in any reading of its name.
    pub fn may_match(&self, item: &Item<'_>) -> bool {
        self.fits(&ItemWithPath::new(item), Breadth::Wide)
    }

    /// The pattern as it was written, without its prefix.
    pub fn text(&self) -> &str {
        match self {
            ItemPattern::Namespace(pattern)
            | ItemPattern::Function(pattern)
            | ItemPattern::Skill(pattern)
            | ItemPattern::Resource(pattern)
            | ItemPattern::Prompt(pattern) => pattern.as_str(),
        }
    }

    fn fits(&self, item: &ItemWithPath<'_>, breadth: Breadth) -> bool {
        match (self, item.item) {
            (
                ItemPattern::Namespace(pattern),
                Item::Function { path, name, upstream_name, has_lookalike },
            ) => {
                // Lookalikes are told apart by nothing but their exact spelling.
                let by_path = match breadth == Breadth::Exact && *has_lookalike {
                    true => pattern.matches_path_or_above(&Path::new(path), breadth),
                    false => item.is_below(pattern, breadth),
                };
                // A pattern may also use the upstream's own name where `help` shows another.
                let is_renamed = upstream_name != name || *has_lookalike;
                let by_name = |names: Names<'_>| pattern.matches_with_label(names, breadth);
                by_path || (is_renamed && item.with_names(by_name))
            }
            (
                ItemPattern::Namespace(pattern),
                Item::Namespace(_)
                | Item::Skill { .. }
                | Item::Prompt { .. }
                | Item::Resource { .. },
            ) => item.is_below(pattern, breadth),
            (ItemPattern::Function(pattern), Item::Function { .. })
            | (ItemPattern::Skill(pattern), Item::Skill { .. })
            | (ItemPattern::Prompt(pattern), Item::Prompt { .. }) => {
                item.with_names(|names| match breadth {
                    Breadth::Wide => pattern.may_match(names),
                    Breadth::Exact => pattern.matches_exactly(names),
                })
            }
            (ItemPattern::Resource(pattern), Item::Resource { uri, .. }) => {
                let readings = item.readings.get_or_init(|| Readings::new(uri));
                match breadth {
                    Breadth::Wide => pattern.as_uri().may_match(readings),
                    Breadth::Exact => pattern.as_uri().matches_exactly(readings),
                }
            }
            (
                ItemPattern::Function(_)
                | ItemPattern::Skill(_)
                | ItemPattern::Prompt(_)
                | ItemPattern::Resource(_),
                _,
            ) => false,
        }
    }
}

/// An item with its parsed path, so that many patterns can be compared with it.
struct ItemWithPath<'a> {
    item: &'a Item<'a>,
    /// `None` for an item outside of all namespaces.
    path: Option<Path>,
    /// What servers may make of the URI of a resource, once some pattern asks for it.
    readings: OnceCell<Readings>,
}

impl<'a> ItemWithPath<'a> {
    fn new(item: &'a Item<'a>) -> ItemWithPath<'a> {
        let path = match item {
            Item::Function { path, name, .. } => Some(Path::new(&joined(path, name))),
            Item::Namespace(namespace)
            | Item::Skill { namespace, .. }
            | Item::Prompt { upstream: namespace, .. }
            | Item::Resource { upstream: namespace, .. } => {
                (!namespace.is_empty()).then(|| Path::new(namespace))
            }
        };
        ItemWithPath { item, path, readings: OnceCell::new() }
    }

    /// Whether a pattern matches the item's path, or a namespace above it.
    fn is_below(&self, pattern: &Pattern, breadth: Breadth) -> bool {
        match &self.path {
            Some(path) => pattern.matches_path_or_above(path, breadth),
            None => pattern.as_str() == "*",
        }
    }

    /// Calls `compare` with the item's names; `false` for items that have only a path
    /// or a URI.
    fn with_names(&self, compare: impl FnOnce(Names<'_>) -> bool) -> bool {
        let exposed = ExposedNameRef::UpstreamName;
        match *self.item {
            Item::Function { path, name, upstream_name, has_lookalike } => {
                let upstream = path.split('.').next().unwrap_or_default();
                let exposed = ExposedNameRef::Path { path: &joined(path, name), has_lookalike };
                compare(Names { id: "", upstream, name: upstream_name, exposed })
            }
            Item::Skill { namespace: upstream, name } | Item::Prompt { upstream, name } => {
                compare(Names { id: "", upstream, name, exposed })
            }
            Item::Namespace(_) | Item::Resource { .. } => false,
        }
    }
}

fn joined(namespace: &str, name: &str) -> String {
    let dot = if namespace.is_empty() { "" } else { "." };
    format!("{namespace}{dot}{name}")
}
