//! Scripted connections: a connector that opens providers with a closure, and a provider
//! that never answers.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::BoxStream;
use tool::{Ask, Client, Context, Event, Failure, Listing, Provider, Reply};

use crate::Scripted;

type Connect = dyn Fn(usize, &Client) -> Result<Arc<dyn Provider>, Failure> + Send + Sync;

/// A connector that opens sessions with a closure and records them.
pub struct Scripts {
    connect: Box<Connect>,
    /// How many sessions were opened.
    opened: AtomicUsize,
    clients: Mutex<Vec<Client>>,
}

impl Scripts {
    /// Creates a connector; `connect` gets the number of sessions before, and the client.
    pub fn new(
        connect: impl Fn(usize, &Client) -> Result<Arc<dyn Provider>, Failure> + Send + Sync + 'static,
    ) -> Arc<Scripts> {
        Arc::new(Scripts {
            connect: Box::new(connect),
            opened: AtomicUsize::new(0),
            clients: Mutex::default(),
        })
    }

    /// Creates a connector that always opens this provider.
    pub fn of(provider: Arc<Scripted>) -> Arc<Scripts> {
        Scripts::new(move |_, _| Ok(Arc::clone(&provider) as _))
    }

    /// Opens a session as this client.
    pub fn open(&self, client: &Client) -> Result<Arc<dyn Provider>, Failure> {
        let before = self.opened.fetch_add(1, Ordering::SeqCst);
        self.clients.lock().expect("no test panics while it holds this").push(client.clone());
        (self.connect)(before, client)
    }

    /// Returns how many sessions were opened or tried.
    pub fn opened(&self) -> usize {
        self.opened.load(Ordering::SeqCst)
    }

    /// Returns the clients for which sessions were opened or tried.
    pub fn clients(&self) -> Vec<Client> {
        self.clients.lock().expect("no test panics while it holds this").clone()
    }
}

/// A provider that has a listing, but never answers a request.
pub struct Hung(pub Arc<Scripted>);

#[async_trait]
impl Provider for Hung {
    fn listing(&self) -> Arc<Listing> {
        self.0.listing()
    }

    fn events(&self) -> BoxStream<'static, Event> {
        self.0.events()
    }

    async fn ask(&self, _: Ask, _: &Context) -> Result<Reply, Failure> {
        std::future::pending().await
    }
}

/// Lets all pending tasks run, for tests with paused time.
pub async fn settle() {
    tokio::time::sleep(Duration::from_millis(200)).await;
}
