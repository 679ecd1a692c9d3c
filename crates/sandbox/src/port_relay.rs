//! Leads connections from a network of its own to ports of this machine's loopback.
//!
//! It runs beside the confined program, outside its network. What listens inside
//! was handed to it; it connects to the same port out here, and to nothing else.
//! It ends with the program.

use std::ffi::OsString;
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, Ipv6Addr, Shutdown, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags};
use rustix::process::Signal;

/// The first argument that makes our executable a relay.
pub(crate) const ARGUMENT: &str = "__ports";

/// So many connections are led through at once; more are closed.
const MOST: usize = 256;

static N_CONNECTIONS: AtomicUsize = AtomicUsize::new(0);

/// Is a relay until its parent ends. `args` are those behind [`ARGUMENT`].
pub(crate) fn run(mut args: impl Iterator<Item = OsString>) -> io::Result<()> {
    let parent = args.next().and_then(|text| text.to_str()?.parse::<i32>().ok());
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    // One that ended before it was asked for sends no signal.
    if rustix::process::getppid().map(|id| id.as_raw_nonzero().get()) != parent {
        return Ok(());
    }
    let mut threads = Vec::new();
    while let Some((listener, port)) = next_listener()? {
        threads.push(start(move || accept(&listener, port))?);
    }
    for thread in threads {
        let _ = thread.join();
    }
    Ok(())
}

fn start(run: impl FnOnce() + Send + 'static) -> io::Result<thread::JoinHandle<()>> {
    thread::Builder::new().stack_size(128 << 10).spawn(run)
}

/// A listener and its port, as the confined side hands them over.
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

fn accept(listener: &TcpListener, port: u16) {
    while let Ok((inside, _)) = listener.accept() {
        if MOST <= N_CONNECTIONS.fetch_add(1, Ordering::Relaxed) {
            N_CONNECTIONS.fetch_sub(1, Ordering::Relaxed);
            continue;
        }
        let lead = move || {
            // Where nobody listens the connection is closed: it was refused out here.
            let _ = join(&inside, port);
            N_CONNECTIONS.fetch_sub(1, Ordering::Relaxed);
        };
        if start(lead).is_err() {
            N_CONNECTIONS.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Copies both ways until both ends have said all.
fn join(inside: &TcpStream, port: u16) -> io::Result<()> {
    let outside = TcpStream::connect((Ipv4Addr::LOCALHOST, port))
        .or_else(|_| TcpStream::connect((Ipv6Addr::LOCALHOST, port)))?;
    for stream in [inside, &outside] {
        stream.set_nodelay(true)?;
    }
    let (there, back) = (outside.try_clone()?, inside.try_clone()?);
    let answers = start(move || copy(&outside, &back))?;
    copy(inside, &there);
    let _ = answers.join();
    Ok(())
}

fn copy(mut from: &TcpStream, mut to: &TcpStream) {
    let _ = io::copy(&mut from, &mut to);
    let _ = to.shutdown(Shutdown::Write);
    let _ = from.shutdown(Shutdown::Read);
}
