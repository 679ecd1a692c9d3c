//! Forwards connections from a confined program's own network to ports of this
//! machine's loopback.
//!
//! The relay is a process outside of that network. It receives listeners from inside,
//! and connects to the same port outside, and to nothing else. It ends with the
//! program.

use std::ffi::OsString;
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, Ipv6Addr, Shutdown, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags};

use crate::parent::end_with_parent;

/// The first argument that makes gatelet's executable a relay.
pub(crate) const ARGUMENT: &str = "__ports";

/// The maximum number of connections at once; more are closed.
const MAX_CONNECTIONS: usize = 256;

static N_CONNECTIONS: AtomicUsize = AtomicUsize::new(0);

/// Runs as a relay until its parent ends. `args` are those after [`ARGUMENT`].
pub(crate) fn run(mut args: impl Iterator<Item = OsString>) -> io::Result<()> {
    let parent = args.next().and_then(|text| text.to_str()?.parse().ok());
    end_with_parent(parent.ok_or_else(|| io::Error::other("no parent is named"))?)?;
    let mut threads = Vec::new();
    while let Some((listener, port)) = next_listener()? {
        threads.push(spawn(move || accept_connections(&listener, port))?);
    }
    for thread in threads {
        let _ = thread.join();
    }
    Ok(())
}

fn spawn(run: impl FnOnce() + Send + 'static) -> io::Result<thread::JoinHandle<()>> {
    thread::Builder::new().stack_size(128 << 10).spawn(run)
}

/// Receives a listener and its port from the confined side; `None` at the end.
fn next_listener() -> io::Result<Option<(TcpListener, u16)>> {
    let mut number = [0; 2];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut parts = [IoSliceMut::new(&mut number)];
    let received =
        rustix::net::recvmsg(io::stdin(), &mut parts, &mut control, RecvFlags::CMSG_CLOEXEC)?;
    if received.bytes == 0 {
        return Ok(None);
    }
    let descriptor = control.drain().find_map(|message| {
        let RecvAncillaryMessage::ScmRights(mut descriptors) = message else { return None };
        descriptors.next()
    });
    let none = || io::Error::new(io::ErrorKind::InvalidData, "no listener was handed over");
    let descriptor: OwnedFd = descriptor.ok_or_else(none)?;
    Ok(Some((TcpListener::from(descriptor), u16::from_ne_bytes(number))))
}

fn accept_connections(listener: &TcpListener, port: u16) {
    while let Ok((inside, _)) = listener.accept() {
        if MAX_CONNECTIONS <= N_CONNECTIONS.fetch_add(1, Ordering::Relaxed) {
            N_CONNECTIONS.fetch_sub(1, Ordering::Relaxed);
            continue;
        }
        let relaying = move || {
            // If nobody listens outside, the connection inside is closed.
            let _ = relay(&inside, port);
            N_CONNECTIONS.fetch_sub(1, Ordering::Relaxed);
        };
        if spawn(relaying).is_err() {
            N_CONNECTIONS.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Connects to the port outside and copies both ways until both directions have ended.
fn relay(inside: &TcpStream, port: u16) -> io::Result<()> {
    let outside = TcpStream::connect((Ipv4Addr::LOCALHOST, port))
        .or_else(|_| TcpStream::connect((Ipv6Addr::LOCALHOST, port)))?;
    for stream in [inside, &outside] {
        stream.set_nodelay(true)?;
    }
    let (there, back) = (outside.try_clone()?, inside.try_clone()?);
    let answers = spawn(move || copy(&outside, &back))?;
    copy(inside, &there);
    let _ = answers.join();
    Ok(())
}

fn copy(mut from: &TcpStream, mut to: &TcpStream) {
    let _ = io::copy(&mut from, &mut to);
    let _ = to.shutdown(Shutdown::Write);
    let _ = from.shutdown(Shutdown::Read);
}
