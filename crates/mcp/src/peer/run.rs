//! The task that reads and writes the pipe of one connection.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures::future::FutureExt;
use futures::stream::StreamExt;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::time::{Instant, Sleep, sleep_until};

use super::inbound::InboundRequests;
use super::lines::Lines;
use super::{Incoming, LARGE_BUFFER, Peer};

/// How long the last answers may take to be written.
const FINAL_WRITE_TIMEOUT: Duration = Duration::from_secs(1);

/// Why most connections end.
const CLOSED: &str = "the other side closed the connection";

/// Runs a connection until the pipe ends or the peer is closed, and returns why it ended.
/// This one future does all reading, answering and writing.
pub async fn run<R, W>(peer: Peer, reader: R, mut writer: W, incoming: Arc<dyn Incoming>) -> String
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let mut lines = Lines::new(reader, peer.0.limits.line).with_memory(peer.0.memory.clone());
    let mut inbound = InboundRequests::new(peer.clone(), incoming);
    let mut writing = OutgoingBuffer::default();
    let mut last_call: Option<Instant> = None;
    let mut alarm = Alarm::default();
    let is_multi_threaded = Handle::current().runtime_flavor() == RuntimeFlavor::MultiThread;
    let reason = loop {
        alarm.set(writing.refill(&peer));
        if last_call.is_some() && writing.is_empty() && inbound.answers.is_empty() {
            break CLOSED.to_owned();
        }
        if last_call.is_none() && peer.closed().is_some() {
            break String::new();
        }
        // Writing comes first, so that a peer that never stops sending cannot hold
        // answers back.
        tokio::select! {
            biased;
            written = writer.write(&writing.buffer[writing.at..]), if !writing.is_empty() => {
                match written {
                    Ok(0) => break "the other side takes no more input".to_owned(),
                    Ok(n_written) => writing.advance(n_written, &peer),
                    Err(error) => break broken("writing", &error),
                }
                if writing.is_empty() && let Err(error) = writer.flush().await {
                    break broken("writing", &error);
                }
            }
            Some(answer) = inbound.answers.next(), if !inbound.answers.is_empty() => {
                inbound.answer(answer);
                while let Some(Some(answer)) = inbound.answers.next().now_or_never() {
                    inbound.answer(answer);
                }
            }
            more = lines.fill(), if last_call.is_none() => match more {
                Ok(more) => {
                    inbound.process_lines(&mut lines).await;
                    if !more {
                        peer.lock().close(CLOSED);
                        last_call = Some(Instant::now() + peer.0.limits.linger);
                    }
                }
                Err(error) => break broken("reading", &error),
            },
            () = peer.0.wake.notified() => {
                // A multi-threaded runtime runs a woken task before others that are ready,
                // so their requests would be written one by one.
                if is_multi_threaded && 1 < peer.lock().pending.len() {
                    tokio::task::yield_now().await;
                }
            }
            () = alarm.elapsed() => peer.lock().pending.expire(Instant::now()),
            () = until(last_call), if last_call.is_some() => {
                if inbound.answers.is_empty() {
                    break CLOSED.to_owned();
                }
                // Tell the other side which requests get no answer.
                inbound.give_up();
                last_call = Some(Instant::now() + FINAL_WRITE_TIMEOUT);
            }
        }
    };
    peer.lock().close(&reason);
    peer.closed().unwrap_or(reason)
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

fn broken(doing: &str, error: &io::Error) -> String {
    // Whether reading or writing notices first that the other side is gone is chance.
    if error.kind() == io::ErrorKind::BrokenPipe {
        return CLOSED.to_owned();
    }
    format!("{doing} failed: {error}")
}

/// One timer for the next check of expired requests.
#[derive(Default)]
struct Alarm {
    at: Option<Instant>,
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Alarm {
    fn set(&mut self, at: Option<Instant>) {
        if self.at == at {
            return;
        }
        self.at = at;
        match (at, &mut self.sleep) {
            (Some(at), Some(sleep)) => sleep.as_mut().reset(at),
            (Some(at), None) => self.sleep = Some(Box::pin(sleep_until(at))),
            (None, _) => self.sleep = None,
        }
    }

    async fn elapsed(&mut self) {
        match &mut self.sleep {
            Some(sleep) => sleep.await,
            None => std::future::pending().await,
        }
    }
}

/// The lines that are being written to the pipe.
#[derive(Default)]
struct OutgoingBuffer {
    buffer: Vec<u8>,
    at: usize,
}

impl OutgoingBuffer {
    fn is_empty(&self) -> bool {
        self.at == self.buffer.len()
    }

    /// Takes the whole outbox once everything before it is written. Returns when to check
    /// for expired requests.
    fn refill(&mut self, peer: &Peer) -> Option<Instant> {
        if !self.is_empty() {
            return peer.lock().pending.next_check();
        }
        self.at = 0;
        self.buffer.clear();
        // Do not keep the memory of a large message.
        if LARGE_BUFFER < self.buffer.capacity() {
            self.buffer = Vec::new();
        }
        let mut state = peer.lock();
        std::mem::swap(&mut self.buffer, &mut state.outbox);
        state.pending.next_check()
    }

    fn advance(&mut self, n_written: usize, peer: &Peer) {
        self.at += n_written;
        peer.lock().written += n_written as u64;
    }
}
