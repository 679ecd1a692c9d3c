//! The skill itself: its text and metadata, and how its placeholders are filled in.

use std::fmt;

use catalog::{source, summary};
use tool::Json;
use tool::text::without_invisible;

use crate::reference::Reference;
use crate::route::Route;
use crate::template::TemplateError;
use crate::{strip, template};

/// How many characters the line of a skill in a list may have.
pub(crate) const MAX_LINE: usize = 200;

/// A `SKILL.md` file. The path is relative to the directory that was searched:
/// `orders/create-order/SKILL.md` is `create-order` in the namespace `orders`.
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
    /// The name by which it is called, derived from the author's.
    pub name: String,
    /// The name as its author spells it.
    pub title: String,
    pub description: String,
    pub version: Option<String>,
    /// The functions that it declares, then the others that its text mentions.
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
    /// At an upstream, from which it is fetched when a reader asks for it.
    Upstream { label: String, route: Route },
}

/// Whether a text has placeholders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Plain,
    /// It has placeholders, which are filled in with a reader's values.
    Template,
}

/// A reader of skills: what it may see and which functions it can call.
pub trait Reader {
    /// Returns whether this reader may see a skill.
    fn sees(&self, _: &Skill) -> bool {
        true
    }

    /// A digest of the function's signature; `None` when this reader has no such
    /// function.
    fn signature(&self, reference: &Reference) -> Option<String>;

    /// Returns why the text of a skill cannot be fetched now, if so.
    fn unavailable(&self, _: &Skill) -> Option<String> {
        None
    }
}

/// A warning for the reader of a skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Flag {
    /// The reader has no such function.
    Missing(Reference),
    /// The function has another signature than when the skill was locked.
    Changed(Reference),
    /// The text of the skill cannot be fetched now, for this reason.
    Unavailable(String),
}

impl Skill {
    /// The call that returns the skill.
    pub fn address(&self) -> String {
        address(&self.namespace, &self.name)
    }

    /// Namespace and name, joined by a dot.
    pub fn path(&self) -> String {
        if self.namespace.is_empty() {
            return self.name.clone();
        }
        format!("{}.{}", self.namespace, self.name)
    }

    /// Its entry in a catalog.
    pub fn listed(&self) -> source::Skill {
        source::Skill {
            namespace: self.namespace.clone(),
            name: self.name.clone(),
            description: self.description.clone(),
        }
    }

    /// Returns whether its text is at an upstream.
    pub fn is_at_upstream(&self) -> bool {
        matches!(self.content, Content::Upstream { .. })
    }

    /// Returns whether it comes from another CaSH server.
    pub fn is_from_cash(&self) -> bool {
        matches!(&self.content, Content::Upstream { route: Route::Cash { .. }, .. })
    }

    /// The names of its placeholders.
    pub fn placeholders(&self) -> Vec<String> {
        match &self.content {
            Content::Text { body, form: Form::Template } => {
                template::placeholders(body).unwrap_or_default().into_iter().collect()
            }
            Content::Text { form: Form::Plain, .. } | Content::Upstream { .. } => Vec::new(),
        }
    }

    /// Returns the text with its placeholders filled in. Those without a value stay as they
    /// are, and a note at the end names them.
    pub fn fill(&self, values: &[(&str, &Json)]) -> Result<String, TemplateError> {
        match &self.content {
            Content::Text { body, form: Form::Template } => {
                let (text, missing) = match template::fill(body, values) {
                    Ok(filled) => filled,
                    Err(TemplateError::Malformed(_)) => return Ok(body.clone()),
                    Err(failed @ TemplateError::Failed(_)) => return Err(failed),
                };
                // A template could assemble code that was not there to be removed.
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

/// Returns an author's name of at most `limit` characters as it can stand between words of
/// ours: on one line, without invisible characters and backticks. Readers ask for a skill by
/// this spelling, too.
pub(crate) fn spelling(author: &str, limit: usize) -> String {
    let plain = without_invisible(author).replace('`', " ");
    summary::cut(&plain.split_whitespace().collect::<Vec<_>>().join(" "), limit)
}

/// The call that returns a skill.
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
            Flag::Unavailable(why) => write!(f, "available: false — unavailable: {why}"),
        }
    }
}
