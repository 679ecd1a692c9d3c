//! A connection that is closed when its client reads too slowly.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// A connection that breaks when a write waits for longer than `limit`.
pub(super) struct Paced<T> {
    inner: T,
    limit: Duration,
    /// Runs while a write waits.
    alarm: Option<Pin<Box<Sleep>>>,
}

impl<T> Paced<T> {
    pub(super) fn new(inner: T, limit: Duration) -> Paced<T> {
        Paced { inner, limit, alarm: None }
    }

    fn in_time<R>(
        &mut self,
        written: Poll<io::Result<R>>,
        task: &mut Context<'_>,
    ) -> Poll<io::Result<R>> {
        if written.is_ready() {
            self.alarm = None;
            return written;
        }
        let limit = self.limit;
        let alarm = self.alarm.get_or_insert_with(|| Box::pin(sleep(limit)));
        match alarm.as_mut().poll(task) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(()) => {
                let message = "the client does not take what it asked for";
                Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, message)))
            }
        }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Paced<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        task: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(task, into)
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Paced<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        task: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write(task, bytes);
        self.in_time(written, task)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        task: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write_vectored(task, slices);
        self.in_time(written, task)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<io::Result<()>> {
        let written = Pin::new(&mut self.inner).poll_flush(task);
        self.in_time(written, task)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<io::Result<()>> {
        let written = Pin::new(&mut self.inner).poll_shutdown(task);
        self.in_time(written, task)
    }
}
