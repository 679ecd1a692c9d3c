//! Functions that need a particular platform, each with a fallback for others.
//!
//! Linux is tested. On other Unix systems a program still gets its own process group that
//! is killed with it, but when we are killed only the reaper ends it, and processes that
//! left the group are not found.

use std::io;
use std::process::Command;

/// Makes the kernel kill this process when its parent, with the process id `parent`, dies.
#[cfg(any(target_os = "linux", target_os = "freebsd"))]
pub(super) fn die_with(parent: i32) -> io::Result<()> {
    use rustix::process::{Signal, getppid, set_parent_process_death_signal};
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // The parent may have died before the line above took effect.
    if getppid().map(|id| id.as_raw_nonzero().get()) != Some(parent) {
        return Err(io::Error::other("the parent is gone already"));
    }
    Ok(())
}

#[cfg(not(any(target_os = "linux", target_os = "freebsd")))]
pub(super) fn die_with(_parent: i32) -> io::Result<()> {
    Ok(())
}

/// Returns the command that starts our own executable, on Linux also if its file was
/// deleted since.
pub(super) fn own_executable() -> Command {
    match std::env::current_exe() {
        Ok(program) if program.exists() || !cfg!(target_os = "linux") => Command::new(program),
        Ok(_) | Err(_) => Command::new("/proc/self/exe"),
    }
}

/// The maximum number of searches for marked processes: one may start another meanwhile.
#[cfg(target_os = "linux")]
const ROUNDS: usize = 5;

/// Kills every process whose initial environment has the variable `name` with a value that
/// begins with `value`, also if it has another parent or session now. Returns how many
/// there were.
#[cfg(target_os = "linux")]
pub(super) fn kill_marked(name: &str, value: &str) -> usize {
    let mark = format!("{name}={value}");
    let mut n_killed = 0;
    for _ in 0..ROUNDS {
        let killed = processes().filter(|id| kill_if_marked(*id, mark.as_bytes())).count();
        n_killed += killed;
        if killed == 0 {
            break;
        }
    }
    n_killed
}

#[cfg(not(target_os = "linux"))]
pub(super) fn kill_marked(_name: &str, _value: &str) -> usize {
    0
}

#[cfg(target_os = "linux")]
fn processes() -> impl Iterator<Item = i32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Kills one process if its environment has the mark. Opens a pidfd first, so that the id
/// cannot be reused meanwhile.
#[cfg(target_os = "linux")]
fn kill_if_marked(id: i32, mark: &[u8]) -> bool {
    use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
    let me = i32::try_from(std::process::id()).ok();
    let Some(pid) = Pid::from_raw(id).filter(|_| Some(id) != me) else { return false };
    let Ok(held) = pidfd_open(pid, PidfdFlags::empty()) else { return false };
    let Ok(environment) = std::fs::read(format!("/proc/{id}/environ")) else { return false };
    let is_marked = environment.split(|byte| *byte == 0).any(|pair| pair.starts_with(mark));
    is_marked && pidfd_send_signal(held, Signal::KILL).is_ok()
}
