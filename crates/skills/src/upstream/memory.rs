//! What upstreams said of their skills.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::Skill;

/// What upstreams listed, for as long as it may be believed.
#[derive(Debug, Default)]
pub struct Memory(Mutex<HashMap<(String, String), Kept>>);

#[derive(Debug)]
struct Kept {
    until: Instant,
    skills: Vec<Skill>,
}

/// How many answers are kept.
const KEPT: usize = 256;

impl Memory {
    /// What an upstream listed for everybody, or else for this reader.
    pub fn recall(&self, label: &str, subject: &str) -> Option<Vec<Skill>> {
        let kept = self.0.lock();
        let of = |whose: &str| kept.get(&(label.to_owned(), whose.to_owned()));
        // Nobody is called by a line break, so it stands for everybody.
        let found = [of(EVERYBODY), of(subject)].into_iter().flatten();
        found.filter(|kept| Instant::now() < kept.until).map(|kept| kept.skills.clone()).next()
    }

    /// What an upstream listed last, however long ago.
    pub fn remembered(&self, label: &str, subject: &str) -> Vec<Skill> {
        let kept = self.0.lock();
        let of = |whose: &str| kept.get(&(label.to_owned(), whose.to_owned()));
        let all = [of(subject), of(EVERYBODY)].into_iter().flatten();
        all.map(|kept| kept.skills.clone()).find(|skills| !skills.is_empty()).unwrap_or_default()
    }

    /// An upstream that did not say is not asked again at once; what it said
    /// before still counts.
    pub fn postpone(&self, label: &str, subject: &str, wait: Duration) -> Vec<Skill> {
        let skills = self.remembered(label, subject);
        self.keep(label, Some(subject), wait, skills.clone());
        skills
    }

    pub fn keep(&self, label: &str, subject: Option<&str>, lifetime: Duration, skills: Vec<Skill>) {
        let mut kept = self.0.lock();
        let now = Instant::now();
        if KEPT <= kept.len() {
            kept.retain(|_, one| now < one.until);
        }
        if KEPT <= kept.len() {
            kept.clear();
        }
        let whose = subject.unwrap_or(EVERYBODY).to_owned();
        kept.insert((label.to_owned(), whose), Kept { until: now + lifetime, skills });
    }
}

const EVERYBODY: &str = "\n";
