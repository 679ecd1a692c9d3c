//! Which sessions were heard of lately, in a bounded amount of memory.

use std::collections::HashMap;

use tool::context::CONNECTION_PREFIX;

/// A session that was not heard of for so long, in milliseconds, counts as another one.
const IDLE: u64 = 60 * 60_000;
/// How long to wait before idle ones are looked for again, in milliseconds.
const PAUSE: u64 = 60_000;
/// The longest name of a session that is remembered, in bytes.
const LONGEST: usize = 512;
/// How many sessions are remembered.
const MAX_SESSIONS: usize = 10_000;

/// When sessions were last heard of, in milliseconds since 1970.
#[derive(Debug, Default)]
pub(super) struct RecentSessions {
    last_heard: HashMap<String, u64>,
    /// When the idle ones were last dropped.
    pruned_at: Option<u64>,
}

impl RecentSessions {
    /// Notes that a session was heard of, and returns whether it is a new one. Where there
    /// are too many to remember, further ones do not count. A client without sessions comes
    /// on many connections, so its name stands for all of them.
    pub(super) fn is_new(&mut self, session: &str, at: u64) -> bool {
        let session = match session.strip_prefix(CONNECTION_PREFIX) {
            Some(connection) => connection.split_once(' ').map_or("", |(_, client)| client),
            None => session,
        };
        // Clients choose their names; nobody needs a longer one.
        if LONGEST < session.len() {
            return false;
        }
        if let Some(last) = self.last_heard.get_mut(session) {
            let was_idle = IDLE <= at.saturating_sub(*last);
            *last = at.max(*last);
            return was_idle;
        }
        // Looking through all of them for every session too many would take long.
        let is_due = self.pruned_at.is_none_or(|before| PAUSE <= at.saturating_sub(before));
        if MAX_SESSIONS <= self.last_heard.len() && is_due {
            self.last_heard.retain(|_, last| at.saturating_sub(*last) < IDLE);
            self.pruned_at = Some(at);
        }
        if MAX_SESSIONS <= self.last_heard.len() {
            return false;
        }
        self.last_heard.insert(session.to_owned(), at);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_new_once_and_again_after_an_idle_hour() {
        let mut sessions = RecentSessions::default();
        let heard = [0, 1, IDLE, 2 * IDLE, 2 * IDLE + 1].map(|at| sessions.is_new("one", at));
        assert_eq!(heard, [true, false, false, true, false]);
    }

    #[test]
    fn a_client_without_sessions_counts_once_whatever_connections_it_opens() {
        let mut sessions = RecentSessions::default();
        let connections = (0..5).map(|n| format!("{CONNECTION_PREFIX}127.0.0.1:{n} agent"));
        assert_eq!(connections.filter(|one| sessions.is_new(one, 0)).count(), 1);
    }

    #[test]
    fn thousands_of_sessions_take_no_more_than_their_room() {
        let mut sessions = RecentSessions::default();
        let new = (0..3 * MAX_SESSIONS).filter(|n| sessions.is_new(&n.to_string(), 0));
        assert_eq!(new.count(), MAX_SESSIONS);
        assert!(!RecentSessions::default().is_new(&"x".repeat(LONGEST + 1), 0));
        // What is idle makes room.
        assert!(sessions.is_new("late", IDLE));
        assert_eq!(sessions.last_heard.len(), 1);
    }
}
