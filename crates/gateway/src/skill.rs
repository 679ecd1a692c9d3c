//! Instructions for tasks, read from `SKILL.md` files.
//!
//! A skill is text for a model, and nothing but text: code in it is left out
//! and said to be, files beside it are never given out. Reading is lenient:
//! what is odd is a finding, and the skill is there all the same.

mod frontmatter;
mod strip;

use catalog::{name, nearest, summary};
use tool::{Finding, Json, Severity};

/// A `SKILL.md` as it was found. The path is relative to the directory that
/// was searched: `orders/create-order/SKILL.md` is `create-order` in the
/// namespace `orders`.
#[derive(Clone, Debug)]
pub struct File {
    pub path: String,
    pub text: String,
}

/// One skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skill {
    /// Dotted; empty for the root.
    pub namespace: String,
    /// As its author spells it.
    pub name: String,
    pub description: String,
    body: String,
}

/// All skills.
#[derive(Clone, Debug, Default)]
pub struct Library {
    skills: Vec<Skill>,
}

/// What a name led to.
#[derive(Debug)]
pub enum Lookup<'a> {
    Found(&'a Skill),
    /// Several have that name; how each is addressed.
    Ambiguous(Vec<String>),
    /// None has; the nearest names.
    Unknown(Vec<String>),
}

/// Larger files are no instructions.
const LARGEST: usize = 1 << 20;
/// What the format recommends at most.
const LINES: usize = 500;
const DESCRIPTION: usize = 1024;
/// How long the line of a skill in the index may be.
const LINE: usize = 200;

impl Library {
    pub fn read(files: &[File]) -> (Library, Vec<Finding>) {
        let mut library = Library::default();
        let mut findings = Vec::new();
        for file in files {
            if let Some(skill) = Skill::read(file, &mut findings) {
                library.add(skill, &file.path, &mut findings);
            }
        }
        (library, findings)
    }

    pub fn skills(&self) -> &[Skill] {
        &self.skills
    }

    /// The skills in a namespace and below it, one line each; `None` when it
    /// has none and is not the root.
    pub fn index(&self, namespace: &str) -> Option<String> {
        let path = name::path(namespace)?.join(".");
        let inside: Vec<&Skill> =
            self.skills.iter().filter(|skill| is_within(&skill.namespace, &path)).collect();
        if inside.is_empty() {
            return path.is_empty().then(|| "# Skills\n\nNone are installed.\n".to_owned());
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
                let words = summary::sentence(&skill.description, LINE);
                text.push_str(&format!("- **{}** — {words}\n", skill.name));
            }
        }
        Some(text)
    }

    /// The skill of that name: in the namespace, or, with none given, in the
    /// root or wherever there is only one.
    pub fn look_up(&self, namespace: &str, wanted: &str) -> Lookup<'_> {
        let unknown = || {
            let names = self.skills.iter().map(|skill| skill.name.as_str());
            let near = nearest::nearest(wanted, names, 3);
            let whole =
                |name: &&str| self.skills.iter().find(|s| s.name == *name).map(Skill::address);
            Lookup::Unknown(near.iter().filter_map(whole).collect())
        };
        let Some(path) = name::path(namespace) else { return unknown() };
        let path = path.join(".");
        let here = |skill: &&Skill| canonical_path(&skill.namespace) == path;
        let in_root: Vec<&Skill> = self.named(wanted).into_iter().filter(here).collect();
        let mut found = in_root;
        if found.is_empty() && path.is_empty() {
            found = self.named(wanted);
        }
        match found.as_slice() {
            [] => unknown(),
            [only] => Lookup::Found(only),
            many => match many.iter().find(|skill| skill.name == wanted && here(skill)) {
                Some(exact) => Lookup::Found(exact),
                None => Lookup::Ambiguous(many.iter().map(|skill| skill.address()).collect()),
            },
        }
    }

    fn named(&self, wanted: &str) -> Vec<&Skill> {
        self.skills.iter().filter(|skill| name::same(&skill.name, wanted)).collect()
    }

    fn add(&mut self, mut skill: Skill, path: &str, findings: &mut Vec<Finding>) {
        let taken = |library: &Library, name: &str| {
            let same = |other: &Skill| other.namespace == skill.namespace && other.name == name;
            library.skills.iter().any(same)
        };
        let mut name = skill.name.clone();
        let mut number = 2;
        while taken(self, &name) {
            name = format!("{}_{number}", skill.name);
            number += 1;
        }
        if name != skill.name {
            let message = format!("another skill is called `{}`: this one is `{name}`", skill.name);
            findings.push(Finding::new(Severity::Warning, "skill-name", path, message));
            skill.name = name;
        }
        self.skills.push(skill);
    }
}

impl Skill {
    fn read(file: &File, findings: &mut Vec<Finding>) -> Option<Skill> {
        let mut note = |severity, code, message: String| {
            findings.push(Finding::new(severity, code, file.path.clone(), message));
        };
        if LARGEST < file.text.len() {
            note(Severity::Error, "skill-size", "is over 1 MiB and was left out".to_owned());
            return None;
        }
        let (namespace, directory) = place(&file.path);
        let (front, body) = frontmatter::split(&file.text);
        for (severity, message) in &front.oddities {
            note(*severity, "skill-frontmatter", message.clone());
        }
        if LINES < body.lines().count() {
            note(Severity::Warning, "skill-length", format!("has over {LINES} lines"));
        }
        let (body, stripped) = strip::executable(body.trim());
        if 0 < stripped {
            note(Severity::Info, "skill-code", format!("{stripped} pieces of code were left out"));
        }
        let name = front.name.unwrap_or_else(|| directory.clone());
        let name = if name::canonical(&name).is_empty() { name::alias(&name) } else { name };
        if !directory.is_empty() && name != directory {
            note(Severity::Info, "skill-name", format!("is called `{name}` in `{directory}`"));
        }
        let description = match front.description {
            Some(description) => description,
            None => {
                note(Severity::Warning, "skill-description", "has no description".to_owned());
                summary::sentence(&body, LINE)
            }
        };
        let description = summary::cut(&description, DESCRIPTION);
        let body = dressed(&name, &body, &front.notes);
        Some(Skill { namespace, name: legal(&name), description, body })
    }

    /// How it is asked for.
    pub fn address(&self) -> String {
        if self.namespace.is_empty() {
            format!("`skill(skillname=\"{}\")`", self.name)
        } else {
            format!("`skill(namespace=\"{}\", skillname=\"{}\")`", self.namespace, self.name)
        }
    }

    /// The text, with `{{key}}` filled in from the values given. What is
    /// missing stays and is named at the end.
    pub fn fill(&self, values: &[(&str, &Json)]) -> String {
        let mut text = String::with_capacity(self.body.len());
        let mut missing: Vec<&str> = Vec::new();
        let mut rest = self.body.as_str();
        while let Some(start) = rest.find("{{") {
            let Some(length) = rest[start..].find("}}") else { break };
            let key = rest[start + 2..start + length].trim();
            text.push_str(&rest[..start]);
            let value = values.iter().find(|(name, _)| !key.is_empty() && name::same(name, key));
            match value {
                Some((_, value)) => {
                    text.push_str(&value.read::<String>().unwrap_or_else(|_| value.to_string()));
                }
                None => {
                    text.push_str(&rest[start..start + length + 2]);
                    if name::is_legal(key) && !missing.contains(&key) {
                        missing.push(key);
                    }
                }
            }
            rest = &rest[start + length + 2..];
        }
        text.push_str(rest);
        if !missing.is_empty() {
            text.push_str(&format!("\n\nNot filled in (pass in kwargs): {}.", missing.join(", ")));
        }
        text
    }
}

/// A name in letters that listings may show: a hyphen becomes `_`.
fn legal(text: &str) -> String {
    name::alias(text)
}

/// Namespace and directory name of a file.
fn place(path: &str) -> (String, String) {
    let mut parts: Vec<&str> =
        path.split(['/', '\\']).filter(|part| !part.is_empty() && *part != ".").collect();
    parts.pop();
    let directory = parts.pop().unwrap_or_default().to_owned();
    let levels: Vec<String> = parts.into_iter().map(name::alias).collect();
    (levels.join("."), directory)
}

fn canonical_path(path: &str) -> String {
    path.split('.').map(name::canonical).collect::<Vec<_>>().join(".")
}

fn is_within(namespace: &str, path: &str) -> bool {
    let namespace = canonical_path(namespace);
    let below = |rest: &str| rest.is_empty() || rest.starts_with('.');
    path.is_empty() || namespace.strip_prefix(path).is_some_and(below)
}

/// The body with a title, and what the reader needs to know in one line.
fn dressed(name: &str, body: &str, notes: &[String]) -> String {
    let title = if body.starts_with("# ") { String::new() } else { format!("# {name}\n\n") };
    let notes = if notes.is_empty() { String::new() } else { format!("\n\n{}", notes.join("; ")) };
    format!("{title}{body}{notes}")
}

#[cfg(test)]
mod tests;
