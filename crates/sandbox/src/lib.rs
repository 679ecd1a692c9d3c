//! Confines programs: what they may read, write and connect to.
//!
//! A [`Policy`] defines it. Gatelet's own executable confines itself by the policy and
//! then becomes the program ([`launch`]), so that neither the program nor what it
//! starts can get more rights. The kernel enforces it: Landlock for files, seccomp for
//! the network and for system calls that no server needs, a network namespace for a
//! private loopback, resource limits for memory and open files; of root's capabilities
//! none are left. A policy that the
//! kernel cannot enforce is an error.
//!
//! A worker process of gatelet that only computes gives up everything but its memory
//! and its open descriptors ([`isolate`]).
//!
//! This crate does not know servers, MCP or configurations.

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
mod privileges;
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

/// The features of the kernel that a sandbox needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Support {
    /// The version of Landlock's interface.
    pub landlock: Option<u32>,
    pub seccomp: bool,
    /// Whether a program may have a network namespace of its own.
    pub namespaces: bool,
}
