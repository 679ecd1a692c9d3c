//! Runs work on long messages on tokio's blocking threads, so that it does not delay
//! other requests.
//!
//! Parsing or copying many megabytes takes as long as answering thousands of short
//! requests. Work on short messages runs in place: moving it would cost more.

use tokio::task::{JoinError, spawn_blocking};

/// From this length in bytes on, a message is processed on a blocking thread and its
/// memory is counted.
pub(crate) const LONG_MESSAGE: usize = 1 << 20;

/// Runs `work` on a message of `n_bytes`: in place when the message is short, on a
/// blocking thread otherwise.
pub(crate) async fn off_thread<T: Send + 'static>(
    n_bytes: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> T {
    if n_bytes < LONG_MESSAGE {
        return work();
    }
    match spawn_blocking(work).await.map_err(JoinError::try_into_panic) {
        Ok(done) => done,
        Err(Ok(panic)) => std::panic::resume_unwind(panic),
        // The runtime is shutting down, and this future with it.
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
        assert_eq!(off_thread(LONG_MESSAGE - 1, place).await, here);
        assert_ne!(off_thread(LONG_MESSAGE, place).await, here);
    }

    #[tokio::test]
    async fn others_are_served_while_a_long_message_is_worked_on() {
        let (tell, told) = std::sync::mpsc::channel();
        let work = off_thread(LONG_MESSAGE, move || told.recv().unwrap());
        // On the one thread of this runtime: it runs although the work waits for it.
        let other = async { tell.send(7).unwrap() };
        assert_eq!(tokio::join!(work, other), (7, ()));
    }
}
