//! What pages work with: the gateway, the program behind it, and who asks.

use std::sync::Arc;
use std::time::Duration;

use gateway::Gateway;
use parking_lot::Mutex;
use tool::clock::Clock;

use crate::calls::CallLog;
use crate::operator::{AuditEntry, Operator};
use crate::request::PageRequest;
use crate::session::Session;

/// What every page can use.
pub(crate) struct Backend {
    pub(crate) gateway: Gateway,
    pub(crate) operator: Arc<dyn Operator>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) calls: Arc<CallLog>,
    pub(crate) strangers: Strangers,
}

/// How many refusals of strangers are written down in a minute.
const MOST_REFUSALS: u32 = 30;
const MINUTE: Duration = Duration::from_secs(60);
/// How much of a text of theirs is written down.
const LONGEST_TEXT: usize = 100;

/// Counts what is refused to those who are not logged in: anybody could fill the
/// disk with that.
#[derive(Default)]
pub(crate) struct Strangers(Mutex<Refusals>);

#[derive(Default)]
struct Refusals {
    /// When the minute began that is counted.
    began: Duration,
    n_refused: u32,
}

impl Strangers {
    /// Whether one more is written down; if so, how many were left out before.
    fn note(&self, now: Duration) -> Option<u32> {
        let mut refusals = self.0.lock();
        let mut n_left_out = 0;
        if MINUTE <= now.saturating_sub(refusals.began) {
            n_left_out = refusals.n_refused.saturating_sub(MOST_REFUSALS);
            *refusals = Refusals { began: now, n_refused: 0 };
        }
        refusals.n_refused = refusals.n_refused.saturating_add(1);
        (refusals.n_refused <= MOST_REFUSALS).then_some(n_left_out)
    }
}

/// A page that was asked for by somebody who is logged in.
pub(crate) struct Asked<'a> {
    pub(crate) request: &'a PageRequest,
    pub(crate) session: &'a Session,
    /// What the browser shows for the session.
    pub(crate) key: &'a str,
}

/// Why there is no page.
pub(crate) enum NoPage {
    NotFound,
    /// What is wrong with what was sent.
    Bad(String),
}

impl Backend {
    /// Writes down what was refused to somebody who is not logged in, within bounds.
    pub(crate) async fn audit_stranger(
        &self,
        who: &str,
        action: &'static str,
        subject: &str,
        why: &str,
    ) {
        let Some(n_left_out) = self.strangers.note(self.clock.elapsed()) else { return };
        let why = match n_left_out {
            0 => why.to_owned(),
            _ => format!("{why} ({n_left_out} before it were not written down)"),
        };
        let subject: String = subject.chars().take(LONGEST_TEXT).collect();
        self.audit(who, action, &subject, &Err(why)).await;
    }

    /// Writes down what was done.
    pub(crate) async fn audit(
        &self,
        who: &str,
        action: &'static str,
        subject: &str,
        outcome: &Result<(), String>,
    ) {
        let outcome = match outcome {
            Ok(()) => "done".to_owned(),
            Err(why) => format!("refused: {why}"),
        };
        let (who, subject) = (who.to_owned(), subject.to_owned());
        let entry = AuditEntry { at: self.clock.unix_millis(), who, action, subject, outcome };
        let AuditEntry { who, subject, outcome, .. } = &entry;
        tracing::info!(who, action, subject, outcome, "console");
        self.operator.audit(entry).await;
    }
}
