//! One request of a client, from start to reply.
//!
//! An exchange yields the messages that precede the reply, then the reply. The code that
//! writes to the client polls it, so no task is spawned, and dropping it cancels the call.
//! If the provider asks a modern client something, the exchange parks its call and replies
//! with the questions.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as Task, Poll, ready};
use std::time::Duration;

use futures::FutureExt;
use tokio::time::{Sleep, sleep};
use tool::{Json, Listing, Object, Reply};

use super::adapt;
use super::channel::{ChannelEvent, ClientChannel, Outgoing};
use super::parked::{CallKey, ParkedCall, ParkedCalls, ReplyFuture};

/// How long to wait for more questions after the first. Users and models, who answer
/// them, do not notice.
const GATHER_TIME: Duration = Duration::from_millis(20);

/// A request in progress.
pub(crate) struct Exchange {
    call: Option<ReplyFuture>,
    channel: Arc<ClientChannel>,
    answer: Option<Reply>,
    parking: Option<Parking>,
    /// Runs from the first question on, so that questions asked together are sent together.
    gather_timer: Option<Pin<Box<Sleep>>>,
}

/// Where and under which key a call is parked when its client has to be asked.
#[derive(Clone)]
pub(crate) struct Parking {
    pub(crate) parked_calls: Arc<ParkedCalls>,
    pub(crate) key: CallKey,
    pub(crate) listing: Arc<Listing>,
}

/// What an exchange yields.
pub(crate) enum Step {
    Message(Outgoing),
    Answer(Reply),
}

impl Exchange {
    pub(crate) fn new(
        call: ReplyFuture,
        channel: Arc<ClientChannel>,
        parking: Option<Parking>,
    ) -> Exchange {
        Exchange { call: Some(call), channel, answer: None, parking, gather_timer: None }
    }

    /// Has `after` run with the reply before it goes out.
    pub(crate) fn then<F: Future<Output = Reply> + Send + 'static>(
        self,
        after: impl FnOnce(Reply) -> F + Send + 'static,
    ) -> Exchange {
        Exchange { call: self.call.map(|call| call.then(after).boxed()), ..self }
    }

    pub(crate) fn channel(&self) -> &Arc<ClientChannel> {
        &self.channel
    }

    /// Polls for the next step. Must not be called after the answer.
    pub(crate) fn poll_step(&mut self, task: &mut Task<'_>) -> Poll<Step> {
        if let Some(call) = &mut self.call
            && let Poll::Ready(answer) = call.as_mut().poll(task)
        {
            self.call = None;
            self.answer = Some(answer);
        }
        // Messages that were sent before the reply precede it.
        if let Some(answer) = self.answer.take() {
            return Poll::Ready(match self.channel.next_message() {
                Some(message) => {
                    self.answer = Some(answer);
                    Step::Message(message)
                }
                None => Step::Answer(answer),
            });
        }
        match ready!(self.channel.poll_event(task)) {
            ChannelEvent::Message(message) => return Poll::Ready(Step::Message(message)),
            ChannelEvent::QuestionWaiting => {}
        }
        let gather_timer = self.gather_timer.get_or_insert_with(|| Box::pin(sleep(GATHER_TIME)));
        ready!(gather_timer.as_mut().poll(task));
        self.gather_timer = None;
        match self.park_call() {
            Some(asked) => Poll::Ready(Step::Answer(asked)),
            // The questions were withdrawn; poll again.
            None => {
                task.waker().wake_by_ref();
                Poll::Pending
            }
        }
    }

    pub(crate) async fn step(&mut self) -> Step {
        poll_fn(|task| self.poll_step(task)).await
    }

    /// Parks the call if there are open questions, and returns the reply that asks them.
    fn park_call(&mut self) -> Option<Reply> {
        let parking = self.parking.as_ref()?;
        let requests = self.channel.input_requests()?;
        let entry = ParkedCall { call: self.call.take()?, channel: Arc::clone(&self.channel) };
        let state = parking.parked_calls.park(&parking.key, entry);
        let mut result = Object::new();
        result.push("resultType", Json::encode("input_required"));
        result.push("inputRequests", requests);
        result.push("requestState", Json::encode(&state));
        let reply = Reply::Result(result.to_json());
        Some(adapt::to_modern(&parking.key.method, reply, &parking.listing))
    }
}
