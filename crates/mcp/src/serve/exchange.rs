//! Carries one request to its answer.
//!
//! An exchange yields the messages that flow before the answer, then the
//! answer. It is driven by whoever writes to the client, so nothing is spawned
//! for it, and dropping it cancels the call. When the provider asks something of
//! a client that cannot be asked now, the exchange parks its call and answers
//! with the questions.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as Task, Poll, ready};
use std::time::Duration;

use tokio::time::{Sleep, sleep};
use tool::{Json, Listing, Object, Reply};

use super::adapt;
use super::channel::{ChannelEvent, ClientChannel, Outgoing};
use super::parked::{Call, CallKey, ParkedCall, ParkedCalls};

/// How long to wait for more questions after the first. Whoever answers them
/// is a human or a model, to whom this is nothing.
const GATHER: Duration = Duration::from_millis(20);

/// One request on its way.
pub(crate) struct Exchange {
    call: Option<Call>,
    channel: Arc<ClientChannel>,
    answer: Option<Reply>,
    parking: Option<Parking>,
    /// Runs from the first question on, so that those asked together are
    /// passed on together.
    gathering: Option<Pin<Box<Sleep>>>,
}

/// Where a call goes when its client has to be asked.
#[derive(Clone)]
pub(crate) struct Parking {
    pub(crate) park: Arc<ParkedCalls>,
    pub(crate) key: CallKey,
    pub(crate) listing: Arc<Listing>,
}

/// What happens next.
pub(crate) enum Step {
    Message(Outgoing),
    Answer(Reply),
}

impl Exchange {
    pub(crate) fn new(
        call: Call,
        channel: Arc<ClientChannel>,
        parking: Option<Parking>,
    ) -> Exchange {
        Exchange { call: Some(call), channel, answer: None, parking, gathering: None }
    }

    pub(crate) fn channel(&self) -> &Arc<ClientChannel> {
        &self.channel
    }

    /// The next step. There is none after the answer.
    pub(crate) fn poll_step(&mut self, task: &mut Task<'_>) -> Poll<Step> {
        if let Some(call) = &mut self.call
            && let Poll::Ready(answer) = call.as_mut().poll(task)
        {
            self.call = None;
            self.answer = Some(answer);
        }
        // What was said before the answer comes before it.
        if let Some(answer) = self.answer.take() {
            return Poll::Ready(match self.channel.next() {
                Some(message) => {
                    self.answer = Some(answer);
                    Step::Message(message)
                }
                None => Step::Answer(answer),
            });
        }
        match ready!(self.channel.poll_event(task)) {
            ChannelEvent::Message(message) => return Poll::Ready(Step::Message(message)),
            ChannelEvent::Question => {}
        }
        let gathering = self.gathering.get_or_insert_with(|| Box::pin(sleep(GATHER)));
        ready!(gathering.as_mut().poll(task));
        self.gathering = None;
        match self.put_aside() {
            Some(asked) => Poll::Ready(Step::Answer(asked)),
            // The questions were withdrawn; look again.
            None => {
                task.waker().wake_by_ref();
                Poll::Pending
            }
        }
    }

    pub(crate) async fn step(&mut self) -> Step {
        poll_fn(|task| self.poll_step(task)).await
    }

    /// Parks the call when there are open questions, and asks them.
    fn put_aside(&mut self) -> Option<Reply> {
        let parking = self.parking.as_ref()?;
        let requests = self.channel.input_requests()?;
        let entry = ParkedCall { call: self.call.take()?, channel: Arc::clone(&self.channel) };
        let state = parking.park.put(&parking.key, entry);
        let mut result = Object::new();
        result.push("resultType", Json::encode("input_required"));
        result.push("inputRequests", requests);
        result.push("requestState", Json::encode(&state));
        let reply = Reply::Result(result.to_json());
        Some(adapt::modern(&parking.key.method, reply, &parking.listing))
    }
}
