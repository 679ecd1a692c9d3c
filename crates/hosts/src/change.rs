//! A planned or recorded change to one file: its bytes before and after, and the steps
//! between, so that it can be undone even after the file has changed again.

use std::path::PathBuf;

use document::Format;
use document::edit::{self, EditError};
use document::tree::Node;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::source_text::SourceText;

/// One file before and after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileChange {
    /// The id of the host that reads the file; `None` for gatelet's own file.
    pub host: Option<&'static str>,
    pub path: PathBuf,
    pub format: Format,
    /// `None` when there is no file.
    pub before: Option<Vec<u8>>,
    /// `None` when the file is removed.
    pub after: Option<Vec<u8>>,
    pub steps: Vec<Step>,
    /// Whether only the owner may read the file from now on.
    pub private: bool,
    /// Remarks for whoever approves the change.
    pub notes: Vec<String>,
}

impl FileChange {
    /// Returns whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.before == self.after
    }
}

/// One edit of a file. `keys` is the path of the value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "kebab-case")]
pub enum Step {
    Added {
        keys: Vec<String>,
        value: Value,
        /// How many tables around it were created for it.
        n_made: usize,
    },
    Replaced {
        keys: Vec<String>,
        was: Value,
        value: Value,
        /// How it was written; `None` in records that do not say.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        source: Option<SourceText>,
    },
    Removed {
        keys: Vec<String>,
        was: Value,
        /// The keys that stood before it in its table; `None` in records that do not say.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        preceding: Option<Vec<String>>,
        /// How it was written; `None` in records that do not say.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        source: Option<SourceText>,
    },
    /// An entry of another server that was put back.
    Restored { keys: Vec<String>, value: Value },
    /// Lines that were added to the end of the file.
    Appended {
        text: String,
        /// A description of the lines for a preview.
        about: String,
    },
}

impl Step {
    /// Applies the step to a text, and notes what it takes out of it.
    pub(crate) fn applied(
        mut self,
        text: &str,
        format: Format,
    ) -> Result<(Step, String), EditError> {
        let changed = self.apply(text, format)?;
        if let Step::Replaced { source, .. } | Step::Removed { source, .. } = &mut self {
            *source = SourceText::between(text, &changed);
        }
        Ok((self, changed))
    }

    /// Applies the step to a text.
    pub fn apply(&self, text: &str, format: Format) -> Result<String, EditError> {
        match self {
            Step::Added { keys, value, .. }
            | Step::Replaced { keys, value, .. }
            | Step::Restored { keys, value } => {
                Ok(edit::set(text, format, &borrowed(keys), value)?.text)
            }
            Step::Removed { keys, .. } => edit::remove(text, format, &borrowed(keys), 0),
            Step::Appended { text: more, .. } => Ok(format!("{text}{more}")),
        }
    }

    /// Undoes the step in a text that may have changed since. A value that is gone is left
    /// alone.
    pub fn revert(&self, text: &str, format: Format) -> Result<String, EditError> {
        match self {
            Step::Added { keys, n_made, .. } => remove(text, format, keys, *n_made),
            Step::Restored { keys, .. } => remove(text, format, keys, 0),
            Step::Replaced { keys, .. }
                if edit::find(&document::parse(text, format)?, &borrowed(keys)).is_none() =>
            {
                Ok(text.to_owned())
            }
            Step::Removed { keys, was, preceding: Some(preceding), source } => {
                let before = borrowed(preceding);
                let edited = edit::insert(text, format, &borrowed(keys), was, &before)?.text;
                Ok(as_written(text, edited, format, keys, preceding, source.as_ref()))
            }
            Step::Replaced { keys, was, source, .. }
            | Step::Removed { keys, was, preceding: None, source } => {
                let edited = edit::set(text, format, &borrowed(keys), was)?.text;
                Ok(as_written(text, edited, format, keys, &[], source.as_ref()))
            }
            Step::Appended { text: more, .. } => Ok(match text.matches(more.as_str()).count() {
                1 => text.replacen(more.as_str(), "", 1),
                _ => text.to_owned(),
            }),
        }
    }

    /// Returns the step that undoes this one, for a preview; appended lines have none.
    pub(crate) fn inverse(&self) -> Option<Step> {
        match self {
            Step::Added { keys, value, .. } | Step::Restored { keys, value } => {
                Some(Step::Removed {
                    keys: keys.clone(),
                    was: value.clone(),
                    preceding: None,
                    source: None,
                })
            }
            Step::Replaced { keys, was, .. } | Step::Removed { keys, was, .. } => {
                Some(Step::Restored { keys: keys.clone(), value: was.clone() })
            }
            Step::Appended { .. } => None,
        }
    }
}

/// Returns the text with the value as people wrote it, if that means the same as `edited` and
/// stands behind all of its siblings `preceding`; else `edited`.
fn as_written(
    text: &str,
    edited: String,
    format: Format,
    keys: &[String],
    preceding: &[String],
    source: Option<&SourceText>,
) -> String {
    let (Some(source), Ok(meant)) = (source, document::parse(&edited, format)) else {
        return edited;
    };
    let meant = meant.to_json();
    let is_meant = |candidate: &String| {
        let Ok(root) = document::parse(candidate, format) else { return false };
        root.to_json() == meant && stands_behind(&root, keys, preceding)
    };
    source.put_back(text).find(is_meant).unwrap_or(edited)
}

/// Whether the value at `keys` stands behind those of its siblings that once preceded it.
fn stands_behind(root: &Node, keys: &[String], preceding: &[String]) -> bool {
    let Some((key, parents)) = keys.split_last() else { return true };
    let siblings = edit::find(root, &borrowed(parents)).map(Node::members).unwrap_or_default();
    let own = siblings.iter().position(|member| member.key == *key);
    let last = siblings.iter().rposition(|member| preceding.contains(&member.key));
    last <= own
}

fn remove(text: &str, format: Format, keys: &[String], n_made: usize) -> Result<String, EditError> {
    match edit::remove(text, format, &borrowed(keys), n_made) {
        Err(EditError::Absent(_)) => Ok(text.to_owned()),
        other => other,
    }
}

pub(crate) fn borrowed(keys: &[String]) -> Vec<&str> {
    keys.iter().map(String::as_str).collect()
}
