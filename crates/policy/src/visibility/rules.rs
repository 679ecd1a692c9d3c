//! The operator's rules: which callers see which namespaces, functions, skills,
//! resources and prompts.
//!
//! The first rule that speaks of both the caller and the thing decides; where
//! none does, the default does.

use std::str::FromStr;

use catalog::{Catalog, Slot};
use tool::Identity;

use crate::pattern::{Breadth, Named, Path, Pattern, Shown};
use crate::uri;

/// The operator's rules. Everybody sees everything by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    pub default: Sight,
    pub rules: Vec<Rule>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sight {
    #[default]
    Shown,
    Hidden,
}

/// What some callers see, and what they do not. What is in both lists is seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    /// One of these must fit the caller; nobody in particular when empty.
    pub callers: Vec<Who>,
    pub show: Vec<What>,
    pub hide: Vec<What>,
}

/// Some callers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Who {
    Everybody,
    Anonymous,
    Role(Pattern),
    Scope(Pattern),
    Group(Pattern),
    /// By the name of the identity: `key:ci`, `cert:ann`, or a token's subject.
    Subject(Pattern),
}

/// Some things. `*` and `?` work in all of them; case, `_` and `-` do not
/// matter in names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// A namespace with all that belongs to it, or one function:
    /// `orders`, `orders.retail`, `orders.delete_*`.
    Namespace(Pattern),
    Function(Pattern),
    Skill(Pattern),
    /// By its URI.
    Resource(Pattern),
    Prompt(Pattern),
}

/// Something that is seen or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Thing<'a> {
    Namespace(&'a str),
    Function {
        path: &'a str,
        /// As `help` shows it.
        name: &'a str,
        /// As its upstream calls it.
        own: &'a str,
        /// Whether another function differs from it in nothing but spelling.
        has_double: bool,
    },
    Skill {
        namespace: &'a str,
        name: &'a str,
    },
    /// A resource, or a template of them, and the upstream that has it.
    Resource {
        upstream: &'a str,
        uri: &'a str,
    },
    Prompt {
        upstream: &'a str,
        name: &'a str,
    },
}

/// A text that stands for no caller or no thing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    #[error(
        "`{0}` is no caller: use `role:…`, `scope:…`, `group:…`, `key:…`, `cert:…`, `subject:…`, \
         `anonymous` or `*`"
    )]
    Who(String),
    #[error(
        "`{0}` is nothing to see: use a namespace such as `orders` or `orders.delete_*`, or \
         `function:…`, `skill:…`, `resource:…`, `prompt:…`"
    )]
    What(String),
}

impl FromStr for Who {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Who, Invalid> {
        let invalid = || Invalid::Who(text.to_owned());
        if let Some(who) = [("*", Who::Everybody), ("anonymous", Who::Anonymous)]
            .into_iter()
            .find_map(|(word, who)| (word == text).then_some(who))
        {
            return Ok(who);
        }
        let (kind, rest) = text.split_once(':').ok_or_else(invalid)?;
        let pattern = Pattern::new(rest);
        match kind {
            _ if rest.is_empty() => Err(invalid()),
            "role" => Ok(Who::Role(pattern)),
            "scope" => Ok(Who::Scope(pattern)),
            "group" => Ok(Who::Group(pattern)),
            "subject" => Ok(Who::Subject(pattern)),
            "key" | "cert" => Ok(Who::Subject(Pattern::new(text))),
            _ => Err(invalid()),
        }
    }
}

impl FromStr for What {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<What, Invalid> {
        let named = |text: &str| Pattern::new(text);
        match text.split_once(':') {
            None if !text.is_empty() => Ok(What::Namespace(named(text))),
            Some(("function", rest)) if !rest.is_empty() => Ok(What::Function(named(rest))),
            Some(("skill", rest)) if !rest.is_empty() => Ok(What::Skill(named(rest))),
            Some(("prompt", rest)) if !rest.is_empty() => Ok(What::Prompt(named(rest))),
            Some(("resource", rest)) if !rest.is_empty() => {
                Ok(What::Resource(Pattern::new(&uri::normalized(rest))))
            }
            None | Some(_) => Err(Invalid::What(text.to_owned())),
        }
    }
}

impl Config {
    /// Whether everybody sees everything.
    pub fn is_open(&self) -> bool {
        self.default == Sight::Shown && self.rules.iter().all(|rule| rule.hide.is_empty())
    }

    /// Whether something exists as far as a caller is concerned.
    pub fn shows(&self, caller: &Identity, thing: &Thing<'_>) -> bool {
        let thing = Sighted::new(thing);
        let decides = |rule: &Rule| {
            // Where a name or a URI can be read in several ways, whoever hides one of
            // them means it, and whoever shows it means all of them.
            let shows = rule.show.iter().any(|what| what.fits(&thing, Breadth::Exact));
            let hides = rule.hide.iter().any(|what| what.fits(&thing, Breadth::Wide));
            match (shows, hides) {
                (true, _) => Some(Sight::Shown),
                (false, true) => Some(Sight::Hidden),
                (false, false) => None,
            }
        };
        let mut rules = self.rules.iter().filter(|rule| rule.concerns(caller));
        rules.find_map(decides).unwrap_or(self.default) == Sight::Shown
    }

    /// Whether resources are hidden from a caller one by one, so that a URI
    /// that nobody listed must not be asked for either.
    pub fn hides_resources(&self, caller: &Identity) -> bool {
        let picks = |what: &What| matches!(what, What::Resource(_));
        let mut rules = self.rules.iter().filter(|rule| rule.concerns(caller));
        rules.any(|rule| rule.hide.iter().chain(&rule.show).any(picks))
    }

    /// Whether skills are hidden from a caller one by one, so that their files must
    /// not be read past the skills either.
    pub fn hides_skills(&self, caller: &Identity) -> bool {
        let picks = |what: &What| matches!(what, What::Skill(_));
        let mut rules = self.rules.iter().filter(|rule| rule.concerns(caller));
        rules.any(|rule| rule.hide.iter().any(picks))
    }

    /// Which rules concern a caller: two with the same answer see the same.
    pub fn view_key(&self, caller: &Identity) -> String {
        let rules = self.rules.iter().enumerate().filter(|(_, rule)| rule.concerns(caller));
        rules.map(|(at, _)| format!("{at},")).collect()
    }
}

impl<'a> Thing<'a> {
    /// A function of a catalog.
    pub fn function(catalog: &'a Catalog, slot: Slot) -> Thing<'a> {
        Thing::Function {
            path: catalog.path(slot),
            name: &catalog.function(slot).name,
            own: &catalog.tool(slot).name,
            has_double: catalog.has_double(slot),
        }
    }
}

impl Rule {
    fn concerns(&self, caller: &Identity) -> bool {
        self.callers.is_empty() || self.callers.iter().any(|who| who.fits(caller))
    }
}

impl Who {
    fn fits(&self, caller: &Identity) -> bool {
        match self {
            Who::Everybody => true,
            Who::Anonymous => caller.is_anonymous(),
            Who::Role(pattern) => caller.roles.iter().any(|role| pattern.matches(role)),
            Who::Scope(pattern) => caller.scopes.iter().any(|scope| pattern.matches(scope)),
            Who::Group(pattern) => caller.groups.iter().any(|group| pattern.matches(group)),
            Who::Subject(pattern) => !caller.is_anonymous() && pattern.matches(&caller.subject),
        }
    }
}

impl What {
    /// Whether it may be about this.
    pub fn speaks_of(&self, thing: &Thing<'_>) -> bool {
        self.fits(&Sighted::new(thing), Breadth::Wide)
    }

    /// As it was written.
    pub fn text(&self) -> &str {
        match self {
            What::Namespace(pattern)
            | What::Function(pattern)
            | What::Skill(pattern)
            | What::Resource(pattern)
            | What::Prompt(pattern) => pattern.as_str(),
        }
    }

    fn fits(&self, thing: &Sighted<'_>, breadth: Breadth) -> bool {
        match (self, thing.thing) {
            (What::Namespace(pattern), Thing::Function { path, name, own, has_double }) => {
                // Of those that are spelled alike only the spelling tells which is shown.
                let by_path = match breadth == Breadth::Exact && *has_double {
                    true => pattern.leads_through(&Path::new(path), breadth),
                    false => thing.leads(pattern, breadth),
                };
                // The upstream's own name says more where another stands in for it.
                let is_odd = own != name || *has_double;
                let by_name = |named: Named<'_>| pattern.means_with_label(named, breadth);
                by_path || (is_odd && thing.with_named(by_name))
            }
            (
                What::Namespace(pattern),
                Thing::Namespace(_)
                | Thing::Skill { .. }
                | Thing::Prompt { .. }
                | Thing::Resource { .. },
            ) => thing.leads(pattern, breadth),
            (What::Function(pattern), Thing::Function { .. })
            | (What::Skill(pattern), Thing::Skill { .. })
            | (What::Prompt(pattern), Thing::Prompt { .. }) => {
                thing.with_named(|named| match breadth {
                    Breadth::Wide => pattern.may_mean(named),
                    Breadth::Exact => pattern.means(named),
                })
            }
            (What::Resource(pattern), Thing::Resource { uri, .. }) => {
                let mut readings = uri::readings(uri).into_iter();
                match breadth {
                    Breadth::Wide => readings.any(|reading| pattern.matches(&reading)),
                    Breadth::Exact => readings.all(|reading| pattern.matches(&reading)),
                }
            }
            (What::Function(_) | What::Skill(_) | What::Prompt(_) | What::Resource(_), _) => false,
        }
    }
}

/// A thing, and the path where it stands, ready to be compared.
struct Sighted<'a> {
    thing: &'a Thing<'a>,
    /// None for what belongs to no namespace.
    path: Option<Path>,
}

impl<'a> Sighted<'a> {
    fn new(thing: &'a Thing<'a>) -> Sighted<'a> {
        let path = match thing {
            Thing::Function { path, name, .. } => Some(Path::new(&joined(path, name))),
            Thing::Namespace(namespace)
            | Thing::Skill { namespace, .. }
            | Thing::Prompt { upstream: namespace, .. }
            | Thing::Resource { upstream: namespace, .. } => {
                (!namespace.is_empty()).then(|| Path::new(namespace))
            }
        };
        Sighted { thing, path }
    }

    /// Whether a pattern leads to it, or to a level above it.
    fn leads(&self, pattern: &Pattern, breadth: Breadth) -> bool {
        match &self.path {
            Some(path) => pattern.leads_through(path, breadth),
            None => pattern.as_str() == "*",
        }
    }

    fn with_named(&self, compare: impl FnOnce(Named<'_>) -> bool) -> bool {
        let shown = Shown::AsNamed;
        match *self.thing {
            Thing::Function { path, name, own, has_double } => {
                let upstream = path.split('.').next().unwrap_or_default();
                let shown = Shown::Path { path: &joined(path, name), has_double };
                compare(Named { id: "", upstream, name: own, shown })
            }
            Thing::Skill { namespace: upstream, name } | Thing::Prompt { upstream, name } => {
                compare(Named { id: "", upstream, name, shown })
            }
            Thing::Namespace(_) | Thing::Resource { .. } => false,
        }
    }
}

fn joined(above: &str, name: &str) -> String {
    let dot = if above.is_empty() { "" } else { "." };
    format!("{above}{dot}{name}")
}
