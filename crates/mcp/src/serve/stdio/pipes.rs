//! Asynchronous stdin and stdout of the process, without a thread in between.
//!
//! tokio's stdin reads on another thread, which costs tens of microseconds per message.
//! Pipes and sockets, which hosts use, can be polled instead; terminals and files use
//! tokio's.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;

/// The process's stdin.
pub enum Stdin {
    Pipe(pipe::Receiver),
    Socket(UnixStream),
    Other(tokio::io::Stdin),
}

/// The process's stdout.
pub enum Stdout {
    Pipe(pipe::Sender),
    Socket(UnixStream),
    Other(tokio::io::Stdout),
}

/// The kind of file behind stdin or stdout.
enum Kind {
    Pipe,
    Socket,
    Other,
}

/// Opens the process's stdin.
pub fn stdin() -> io::Result<Stdin> {
    let (kind, file) = duplicate(&io::stdin())?;
    Ok(match kind {
        Kind::Pipe => Stdin::Pipe(pipe::Receiver::from_file(file)?),
        Kind::Socket => Stdin::Socket(socket(file)?),
        Kind::Other => Stdin::Other(tokio::io::stdin()),
    })
}

/// Opens the process's stdout.
pub fn stdout() -> io::Result<Stdout> {
    let (kind, file) = duplicate(&io::stdout())?;
    Ok(match kind {
        Kind::Pipe => Stdout::Pipe(pipe::Sender::from_file(file)?),
        Kind::Socket => Stdout::Socket(socket(file)?),
        Kind::Other => Stdout::Other(tokio::io::stdout()),
    })
}

fn duplicate(stream: &impl AsFd) -> io::Result<(Kind, File)> {
    let file = File::from(stream.as_fd().try_clone_to_owned()?);
    let of = file.metadata()?.file_type();
    let kind = match (of.is_fifo(), of.is_socket()) {
        (true, _) => Kind::Pipe,
        (false, true) => Kind::Socket,
        (false, false) => Kind::Other,
    };
    Ok((kind, file))
}

fn socket(file: File) -> io::Result<UnixStream> {
    let socket = std::os::unix::net::UnixStream::from(OwnedFd::from(file));
    socket.set_nonblocking(true)?;
    UnixStream::from_std(socket)
}

impl AsyncRead for Stdin {
    fn poll_read(
        self: Pin<&mut Self>,
        task: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stdin::Pipe(pipe) => Pin::new(pipe).poll_read(task, buffer),
            Stdin::Socket(socket) => Pin::new(socket).poll_read(task, buffer),
            Stdin::Other(other) => Pin::new(other).poll_read(task, buffer),
        }
    }
}

impl AsyncWrite for Stdout {
    fn poll_write(
        self: Pin<&mut Self>,
        task: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Stdout::Pipe(pipe) => Pin::new(pipe).poll_write(task, bytes),
            Stdout::Socket(socket) => Pin::new(socket).poll_write(task, bytes),
            Stdout::Other(other) => Pin::new(other).poll_write(task, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stdout::Pipe(pipe) => Pin::new(pipe).poll_flush(task),
            Stdout::Socket(socket) => Pin::new(socket).poll_flush(task),
            Stdout::Other(other) => Pin::new(other).poll_flush(task),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stdout::Pipe(pipe) => Pin::new(pipe).poll_shutdown(task),
            Stdout::Socket(socket) => Pin::new(socket).poll_shutdown(task),
            Stdout::Other(other) => Pin::new(other).poll_shutdown(task),
        }
    }
}
