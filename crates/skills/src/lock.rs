//! The lock file of skills: the signatures of their functions when they were last checked.
//!
//! It is a file beside the skills with a line for each function that a skill refers to:
//! the skill, the function and a digest of its signature. `gatelet skill lock` writes it
//! after somebody has checked the skills. It is kept under version control with them, and
//! shows later which skills may be out of date.

use std::collections::BTreeMap;
use std::fmt;

use crate::reference::Reference;
use crate::skill::Skill;

/// The name of the file, beside the skills.
pub const LOCK_FILE_NAME: &str = "skills.lock";

const HEADER: &str = "# Functions that skills speak of, as they were when `gatelet skill lock` was run.\n\
                    # skill  function  signature\n";

/// The digests of signatures, by skill and function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SkillLock(BTreeMap<(String, String), String>);

impl SkillLock {
    /// Parses a file. Malformed lines are skipped: at worst a change is not noticed.
    pub fn parse(text: &str) -> SkillLock {
        let line = |line: &str| {
            let mut words = line.split_whitespace().filter(|_| !line.starts_with('#'));
            let (skill, function) = (words.next()?.to_owned(), words.next()?.to_owned());
            Some(((skill, function), words.next()?.to_owned()))
        };
        SkillLock(text.lines().filter_map(line).collect())
    }

    /// Collects the digests of all functions that these skills refer to; `signature_digest`
    /// gives that of one.
    pub fn from_skills<'a>(
        skills: impl IntoIterator<Item = &'a Skill>,
        signature_digest: &dyn Fn(&Reference) -> Option<String>,
    ) -> SkillLock {
        let mut lock = SkillLock::default();
        for skill in skills {
            for reference in &skill.functions {
                if let Some(digest) = signature_digest(reference) {
                    lock.0.insert((skill.path(), reference.to_string()), digest);
                }
            }
        }
        lock
    }

    /// Adds the digests of another lock, which replace existing ones.
    pub fn extend(&mut self, other: SkillLock) {
        self.0.extend(other.0);
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn digest(&self, skill: &Skill, reference: &Reference) -> Option<&str> {
        self.0.get(&(skill.path(), reference.to_string())).map(String::as_str)
    }
}

impl fmt::Display for SkillLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HEADER)?;
        self.0.iter().try_for_each(|((skill, function), digest)| {
            writeln!(f, "{skill}  {function}  {digest}")
        })
    }
}
