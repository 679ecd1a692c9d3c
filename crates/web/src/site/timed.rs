//! A body that has to come within its time.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Buf;
use http_body::{Body, Frame, SizeHint};
use tokio::time::{Instant, Sleep, sleep_until};

use crate::listen::Heard;

/// A body, and when it must have come.
pub(super) struct Timed<B> {
    body: Pin<Box<B>>,
    end: Instant,
    /// Runs from the first time that the body has to be waited for.
    alarm: Option<Pin<Box<Sleep>>>,
    /// Set when it was too late.
    late: Arc<AtomicBool>,
    /// Who remembers what came.
    heard: Heard,
}

/// Why a body broke off.
pub(super) enum Broken<E> {
    Late,
    Itself(E),
}

impl<B> Timed<B> {
    pub(super) fn new(body: B, limit: Duration, late: Arc<AtomicBool>, heard: Heard) -> Timed<B> {
        Timed { body: Box::pin(body), end: Instant::now() + limit, alarm: None, late, heard }
    }
}

impl<B: Body> Body for Timed<B> {
    type Data = B::Data;
    type Error = Broken<B::Error>;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        task: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, Self::Error>>> {
        if let Poll::Ready(frame) = self.body.as_mut().poll_frame(task) {
            if let Some(Ok(frame)) = &frame
                && let Some(data) = frame.data_ref()
            {
                self.heard.note(data.chunk());
            }
            return Poll::Ready(frame.map(|frame| frame.map_err(Broken::Itself)));
        }
        let end = self.end;
        let alarm = self.alarm.get_or_insert_with(|| Box::pin(sleep_until(end)));
        match alarm.as_mut().poll(task) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(()) => {
                self.late.store(true, Ordering::Relaxed);
                Poll::Ready(Some(Err(Broken::Late)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl<E: fmt::Display> fmt::Display for Broken<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Broken::Late => f.write_str("it took too long"),
            Broken::Itself(error) => error.fmt(f),
        }
    }
}
