//! The library of all skills, by name, namespace and version.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use catalog::{name, nearest, source, summary};
use tool::{Finding, Severity};

use crate::lock::SkillLock;
use crate::reference::Reference;
use crate::skill::{File, Flag, MAX_LINE, Reader, Skill};
use crate::{parse, version};

/// All skills.
#[derive(Clone, Debug, Default)]
pub struct Library {
    /// Each version on its own, the latest of a skill first.
    skills: Vec<Arc<Skill>>,
    lock: SkillLock,
    /// The labels of upstreams whose prompts are skills.
    prompts: BTreeSet<String>,
    /// The last number that was appended to a name, by namespace and name.
    numbers: HashMap<(String, String), usize>,
}

/// The result of looking up a name.
#[derive(Debug)]
pub enum Lookup {
    Found(Arc<Skill>),
    /// Several skills have the name; these are their addresses.
    Ambiguous(Vec<String>),
    /// The skill does not have the wanted version, but these.
    NoSuchVersion(Vec<String>),
    /// No skill has the name; these are the addresses of skills whose names are almost the
    /// same (`close`) or similar.
    Unknown {
        close: Vec<String>,
        similar: Vec<String>,
    },
}

impl Library {
    /// Parses files into a library, and returns what is wrong with them.
    pub fn parse(files: &[File]) -> (Library, Vec<Finding>) {
        let mut library = Library::default();
        let mut findings = Vec::new();
        for file in files {
            if let Some(skill) = parse::parse(file, &mut findings) {
                library.add(skill, &file.path, &mut findings);
            }
        }
        (library, findings)
    }

    /// Sets the locked signatures of the functions that the skills refer to.
    pub fn with_lock(self, lock: SkillLock) -> Library {
        Library { lock, ..self }
    }

    /// Makes the prompts of these upstreams skills.
    pub fn with_prompts(self, labels: impl IntoIterator<Item = String>) -> Library {
        Library { prompts: labels.into_iter().collect(), ..self }
    }

    pub fn takes_prompts_of(&self, label: &str) -> bool {
        self.prompts.contains(label)
    }

    /// Returns a library with more skills. Those that are in it already keep their names.
    pub fn with(&self, more: impl IntoIterator<Item = Skill>) -> (Library, Vec<Finding>) {
        let mut library = self.clone();
        let mut findings = Vec::new();
        for skill in more {
            let namespace = skill.namespace.clone();
            library.add(skill, &namespace, &mut findings);
        }
        (library, findings)
    }

    /// Every skill in every version.
    pub fn skills(&self) -> &[Arc<Skill>] {
        &self.skills
    }

    /// The skills as entries of the catalog.
    pub fn listed(&self) -> Arc<[source::Skill]> {
        self.newest().map(|skill| skill.listed()).collect()
    }

    /// Every skill that the reader sees, in its latest version.
    pub fn latest<'a>(&'a self, reader: &'a dyn Reader) -> impl Iterator<Item = &'a Arc<Skill>> {
        self.newest().filter(|skill| reader.sees(skill))
    }

    /// Every skill in its latest version.
    pub fn newest(&self) -> impl Iterator<Item = &Arc<Skill>> {
        let mut known = HashSet::new();
        self.skills.iter().filter(move |skill| known.insert((&skill.namespace, &skill.name)))
    }

    /// Renders the skills in a namespace and below it, one line each; `None` if there are
    /// none and the namespace is not the root.
    pub fn index(&self, namespace: &str, reader: &dyn Reader) -> Option<String> {
        let path = name::path(namespace)?.join(".");
        let inside: Vec<&Arc<Skill>> =
            self.latest(reader).filter(|skill| is_within(&skill.namespace, &path)).collect();
        if inside.is_empty() {
            return path.is_empty().then(|| "# Skills\n\nNone are installed. Functions do not need one: `help` finds them.\n".to_owned());
        }
        let mut namespaces: Vec<&str> =
            inside.iter().map(|skill| skill.namespace.as_str()).collect();
        namespaces.sort_unstable();
        namespaces.dedup();
        let mut text = "# Skills\n".to_owned();
        for namespace in namespaces {
            text.push_str(&if namespace.is_empty() {
                "\n".to_owned()
            } else {
                format!("\n## namespace {namespace}\n\n")
            });
            for skill in inside.iter().filter(|skill| skill.namespace == namespace) {
                text.push_str(&self.line(skill, reader));
                text.push('\n');
            }
        }
        Some(text)
    }

    /// Returns whether the reader sees a skill in a namespace.
    pub fn has(&self, namespace: &str, reader: &dyn Reader) -> bool {
        let Some(path) = name::path(namespace) else { return false };
        let path = path.join(".");
        self.latest(reader).any(|skill| canonical_path(&skill.namespace) == path)
    }

    /// Renders a skill as a line of a list: `- **create_order** — Creates an order. (flag)`.
    pub fn line(&self, skill: &Skill, reader: &dyn Reader) -> String {
        let words = summary::sentence(&skill.description, MAX_LINE);
        let dash = if words.is_empty() { "" } else { " — " };
        let flags = self.flags(skill, reader);
        let flag = match flags.as_slice() {
            [] => String::new(),
            [only] => format!(" ({only})"),
            [first, rest @ ..] => format!(" ({first}; {} more)", rest.len()),
        };
        let spelt = self.spelling(skill).map(|title| format!(" (spelt `{title}`)"));
        format!("- **{}**{dash}{words}{}{flag}", skill.name, spelt.unwrap_or_default())
    }

    /// Returns the author's spelling of a name, if readers need it: it is another word, or
    /// a neighbour's name differs only in hyphens.
    fn spelling<'a>(&self, skill: &'a Skill) -> Option<&'a str> {
        let other = !name::same(&skill.name, &skill.title);
        let alike = || self.skills.iter().any(|one| is_alike(one, skill));
        (skill.title != skill.name && (other || alike())).then_some(skill.title.as_str())
    }

    /// Returns the warnings about a skill for this reader.
    pub fn flags(&self, skill: &Skill, reader: &dyn Reader) -> Vec<Flag> {
        if let Some(why) = reader.unavailable(skill) {
            return vec![Flag::Unavailable(why)];
        }
        let flag = |reference: &Reference| match reader.signature(reference) {
            None => Some(Flag::Missing(reference.clone())),
            Some(now) => {
                let then = self.lock.digest(skill, reference);
                then.filter(|then| *then != now).map(|_| Flag::Changed(reference.clone()))
            }
        };
        skill.functions.iter().filter_map(flag).collect()
    }

    /// The skills that refer to a function.
    pub fn referring_to(&self, function: &Reference, reader: &dyn Reader) -> Vec<Arc<Skill>> {
        let refers = |skill: &&Arc<Skill>| skill.functions.iter().any(|one| one.is(function));
        self.latest(reader).filter(refers).cloned().collect()
    }

    /// Looks up a skill by name: in the namespace, or, with an empty one, in the root or
    /// wherever the name occurs once. Without a version, the latest is meant.
    pub fn look_up(
        &self,
        namespace: &str,
        wanted: &str,
        version: Option<&str>,
        reader: &dyn Reader,
    ) -> Lookup {
        match self.find(namespace, wanted, reader) {
            Lookup::Found(latest) => match version {
                None => Lookup::Found(latest),
                Some(version) => self.in_version(&latest, version),
            },
            other @ (Lookup::Ambiguous(_) | Lookup::NoSuchVersion(_) | Lookup::Unknown { .. }) => {
                other
            }
        }
    }

    fn find(&self, namespace: &str, wanted: &str, reader: &dyn Reader) -> Lookup {
        let seen: Vec<&Arc<Skill>> = self.latest(reader).collect();
        let unknown = || {
            let near =
                nearest::rank_by_similarity(wanted, seen.iter().map(|skill| skill.name.as_str()));
            let (close, similar): (Vec<_>, Vec<_>) =
                near.into_iter().take(3).partition(|(score, _)| nearest::TYPO_SIMILARITY <= *score);
            let whole = |(_, name): (f32, &str)| {
                seen.iter().find(|skill| skill.name == name).map(|skill| skill.address())
            };
            let all = |near: Vec<(f32, &str)>| near.into_iter().filter_map(whole).collect();
            Lookup::Unknown { close: all(close), similar: all(similar) }
        };
        let Some(path) = name::path(namespace) else { return unknown() };
        let path = path.join(".");
        let here = |skill: &&Arc<Skill>| canonical_path(&skill.namespace) == path;
        let named: Vec<&Arc<Skill>> =
            seen.iter().copied().filter(|skill| name::same(&skill.name, wanted)).collect();
        // The author's own spelling comes first.
        let spelt = seen.iter().copied().filter(|skill| skill.title == wanted);
        let spelt: Vec<&Arc<Skill>> = spelt.filter(|s| path.is_empty() || here(s)).collect();
        if let [only] = spelt.as_slice() {
            return Lookup::Found(Arc::clone(only));
        }
        let mut found: Vec<&Arc<Skill>> = named.iter().copied().filter(here).collect();
        if found.is_empty() && path.is_empty() {
            found = named;
        }
        match found.as_slice() {
            [] => unknown(),
            [only] => Lookup::Found(Arc::clone(only)),
            many => match many.iter().find(|skill| skill.name == wanted && here(skill)) {
                Some(exact) => Lookup::Found(Arc::clone(exact)),
                None => Lookup::Ambiguous(many.iter().map(|skill| skill.address()).collect()),
            },
        }
    }

    /// Finds the latest version of a skill that matches the wanted one.
    fn in_version(&self, skill: &Skill, wanted: &str) -> Lookup {
        let versions: Vec<&Arc<Skill>> =
            self.skills.iter().filter(|other| other.is_version_of(skill)).collect();
        // Only its server knows which versions it has.
        if let [only] = versions.as_slice()
            && only.is_from_cash()
        {
            return Lookup::Found(Arc::clone(only));
        }
        let is_meant = |other: &&&Arc<Skill>| {
            other.version.as_deref().is_some_and(|version| version::fits(version, wanted))
        };
        match versions.iter().find(is_meant) {
            Some(meant) => Lookup::Found(Arc::clone(meant)),
            None => {
                Lookup::NoSuchVersion(versions.iter().filter_map(|s| s.version.clone()).collect())
            }
        }
    }

    /// Adds a skill. Versions of one skill share its name; a second skill with the
    /// same name and version gets another name.
    fn add(&mut self, mut skill: Skill, path: &str, findings: &mut Vec<Finding>) {
        let clashes = |library: &Library, skill: &Skill| {
            let same = |other: &Arc<Skill>| {
                other.is_version_of(skill)
                    && (other.version == skill.version
                        || other.version.is_none()
                        || skill.version.is_none())
            };
            library.skills.iter().any(same)
        };
        let author = skill.name.clone();
        if clashes(self, &skill) {
            // The search goes on after the last number that was used, because an upstream
            // may list any number of skills with the same name.
            let key = (skill.namespace.clone(), author.clone());
            let mut number = self.numbers.get(&key).copied().unwrap_or(1);
            while clashes(self, &skill) {
                number += 1;
                skill.name = format!("{author}_{number}");
            }
            self.numbers.insert(key, number);
        }
        if author != skill.name {
            let message =
                format!("another skill is called `{author}`: this one is `{}`", skill.name);
            findings.push(Finding::new(Severity::Warning, "skill-name", path, message));
        }
        if let Some(other) = self.skills.iter().find(|other| is_alike(other, &skill)) {
            let message = format!(
                "`{}` and `{}` differ in spelling only: each is asked for exactly so",
                skill.title, other.title
            );
            findings.push(Finding::new(Severity::Warning, "skill-name", path, message));
        }
        // Inserted before the first version that is earlier.
        let earlier = |other: &Arc<Skill>| {
            let order = version::compare(other.version.as_deref(), skill.version.as_deref());
            other.is_version_of(&skill) && order.is_lt()
        };
        let at = self.skills.iter().position(earlier).unwrap_or(self.skills.len());
        self.skills.insert(at, Arc::new(skill));
    }
}

impl Skill {
    fn is_version_of(&self, other: &Skill) -> bool {
        self.name == other.name && self.namespace == other.namespace
    }
}

/// Returns whether two skills of one namespace have names that count as the same.
fn is_alike(one: &Skill, other: &Skill) -> bool {
    one.namespace == other.namespace && one.name != other.name && name::same(&one.name, &other.name)
}

fn canonical_path(path: &str) -> String {
    path.split('.').map(name::canonical).collect::<Vec<_>>().join(".")
}

fn is_within(namespace: &str, path: &str) -> bool {
    let namespace = canonical_path(namespace);
    let below = |rest: &str| rest.is_empty() || rest.starts_with('.');
    path.is_empty() || namespace.strip_prefix(path).is_some_and(below)
}
