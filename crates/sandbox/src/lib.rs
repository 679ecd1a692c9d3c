//! What a started program may read, write and connect to.
//!
//! A [`Policy`] says it. Our own executable confines itself by the policy and
//! then becomes the program ([`launch`]), so that neither the program nor
//! whatever it starts can ever get more. The kernel enforces it: Landlock for
//! files, seccomp for the network and for what no server needs, a network
//! namespace for a loopback of its own, limits for memory and files. What the
//! kernel cannot enforce is refused, not ignored.
//!
//! A process of our own that only computes for a stranger gives up everything
//! but its memory and its open descriptors ([`isolate`]).
//!
//! This crate knows nothing of servers, MCP or configurations.

pub mod launch;

pub mod container;
pub mod preset;

mod parent;
mod policy;

#[cfg(target_os = "linux")]
mod own_network;
#[cfg(target_os = "linux")]
mod port_relay;

#[cfg(target_os = "linux")]
mod call_filter;
#[cfg(target_os = "linux")]
mod isolation;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
use linux as system;
#[cfg(not(target_os = "linux"))]
mod elsewhere;
#[cfg(not(target_os = "linux"))]
use elsewhere as system;

#[cfg(target_os = "linux")]
pub use isolation::isolate;
pub use parent::end_with_parent;
pub use policy::{Network, Policy, Unenforceable};
#[cfg(not(target_os = "linux"))]
pub use system::isolate;
pub use system::{confine, support};

/// What the kernel has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Support {
    /// The version of Landlock's interface.
    pub landlock: Option<u32>,
    pub seccomp: bool,
    /// Whether a program may have a network of its own.
    pub namespaces: bool,
}
