//! One worker, as the gatelet that started it sees it.

use std::io;
use std::os::fd::OwnedFd;
use std::process::Stdio;

use serde::Serialize;
use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::process::{Child, Command};

use super::config::Config;
use crate::protocol::{self, FromWorker, HEAD};
use crate::worker::ARGUMENT;

/// What a worker may use beside the values of a script.
const OVERHEAD: u64 = 64 << 20;

/// How many bytes are read at once.
const READ_AT_ONCE: usize = 16 << 10;

/// A process, ended when dropped.
pub(super) struct Worker {
    child: Child,
    socket: UnixStream,
    /// What goes out, of which the socket took `written` bytes. The rest is written
    /// while frames are read, so that neither side waits for the other to read.
    out: Vec<u8>,
    written: usize,
    /// Bytes that were read, of which those before `parsed` are done with.
    read: Vec<u8>,
    parsed: usize,
}

impl Worker {
    /// Starts a worker and waits until it has confined itself.
    pub(super) async fn start(config: &Config) -> io::Result<Worker> {
        let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let memory = OVERHEAD + 4 * config.limits.memory as u64;
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
        match worker.frame().await? {
            FromWorker::Ready { unenforced: None } => Ok(worker),
            FromWorker::Ready { unenforced: Some(what) } => {
                tracing::warn!(what, "scripts run in a process that is not confined by the kernel");
                Ok(worker)
            }
            FromWorker::Call(_) | FromWorker::Done(_) => {
                Err(io::Error::other("a worker began without a script"))
            }
        }
    }

    pub(super) fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Sends a frame. What the socket does not take at once goes out while the next
    /// frame is waited for.
    pub(super) fn send<T: Serialize>(&mut self, frame: &T) -> io::Result<()> {
        protocol::write(&mut self.out, frame)?;
        self.flush()
    }

    /// The next frame. Nothing is lost when the future is dropped.
    pub(super) async fn frame(&mut self) -> io::Result<FromWorker> {
        loop {
            if let Some(frame) = self.parse()? {
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

    /// The frame that was read already, if it is whole.
    fn parse(&mut self) -> io::Result<Option<FromWorker>> {
        let unparsed = &self.read[self.parsed..];
        let Some(head) = unparsed.first_chunk::<HEAD>() else { return Ok(None) };
        let end = HEAD + protocol::length(*head)?;
        let Some(text) = unparsed.get(HEAD..end) else { return Ok(None) };
        let frame = serde_json::from_slice(text).map_err(io::Error::other)?;
        self.parsed += end;
        Ok(Some(frame))
    }

    /// Reads what there is.
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
