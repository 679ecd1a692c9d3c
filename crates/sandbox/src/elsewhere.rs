//! The fallback for systems without Landlock: nothing can be enforced, so nothing
//! is started.

use crate::Support;
use crate::policy::{Policy, Unenforceable};

pub fn support() -> Support {
    Support::default()
}

pub fn confine(policy: &Policy) -> Result<(), Unenforceable> {
    policy.check(support())
}

/// Fails: a process cannot be isolated on this system.
pub fn isolate(_memory: u64) -> Result<(), Unenforceable> {
    Err(Unenforceable::NoSeccomp)
}
