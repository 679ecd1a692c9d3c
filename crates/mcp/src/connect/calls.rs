//! The calls that are under way, and whose they are. How long each may take is
//! known to [`OpenRequests`](crate::peer::pending::OpenRequests).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;
use tool::{Client, ClientHandle, Context, FastMap, Json};

use crate::peer::RequestId;

/// Who is asked when the server asks back.
#[derive(Clone)]
pub(super) struct ClientRef {
    pub(super) client_handle: Arc<dyn ClientHandle>,
    pub(super) client: Arc<Client>,
}

/// One call under way.
#[derive(Clone)]
pub(super) struct CallInFlight {
    pub(super) client_ref: ClientRef,
    /// Empty where there are no sessions.
    session: Arc<str>,
    /// The client's own progress token, which travels as our request id.
    pub(super) token: Option<Json>,
    request_id: RequestId,
    kind: Kind,
    /// The server's questions that are surely part of it.
    questions: Vec<Json>,
}

/// Why a client may be asked something.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// It waits for an answer.
    Asked,
    /// It said that its roots changed, and may be asked for them.
    RootsChanged,
}

/// What has no name of its own: anything, or a question for roots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum About {
    Anything,
    Roots,
}

/// Whose something without a name is.
pub(super) enum CallOwner {
    Call(CallInFlight),
    /// No call is under way.
    Nobody,
    /// Several clients' calls are.
    Ambiguous,
}

/// How many questions of one call are kept in mind.
const QUESTIONS: usize = 64;

/// Every call under way.
#[derive(Default)]
pub(super) struct CallsInFlight {
    calls: Mutex<FastMap<RequestId, CallInFlight>>,
    /// Whether calls of one client at a time are under way.
    is_exclusive: AtomicBool,
    /// Held by the one call that waits for others to end; whoever comes later waits behind it.
    next: tokio::sync::Mutex<()>,
    /// Told when a call ends.
    ended: Notify,
}

/// A place among the calls, given up when dropped.
pub(super) struct CallGuard<'a> {
    calls: &'a CallsInFlight,
    request_id: RequestId,
}

impl CallsInFlight {
    /// From now on lets calls of one client at a time pass. For a server that asks
    /// on a pipe, where nothing says which call a question is part of: else any client
    /// could make the questions of others fail by calling at the same time.
    pub(super) fn make_exclusive(&self) {
        self.is_exclusive.store(true, Ordering::Relaxed);
    }

    /// A place for a call, when it is its client's turn; `None` when that takes too long.
    pub(super) async fn enter_in_turn(
        &self,
        request_id: RequestId,
        context: &Context,
        token: Option<Json>,
        limit: Duration,
    ) -> Option<CallGuard<'_>> {
        // Who is asked something may have to call to know the answer.
        if !self.is_exclusive.load(Ordering::Relaxed) || self.is_asked(&context.session) {
            return Some(self.enter(request_id, context, token));
        }
        let turn = async {
            let _next = self.next.lock().await;
            loop {
                let ended = self.ended.notified();
                if self.are_all_of(&context.session) {
                    return self.enter(request_id, context, token);
                }
                ended.await;
            }
        };
        tokio::time::timeout(limit, Box::pin(turn)).await.ok()
    }

    /// Whether no call of another client is under way.
    fn are_all_of(&self, session: &str) -> bool {
        self.lock().values().all(|call| !session.is_empty() && *call.session == *session)
    }

    /// Whether a question is open that is part of a call of this client.
    fn is_asked(&self, session: &str) -> bool {
        let is_asked = |call: &CallInFlight| {
            !session.is_empty() && *call.session == *session && !call.questions.is_empty()
        };
        self.lock().values().any(is_asked)
    }

    pub(super) fn enter(
        &self,
        request_id: RequestId,
        context: &Context,
        token: Option<Json>,
    ) -> CallGuard<'_> {
        self.take(request_id, context, token, Kind::Asked)
    }

    /// A place for a client that said that its roots changed.
    pub(super) fn enter_for_roots(
        &self,
        request_id: RequestId,
        context: &Context,
    ) -> CallGuard<'_> {
        self.take(request_id, context, None, Kind::RootsChanged)
    }

    fn take(
        &self,
        request_id: RequestId,
        context: &Context,
        token: Option<Json>,
        kind: Kind,
    ) -> CallGuard<'_> {
        let client_ref = ClientRef {
            client_handle: Arc::clone(&context.client_handle),
            client: Arc::clone(&context.client),
        };
        let call = CallInFlight {
            client_ref,
            session: Arc::clone(&context.session),
            token,
            request_id,
            kind,
            questions: Vec::new(),
        };
        self.lock().insert(request_id, call);
        CallGuard { calls: self, request_id }
    }

    pub(super) fn n_under_way(&self) -> usize {
        self.lock().len()
    }

    pub(super) fn get(&self, request_id: RequestId) -> Option<CallInFlight> {
        self.lock().get(&request_id).cloned()
    }

    /// The call that something without a name must belong to: the only one
    /// there is, or the latest when all are of one session. With calls of
    /// several clients under way nobody can tell, and guessing would show one
    /// client's questions to another. A call whose answer is there already
    /// (`is_open` says no) is no longer under way. Who just said that its roots
    /// changed counts where roots are asked for.
    pub(super) fn only(&self, about: About, is_open: impl Fn(RequestId) -> bool) -> CallOwner {
        let calls = self.lock();
        let counts = |request_id: RequestId, call: &CallInFlight| match call.kind {
            Kind::Asked => is_open(request_id),
            Kind::RootsChanged => about == About::Roots,
        };
        let open = || calls.iter().filter(|(request_id, call)| counts(**request_id, call));
        let Some((last, latest)) = open().max_by_key(|(request_id, _)| **request_id) else {
            return CallOwner::Nobody;
        };
        let same = |call: &CallInFlight| !call.session.is_empty() && call.session == latest.session;
        let ours = open().all(|(request_id, call)| request_id == last || same(call));
        if ours { CallOwner::Call(latest.clone()) } else { CallOwner::Ambiguous }
    }

    /// The calls that wait with this one for its client: itself, and on a pipe
    /// the others of its session, any of which may be the one that asked.
    pub(super) fn with(&self, call: &CallInFlight) -> Vec<RequestId> {
        let same = |other: &CallInFlight| !call.session.is_empty() && other.session == call.session;
        let calls = self.lock();
        let all = calls.values().filter(|other| other.request_id == call.request_id || same(other));
        all.map(|call| call.request_id).collect()
    }

    /// Notes that the server asked something as part of a call.
    pub(super) fn note_question(&self, request_id: RequestId, id: &Json) {
        if let Some(call) = self.lock().get_mut(&request_id)
            && call.questions.len() < QUESTIONS
        {
            call.questions.push(id.clone());
        }
    }

    /// The call that a question of the server is part of.
    pub(super) fn asking(&self, id: &Json) -> Option<RequestId> {
        let calls = self.lock();
        let asking = calls.iter().find(|(_, call)| call.questions.contains(id));
        asking.map(|(request_id, _)| *request_id)
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
        let token = match calls.only(About::Anything, |_| true) {
            CallOwner::Call(call) => call.token.and_then(|token| token.parse_as().ok()),
            CallOwner::Nobody | CallOwner::Ambiguous => None,
        };
        assert_eq!(token, expected, "{sessions:?}");
        drop(places);
        assert!(matches!(calls.only(About::Anything, |_| true), CallOwner::Nobody));
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
        assert!(matches!(calls.only(About::Anything, |_| false), CallOwner::Nobody));
    }

    #[test]
    fn who_said_that_its_roots_changed_is_asked_for_them_and_for_nothing_else() {
        let calls = CallsInFlight::default();
        let _place = calls.enter_for_roots(RequestId(1), &context("a"));
        assert!(matches!(calls.only(About::Anything, |_| false), CallOwner::Nobody));
        assert!(matches!(calls.only(About::Roots, |_| false), CallOwner::Call(_)));
        let _stranger = calls.enter(RequestId(2), &context("b"), None);
        assert!(matches!(calls.only(About::Roots, |_| true), CallOwner::Ambiguous));
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
        assert!(matches!(calls.only(About::Anything, |_| true), CallOwner::Ambiguous));
        calls.make_exclusive();
        drop(bob);
        let mut late = Box::pin(enter(3, "bob"));
        assert!(futures::poll!(&mut late).is_pending(), "ann's call is under way");
        assert!(matches!(calls.only(About::Anything, |_| true), CallOwner::Call(_)));
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
