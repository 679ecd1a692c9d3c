//! Test doubles: scripted providers, and real or fake servers for tests.
//!
//! This crate is only a dev-dependency. A [`Scripted`] provider has a fixed listing,
//! answers with a closure, and records the requests. [`everything`] is the provider for
//! conformance suites, [`scripts`] opens sessions, [`oauth`] is a server that needs a
//! login, [`tls`] creates certificates, [`valkey`] and [`object_store`] start real
//! stores, [`needs`] skips tests whose programs are missing, and [`fuzz`] generates
//! inputs for parsers.

pub mod balancer;
pub mod everything;
pub mod fuzz;
pub mod needs;
pub mod oauth;
pub mod object_store;
pub mod program;
pub mod scripts;
pub mod tls;
pub mod valkey;

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use futures::StreamExt;
use futures::stream::BoxStream;
use tokio::sync::broadcast;
use tool::{Ask, Context, Event, Failure, Json, Kind, Listing, Provider, Reply, Tool};

type Answer = dyn Fn(&Ask) -> Result<Reply, Failure> + Send + Sync;

/// A provider with a fixed listing that answers with a closure and records requests.
pub struct Scripted {
    listing: Mutex<Arc<Listing>>,
    answer: Box<Answer>,
    asked: Mutex<Vec<Ask>>,
    events: broadcast::Sender<Event>,
}

impl Scripted {
    /// Creates a provider with this listing that answers with `answer`.
    pub fn new(
        listing: Listing,
        answer: impl Fn(&Ask) -> Result<Reply, Failure> + Send + Sync + 'static,
    ) -> Arc<Scripted> {
        Arc::new(Scripted {
            listing: Mutex::new(Arc::new(listing)),
            answer: Box::new(answer),
            asked: Mutex::default(),
            events: broadcast::channel(64).0,
        })
    }

    /// Returns every request so far, in order.
    pub fn asked(&self) -> Vec<Ask> {
        self.asked.lock().expect("no test panics while it holds this").clone()
    }

    /// Replaces the listing and sends an event about it.
    pub fn relist(&self, listing: Listing) {
        *self.listing.lock().expect("no test panics while it holds this") = Arc::new(listing);
        self.tell(Event::Changed(Kind::Tools));
    }

    /// Sends an event to all subscribers.
    pub fn tell(&self, event: Event) {
        let _ = self.events.send(event);
    }
}

#[async_trait]
impl Provider for Scripted {
    fn listing(&self) -> Arc<Listing> {
        Arc::clone(&self.listing.lock().expect("no test panics while it holds this"))
    }

    fn events(&self) -> BoxStream<'static, Event> {
        event_stream(&self.events)
    }

    async fn ask(&self, ask: Ask, _: &Context) -> Result<Reply, Failure> {
        self.asked.lock().expect("no test panics while it holds this").push(ask.clone());
        (self.answer)(&ask)
    }
}

/// Returns a stream of all events from now on; a slow subscriber misses some.
fn event_stream(events: &broadcast::Sender<Event>) -> BoxStream<'static, Event> {
    futures::stream::unfold(events.subscribe(), |mut receiver| async {
        loop {
            match receiver.recv().await {
                Ok(event) => return Some((event, receiver)),
                Err(broadcast::error::RecvError::Lagged(_)) => {}
                Err(broadcast::error::RecvError::Closed) => return None,
            }
        }
    })
    .boxed()
}

/// Creates a tool with a name, a description and an input schema.
pub fn tool(name: &str, description: &str, input_schema: &serde_json::Value) -> Tool {
    let raw = serde_json::json!({
        "name": name, "description": description, "inputSchema": input_schema,
    });
    Tool::parse(Json::from(raw)).expect("a named tool can be read")
}

/// Creates a listing of these tools.
pub fn listing(tools: Vec<Tool>) -> Listing {
    Listing { tools, ..Listing::default() }
}
