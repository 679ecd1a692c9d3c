//! What pages work with: the gateway, the program behind it, and who asks.

use std::sync::Arc;

use gateway::Gateway;
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
