//! A worker process, seen from gatelet: starts it, sends and receives frames.

use std::io;
use std::os::fd::OwnedFd;
use std::process::Stdio;

use serde::Serialize;
use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::process::{Child, Command};

use super::config::Config;
use crate::protocol::{self, FromWorker, HEAD_BYTES};
use crate::worker::ARGUMENT;

/// The memory of a worker beside the values of a script.
const OVERHEAD_BYTES: u64 = 64 << 20;

/// How many bytes are read at once.
const READ_AT_ONCE: usize = 16 << 10;

/// A process, ended when dropped.
pub(super) struct Worker {
    child: Child,
    socket: UnixStream,
    /// Bytes to send, of which the first `written` are sent. The rest is sent while
    /// frames are read, so that neither side waits for the other to read.
    out: Vec<u8>,
    written: usize,
    /// Bytes that were read, of which the first `parsed` are parsed.
    read: Vec<u8>,
    parsed: usize,
}

impl Worker {
    /// Starts a worker and waits until it has confined itself.
    pub(super) async fn start(config: &Config) -> io::Result<Worker> {
        let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let memory = OVERHEAD_BYTES + 4 * config.limits.memory as u64;
        let child = Command::new(&config.program)
            .args(&config.arguments)
            .arg(ARGUMENT)
            .arg(memory.to_string())
            .arg(std::process::id().to_string())
            .env_clear()
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()?;
        let socket = UnixStream::from_std(ours)?;
        let (out, read) = (Vec::new(), Vec::new());
        let mut worker = Worker { child, socket, out, written: 0, read, parsed: 0 };
        match worker.next_frame().await? {
            FromWorker::Ready { unenforced: None } => Ok(worker),
            FromWorker::Ready { unenforced: Some(unenforced) } => {
                tracing::warn!(
                    what = unenforced,
                    "scripts run in a process that is not confined by the kernel"
                );
                Ok(worker)
            }
            FromWorker::Call(_) | FromWorker::Waiting | FromWorker::Done(_) => {
                Err(io::Error::other("a worker began without a script"))
            }
        }
    }

    pub(super) fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Sends a frame. Bytes that the socket does not take at once are sent while the
    /// next frame is awaited.
    pub(super) fn send<T: Serialize>(&mut self, frame: &T) -> io::Result<()> {
        protocol::write(&mut self.out, frame)?;
        self.flush()
    }

    /// Receives the next frame. Nothing is lost if the future is dropped.
    pub(super) async fn next_frame(&mut self) -> io::Result<FromWorker> {
        loop {
            if let Some(frame) = self.parse_frame()? {
                return Ok(frame);
            }
            let wanted = match self.out.is_empty() {
                true => Interest::READABLE,
                false => Interest::READABLE | Interest::WRITABLE,
            };
            let ready = self.socket.ready(wanted).await?;
            if ready.is_writable() {
                self.flush()?;
            }
            if ready.is_readable() {
                self.fill()?;
            }
        }
    }

    /// Parses the next frame, if all of it was read.
    fn parse_frame(&mut self) -> io::Result<Option<FromWorker>> {
        let unparsed = &self.read[self.parsed..];
        let Some(head) = unparsed.first_chunk::<HEAD_BYTES>() else { return Ok(None) };
        let end = HEAD_BYTES + protocol::decode_length(*head)?;
        let Some(text) = unparsed.get(HEAD_BYTES..end) else { return Ok(None) };
        let frame = serde_json::from_slice(text).map_err(io::Error::other)?;
        self.parsed += end;
        Ok(Some(frame))
    }

    /// Reads the bytes that the socket has.
    fn fill(&mut self) -> io::Result<()> {
        self.read.drain(..self.parsed);
        self.parsed = 0;
        self.read.reserve(READ_AT_ONCE);
        match self.socket.try_read_buf(&mut self.read) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Writes as much as the socket takes.
    fn flush(&mut self) -> io::Result<()> {
        while self.written < self.out.len() {
            match self.socket.try_write(&self.out[self.written..]) {
                Ok(written) => self.written += written,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        self.out.clear();
        self.written = 0;
        Ok(())
    }
}
