//! The requests that wait for an answer, and their deadlines.
//!
//! One table for every transport: a [`Peer`](super::Peer) keeps its requests in
//! one, and so does a server over HTTP. What happens meanwhile (a sign of life, a
//! question back to the client, an end) reaches it through [`OpenRequests`].

use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::Instant;
use tool::{Failure, FastMap, Reply, Sent};

use super::request::{RequestId, Timeouts};

pub(crate) type Answer = Result<Reply, Failure>;

/// One open question.
pub(crate) struct Pending {
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
pub(crate) struct Table {
    open: FastMap<RequestId, Pending>,
    due: Option<Instant>,
}

/// The requests under way on one connection. Their deadlines can be moved, and
/// they can be failed.
pub(crate) trait OpenRequests: Send + Sync {
    /// Does something with the table, which is locked meanwhile.
    fn with_table(&self, act: &mut dyn FnMut(&mut Table));

    /// Notes a sign of life of a request, which gives it more time.
    fn touch(&self, request_id: RequestId) {
        self.with_table(&mut |table| table.touch(request_id, Instant::now()));
    }

    /// Stops the clock of a request, because the other side waits for us.
    fn hold(&self, request_id: RequestId) {
        self.with_table(&mut |table| table.hold(request_id, Instant::now()));
    }

    /// Lets the clock of a request go on.
    fn release(&self, request_id: RequestId) {
        self.with_table(&mut |table| table.release(request_id, Instant::now()));
    }

    /// Fails the requests whose clocks have been held for that long.
    fn expire_held(&self, limit: Duration) {
        self.with_table(&mut |table| table.expire_held(Instant::now(), limit));
    }

    /// Fails a request that waits in vain.
    fn fail(&self, request_id: RequestId, failure: Failure) {
        let mut failure = Some(failure);
        self.with_table(&mut |table| {
            // Whoever stopped waiting needs no answer.
            drop(failure.take().map(|failure| table.complete(request_id, Err(failure))));
        });
    }

    /// Returns whether a request still waits for its answer.
    fn is_open(&self, request_id: RequestId) -> bool {
        let mut is_open = false;
        self.with_table(&mut |table| is_open = table.contains(request_id));
        is_open
    }
}

/// A table with a lock of its own.
#[derive(Default)]
pub(crate) struct PendingRequests(Mutex<Table>);

/// A request in such a table, taken out when dropped.
pub(crate) struct PendingGuard<'a> {
    requests: &'a dyn OpenRequests,
    request_id: RequestId,
}

impl OpenRequests for PendingRequests {
    fn with_table(&self, act: &mut dyn FnMut(&mut Table)) {
        act(&mut self.0.lock());
    }
}

impl<'a> PendingGuard<'a> {
    /// Puts a request into the table; whatever fails it arrives at the receiver.
    pub(crate) fn new(
        requests: &'a dyn OpenRequests,
        request_id: RequestId,
        asked: Instant,
        timeouts: Timeouts,
    ) -> (PendingGuard<'a>, oneshot::Receiver<Answer>) {
        let (pending, failed) = Pending::new(asked, timeouts);
        let mut pending = Some(pending);
        requests.with_table(&mut |table| {
            if let Some(pending) = pending.take() {
                table.insert(request_id, pending);
            }
        });
        (PendingGuard { requests, request_id }, failed)
    }

    /// When the request has waited too long, as things are now.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let mut deadline = None;
        self.requests.with_table(&mut |table| {
            deadline = table.deadline(self.request_id, Instant::now());
        });
        deadline
    }
}

impl Drop for PendingGuard<'_> {
    fn drop(&mut self) {
        self.requests.with_table(&mut |table| {
            table.remove(self.request_id);
        });
    }
}

impl Pending {
    pub(crate) fn new(now: Instant, timeouts: Timeouts) -> (Pending, oneshot::Receiver<Answer>) {
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

    pub(crate) fn queued_at(self, queued_at: u64) -> Pending {
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
    pub(crate) fn len(&self) -> usize {
        self.open.len()
    }

    pub(crate) fn insert(&mut self, request_id: RequestId, pending: Pending) {
        let deadline = pending.deadline(pending.asked);
        self.due = Some(self.due.map_or(deadline, |due| due.min(deadline)));
        self.open.insert(request_id, pending);
    }

    /// When a request has waited too long, if nothing changes.
    fn deadline(&self, request_id: RequestId, now: Instant) -> Option<Instant> {
        self.open.get(&request_id).map(|pending| pending.deadline(now))
    }

    /// When to look, at the latest. It is not moved when a question is answered
    /// or gets more time: looking in vain once a minute is cheaper than setting
    /// a clock for every question.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Fails what has waited too long, and finds out when to look again.
    pub(crate) fn expire(&mut self, now: Instant) {
        let expired = self.open.extract_if(|_, pending| pending.deadline(now) <= now);
        for (_, pending) in expired {
            let after = pending.deadline(now) - pending.asked;
            // Whoever stopped waiting needs no answer.
            pending.answer.send(Err(Failure::Timeout { after })).ok();
        }
        self.due = self.open.values().map(|pending| pending.deadline(now)).min();
    }

    /// Fails what has been held for `limit` or longer.
    pub(crate) fn expire_held(&mut self, now: Instant, limit: Duration) {
        let held = |pending: &Pending| pending.held.map(|since| now - since);
        let expired = self.open.extract_if(|_, pending| held(pending) >= Some(limit));
        for (_, pending) in expired {
            let after = held(&pending).unwrap_or_default();
            // Whoever stopped waiting needs no answer.
            pending.answer.send(Err(Failure::Timeout { after })).ok();
        }
    }

    pub(crate) fn remove(&mut self, request_id: RequestId) -> bool {
        self.open.remove(&request_id).is_some()
    }

    pub(crate) fn touch(&mut self, request_id: RequestId, now: Instant) {
        if let Some(pending) = self.open.get_mut(&request_id) {
            pending.alive = now;
        }
    }

    /// Stops the clock of a question: the other side waits for us.
    pub(crate) fn hold(&mut self, request_id: RequestId, now: Instant) {
        if let Some(pending) = self.open.get_mut(&request_id) {
            pending.n_holding += 1;
            pending.held.get_or_insert(now);
        }
    }

    /// Lets it go on.
    pub(crate) fn release(&mut self, request_id: RequestId, now: Instant) {
        let Some(pending) = self.open.get_mut(&request_id) else { return };
        pending.n_holding = pending.n_holding.saturating_sub(1);
        if pending.n_holding == 0
            && let Some(since) = pending.held.take()
        {
            pending.asked += now - since;
            pending.alive = now;
        }
    }

    pub(crate) fn contains(&self, request_id: RequestId) -> bool {
        self.open.contains_key(&request_id)
    }

    /// Hands an answer to whoever waits for it, or back when nobody does.
    pub(crate) fn complete(&mut self, request_id: RequestId, answer: Answer) -> Result<(), Answer> {
        match self.open.remove(&request_id) {
            Some(pending) => pending.answer.send(answer),
            None => Err(answer),
        }
    }

    /// Fails everything, because an answer came that may be anybody's.
    pub(crate) fn complete_all(&mut self, failure: &Failure) {
        for (_, pending) in self.open.drain() {
            // Whoever stopped waiting needs no answer.
            pending.answer.send(Err(failure.clone())).ok();
        }
    }

    /// Fails everything; what is behind `written` in the outbox never left.
    pub(crate) fn fail_all(&mut self, reason: &str, written: u64) {
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
    async fn a_held_request_counts_only_the_time_outside() {
        let (requests, minute) = (PendingRequests::default(), Duration::from_secs(60));
        let asked = Instant::now();
        let (guard, _failed) =
            PendingGuard::new(&requests, RequestId(1), asked, Timeouts::same(minute));
        requests.hold(RequestId(1));
        requests.hold(RequestId(1));
        tokio::time::advance(minute).await;
        requests.release(RequestId(1));
        tokio::time::advance(minute).await;
        let still_held = guard.deadline();
        assert_eq!(still_held, Some(asked + 3 * minute), "one question is still open");
        requests.release(RequestId(1));
        tokio::time::advance(minute / 2).await;
        assert_eq!(guard.deadline(), still_held, "it no longer grows");
        drop(guard);
        assert!(!requests.is_open(RequestId(1)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_is_failed_from_elsewhere_and_a_sign_of_life_gives_it_time() {
        let (requests, minute) = (PendingRequests::default(), Duration::from_secs(60));
        let timeouts = Timeouts { quiet: minute, whole: 10 * minute };
        let asked = Instant::now();
        let (guard, failed) = PendingGuard::new(&requests, RequestId(1), asked, timeouts);
        tokio::time::advance(minute / 2).await;
        assert_eq!(guard.deadline(), Some(asked + minute));
        requests.touch(RequestId(1));
        assert_eq!(guard.deadline(), Some(asked + minute / 2 + minute));
        requests.fail(RequestId(2), Failure::Cancelled);
        assert!(requests.is_open(RequestId(1)), "another one was failed");
        requests.fail(RequestId(1), Failure::Cancelled);
        assert!(matches!(failed.await, Ok(Err(Failure::Cancelled))));
        assert_eq!(guard.deadline(), None);
    }

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
