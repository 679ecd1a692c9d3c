//! Connections that do what a test tells them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::BoxStream;
use tool::{Ask, Client, Context, Event, Failure, Listing, Provider, Reply};

use crate::Scripted;

type Connect = dyn Fn(usize, &Client) -> Result<Arc<dyn Provider>, Failure> + Send + Sync;

/// Opens what it is told to, and counts.
pub struct Scripts {
    connect: Box<Connect>,
    opened: AtomicUsize,
    clients: Mutex<Vec<Client>>,
}

impl Scripts {
    /// `connect` is given how many sessions were asked for before.
    pub fn new(
        connect: impl Fn(usize, &Client) -> Result<Arc<dyn Provider>, Failure> + Send + Sync + 'static,
    ) -> Arc<Scripts> {
        Arc::new(Scripts {
            connect: Box::new(connect),
            opened: AtomicUsize::new(0),
            clients: Mutex::default(),
        })
    }

    /// Always this provider.
    pub fn of(provider: Arc<Scripted>) -> Arc<Scripts> {
        Scripts::new(move |_, _| Ok(Arc::clone(&provider) as _))
    }

    /// Opens a session as this client.
    pub fn open(&self, client: &Client) -> Result<Arc<dyn Provider>, Failure> {
        let before = self.opened.fetch_add(1, Ordering::SeqCst);
        self.clients.lock().expect("no test panics while it holds this").push(client.clone());
        (self.connect)(before, client)
    }

    /// How many sessions were asked for.
    pub fn opened(&self) -> usize {
        self.opened.load(Ordering::SeqCst)
    }

    /// As whom they were asked for.
    pub fn clients(&self) -> Vec<Client> {
        self.clients.lock().expect("no test panics while it holds this").clone()
    }
}

/// Lists, and never answers.
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

/// Lets everything that is under way happen. Time is paused in these tests.
pub async fn settle() {
    tokio::time::sleep(Duration::from_millis(200)).await;
}
