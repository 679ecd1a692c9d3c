//! Runs work on long messages outside of the threads that serve requests.
//!
//! Parsing or copying many megabytes takes as long as answering thousands of others.
//! What is short stays where it is: handing it over would cost more.

use tokio::task::{JoinError, spawn_blocking};

/// Longer messages are worked on aside, and counted.
pub(crate) const LONG: usize = 1 << 20;

/// Does `work` on a message of so many bytes: here when that is short, and on a
/// thread for blocking work otherwise.
pub(crate) async fn aside<T: Send + 'static>(
    n_bytes: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> T {
    if n_bytes < LONG {
        return work();
    }
    match spawn_blocking(work).await.map_err(JoinError::try_into_panic) {
        Ok(done) => done,
        Err(Ok(panic)) => std::panic::resume_unwind(panic),
        // The runtime is going down, and takes whoever asked with it.
        Err(Err(_)) => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_long_messages_are_worked_on_aside() {
        let here = std::thread::current().id();
        let place = || std::thread::current().id();
        assert_eq!(aside(LONG - 1, place).await, here);
        assert_ne!(aside(LONG, place).await, here);
    }

    #[tokio::test]
    async fn others_are_served_while_a_long_message_is_worked_on() {
        let (tell, told) = std::sync::mpsc::channel();
        let work = aside(LONG, move || told.recv().unwrap());
        // On the one thread of this runtime: it runs although the work waits for it.
        let other = async { tell.send(7).unwrap() };
        assert_eq!(tokio::join!(work, other), (7, ()));
    }
}
