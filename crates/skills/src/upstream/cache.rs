//! Caches the skills that upstreams listed.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::skill::Skill;

/// What upstreams listed, by label and caller, for as long as they allow.
#[derive(Debug, Default)]
pub struct SkillCache(Mutex<HashMap<(String, String), Entry>>);

#[derive(Debug)]
struct Entry {
    until: Instant,
    skills: Vec<Skill>,
}

/// How many answers are cached.
const MAX_ENTRIES: usize = 256;

impl SkillCache {
    /// Returns what an upstream listed for everybody, or else for this caller, if
    /// it has not expired.
    pub fn fresh(&self, label: &str, subject: &str) -> Option<Vec<Skill>> {
        let entries = self.0.lock();
        let of = |caller: &str| entries.get(&(label.to_owned(), caller.to_owned()));
        // No caller's name is a line break, so it stands for everybody.
        let found = [of(EVERYBODY), of(subject)].into_iter().flatten();
        found.filter(|entry| Instant::now() < entry.until).map(|entry| entry.skills.clone()).next()
    }

    /// Returns what an upstream listed last, expired or not.
    pub fn last(&self, label: &str, subject: &str) -> Vec<Skill> {
        let entries = self.0.lock();
        let of = |caller: &str| entries.get(&(label.to_owned(), caller.to_owned()));
        let all = [of(subject), of(EVERYBODY)].into_iter().flatten();
        all.map(|entry| entry.skills.clone()).find(|skills| !skills.is_empty()).unwrap_or_default()
    }

    /// Keeps what an upstream listed before for a while, because it did not
    /// answer now.
    pub fn postpone(&self, label: &str, subject: &str, wait: Duration) -> Vec<Skill> {
        let skills = self.last(label, subject);
        self.insert(label, Some(subject), wait, skills.clone());
        skills
    }

    pub fn insert(
        &self,
        label: &str,
        subject: Option<&str>,
        lifetime: Duration,
        skills: Vec<Skill>,
    ) {
        let mut entries = self.0.lock();
        let now = Instant::now();
        if MAX_ENTRIES <= entries.len() {
            entries.retain(|_, one| now < one.until);
        }
        if MAX_ENTRIES <= entries.len() {
            entries.clear();
        }
        let caller = subject.unwrap_or(EVERYBODY).to_owned();
        entries.insert((label.to_owned(), caller), Entry { until: now + lifetime, skills });
    }
}

const EVERYBODY: &str = "\n";
