//! The calls in flight to one server, and the client of each. Their deadlines are in
//! [`OpenRequests`](crate::peer::pending::OpenRequests).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;
use tool::{Client, ClientHandle, Context, FastMap, Json};

use crate::peer::RequestId;

/// The client that answers the server's questions.
#[derive(Clone)]
pub(super) struct ClientRef {
    pub(super) client_handle: Arc<dyn ClientHandle>,
    pub(super) client: Arc<Client>,
}

/// One call in flight.
#[derive(Clone)]
pub(super) struct CallInFlight {
    pub(super) client_ref: ClientRef,
    /// The client's session; empty if it has none.
    session: Arc<str>,
    /// The client's own progress token; the server sees our request id instead.
    pub(super) progress_token: Option<Json>,
    request_id: RequestId,
    reason: EntryReason,
    /// The ids of the server's questions that certainly belong to this call.
    questions: Vec<Json>,
}

/// Why an entry is in the table.
#[derive(Clone, Copy, PartialEq, Eq)]
enum EntryReason {
    /// The client waits for the reply to a call.
    AwaitsReply,
    /// The client notified that its roots changed; the server may ask for them.
    RootsChanged,
}

/// What a server message is about that does not say which call it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MessageTopic {
    Anything,
    Roots,
}

/// The call that such a message belongs to.
pub(super) enum CallOwner {
    Call(CallInFlight),
    /// No call is in flight.
    Nobody,
    /// Calls of several clients are in flight.
    Ambiguous,
}

/// How many questions are remembered per call.
const MAX_QUESTIONS: usize = 64;

/// All calls in flight.
#[derive(Default)]
pub(super) struct CallsInFlight {
    calls: Mutex<FastMap<RequestId, CallInFlight>>,
    /// Whether only one client at a time may have calls in flight.
    is_exclusive: AtomicBool,
    /// Held by the call that is next in line; later ones queue for it.
    next: tokio::sync::Mutex<()>,
    /// Notified when a call ends.
    ended: Notify,
}

/// Keeps a call in the table, and removes it when dropped.
pub(super) struct CallGuard<'a> {
    calls: &'a CallsInFlight,
    request_id: RequestId,
}

impl CallsInFlight {
    /// From now on, only one client at a time may have calls in flight. Used for a server
    /// that asks questions over a pipe, where a question does not say which call it is part
    /// of: otherwise concurrent calls of one client would make the questions of others fail.
    pub(super) fn make_exclusive(&self) {
        self.is_exclusive.store(true, Ordering::Relaxed);
    }

    /// Adds a call when it is its client's turn; `None` if that takes longer than `limit`.
    pub(super) async fn enter_in_turn(
        &self,
        request_id: RequestId,
        context: &Context,
        progress_token: Option<Json>,
        limit: Duration,
    ) -> Option<CallGuard<'_>> {
        // A client that is being asked may have to call in order to answer.
        if !self.is_exclusive.load(Ordering::Relaxed) || self.has_open_question(&context.session) {
            return Some(self.enter(request_id, context, progress_token));
        }
        let turn = async {
            let _next = self.next.lock().await;
            loop {
                let ended = self.ended.notified();
                if self.are_all_of_session(&context.session) {
                    return self.enter(request_id, context, progress_token);
                }
                ended.await;
            }
        };
        tokio::time::timeout(limit, Box::pin(turn)).await.ok()
    }

    /// Returns whether no other session has a call in flight.
    fn are_all_of_session(&self, session: &str) -> bool {
        self.lock().values().all(|call| !session.is_empty() && *call.session == *session)
    }

    /// Returns whether a question is open that belongs to a call of this session.
    fn has_open_question(&self, session: &str) -> bool {
        let has_open_question = |call: &CallInFlight| {
            !session.is_empty() && *call.session == *session && !call.questions.is_empty()
        };
        self.lock().values().any(has_open_question)
    }

    pub(super) fn enter(
        &self,
        request_id: RequestId,
        context: &Context,
        progress_token: Option<Json>,
    ) -> CallGuard<'_> {
        self.insert_call(request_id, context, progress_token, EntryReason::AwaitsReply)
    }

    /// Adds a client that notified that its roots changed.
    pub(super) fn enter_for_roots(
        &self,
        request_id: RequestId,
        context: &Context,
    ) -> CallGuard<'_> {
        self.insert_call(request_id, context, None, EntryReason::RootsChanged)
    }

    fn insert_call(
        &self,
        request_id: RequestId,
        context: &Context,
        progress_token: Option<Json>,
        reason: EntryReason,
    ) -> CallGuard<'_> {
        let client_ref = ClientRef {
            client_handle: Arc::clone(&context.client_handle),
            client: Arc::clone(&context.client),
        };
        let call = CallInFlight {
            client_ref,
            session: Arc::clone(&context.session),
            progress_token,
            request_id,
            reason,
            questions: Vec::new(),
        };
        self.lock().insert(request_id, call);
        CallGuard { calls: self, request_id }
    }

    pub(super) fn n_in_flight(&self) -> usize {
        self.lock().len()
    }

    /// Returns the call with this request id, if it is in flight.
    pub(super) fn get(&self, request_id: RequestId) -> Option<CallInFlight> {
        self.lock().get(&request_id).cloned()
    }

    /// Finds the call that a message without a call id belongs to: the only one in flight,
    /// or the latest if all are of one session. With several clients it is ambiguous, and a
    /// guess would show one client's questions to another. Calls that have their reply
    /// (`is_open` is false) do not count. Clients whose roots changed count only when the
    /// message asks for roots.
    pub(super) fn find_owner(
        &self,
        topic: MessageTopic,
        is_open: impl Fn(RequestId) -> bool,
    ) -> CallOwner {
        let calls = self.lock();
        let counts = |request_id: RequestId, call: &CallInFlight| match call.reason {
            EntryReason::AwaitsReply => is_open(request_id),
            EntryReason::RootsChanged => topic == MessageTopic::Roots,
        };
        let open = || calls.iter().filter(|(request_id, call)| counts(**request_id, call));
        let Some((last, latest)) = open().max_by_key(|(request_id, _)| **request_id) else {
            return CallOwner::Nobody;
        };
        let same = |call: &CallInFlight| !call.session.is_empty() && call.session == latest.session;
        let ours = open().all(|(request_id, call)| request_id == last || same(call));
        if ours { CallOwner::Call(latest.clone()) } else { CallOwner::Ambiguous }
    }

    /// Returns the calls whose deadline pauses while the client of `call` is asked: itself
    /// and the others of its session, any of which may have caused the question.
    pub(super) fn calls_waiting_with(&self, call: &CallInFlight) -> Vec<RequestId> {
        let same = |other: &CallInFlight| !call.session.is_empty() && other.session == call.session;
        let calls = self.lock();
        let all = calls.values().filter(|other| other.request_id == call.request_id || same(other));
        all.map(|call| call.request_id).collect()
    }

    /// Records that a question of the server belongs to a call.
    pub(super) fn note_question(&self, request_id: RequestId, question_id: &Json) {
        if let Some(call) = self.lock().get_mut(&request_id)
            && call.questions.len() < MAX_QUESTIONS
        {
            call.questions.push(question_id.clone());
        }
    }

    /// Returns the call that a question of the server belongs to.
    pub(super) fn call_of_question(&self, question_id: &Json) -> Option<RequestId> {
        let calls = self.lock();
        let call_of_question = calls.iter().find(|(_, call)| call.questions.contains(question_id));
        call_of_question.map(|(request_id, _)| *request_id)
    }

    fn lock(&self) -> MutexGuard<'_, FastMap<RequestId, CallInFlight>> {
        self.calls.lock()
    }
}

impl Drop for CallGuard<'_> {
    fn drop(&mut self) {
        self.calls.lock().remove(&self.request_id);
        self.calls.ended.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context(session: &str) -> Context {
        Context { session: session.into(), ..Context::anonymous() }
    }

    #[track_caller]
    fn check(sessions: &[&str], expected: Option<u64>) {
        let calls = CallsInFlight::default();
        let numbered = sessions.iter().zip(1..);
        let places: Vec<_> = numbered
            .map(|(session, n)| {
                calls.enter(RequestId(n), &context(session), Some(Json::encode(&n)))
            })
            .collect();
        let progress_token = match calls.find_owner(MessageTopic::Anything, |_| true) {
            CallOwner::Call(call) => {
                call.progress_token.and_then(|progress_token| progress_token.parse_as().ok())
            }
            CallOwner::Nobody | CallOwner::Ambiguous => None,
        };
        assert_eq!(progress_token, expected, "{sessions:?}");
        drop(places);
        assert!(matches!(calls.find_owner(MessageTopic::Anything, |_| true), CallOwner::Nobody));
    }

    #[test]
    fn a_question_belongs_to_the_only_call_or_the_latest_of_the_only_session() {
        check(&[], None);
        check(&["a"], Some(1));
        check(&[""], Some(1));
        check(&["a", "a"], Some(2));
    }

    #[test]
    fn an_answered_call_is_no_longer_under_way() {
        let calls = CallsInFlight::default();
        let _place = calls.enter(RequestId(1), &context("a"), None);
        assert!(matches!(calls.find_owner(MessageTopic::Anything, |_| false), CallOwner::Nobody));
    }

    #[test]
    fn who_said_that_its_roots_changed_is_asked_for_them_and_for_nothing_else() {
        let calls = CallsInFlight::default();
        let _place = calls.enter_for_roots(RequestId(1), &context("a"));
        assert!(matches!(calls.find_owner(MessageTopic::Anything, |_| false), CallOwner::Nobody));
        assert!(matches!(calls.find_owner(MessageTopic::Roots, |_| false), CallOwner::Call(_)));
        let _stranger = calls.enter(RequestId(2), &context("b"), None);
        assert!(matches!(calls.find_owner(MessageTopic::Roots, |_| true), CallOwner::Ambiguous));
    }

    #[tokio::test(start_paused = true)]
    async fn an_exclusive_pipe_carries_calls_of_one_client_at_a_time() {
        let calls = CallsInFlight::default();
        let limit = Duration::from_secs(60);
        let enter = |n, session| {
            let context = context(session);
            let calls = &calls;
            async move { calls.enter_in_turn(RequestId(n), &context, None, limit).await }
        };
        let ann = enter(1, "ann").await.unwrap();
        let bob = enter(2, "bob").await.unwrap();
        assert!(matches!(calls.find_owner(MessageTopic::Anything, |_| true), CallOwner::Ambiguous));
        calls.make_exclusive();
        drop(bob);
        let mut late = Box::pin(enter(3, "bob"));
        assert!(futures::poll!(&mut late).is_pending(), "ann's call is under way");
        assert!(matches!(calls.find_owner(MessageTopic::Anything, |_| true), CallOwner::Call(_)));
        let mut behind = Box::pin(enter(4, "ann"));
        assert!(futures::poll!(&mut behind).is_pending(), "bob is next");
        calls.note_question(RequestId(1), &Json::encode(&"q"));
        let nested = enter(5, "ann").await.unwrap();
        drop((ann, nested));
        let bob = late.await.unwrap();
        assert!(futures::poll!(&mut behind).is_pending());
        drop(bob);
        behind.await.unwrap();
        let _stays = enter(6, "").await.unwrap();
        assert!(enter(7, "").await.is_none(), "two without a session are two clients");
    }

    #[test]
    fn with_calls_of_several_clients_it_belongs_to_none() {
        check(&["a", "b"], None);
        check(&["", ""], None);
        check(&["a", ""], None);
    }
}
