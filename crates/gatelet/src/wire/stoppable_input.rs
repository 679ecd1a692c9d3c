//! An input stream that also ends when something else happens, such as a signal.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use futures::task::AtomicWaker;
use tokio::io::{AsyncRead, ReadBuf};

/// Reads `reader` until it ends or is stopped.
pub(crate) struct StoppableInput<R> {
    reader: R,
    stop: Arc<StopFlag>,
}

#[derive(Default)]
struct StopFlag {
    is_set: AtomicBool,
    waker: AtomicWaker,
}

impl<R> StoppableInput<R> {
    /// Stops when `stop` is ready.
    pub(crate) fn new(
        reader: R,
        stop: impl Future<Output = ()> + Send + 'static,
    ) -> StoppableInput<R> {
        let input = StoppableInput { reader, stop: Arc::default() };
        let flag = Arc::clone(&input.stop);
        tokio::spawn(async move {
            stop.await;
            flag.is_set.store(true, Ordering::Release);
            flag.waker.wake();
        });
        input
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for StoppableInput<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        task: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.stop.is_set.load(Ordering::Acquire) {
            return Poll::Ready(Ok(()));
        }
        let read = Pin::new(&mut self.reader).poll_read(task, buffer);
        if read.is_pending() {
            self.stop.waker.register(task.waker());
            // The flag may have been set before the waker was registered.
            if self.stop.is_set.load(Ordering::Acquire) {
                return Poll::Ready(Ok(()));
            }
        }
        read
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[tokio::test]
    async fn input_ends_when_it_is_told_to_though_more_may_come() {
        let (mut theirs, ours) = tokio::io::duplex(64);
        let (tell, told) = tokio::sync::oneshot::channel::<()>();
        let mut until = StoppableInput::new(ours, async { told.await.unwrap() });
        theirs.write_all(b"before").await.unwrap();
        let mut buffer = [0; 64];
        assert_eq!(until.read(&mut buffer).await.unwrap(), 6);
        let (rest, ()) = tokio::join!(until.read(&mut buffer), async { tell.send(()).unwrap() });
        assert_eq!(rest.unwrap(), 0);
        theirs.write_all(b"after").await.unwrap();
        assert_eq!(until.read(&mut buffer).await.unwrap(), 0);
    }
}
