//! Ends with whoever started it.

use std::io;

/// Has the kernel kill this process when the thread that started it is gone, in
/// the process `parent`. An error where that is gone already. Does nothing where
/// the system has no such thing.
#[cfg(any(target_os = "linux", target_os = "freebsd"))]
pub fn end_with_parent(parent: u32) -> io::Result<()> {
    use rustix::process::{Signal, getppid, set_parent_process_death_signal};
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // One that ended before the line above sends no signal.
    let now = getppid().and_then(|id| u32::try_from(id.as_raw_nonzero().get()).ok());
    match now == Some(parent) {
        true => Ok(()),
        false => Err(io::Error::other("the parent is gone already")),
    }
}

#[cfg(not(any(target_os = "linux", target_os = "freebsd")))]
pub fn end_with_parent(_parent: u32) -> io::Result<()> {
    Ok(())
}
