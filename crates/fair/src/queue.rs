//! Who is next: plain data that decides and never waits.

use std::collections::{HashMap, VecDeque};

/// How much there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Permits in all.
    pub permits: usize,
    /// How many of them are kept for callers who hold few: one half for
    /// sessions that hold none and for greetings, the other half for callers
    /// that hold none in any session.
    pub reserve: usize,
    /// How many requests of one session may wait.
    pub waiting: usize,
}

/// Who asks. A caller may have several sessions, which share what the caller
/// gets.
///
/// Both are hashes of what identifies them, so that asking allocates nothing.
/// Two callers with one hash would share a queue, and nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    pub caller: u64,
    pub session: u64,
}

/// How a request stands to the reserve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Urgency {
    Ordinary,
    /// The first request of a client, without which nothing else is possible.
    Greeting,
}

/// Too many requests of this session wait already.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many requests of this caller wait already")]
pub struct Full;

/// What a request gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    Now,
    /// Wait for this number to come up.
    Later(Ticket),
}

/// A place in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ticket {
    pub key: Key,
    number: u64,
}

/// The permits that are taken, and who waits for one.
#[derive(Debug)]
pub struct Queue {
    limits: Limits,
    /// Permits that are taken.
    held: usize,
    /// Requests that wait.
    waiting: usize,
    next: u64,
    callers: HashMap<u64, Caller>,
    /// Callers with something that waits, in the order of their turns.
    turns: VecDeque<u64>,
}

#[derive(Debug, Default)]
struct Caller {
    held: usize,
    sessions: HashMap<u64, Session>,
    /// Sessions with something that waits, in the order of their turns.
    turns: VecDeque<u64>,
}

#[derive(Debug, Default)]
struct Session {
    held: usize,
    waiting: VecDeque<(u64, Urgency)>,
}

impl Queue {
    pub fn new(limits: Limits) -> Queue {
        let (callers, turns) = (HashMap::new(), VecDeque::new());
        Queue { limits, held: 0, waiting: 0, next: 0, callers, turns }
    }

    /// Returns how many permits are free.
    pub fn free(&self) -> usize {
        self.limits.permits.saturating_sub(self.held)
    }

    /// Returns how many requests wait.
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// Asks for a permit.
    pub fn ask(&mut self, key: Key, urgency: Urgency) -> Result<Turn, Full> {
        if self.may_have(key, urgency) {
            self.hold(key);
            return Ok(Turn::Now);
        }
        let caller = self.callers.entry(key.caller).or_default();
        let session = caller.sessions.entry(key.session).or_default();
        if session.waiting.len() >= self.limits.waiting {
            self.forget(key);
            return Err(Full);
        }
        if session.waiting.is_empty() {
            caller.turns.push_back(key.session);
            if caller.turns.len() == 1 {
                self.turns.push_back(key.caller);
            }
        }
        let number = self.next;
        self.next += 1;
        session.waiting.push_back((number, urgency));
        self.waiting += 1;
        Ok(Turn::Later(Ticket { key, number }))
    }

    /// Gives a permit back. Whose turn it is then is said by [`Queue::grant`].
    pub fn give_back(&mut self, key: Key) {
        let Some(caller) = self.callers.get_mut(&key.caller) else { return };
        let Some(session) = caller.sessions.get_mut(&key.session) else { return };
        if session.held == 0 {
            return;
        }
        session.held -= 1;
        caller.held -= 1;
        self.held -= 1;
        self.forget(key);
    }

    /// The next request that may have a permit, which it then holds.
    pub fn grant(&mut self) -> Option<Ticket> {
        if self.free() == 0 {
            return None;
        }
        for at in 0..self.turns.len() {
            let caller = self.turns[at];
            let Some(ticket) = self.next_of(caller) else { continue };
            self.turns.remove(at);
            self.take_out(ticket);
            // Who was served goes behind everybody else.
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

    /// Takes a request that no longer waits out of the queue.
    pub fn leave(&mut self, ticket: Ticket) {
        let Key { caller, session } = ticket.key;
        self.take_out(ticket);
        if let Some(known) = self.callers.get_mut(&caller) {
            if known.sessions.get(&session).is_some_and(|it| it.waiting.is_empty()) {
                known.turns.retain(|other| *other != session);
            }
            if known.turns.is_empty() {
                self.turns.retain(|other| *other != caller);
            }
        }
        self.forget(ticket.key);
    }

    /// Returns whether a request may have a permit now.
    fn may_have(&self, key: Key, urgency: Urgency) -> bool {
        let (free, reserve) = (self.free(), self.limits.reserve);
        let caller = self.callers.get(&key.caller);
        let held_by = |caller: &Caller| caller.sessions.get(&key.session).map_or(0, |it| it.held);
        if free > reserve {
            true
        } else if free > reserve / 2 {
            urgency == Urgency::Greeting || caller.is_none_or(|caller| held_by(caller) == 0)
        } else {
            free > 0 && caller.is_none_or(|caller| caller.held == 0)
        }
    }

    /// The first request of a caller that may have a permit now, its sessions
    /// in turn.
    fn next_of(&self, caller: u64) -> Option<Ticket> {
        let known = self.callers.get(&caller)?;
        known.turns.iter().find_map(|session| {
            let key = Key { caller, session: *session };
            let waiting = &known.sessions.get(session)?.waiting;
            let may = |(_, urgency): &&(u64, Urgency)| self.may_have(key, *urgency);
            waiting.iter().find(may).map(|(number, _)| Ticket { key, number: *number })
        })
    }

    fn take_out(&mut self, ticket: Ticket) {
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

    /// Forgets a session and a caller of whom nothing is left.
    fn forget(&mut self, key: Key) {
        let Some(caller) = self.callers.get_mut(&key.caller) else { return };
        if caller.sessions.get(&key.session).is_some_and(Session::is_over) {
            caller.sessions.remove(&key.session);
        }
        if caller.sessions.is_empty() {
            self.callers.remove(&key.caller);
        }
    }
}

impl Session {
    fn is_over(&self) -> bool {
        self.held == 0 && self.waiting.is_empty()
    }
}

#[cfg(test)]
mod tests;
