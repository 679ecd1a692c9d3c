//! What every page has access to: the gateway, the program, the audit log and the
//! request.

use std::sync::Arc;
use std::time::Duration;

use gateway::Gateway;
use parking_lot::Mutex;
use tool::clock::Clock;

use crate::calls::CallLog;
use crate::control::{AuditEntry, ProgramControl};
use crate::request::PageRequest;
use crate::session::Session;

/// The parts of the program that every page can use.
pub(crate) struct Backend {
    pub(crate) gateway: Gateway,
    pub(crate) control: Arc<dyn ProgramControl>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) calls: Arc<CallLog>,
    pub(crate) refusals: RefusalLimiter,
}

/// How many refusals of unauthenticated requests are audited per minute.
const MAX_REFUSALS: u32 = 30;
const MINUTE: Duration = Duration::from_secs(60);
/// How many characters of an unauthenticated sender's text are audited.
const MAX_SUBJECT_CHARS: usize = 100;

/// Limits how many refusals of unauthenticated requests are audited, because anybody could
/// fill the disk with them.
#[derive(Default)]
pub(crate) struct RefusalLimiter(Mutex<RefusalWindow>);

#[derive(Default)]
struct RefusalWindow {
    /// When the current minute began.
    began: Duration,
    n_refused: u32,
}

impl RefusalLimiter {
    /// Counts a refusal. `None` when it must not be audited, else how many were left out in
    /// the last minute.
    fn admit(&self, now: Duration) -> Option<u32> {
        let mut window = self.0.lock();
        let mut n_left_out = 0;
        if MINUTE <= now.saturating_sub(window.began) {
            n_left_out = window.n_refused.saturating_sub(MAX_REFUSALS);
            *window = RefusalWindow { began: now, n_refused: 0 };
        }
        window.n_refused = window.n_refused.saturating_add(1);
        (window.n_refused <= MAX_REFUSALS).then_some(n_left_out)
    }
}

/// A request of somebody who is logged in.
pub(crate) struct AuthedRequest<'a> {
    pub(crate) request: &'a PageRequest,
    pub(crate) session: &'a Session,
    /// The value of the session cookie.
    pub(crate) session_key: &'a str,
}

/// Why a request has no page.
pub(crate) enum PageError {
    NotFound,
    /// The request is invalid; the text says why.
    Invalid(String),
}

impl Backend {
    /// Audits the refusal of an unauthenticated request, up to a limit.
    pub(crate) async fn audit_unauthenticated(
        &self,
        who: &str,
        action: &'static str,
        subject: &str,
        why: &str,
    ) {
        let Some(n_left_out) = self.refusals.admit(self.clock.elapsed()) else { return };
        let why = match n_left_out {
            0 => why.to_owned(),
            _ => format!("{why} ({n_left_out} before it were not written down)"),
        };
        let subject: String = subject.chars().take(MAX_SUBJECT_CHARS).collect();
        self.audit(who, action, &subject, &Err(why)).await;
    }

    /// Writes an action and its outcome to the audit log.
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
        self.control.audit(entry).await;
    }
}
