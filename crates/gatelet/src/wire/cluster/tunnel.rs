//! A byte stream to another replica, carried by messages: one per line.
//!
//! Lines that are written at one end come out at the other in the same order. The tunnel
//! ends when either end closes it, and when the other replica is gone. Lines are counted,
//! and each end says at intervals how many it has sent: one that arrives twice is dropped,
//! and where one is missing the tunnel ends. So no call runs twice, and none waits for an
//! answer that was lost with the store.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{
    AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf,
};
use tokio::sync::mpsc;

/// How many lines may wait to be read at one end; then that end is closed.
const MAX_WAITING: usize = 4096;
/// How many bytes may wait in the local stream of a tunnel.
const BUFFER_BYTES: usize = 1 << 16;
/// The longest line, which is the longest value of a store.
const MAX_LINE_BYTES: u64 = 16 << 20;

/// The tunnels that are open at this replica, by number.
#[derive(Default)]
pub(super) struct Tunnels(Mutex<HashMap<u64, Incoming>>);

/// The lines that come out at this end of a tunnel.
struct Incoming {
    lines: mpsc::Sender<String>,
    /// The number of the next line.
    next: u64,
}

impl Incoming {
    /// Takes a line; `false` if the tunnel has to end.
    fn take(&mut self, number: Option<u64>, line: String) -> bool {
        match number {
            // It arrived before.
            Some(number) if number < self.next => return true,
            Some(number) if self.next < number => return false,
            Some(_) => self.next += 1,
            None => {}
        }
        self.lines.try_send(line).is_ok()
    }
}

/// This replica's end of a tunnel. Nothing moves until it is [`run`](TunnelEnd::run).
pub(super) struct TunnelEnd {
    number: u64,
    stream: DuplexStream,
    incoming: mpsc::Receiver<String>,
}

/// What one end sends to the other.
pub(super) enum Outgoing {
    Line {
        number: u64,
        text: String,
    },
    /// How many lines were sent so far.
    Count(u64),
    Closed,
}

impl Tunnels {
    /// Opens a tunnel: the stream for local use, and the end that moves its lines.
    pub(super) fn open(&self, number: u64) -> (DuplexStream, TunnelEnd) {
        let (near, stream) = tokio::io::duplex(BUFFER_BYTES);
        let (sender, incoming) = mpsc::channel(MAX_WAITING);
        self.0.lock().insert(number, Incoming { lines: sender, next: 0 });
        (near, TunnelEnd { number, stream, incoming })
    }

    /// Receives a line of the other replica, with its number if that replica counts.
    /// Closes an end that nobody reads, and one where a line is missing.
    pub(super) fn receive_line(&self, tunnel: u64, number: Option<u64>, line: String) {
        let mut open = self.0.lock();
        if open.get_mut(&tunnel).is_some_and(|end| !end.take(number, line)) {
            open.remove(&tunnel);
        }
    }

    /// Receives how many lines the other end has sent. Closes an end that lacks some;
    /// `false` if there is no such tunnel any more.
    pub(super) fn receive_count(&self, tunnel: u64, n_lines: u64) -> bool {
        let mut open = self.0.lock();
        let has_all = open.get(&tunnel).is_some_and(|end| n_lines <= end.next);
        if !has_all {
            open.remove(&tunnel);
        }
        has_all
    }

    pub(super) fn close(&self, number: u64) {
        self.0.lock().remove(&number);
    }
}

impl TunnelEnd {
    /// Moves lines in both directions until either end closes. `send` sends to the other
    /// replica, in order, and returns whether it could; `peer_gone` is ready when that
    /// replica is gone. The lines are counted every `count_every`.
    pub(super) async fn run<F: Future<Output = bool>>(
        self,
        tunnels: Arc<Tunnels>,
        send: impl Fn(Outgoing) -> F,
        peer_gone: impl Future<Output = ()>,
        count_every: Duration,
    ) {
        let TunnelEnd { number, stream, incoming } = self;
        let (reader, writer) = tokio::io::split(stream);
        tokio::select! {
            () = send_lines(reader, &send, count_every) => {}
            () = write_lines(incoming, writer) => {}
            () = peer_gone => {}
        }
        tunnels.close(number);
        send(Outgoing::Closed).await;
    }
}

async fn send_lines<F: Future<Output = bool>>(
    reader: ReadHalf<DuplexStream>,
    send: &impl Fn(Outgoing) -> F,
    count_every: Duration,
) {
    let mut reader = BufReader::new(reader);
    for number in 0.. {
        let mut line = Vec::new();
        // What was read of a line stays in `line` when it is time to count.
        let n_read = loop {
            let left = MAX_LINE_BYTES.saturating_sub(line.len() as u64);
            let mut limited = (&mut reader).take(left);
            let reading = limited.read_until(b'\n', &mut line);
            match tokio::time::timeout(count_every, reading).await {
                Ok(read) => break read.map(|_| line.len()),
                Err(_) if send(Outgoing::Count(number)).await => {}
                Err(_) => return,
            }
        };
        match n_read {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        // A line that is too long for the store ends the tunnel, and the call with it.
        let is_whole = line.pop() == Some(b'\n');
        let Some(text) = String::from_utf8(line).ok().filter(|_| is_whole) else { return };
        if !send(Outgoing::Line { number, text }).await {
            return;
        }
    }
}

async fn write_lines(mut incoming: mpsc::Receiver<String>, mut writer: WriteHalf<DuplexStream>) {
    while let Some(mut line) = incoming.recv().await {
        line.push('\n');
        if writer.write_all(line.as_bytes()).await.is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUNT_EVERY: Duration = Duration::from_millis(10);

    #[tokio::test]
    async fn lines_come_out_in_order_and_the_end_of_one_side_is_the_end_of_the_other() {
        let (here, there) = (Arc::new(Tunnels::default()), Arc::new(Tunnels::default()));
        let ((near, left), (far, right)) = (here.open(1), there.open(1));
        let to = |other: &Arc<Tunnels>| {
            let other = Arc::clone(other);
            move |said: Outgoing| {
                match said {
                    Outgoing::Line { number, text } => {
                        // As a store would that carries out one command twice.
                        other.receive_line(1, Some(number), text.clone());
                        other.receive_line(1, Some(number), text);
                    }
                    Outgoing::Count(n_lines) => assert!(other.receive_count(1, n_lines)),
                    Outgoing::Closed => other.close(1),
                }
                std::future::ready(true)
            }
        };
        tokio::spawn(left.run(Arc::clone(&here), to(&there), std::future::pending(), COUNT_EVERY));
        tokio::spawn(right.run(Arc::clone(&there), to(&here), std::future::pending(), COUNT_EVERY));
        let (mut near, mut far) = (near, BufReader::new(far));
        near.write_all("one\ntwo \u{e9}\n".as_bytes()).await.unwrap();
        let mut text = String::new();
        far.read_line(&mut text).await.unwrap();
        far.read_line(&mut text).await.unwrap();
        assert_eq!(text, "one\ntwo \u{e9}\n");
        drop(near);
        let end = tokio::time::timeout(Duration::from_secs(10), far.read_line(&mut text)).await;
        assert_eq!(end.unwrap().unwrap(), 0, "the other end is closed");
    }

    #[tokio::test]
    async fn a_tunnel_that_lost_a_line_ends() {
        let tunnels = Arc::new(Tunnels::default());
        let (near, end) = tunnels.open(1);
        let running = tokio::spawn(end.run(
            Arc::clone(&tunnels),
            |_| std::future::ready(true),
            std::future::pending(),
            COUNT_EVERY,
        ));
        for (number, line) in
            [(Some(0), "a"), (None, "of version 0"), (Some(2), "c"), (Some(1), "b")]
        {
            tunnels.receive_line(1, number, line.to_owned());
        }
        running.await.unwrap();
        let mut text = String::new();
        let mut near = BufReader::new(near);
        while 0 < near.read_line(&mut text).await.unwrap() {}
        assert!(!text.contains('b') && !text.contains('c'), "nothing after the gap: {text}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_tunnel_whose_last_line_is_lost_ends_without_another_line() {
        let (here, there) = (Arc::new(Tunnels::default()), Arc::new(Tunnels::default()));
        let ((mut near, left), (far, right)) = (here.open(1), there.open(1));
        // The store takes the lines of one direction and forgets them.
        let to_there = Arc::clone(&there);
        let forgetful = move |said: Outgoing| {
            match said {
                Outgoing::Count(n_lines) => {
                    to_there.receive_count(1, n_lines);
                }
                Outgoing::Line { .. } | Outgoing::Closed => {}
            }
            std::future::ready(true)
        };
        let quiet = |_: Outgoing| std::future::ready(true);
        tokio::spawn(left.run(Arc::clone(&here), forgetful, std::future::pending(), COUNT_EVERY));
        let waits = tokio::spawn(right.run(there, quiet, std::future::pending(), COUNT_EVERY));
        tokio::time::sleep(COUNT_EVERY * 3).await;
        assert!(!waits.is_finished(), "nothing is missing");
        near.write_all(b"a request\n").await.unwrap();
        waits.await.unwrap();
        drop(far);
        assert!(!here.receive_count(2, 0), "a tunnel that nobody opened here");
    }
}
