//! A pipe to another replica, carried by messages: each line is one.
//!
//! What is written at one end comes out at the other in the same order. The pipe
//! ends when either end closes it, and when the other replica is gone.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::io::{
    AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf,
};
use tokio::sync::mpsc;

/// How many lines may wait to be read at one end. Whoever does not read is cut off.
const WAITING: usize = 4096;
/// How many bytes wait between this replica and its own end.
const BUFFER: usize = 1 << 16;
/// The longest line, which is the longest value of a store.
const LONGEST: u64 = 16 << 20;

/// The ends of pipes that are open here.
#[derive(Default)]
pub(super) struct Tunnels(Mutex<HashMap<u64, mpsc::Sender<String>>>);

/// This replica's end of a pipe, before it is carried.
pub(super) struct End {
    number: u64,
    stream: DuplexStream,
    incoming: mpsc::Receiver<String>,
}

/// What an end has to say to the other.
pub(super) enum Outgoing {
    Line(String),
    Closed,
}

impl Tunnels {
    /// An end for whoever talks here, and the end to be carried.
    pub(super) fn open(&self, number: u64) -> (DuplexStream, End) {
        let (near, stream) = tokio::io::duplex(BUFFER);
        let (sender, incoming) = mpsc::channel(WAITING);
        self.0.lock().insert(number, sender);
        (near, End { number, stream, incoming })
    }

    /// Takes a line of the other replica. Whoever does not read is cut off.
    pub(super) fn take(&self, number: u64, line: String) {
        let mut open = self.0.lock();
        if open.get(&number).is_some_and(|end| end.try_send(line).is_err()) {
            open.remove(&number);
        }
    }

    pub(super) fn close(&self, number: u64) {
        self.0.lock().remove(&number);
    }
}

impl End {
    /// Carries lines until either end closes. `say` sends to the other replica, in
    /// order; `gone` ends when that replica is not there any more.
    pub(super) async fn carry<F: Future<Output = bool>>(
        self,
        tunnels: Arc<Tunnels>,
        say: impl Fn(Outgoing) -> F,
        gone: impl Future<Output = ()>,
    ) {
        let End { number, stream, incoming } = self;
        let (reader, writer) = tokio::io::split(stream);
        tokio::select! {
            () = outgoing(reader, &say) => {}
            () = deliver(incoming, writer) => {}
            () = gone => {}
        }
        tunnels.close(number);
        say(Outgoing::Closed).await;
    }
}

async fn outgoing<F: Future<Output = bool>>(
    reader: ReadHalf<DuplexStream>,
    say: &impl Fn(Outgoing) -> F,
) {
    let mut reader = BufReader::new(reader);
    loop {
        let mut line = Vec::new();
        match (&mut reader).take(LONGEST).read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        // What is longer than a store takes ends the pipe, and the call with it.
        let is_whole = line.pop() == Some(b'\n');
        let Some(line) = String::from_utf8(line).ok().filter(|_| is_whole) else { return };
        if !say(Outgoing::Line(line)).await {
            return;
        }
    }
}

async fn deliver(mut incoming: mpsc::Receiver<String>, mut writer: WriteHalf<DuplexStream>) {
    while let Some(mut line) = incoming.recv().await {
        line.push('\n');
        if writer.write_all(line.as_bytes()).await.is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn lines_come_out_in_order_and_the_end_of_one_side_is_the_end_of_the_other() {
        let (here, there) = (Arc::new(Tunnels::default()), Arc::new(Tunnels::default()));
        let ((near, left), (far, right)) = (here.open(1), there.open(1));
        let to = |other: &Arc<Tunnels>| {
            let other = Arc::clone(other);
            move |said: Outgoing| {
                match said {
                    Outgoing::Line(line) => other.take(1, line),
                    Outgoing::Closed => other.close(1),
                }
                std::future::ready(true)
            }
        };
        tokio::spawn(left.carry(Arc::clone(&here), to(&there), std::future::pending()));
        tokio::spawn(right.carry(Arc::clone(&there), to(&here), std::future::pending()));
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
}
