//! The pool, with connections that are numbers.

use std::sync::atomic::{AtomicU32, Ordering};

use super::*;

/// Numbers its connections, and counts those that are open.
#[derive(Clone, Default)]
struct Numbers(Arc<Counts>);

#[derive(Default)]
struct Counts {
    next: AtomicU32,
    open: AtomicU32,
}

struct Number(u32, Arc<Counts>);

impl Drop for Number {
    fn drop(&mut self) {
        self.1.open.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Opener for Numbers {
    type Connection = Number;

    async fn open(&self) -> Result<Number, Error> {
        self.0.open.fetch_add(1, Ordering::Relaxed);
        Ok(Number(self.0.next.fetch_add(1, Ordering::Relaxed), Arc::clone(&self.0)))
    }

    async fn close(connection: Number) {
        drop(connection);
    }
}

impl Numbers {
    fn n_open(&self) -> u32 {
        self.0.open.load(Ordering::Relaxed)
    }
}

async fn pool(n_connections: u32) -> (Pool<Numbers>, Numbers) {
    let numbers = Numbers::default();
    let pool = Pool::open(numbers.clone(), n_connections, Duration::from_secs(1)).await;
    (pool.expect("numbers can be had"), numbers)
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_comes_back_is_used_again() {
    let (pool, _) = pool(2).await;
    for _ in 0..3 {
        let lent = pool.take().await.unwrap();
        assert_eq!(lent.0, 0);
        lent.give_back();
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_left_in_the_middle_is_never_used_again() {
    let (pool, numbers) = pool(1).await;
    drop(pool.take().await.unwrap());
    assert_eq!(numbers.n_open(), 0);
    assert_eq!(pool.take().await.unwrap().0, 1);
}

#[tokio::test(start_paused = true)]
async fn no_more_connections_than_allowed_and_no_waiting_for_ever() {
    let (pool, _) = pool(2).await;
    let (first, _second) = (pool.take().await.unwrap(), pool.take().await.unwrap());
    assert!(matches!(pool.take().await, Err(Error::PoolTimedOut)));
    first.give_back();
    assert!(pool.take().await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn what_nobody_uses_is_closed_without_being_asked_for() {
    let (pool, numbers) = pool(2).await;
    let (first, second) = (pool.take().await.unwrap(), pool.take().await.unwrap());
    first.give_back();
    second.give_back();
    assert_eq!(numbers.n_open(), 2);
    tokio::time::sleep(MAX_IDLE + SWEEP_INTERVAL * 2).await;
    assert_eq!((numbers.n_open(), pool.n_idle()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_is_always_busy_is_replaced_in_the_end() {
    let (pool, _) = pool(1).await;
    let mut seen = Vec::new();
    for _ in 0..8 {
        let lent = pool.take().await.unwrap();
        seen.push(lent.0);
        lent.give_back();
        tokio::time::sleep(Duration::from_secs(5 * 60)).await;
    }
    assert_eq!(seen, [0, 0, 0, 0, 0, 0, 1, 1]);
}

#[tokio::test(start_paused = true)]
async fn a_closed_pool_lends_nothing() {
    let (pool, numbers) = pool(1).await;
    pool.close().await;
    assert_eq!(numbers.n_open(), 0);
    assert!(matches!(pool.take().await, Err(Error::PoolClosed)));
}

#[tokio::test(start_paused = true)]
async fn what_comes_back_to_a_closed_pool_is_not_kept() {
    let (pool, numbers) = pool(1).await;
    let lent = pool.take().await.unwrap();
    pool.close().await;
    lent.give_back();
    assert_eq!((numbers.n_open(), pool.n_idle()), (0, 0));
}
