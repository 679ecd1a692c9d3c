//! Functions that need a particular platform, each with a fallback for others.
//!
//! Linux is tested. On other systems of the Unix family a program still gets a
//! process group of its own that is ended with it, but nothing ends it when we
//! are killed except the reaper, and what has left the group is not found.

use std::io;
use std::process::Command;

/// Has the system kill this process when its parent, whose id is `parent`, is
/// gone.
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

/// The command that starts our own executable. Another one may stand at the
/// path of ours by now, or none: then Linux still knows the one that runs.
pub(super) fn ourselves() -> Command {
    match std::env::current_exe() {
        Ok(program) if program.exists() || !cfg!(target_os = "linux") => Command::new(program),
        Ok(_) | Err(_) => Command::new("/proc/self/exe"),
    }
}

/// How often strays are looked for: one may start another meanwhile.
#[cfg(target_os = "linux")]
const ROUNDS: usize = 5;

/// Kills every process that was started with this pair in its environment, or
/// with a longer value, wherever it has gone since: into a session of its own,
/// or to another parent. How many there were.
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

/// Kills one process if its environment has the mark. The process is held by a
/// descriptor first, so that its id cannot be somebody else's by then.
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
