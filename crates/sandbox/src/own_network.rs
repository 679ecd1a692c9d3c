//! Moves this process into a network namespace of its own, which has only a loopback.
//!
//! A [relay](crate::port_relay) that stays outside forwards ports of this machine's
//! loopback into it. The kernel must let users create namespaces.

use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, Ipv6Addr, TcpListener};
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Command, Stdio};

use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags,
    SocketType,
};
use rustix::thread::UnshareFlags;

use crate::policy::Unenforceable;
use crate::port_relay;

/// Returns whether the kernel's settings let a user create namespaces.
pub(crate) fn is_allowed() -> bool {
    let setting = |path: &str| {
        let text = std::fs::read_to_string(format!("/proc/sys/{path}")).ok()?;
        text.trim().parse::<u64>().ok()
    };
    let is_root = rustix::process::geteuid().is_root();
    let is_restricted = setting("kernel/unprivileged_userns_clone") == Some(0)
        || setting("kernel/apparmor_restrict_unprivileged_userns") == Some(1);
    std::path::Path::new("/proc/self/ns/user").exists()
        && setting("user/max_user_namespaces") != Some(0)
        && setting("user/max_net_namespaces") != Some(0)
        && (is_root || !is_restricted)
}

/// Moves this process, which must have one thread, into a network of its own. The
/// `ports` of the loopback outside stay reachable.
pub(crate) fn enter(ports: &[u16]) -> Result<(), Unenforceable> {
    let relay = match ports {
        [] => None,
        _ => Some(start_relay().map_err(|error| refused("no relay for its ports", &error))?),
    };
    leave_network().map_err(|error| refused("no network of its own", &error))?;
    loopback_up().map_err(|error| refused("no loopback of its own", &error))?;
    for port in ports {
        let relay = relay.as_ref().map(AsFd::as_fd);
        hand_over(*port, relay).map_err(|error| refused(&format!("port {port}"), &error))?;
    }
    Ok(())
}

fn refused(problem: &str, error: &std::io::Error) -> Unenforceable {
    Unenforceable::Refused(format!("{problem}: {error}"))
}

/// Starts the relay outside, and returns the socket over which it receives listeners.
fn start_relay() -> std::io::Result<OwnedFd> {
    let (own, theirs) = rustix::net::socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )?;
    let parent = std::process::id().to_string();
    Command::new("/proc/self/exe")
        .args([port_relay::ARGUMENT, parent.as_str()])
        .stdin(Stdio::from(theirs))
        .stdout(Stdio::null())
        .spawn()?;
    Ok(own)
}

fn leave_network() -> std::io::Result<()> {
    let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    #[expect(deprecated, reason = "what made it unsafe are shared descriptor tables, which stay")]
    rustix::thread::unshare(UnshareFlags::NEWUSER | UnshareFlags::NEWNET)?;
    // Only this user and group are mapped, each to itself.
    std::fs::write("/proc/self/setgroups", "deny")?;
    std::fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    std::fs::write("/proc/self/gid_map", format!("{group} {group} 1"))
}

/// Brings the loopback interface up, by a netlink message.
fn loopback_up() -> std::io::Result<()> {
    // `RTM_NEWLINK` about interface 1, which the loopback is in every network:
    // set the flag `IFF_UP`, and answer.
    let (new_link, request_and_answer, loopback, up) = (16_u16, 5_u16, 1_i32, 1_u32);
    let mut message = Vec::new();
    message.extend(32_u32.to_ne_bytes());
    message.extend(new_link.to_ne_bytes());
    message.extend(request_and_answer.to_ne_bytes());
    message.extend([0; 8]);
    message.extend([0; 4]);
    message.extend(loopback.to_ne_bytes());
    message.extend(up.to_ne_bytes());
    message.extend(up.to_ne_bytes());
    let socket = rustix::net::socket(AddressFamily::NETLINK, SocketType::RAW, None)?;
    rustix::net::send(&socket, &message, SendFlags::empty())?;
    let mut answer = [0_u8; 512];
    let (_, length) = rustix::net::recv(&socket, &mut answer[..], RecvFlags::empty())?;
    // After the header of 16 bytes is the negative error code, or 0.
    let code = answer.get(16..20).filter(|_| 20 <= length).and_then(|four| four.try_into().ok());
    match code.map(i32::from_ne_bytes) {
        Some(0) => Ok(()),
        Some(code) => Err(std::io::Error::from_raw_os_error(code.wrapping_neg())),
        None => Err(std::io::Error::other("the kernel gave no answer")),
    }
}

/// Listens on a port inside, and passes the listener to the relay outside.
fn hand_over(port: u16, relay: Option<std::os::fd::BorrowedFd<'_>>) -> std::io::Result<()> {
    let Some(relay) = relay else { return Ok(()) };
    let first = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
    // A machine may have no IPv6.
    let second = TcpListener::bind((Ipv6Addr::LOCALHOST, port)).ok();
    for listener in std::iter::once(first).chain(second) {
        let descriptors = [listener.as_fd()];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        control.push(SendAncillaryMessage::ScmRights(&descriptors));
        let number = port.to_ne_bytes();
        rustix::net::sendmsg(relay, &[IoSlice::new(&number)], &mut control, SendFlags::NOSIGNAL)?;
    }
    Ok(())
}
