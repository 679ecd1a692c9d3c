//! Caches the skills that upstreams listed.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::skill::Skill;

/// The skills that upstreams listed, by label and caller, each with its expiry.
#[derive(Debug, Default)]
pub struct SkillCache(Mutex<HashMap<(String, String), Entry>>);

#[derive(Debug)]
struct Entry {
    until: Instant,
    skills: Vec<Skill>,
}

/// How many lists are cached.
const MAX_ENTRIES: usize = 256;

impl SkillCache {
    /// Returns the skills that an upstream listed for every caller, or else for this one, if
    /// they have not expired.
    pub fn fresh(&self, label: &str, subject: &str) -> Option<Vec<Skill>> {
        let entries = self.0.lock();
        let of = |caller: &str| entries.get(&(label.to_owned(), caller.to_owned()));
        let found = [of(EVERYBODY), of(subject)].into_iter().flatten();
        found.filter(|entry| Instant::now() < entry.until).map(|entry| entry.skills.clone()).next()
    }

    /// Returns the skills that an upstream listed last, expired or not.
    pub fn last(&self, label: &str, subject: &str) -> Vec<Skill> {
        let entries = self.0.lock();
        let of = |caller: &str| entries.get(&(label.to_owned(), caller.to_owned()));
        let all = [of(subject), of(EVERYBODY)].into_iter().flatten();
        all.map(|entry| entry.skills.clone()).find(|skills| !skills.is_empty()).unwrap_or_default()
    }

    /// Caches the last list of an upstream again, because it did not answer now; returns it.
    pub fn postpone(&self, label: &str, subject: &str, wait: Duration) -> Vec<Skill> {
        let skills = self.last(label, subject);
        self.insert(label, Some(subject), wait, skills.clone());
        skills
    }

    /// Caches a list for one caller, or, without a subject, for every caller.
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

/// The key of lists for every caller; no caller's subject is a line break.
const EVERYBODY: &str = "\n";
