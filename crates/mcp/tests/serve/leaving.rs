//! Clients that go away while they are being answered.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::BoxStream;
use serde_json::json;
use tool::{Ask, Context, Event, Failure, Listing, Provider, Reply};

use crate::site::Site;

/// A provider that takes its time, and notes how its call ended.
#[derive(Default)]
struct Slow {
    cancelled: Arc<AtomicBool>,
    finished: AtomicBool,
}

struct Watch(Option<Arc<AtomicBool>>);

impl Drop for Watch {
    fn drop(&mut self) {
        if let Some(cancelled) = &self.0 {
            cancelled.store(true, Ordering::Relaxed);
        }
    }
}

#[async_trait]
impl Provider for Slow {
    fn listing(&self) -> Arc<Listing> {
        Arc::new(Listing::default())
    }

    fn events(&self) -> BoxStream<'static, Event> {
        Box::pin(futures::stream::pending())
    }

    async fn ask(&self, _: Ask, _: &Context) -> Result<Reply, Failure> {
        let mut watch = Watch(Some(Arc::clone(&self.cancelled)));
        tokio::time::sleep(Duration::from_millis(500)).await;
        watch.0 = None;
        self.finished.store(true, Ordering::Relaxed);
        Ok(Reply::text("done"))
    }
}

impl Slow {
    fn ended(&self) -> (bool, bool) {
        (self.cancelled.load(Ordering::Relaxed), self.finished.load(Ordering::Relaxed))
    }
}

const SOON: Duration = Duration::from_millis(100);

#[tokio::test(start_paused = true)]
async fn a_modern_client_that_leaves_cancels_its_call() {
    let slow = Arc::new(Slow::default());
    let site = Site::new(slow.clone());
    let params = json!({"name": "t"});
    let none = json!({});
    let call = site.modern("tools/call", params, &none);
    assert!(tokio::time::timeout(SOON, call).await.is_err());
    assert_eq!(slow.ended(), (true, false));
}

#[tokio::test(start_paused = true)]
async fn a_client_of_a_session_that_leaves_cancels_nothing() {
    let slow = Arc::new(Slow::default());
    let site = Site::new(slow.clone());
    let session = site.initialize("2025-11-25", json!({})).await;
    let call = site.call(&session, "t", json!({}));
    assert!(tokio::time::timeout(SOON, call).await.is_err());
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(slow.ended(), (false, true));
}

#[tokio::test(start_paused = true)]
async fn a_session_that_ends_takes_its_calls_along() {
    let slow = Arc::new(Slow::default());
    let site = Site::new(slow.clone());
    let session = site.initialize("2025-11-25", json!({})).await;
    let call = site.call(&session, "t", json!({}));
    assert!(tokio::time::timeout(SOON, call).await.is_err());
    site.delete(&session).await;
    tokio::time::sleep(SOON).await;
    assert_eq!(slow.ended(), (true, false));
}
