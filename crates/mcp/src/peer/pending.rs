//! The sent requests that wait for a reply, and their deadlines.
//!
//! Every transport uses the same table: a [`Peer`](super::Peer) has one, and so has a
//! connection over HTTP. Progress, questions back to the client and failures reach the
//! table through [`OpenRequests`].

use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::Instant;
use tool::{Failure, FastMap, Reply, Sent};

use super::request::{RequestId, Timeouts};

/// The reply to a request, or why there is none.
pub(crate) type RequestResult = Result<Reply, Failure>;

/// One request that waits for its reply.
pub(crate) struct PendingRequest {
    answer: oneshot::Sender<RequestResult>,
    /// The outbox offset where its line begins, to know whether it was ever written.
    queued_at: u64,
    asked_at: Instant,
    last_activity: Instant,
    timeouts: Timeouts,
    /// How many questions to the client are open that pause its deadline, and since when
    /// it is paused.
    n_pauses: usize,
    paused_since: Option<Instant>,
}

/// All requests that wait for a reply, and when to check for expired ones.
#[derive(Default)]
pub(crate) struct RequestTable {
    open: FastMap<RequestId, PendingRequest>,
    next_check: Option<Instant>,
}

/// The open requests of one connection: moves their deadlines and fails them.
pub(crate) trait OpenRequests: Send + Sync {
    /// Calls `act` with the locked table.
    fn with_table(&self, act: &mut dyn FnMut(&mut RequestTable));

    /// Notes activity of a request, such as progress: its quiet timeout starts again.
    fn note_activity(&self, request_id: RequestId) {
        self.with_table(&mut |table| table.note_activity(request_id, Instant::now()));
    }

    /// Pauses the deadline of a request, because the server waits for our client.
    fn pause(&self, request_id: RequestId) {
        self.with_table(&mut |table| table.pause(request_id, Instant::now()));
    }

    /// Ends one pause of the deadline of a request.
    fn resume(&self, request_id: RequestId) {
        self.with_table(&mut |table| table.resume(request_id, Instant::now()));
    }

    /// Fails the requests whose deadline has been paused for `limit` or longer.
    fn expire_paused(&self, limit: Duration) {
        self.with_table(&mut |table| table.expire_paused(Instant::now(), limit));
    }

    /// Fails a request.
    fn fail(&self, request_id: RequestId, failure: Failure) {
        let mut failure = Some(failure);
        self.with_table(&mut |table| {
            // Fails if the receiver was dropped.
            drop(failure.take().map(|failure| table.complete(request_id, Err(failure))));
        });
    }

    /// Returns whether a request still waits for its reply.
    fn is_open(&self, request_id: RequestId) -> bool {
        let mut is_open = false;
        self.with_table(&mut |table| is_open = table.contains(request_id));
        is_open
    }
}

/// A request table with its own lock.
#[derive(Default)]
pub(crate) struct PendingRequests(Mutex<RequestTable>);

/// Keeps a request in a table, and removes it when dropped.
pub(crate) struct PendingGuard<'a> {
    requests: &'a dyn OpenRequests,
    request_id: RequestId,
}

impl OpenRequests for PendingRequests {
    fn with_table(&self, act: &mut dyn FnMut(&mut RequestTable)) {
        act(&mut self.0.lock());
    }
}

impl<'a> PendingGuard<'a> {
    /// Adds a request to the table. The receiver gets the result if the table completes or
    /// fails the request.
    pub(crate) fn new(
        requests: &'a dyn OpenRequests,
        request_id: RequestId,
        asked_at: Instant,
        timeouts: Timeouts,
    ) -> (PendingGuard<'a>, oneshot::Receiver<RequestResult>) {
        let (pending, failed) = PendingRequest::new(asked_at, timeouts);
        let mut pending = Some(pending);
        requests.with_table(&mut |table| {
            if let Some(pending) = pending.take() {
                table.insert(request_id, pending);
            }
        });
        (PendingGuard { requests, request_id }, failed)
    }

    /// Returns when the request expires, as things are now.
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

impl PendingRequest {
    pub(crate) fn new(
        now: Instant,
        timeouts: Timeouts,
    ) -> (PendingRequest, oneshot::Receiver<RequestResult>) {
        let (answer, receiver) = oneshot::channel();
        let pending = PendingRequest {
            answer,
            queued_at: 0,
            asked_at: now,
            last_activity: now,
            timeouts,
            n_pauses: 0,
            paused_since: None,
        };
        (pending, receiver)
    }

    pub(crate) fn queued_at(self, queued_at: u64) -> PendingRequest {
        PendingRequest { queued_at, ..self }
    }

    /// Returns when the request expires; a running pause counts up to `now`.
    fn deadline(&self, now: Instant) -> Instant {
        let last_activity = self.paused_since.map_or(self.last_activity, |_| now);
        let paused_since = self.paused_since.map(|since| now - since).unwrap_or_default();
        (last_activity + self.timeouts.quiet)
            .min(self.asked_at + paused_since + self.timeouts.whole)
    }
}

impl RequestTable {
    pub(crate) fn len(&self) -> usize {
        self.open.len()
    }

    pub(crate) fn insert(&mut self, request_id: RequestId, pending: PendingRequest) {
        let deadline = pending.deadline(pending.asked_at);
        self.next_check =
            Some(self.next_check.map_or(deadline, |next_check| next_check.min(deadline)));
        self.open.insert(request_id, pending);
    }

    /// Returns when a request expires, if nothing changes.
    fn deadline(&self, request_id: RequestId, now: Instant) -> Option<Instant> {
        self.open.get(&request_id).map(|pending| pending.deadline(now))
    }

    /// Returns when to call [`expire`](RequestTable::expire) at the latest. It may be too
    /// early: an idle check once a minute is cheaper than a timer for every request.
    pub(crate) fn next_check(&self) -> Option<Instant> {
        self.next_check
    }

    /// Fails the expired requests, and computes the next check.
    pub(crate) fn expire(&mut self, now: Instant) {
        let expired = self.open.extract_if(|_, pending| pending.deadline(now) <= now);
        for (_, pending) in expired {
            let after = pending.deadline(now) - pending.asked_at;
            // Fails if the receiver was dropped.
            pending.answer.send(Err(Failure::Timeout { after })).ok();
        }
        self.next_check = self.open.values().map(|pending| pending.deadline(now)).min();
    }

    /// Fails the requests that have been paused for `limit` or longer.
    pub(crate) fn expire_paused(&mut self, now: Instant, limit: Duration) {
        let paused_since = |pending: &PendingRequest| pending.paused_since.map(|since| now - since);
        let expired = self.open.extract_if(|_, pending| paused_since(pending) >= Some(limit));
        for (_, pending) in expired {
            let after = paused_since(&pending).unwrap_or_default();
            // Fails if the receiver was dropped.
            pending.answer.send(Err(Failure::Timeout { after })).ok();
        }
    }

    pub(crate) fn remove(&mut self, request_id: RequestId) -> bool {
        self.open.remove(&request_id).is_some()
    }

    pub(crate) fn note_activity(&mut self, request_id: RequestId, now: Instant) {
        if let Some(pending) = self.open.get_mut(&request_id) {
            pending.last_activity = now;
        }
    }

    pub(crate) fn pause(&mut self, request_id: RequestId, now: Instant) {
        if let Some(pending) = self.open.get_mut(&request_id) {
            pending.n_pauses += 1;
            pending.paused_since.get_or_insert(now);
        }
    }

    pub(crate) fn resume(&mut self, request_id: RequestId, now: Instant) {
        let Some(pending) = self.open.get_mut(&request_id) else { return };
        pending.n_pauses = pending.n_pauses.saturating_sub(1);
        if pending.n_pauses == 0
            && let Some(since) = pending.paused_since.take()
        {
            pending.asked_at += now - since;
            pending.last_activity = now;
        }
    }

    pub(crate) fn contains(&self, request_id: RequestId) -> bool {
        self.open.contains_key(&request_id)
    }

    /// Hands a result to whoever waits for it; gives it back when nobody does.
    pub(crate) fn complete(
        &mut self,
        request_id: RequestId,
        answer: RequestResult,
    ) -> Result<(), RequestResult> {
        match self.open.remove(&request_id) {
            Some(pending) => pending.answer.send(answer),
            None => Err(answer),
        }
    }

    /// Fails all requests with this failure.
    pub(crate) fn fail_all_with(&mut self, failure: &Failure) {
        for (_, pending) in self.open.drain() {
            // Fails if the receiver was dropped.
            pending.answer.send(Err(failure.clone())).ok();
        }
    }

    /// Fails all requests as lost. Those after offset `written` of the outbox were never
    /// sent.
    pub(crate) fn fail_all(&mut self, reason: &str, written: u64) {
        for (_, pending) in self.open.drain() {
            let sent = if written <= pending.queued_at { Sent::No } else { Sent::Perhaps };
            // Fails if the receiver was dropped.
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
        requests.pause(RequestId(1));
        requests.pause(RequestId(1));
        tokio::time::advance(minute).await;
        requests.resume(RequestId(1));
        tokio::time::advance(minute).await;
        let still_held = guard.deadline();
        assert_eq!(still_held, Some(asked + 3 * minute), "one question is still open");
        requests.resume(RequestId(1));
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
        requests.note_activity(RequestId(1));
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
        let mut table = RequestTable::default();
        let mut ask = |request_id| {
            let (pending, answer) = PendingRequest::new(start, Timeouts::same(minute * 60));
            table.insert(RequestId(request_id), pending);
            answer
        };
        let (mut busy, mut paused_since) = (ask(1), ask(2));
        table.pause(RequestId(2), start);
        table.expire_paused(start + minute - Duration::from_secs(1), minute);
        assert!(paused_since.try_recv().is_err());
        table.expire_paused(start + minute, minute);
        assert!(
            matches!(paused_since.try_recv(), Ok(Err(Failure::Timeout { after })) if after == minute)
        );
        assert!(busy.try_recv().is_err() && table.contains(RequestId(1)));
    }
}
