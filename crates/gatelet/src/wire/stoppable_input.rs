//! Input that ends when we are told to.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use futures::task::AtomicWaker;
use tokio::io::{AsyncRead, ReadBuf};

/// Reads until its input ends, or until the end has come otherwise.
pub(crate) struct StoppableInput<R> {
    reader: R,
    end: Arc<End>,
}

#[derive(Default)]
struct End {
    has_come: AtomicBool,
    waker: AtomicWaker,
}

impl<R> StoppableInput<R> {
    /// The end comes when `end` is ready.
    pub(crate) fn new(
        reader: R,
        end: impl Future<Output = ()> + Send + 'static,
    ) -> StoppableInput<R> {
        let until = StoppableInput { reader, end: Arc::default() };
        let told = Arc::clone(&until.end);
        tokio::spawn(async move {
            end.await;
            told.has_come.store(true, Ordering::Release);
            told.waker.wake();
        });
        until
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for StoppableInput<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        task: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.end.has_come.load(Ordering::Acquire) {
            return Poll::Ready(Ok(()));
        }
        let read = Pin::new(&mut self.reader).poll_read(task, buffer);
        if read.is_pending() {
            self.end.waker.register(task.waker());
            // It may have come before anybody could be woken.
            if self.end.has_come.load(Ordering::Acquire) {
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
