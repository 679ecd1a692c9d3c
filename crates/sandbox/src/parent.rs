//! Ends this process when its parent ends.

use std::io;

/// Makes the kernel kill this process when the thread of the process `parent` that
/// started it ends. Fails if that has ended already. Does nothing on systems without
/// this feature.
#[cfg(any(target_os = "linux", target_os = "freebsd"))]
pub fn end_with_parent(parent: u32) -> io::Result<()> {
    use rustix::process::{Signal, getppid, set_parent_process_death_signal};
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // A parent that ended before the line above causes no signal.
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
