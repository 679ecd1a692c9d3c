//! The reaper: a process that outlives gatelet just long enough to kill its children.
//!
//! The [launcher](super::launcher) makes a program die with us, but not the processes that
//! the program started. So a reaper is started together with the first program: a process
//! that is not our child and reads a pipe from us. We tell it which process groups exist.
//! When the pipe ends, because we died, it kills the remaining groups, and also processes
//! that left them: they carry a mark that they inherited in their environment.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::{self, BufRead, PipeWriter, Write};
use std::os::unix::process::CommandExt;
use std::process::Stdio;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use rustix::process::{Pid, Signal, kill_process_group};

use super::launcher::Launcher;
use super::platform;

/// The first argument that makes our executable start a reaper, and the one that makes it
/// run as one.
pub(super) const START_ARGUMENT: &str = "__reaper-start";
const RUN_ARGUMENT: &str = "__reaper";

/// The environment variable that marks started programs. Its value begins with
/// [`MARK_PREFIX`].
pub(super) const MARK_VARIABLE: &str = "GATELET_CHILD";

/// The start of all marks that this process gives.
static MARK_PREFIX: LazyLock<String> =
    LazyLock::new(|| format!("{}-{:016x}.", std::process::id(), rand::random::<u64>()));

/// The number of programs started so far.
static STARTED: AtomicU64 = AtomicU64::new(0);

/// Returns the mark for a new program. No mark is a prefix of another.
pub(super) fn next_mark() -> String {
    format!("{}{}.", *MARK_PREFIX, STARTED.fetch_add(1, Ordering::Relaxed))
}

/// The pipe to the reaper, once it is started. One per process, for all upstreams.
static REAPER: Mutex<Option<PipeWriter>> = Mutex::new(None);

/// Tells the reaper to kill this process group at our end. Starts the reaper if needed.
pub(super) fn watch(launcher: &Launcher, group: Pid) {
    let mut reaper = REAPER.lock();
    send_order(&mut reaper, '+', group);
    if reaper.is_some() {
        return;
    }
    match start(launcher) {
        Ok(started) => *reaper = Some(started),
        // The program itself still ends with us.
        Err(error) => return tracing::warn!(%error, "there is no reaper over upstreams"),
    }
    send_order(&mut reaper, '+', group);
}

/// Tells the reaper that a group has ended, before its id can be reused.
pub(super) fn unwatch(group: Pid) {
    send_order(&mut REAPER.lock(), '-', group);
}

fn send_order(reaper: &mut Option<PipeWriter>, sign: char, group: Pid) {
    let line = format!("{sign}{}\n", group.as_raw_nonzero());
    if let Some(pipe) = reaper
        && let Err(error) = pipe.write_all(line.as_bytes())
    {
        tracing::warn!(%error, "the reaper over upstreams is gone");
        *reaper = None;
    }
}

/// Starts the reaper through a process that exits at once, so that it is not our child:
/// code that waits for our children does not wait for it.
fn start(launcher: &Launcher) -> io::Result<PipeWriter> {
    let (reader, mut writer) = io::pipe()?;
    let mut command = launcher.command();
    // It needs none of our secrets, and must not inherit a mark.
    command
        .env_clear()
        .arg(START_ARGUMENT)
        .stdin(reader)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let status = command.process_group(0).status()?;
    if !status.success() {
        return Err(io::Error::other(format!("it could not be started ({status})")));
    }
    writeln!(writer, "={}", *MARK_PREFIX)?;
    Ok(writer)
}

/// Starts or runs the reaper if `argument` asks for it; otherwise returns `None`.
pub(super) fn run_if_requested(argument: &OsStr) -> Option<io::Result<()>> {
    match argument.to_str()? {
        START_ARGUMENT => {
            Some(Launcher::Ourselves.command().arg(RUN_ARGUMENT).process_group(0).spawn().map(drop))
        }
        RUN_ARGUMENT => Some(run(io::stdin().lock())),
        _ => None,
    }
}

/// Runs the reaper: reads `orders` until the pipe ends, then kills the survivors.
fn run(orders: impl BufRead) -> io::Result<()> {
    let Survivors { groups, mark_prefix } = read_survivors(orders);
    for group in groups.into_iter().filter_map(Pid::from_raw) {
        // A group that is gone needs no signal.
        kill_process_group(group, Signal::KILL).ok();
    }
    if !mark_prefix.is_empty() {
        platform::kill_marked(MARK_VARIABLE, &mark_prefix);
    }
    Ok(())
}

/// The processes to kill when the pipe ends.
#[derive(Default)]
struct Survivors {
    /// The process groups that were watched and not unwatched.
    groups: BTreeSet<i32>,
    /// The start of the marks of all started programs.
    mark_prefix: String,
}

fn read_survivors(orders: impl BufRead) -> Survivors {
    let Survivors { mut groups, mut mark_prefix } = Survivors::default();
    for order in orders.lines().map_while(Result::ok) {
        if let Some(mark) = order.strip_prefix('=') {
            mark.clone_into(&mut mark_prefix);
        }
        let group = order.get(1..).and_then(|id| id.parse().ok());
        match (order.chars().next(), group) {
            (Some('+'), Some(group)) => drop(groups.insert(group)),
            (Some('-'), Some(group)) => drop(groups.remove(&group)),
            _ => {}
        }
    }
    Survivors { groups, mark_prefix }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_was_not_forgotten_is_left() {
        let read_survivors = read_survivors(&b"=1-a.\n+7\n+8\nnonsense\n-7\n+\n+9"[..]);
        assert_eq!(Vec::from_iter(read_survivors.groups), [8, 9]);
        assert_eq!(read_survivors.mark_prefix, "1-a.");
    }
}
