//! Decides which waiting request gets the next permit: plain data that never waits.

use std::collections::{HashMap, VecDeque};

/// The limits of a semaphore.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The number of permits.
    pub permits: usize,
    /// How many of them are reserved: one half for sessions that hold none and for
    /// handshakes, the other half for callers that hold none in any session.
    pub reserved: usize,
    /// The most waiting requests of one session.
    pub waiting: usize,
}

/// Identifies a session of a caller. The sessions of a caller share its turns.
///
/// Both are hashes, so that a request allocates nothing. Two callers with the same hash
/// would only share a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    pub caller: u64,
    pub session: u64,
}

/// Whether a request may have a reserved permit although its session holds others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Priority {
    Normal,
    /// The first request of a client, without which it can send no other.
    Handshake,
}

/// Too many requests of this session wait already.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many requests of this caller wait already")]
pub struct TooManyWaiting;

/// The answer to a request for a permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// It has the permit.
    Now,
    /// It waits until [`Queue::grant`] returns this ticket.
    Later(Ticket),
}

/// Identifies a waiting request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ticket {
    pub key: Key,
    number: u64,
}

/// The permits that are taken, and the requests that wait for one.
#[derive(Debug)]
pub struct Queue {
    limits: Limits,
    /// Permits that are taken.
    held: usize,
    /// Requests that wait.
    waiting: usize,
    /// The number of the next ticket.
    next: u64,
    callers: HashMap<u64, Caller>,
    /// Callers with waiting requests, in the order of their turns.
    turns: VecDeque<u64>,
}

#[derive(Debug, Default)]
struct Caller {
    held: usize,
    sessions: HashMap<u64, Session>,
    /// Sessions with waiting requests, in the order of their turns.
    turns: VecDeque<u64>,
}

#[derive(Debug, Default)]
struct Session {
    held: usize,
    waiting: VecDeque<(u64, Priority)>,
}

impl Queue {
    pub fn new(limits: Limits) -> Queue {
        let (callers, turns) = (HashMap::new(), VecDeque::new());
        Queue { limits, held: 0, waiting: 0, next: 0, callers, turns }
    }

    /// The number of free permits.
    pub fn free(&self) -> usize {
        self.limits.permits.saturating_sub(self.held)
    }

    /// The number of waiting requests.
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// Requests a permit.
    pub fn request(&mut self, key: Key, priority: Priority) -> Result<Turn, TooManyWaiting> {
        if self.may_have(key, priority) {
            self.hold(key);
            return Ok(Turn::Now);
        }
        let caller = self.callers.entry(key.caller).or_default();
        let session = caller.sessions.entry(key.session).or_default();
        if session.waiting.len() >= self.limits.waiting {
            self.remove_idle(key);
            return Err(TooManyWaiting);
        }
        if session.waiting.is_empty() {
            caller.turns.push_back(key.session);
            if caller.turns.len() == 1 {
                self.turns.push_back(key.caller);
            }
        }
        let number = self.next;
        self.next += 1;
        session.waiting.push_back((number, priority));
        self.waiting += 1;
        Ok(Turn::Later(Ticket { key, number }))
    }

    /// Gives a permit back. Call [`Queue::grant`] after it.
    pub fn release(&mut self, key: Key) {
        let Some(caller) = self.callers.get_mut(&key.caller) else { return };
        let Some(session) = caller.sessions.get_mut(&key.session) else { return };
        if session.held == 0 {
            return;
        }
        session.held -= 1;
        caller.held -= 1;
        self.held -= 1;
        self.remove_idle(key);
    }

    /// Gives a free permit to the waiting request whose turn it is, if there is one.
    pub fn grant(&mut self) -> Option<Ticket> {
        if self.free() == 0 {
            return None;
        }
        for at in 0..self.turns.len() {
            let caller = self.turns[at];
            let Some(ticket) = self.next_of(caller) else { continue };
            self.turns.remove(at);
            self.remove_waiting(ticket);
            // A caller that was served goes to the end of the line.
            if let Some(known) = self.callers.get_mut(&caller) {
                let session = ticket.key.session;
                let waits = known.sessions.get(&session).is_some_and(|it| !it.waiting.is_empty());
                known.turns.retain(|other| *other != session);
                if waits {
                    known.turns.push_back(session);
                }
                if !known.turns.is_empty() {
                    self.turns.push_back(caller);
                }
            }
            self.hold(ticket.key);
            return Some(ticket);
        }
        None
    }

    /// Removes a request that no longer waits.
    pub fn leave(&mut self, ticket: Ticket) {
        let Key { caller, session } = ticket.key;
        self.remove_waiting(ticket);
        if let Some(known) = self.callers.get_mut(&caller) {
            if known.sessions.get(&session).is_some_and(|it| it.waiting.is_empty()) {
                known.turns.retain(|other| *other != session);
            }
            if known.turns.is_empty() {
                self.turns.retain(|other| *other != caller);
            }
        }
        self.remove_idle(ticket.key);
    }

    /// Whether a request may have a permit now.
    fn may_have(&self, key: Key, priority: Priority) -> bool {
        let (free, reserved) = (self.free(), self.limits.reserved);
        let caller = self.callers.get(&key.caller);
        let held_by = |caller: &Caller| caller.sessions.get(&key.session).map_or(0, |it| it.held);
        if free > reserved {
            true
        } else if free > reserved / 2 {
            priority == Priority::Handshake || caller.is_none_or(|caller| held_by(caller) == 0)
        } else {
            free > 0 && caller.is_none_or(|caller| caller.held == 0)
        }
    }

    /// The first waiting request of a caller that may have a permit now, by turns of its
    /// sessions.
    fn next_of(&self, caller: u64) -> Option<Ticket> {
        let known = self.callers.get(&caller)?;
        known.turns.iter().find_map(|session| {
            let key = Key { caller, session: *session };
            let waiting = &known.sessions.get(session)?.waiting;
            let may = |(_, priority): &&(u64, Priority)| self.may_have(key, *priority);
            waiting.iter().find(may).map(|(number, _)| Ticket { key, number: *number })
        })
    }

    fn remove_waiting(&mut self, ticket: Ticket) {
        let caller = self.callers.get_mut(&ticket.key.caller);
        let session = caller.and_then(|caller| caller.sessions.get_mut(&ticket.key.session));
        let Some(session) = session else { return };
        let place = session.waiting.iter().position(|(number, _)| *number == ticket.number);
        if let Some(place) = place {
            session.waiting.remove(place);
            self.waiting -= 1;
        }
    }

    fn hold(&mut self, key: Key) {
        let caller = self.callers.entry(key.caller).or_default();
        caller.sessions.entry(key.session).or_default().held += 1;
        caller.held += 1;
        self.held += 1;
    }

    /// Removes a session and a caller that neither hold nor wait for a permit.
    fn remove_idle(&mut self, key: Key) {
        let Some(caller) = self.callers.get_mut(&key.caller) else { return };
        if caller.sessions.get(&key.session).is_some_and(Session::is_idle) {
            caller.sessions.remove(&key.session);
        }
        if caller.sessions.is_empty() {
            self.callers.remove(&key.caller);
        }
    }
}

impl Session {
    fn is_idle(&self) -> bool {
        self.held == 0 && self.waiting.is_empty()
    }
}

#[cfg(test)]
mod tests;
