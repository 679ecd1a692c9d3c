//! A change to a file, as a value: the bytes before and after, and what was
//! done, so that it can be undone by structure.

use std::path::PathBuf;

use document::Format;
use document::edit::{self, EditError};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One file before and after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileChange {
    /// Whose file it is; `None` for the caller's own.
    pub host: Option<&'static str>,
    pub path: PathBuf,
    pub format: Format,
    /// `None` when there is no file.
    pub before: Option<Vec<u8>>,
    /// `None` when there is none afterwards.
    pub after: Option<Vec<u8>>,
    pub steps: Vec<Step>,
    /// Whether only its owner may read it from now on.
    pub private: bool,
    /// What whoever agrees to this should know.
    pub notes: Vec<String>,
}

impl FileChange {
    /// Returns whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.before == self.after
    }
}

/// What was done to one value of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "kebab-case")]
pub enum Step {
    Added {
        keys: Vec<String>,
        value: Value,
        /// How many tables around it were made for it.
        n_made: usize,
    },
    Replaced {
        keys: Vec<String>,
        was: Value,
        value: Value,
    },
    Removed {
        keys: Vec<String>,
        was: Value,
    },
    /// An entry of somebody else, put back.
    Restored {
        keys: Vec<String>,
        value: Value,
    },
    /// Lines that were added to the end of the file.
    Appended {
        text: String,
        /// What to say of them.
        about: String,
    },
}

impl Step {
    /// Does the step to a text.
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

    /// Takes the step back in a text that may have changed since. What is not
    /// there any more needs no taking back.
    pub fn revert(&self, text: &str, format: Format) -> Result<String, EditError> {
        match self {
            Step::Added { keys, n_made, .. } => remove(text, format, keys, *n_made),
            Step::Restored { keys, .. } => remove(text, format, keys, 0),
            Step::Replaced { keys, .. }
                if edit::find(&document::read(text, format)?, &borrowed(keys)).is_none() =>
            {
                Ok(text.to_owned())
            }
            Step::Replaced { keys, was, .. } | Step::Removed { keys, was } => {
                Ok(edit::set(text, format, &borrowed(keys), was)?.text)
            }
            Step::Appended { text: more, .. } => Ok(match text.matches(more.as_str()).count() {
                1 => text.replacen(more.as_str(), "", 1),
                _ => text.to_owned(),
            }),
        }
    }

    /// The step that takes this one back, for who looks at it; lines at the end
    /// of a file have none.
    pub(crate) fn inverse(&self) -> Option<Step> {
        match self {
            Step::Added { keys, value, .. } | Step::Restored { keys, value } => {
                Some(Step::Removed { keys: keys.clone(), was: value.clone() })
            }
            Step::Replaced { keys, was, .. } | Step::Removed { keys, was } => {
                Some(Step::Restored { keys: keys.clone(), value: was.clone() })
            }
            Step::Appended { .. } => None,
        }
    }
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
