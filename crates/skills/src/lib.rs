//! Instructions for tasks, mostly read from `SKILL.md` files.
//!
//! A skill is text for a model, and nothing but text: code in it is left out
//! and said to be, files beside it are never given out. Reading is lenient:
//! what is odd is a finding, and the skill is there all the same; [`export`] is
//! strict. A skill may have holes ([`template`]), versions, and functions that
//! it speaks of ([`Reference`]): where one of those is missing or is called in
//! another way than when somebody last looked ([`Lock`]), readers are told.

pub mod export;
pub mod library;
pub mod lock;
pub mod reference;
pub mod template;
pub mod upstream;
pub mod version;

pub mod census;
mod frontmatter;
mod read;
mod strip;

use std::fmt;

use catalog::source;
use tool::Json;

pub use library::{Library, Lookup};
pub use lock::Lock;
pub use reference::Reference;
pub use template::TemplateError;

/// How long the line of a skill in the index may be.
const LINE: usize = 200;

/// A `SKILL.md` as it was found. The path is relative to the directory that
/// was searched: `orders/create-order/SKILL.md` is `create-order` in the
/// namespace `orders`.
#[derive(Clone, Debug)]
pub struct File {
    pub path: String,
    pub text: String,
}

/// One skill, in one version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skill {
    /// Dotted; empty for the root.
    pub namespace: String,
    /// A legal name close to its author's.
    pub name: String,
    /// As its author spells it.
    pub title: String,
    pub description: String,
    pub version: Option<String>,
    /// What it says it needs, then what else it speaks of.
    pub functions: Vec<Reference>,
    pub license: Option<String>,
    pub compatibility: Option<String>,
    pub content: Content,
}

/// Where the text of a skill is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// Here, without executable content.
    Text { body: String, form: Form },
    /// At an upstream, which is asked when a reader wants it.
    Upstream { label: String, route: upstream::Route },
}

/// What a text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Plain,
    /// It has holes that values go into.
    Template,
}

/// What skills ask about a reader and what the reader can use.
pub trait Sight {
    /// Whether a skill exists as far as this reader is concerned.
    fn sees(&self, _: &Skill) -> bool {
        true
    }

    /// How a function is called, as a digest; `None` when there is none that
    /// this reader can use.
    fn signature(&self, reference: &Reference) -> Option<String>;

    /// Why the text of a skill cannot be had now, if so.
    fn away(&self, _: &Skill) -> Option<String> {
        None
    }
}

/// Why a skill should be read with care.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Flag {
    /// The reader has no such function.
    Missing(Reference),
    /// The function is called in another way than when the skill was locked.
    Changed(Reference),
    /// Its text is where nobody answers now; why.
    Away(String),
}

impl Skill {
    /// How it is asked for.
    pub fn address(&self) -> String {
        address(&self.namespace, &self.name)
    }

    /// Namespace and name in one.
    pub fn path(&self) -> String {
        if self.namespace.is_empty() {
            return self.name.clone();
        }
        format!("{}.{}", self.namespace, self.name)
    }

    /// How a catalog lists it.
    pub fn listed(&self) -> source::Skill {
        source::Skill {
            namespace: self.namespace.clone(),
            name: self.name.clone(),
            description: self.description.clone(),
        }
    }

    /// Whether its text is at an upstream.
    pub fn is_distant(&self) -> bool {
        matches!(self.content, Content::Upstream { .. })
    }

    /// Whether it is another CaSH server that gives it out.
    pub fn is_elsewhere(&self) -> bool {
        matches!(&self.content, Content::Upstream { route: upstream::Route::Cash { .. }, .. })
    }

    /// The names that values can be given for.
    pub fn holes(&self) -> Vec<String> {
        match &self.content {
            Content::Text { body, form: Form::Template } => {
                template::holes(body).unwrap_or_default().into_iter().collect()
            }
            Content::Text { form: Form::Plain, .. } | Content::Upstream { .. } => Vec::new(),
        }
    }

    /// The text, with what it leaves open filled in from the values given.
    /// What is missing stays and is named at the end.
    pub fn fill(&self, values: &[(&str, &Json)]) -> Result<String, TemplateError> {
        match &self.content {
            Content::Text { body, form: Form::Template } => {
                let (text, missing) = match template::fill(body, values) {
                    Ok(filled) => filled,
                    Err(TemplateError::Malformed(_)) => return Ok(body.clone()),
                    Err(failed @ TemplateError::Failed(_)) => return Err(failed),
                };
                // A template could put together what was taken out of it.
                let (text, _) = strip::executable(&text);
                Ok(with_missing(text, &missing))
            }
            Content::Text { body, form: Form::Plain } => Ok(body.clone()),
            Content::Upstream { label, .. } => {
                Err(TemplateError::Failed(format!("its text is at `{label}`")))
            }
        }
    }
}

/// How a skill is asked for.
pub fn address(namespace: &str, name: &str) -> String {
    if namespace.is_empty() {
        format!("`skill(skillname=\"{name}\")`")
    } else {
        format!("`skill(namespace=\"{namespace}\", skillname=\"{name}\")`")
    }
}

fn with_missing(mut text: String, missing: &[String]) -> String {
    if !missing.is_empty() {
        text.push_str(&format!("\n\nNot filled in (pass in kwargs): {}.", missing.join(", ")));
    }
    text
}

impl fmt::Display for Flag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Flag::Missing(function) => write!(f, "needs `{function}`, which is not available"),
            Flag::Changed(function) => {
                write!(f, "`{function}` is called in another way since this was written")
            }
            Flag::Away(why) => write!(f, "available: false — unavailable: {why}"),
        }
    }
}

#[cfg(test)]
mod tests;
