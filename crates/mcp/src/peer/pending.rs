//! The questions that wait for an answer.

use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;
use tool::{Failure, QuickMap, Reply, Sent};

use super::{RequestId, Timeouts};

pub(super) type Answer = Result<Reply, Failure>;

/// One open question.
pub(super) struct Pending {
    answer: oneshot::Sender<Answer>,
    /// Where in the outbox its line begins, to know whether it ever left.
    queued_at: u64,
    asked: Instant,
    alive: Instant,
    timeouts: Timeouts,
    /// How many hold its clock, and since when.
    n_holding: usize,
    held: Option<Instant>,
}

/// All open questions, and when to look whether one has waited too long.
#[derive(Default)]
pub(super) struct Table {
    open: QuickMap<RequestId, Pending>,
    due: Option<Instant>,
}

impl Pending {
    pub(super) fn new(now: Instant, timeouts: Timeouts) -> (Pending, oneshot::Receiver<Answer>) {
        let (answer, receiver) = oneshot::channel();
        let pending = Pending {
            answer,
            queued_at: 0,
            asked: now,
            alive: now,
            timeouts,
            n_holding: 0,
            held: None,
        };
        (pending, receiver)
    }

    pub(super) fn queued_at(self, queued_at: u64) -> Pending {
        Pending { queued_at, ..self }
    }

    /// When it has waited too long, if nothing holds its clock until `now`.
    fn deadline(&self, now: Instant) -> Instant {
        let alive = self.held.map_or(self.alive, |_| now);
        let held = self.held.map(|since| now - since).unwrap_or_default();
        (alive + self.timeouts.quiet).min(self.asked + held + self.timeouts.whole)
    }
}

impl Table {
    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    pub(super) fn insert(&mut self, request_id: RequestId, pending: Pending) {
        let deadline = pending.deadline(pending.asked);
        self.due = Some(self.due.map_or(deadline, |due| due.min(deadline)));
        self.open.insert(request_id, pending);
    }

    /// When to look, at the latest. It is not moved when a question is answered
    /// or gets more time: looking in vain once a minute is cheaper than setting
    /// a clock for every question.
    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Fails what has waited too long, and finds out when to look again.
    pub(super) fn expire(&mut self, now: Instant) {
        let expired = self.open.extract_if(|_, pending| pending.deadline(now) <= now);
        for (_, pending) in expired {
            let after = pending.deadline(now) - pending.asked;
            // Whoever stopped waiting needs no answer.
            pending.answer.send(Err(Failure::Timeout { after })).ok();
        }
        self.due = self.open.values().map(|pending| pending.deadline(now)).min();
    }

    /// Fails what has been held for `limit` or longer.
    pub(super) fn expire_held(&mut self, now: Instant, limit: Duration) {
        let held = |pending: &Pending| pending.held.map(|since| now - since);
        let expired = self.open.extract_if(|_, pending| held(pending) >= Some(limit));
        for (_, pending) in expired {
            let after = held(&pending).unwrap_or_default();
            // Whoever stopped waiting needs no answer.
            pending.answer.send(Err(Failure::Timeout { after })).ok();
        }
    }

    pub(super) fn remove(&mut self, request_id: RequestId) -> bool {
        self.open.remove(&request_id).is_some()
    }

    pub(super) fn touch(&mut self, request_id: RequestId, now: Instant) {
        if let Some(pending) = self.open.get_mut(&request_id) {
            pending.alive = now;
        }
    }

    /// Stops the clock of a question: the other side waits for us.
    pub(super) fn hold(&mut self, request_id: RequestId, now: Instant) {
        if let Some(pending) = self.open.get_mut(&request_id) {
            pending.n_holding += 1;
            pending.held.get_or_insert(now);
        }
    }

    /// Lets it go on.
    pub(super) fn release(&mut self, request_id: RequestId, now: Instant) {
        let Some(pending) = self.open.get_mut(&request_id) else { return };
        pending.n_holding = pending.n_holding.saturating_sub(1);
        if pending.n_holding == 0
            && let Some(since) = pending.held.take()
        {
            pending.asked += now - since;
            pending.alive = now;
        }
    }

    pub(super) fn contains(&self, request_id: RequestId) -> bool {
        self.open.contains_key(&request_id)
    }

    /// Hands an answer to whoever waits for it, or back when nobody does.
    pub(super) fn complete(&mut self, request_id: RequestId, answer: Answer) -> Result<(), Answer> {
        match self.open.remove(&request_id) {
            Some(pending) => pending.answer.send(answer),
            None => Err(answer),
        }
    }

    /// Fails everything; what is behind `written` in the outbox never left.
    pub(super) fn fail_all(&mut self, reason: &str, written: u64) {
        for (_, pending) in self.open.drain() {
            let sent = if written <= pending.queued_at { Sent::No } else { Sent::Perhaps };
            // Whoever stopped waiting needs no answer.
            pending.answer.send(Err(Failure::Lost { reason: reason.to_owned(), sent })).ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn only_what_was_held_for_long_expires() {
        let (start, minute) = (Instant::now(), Duration::from_secs(60));
        let mut table = Table::default();
        let mut ask = |request_id| {
            let (pending, answer) = Pending::new(start, Timeouts::same(minute * 60));
            table.insert(RequestId(request_id), pending);
            answer
        };
        let (mut busy, mut held) = (ask(1), ask(2));
        table.hold(RequestId(2), start);
        table.expire_held(start + minute - Duration::from_secs(1), minute);
        assert!(held.try_recv().is_err());
        table.expire_held(start + minute, minute);
        assert!(matches!(held.try_recv(), Ok(Err(Failure::Timeout { after })) if after == minute));
        assert!(busy.try_recv().is_err() && table.contains(RequestId(1)));
    }
}
