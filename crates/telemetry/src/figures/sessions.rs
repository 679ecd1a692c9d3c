//! Which sessions were heard of lately, in a bounded amount of memory.

use std::collections::HashMap;
use std::sync::Arc;

/// A session that was not heard of for so long, in milliseconds, counts as another one.
const IDLE: u64 = 60 * 60_000;
/// How many sessions are remembered.
const MAX_SESSIONS: usize = 10_000;

/// When sessions were last heard of, in milliseconds since 1970.
#[derive(Debug, Default)]
pub(super) struct RecentSessions(HashMap<Arc<str>, u64>);

impl RecentSessions {
    /// Notes that a session was heard of, and returns whether it is a new one. Where there
    /// are too many to remember, further ones do not count.
    pub(super) fn is_new(&mut self, session: &Arc<str>, at: u64) -> bool {
        if let Some(last) = self.0.get_mut(session) {
            let was_idle = IDLE <= at.saturating_sub(*last);
            *last = at.max(*last);
            return was_idle;
        }
        if MAX_SESSIONS <= self.0.len() {
            self.0.retain(|_, last| at.saturating_sub(*last) < IDLE);
        }
        if MAX_SESSIONS <= self.0.len() {
            return false;
        }
        self.0.insert(Arc::clone(session), at);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_new_once_and_again_after_an_idle_hour() {
        let (mut sessions, one) = (RecentSessions::default(), Arc::from("one"));
        let heard = [0, 1, IDLE, 2 * IDLE, 2 * IDLE + 1].map(|at| sessions.is_new(&one, at));
        assert_eq!(heard, [true, false, false, true, false]);
    }

    #[test]
    fn thousands_of_sessions_take_no_more_than_their_room() {
        let mut sessions = RecentSessions::default();
        let new = (0..3 * MAX_SESSIONS).filter(|n| sessions.is_new(&n.to_string().into(), 0));
        assert_eq!(new.count(), MAX_SESSIONS);
        // What is idle makes room.
        assert!(sessions.is_new(&"late".into(), IDLE));
        assert_eq!(sessions.0.len(), 1);
    }
}
