//! The reaper: a process that outlives gatelet just long enough to end its
//! children.
//!
//! The [launcher](super::launcher) kills a program when we die, but not what the
//! program has started itself. So the first program that is started brings a
//! reaper along: a process, not a child of ours, that holds the other end of a
//! pipe. It is told which process groups there are; when the pipe ends, because
//! we do, it kills those that are left, and what has left them: whatever we
//! start has a mark in its environment, and so has whatever that starts.

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

/// The first argument that makes our executable start a reaper, and be one.
pub(super) const START: &str = "__reaper-start";
const RUN: &str = "__reaper";

/// The variable that marks whatever is started here. Its value begins with
/// [`INSTANCE`].
pub(super) const MARK_VARIABLE: &str = "GATELET_CHILD";

/// What the marks of this process begin with.
static INSTANCE: LazyLock<String> =
    LazyLock::new(|| format!("{}-{:016x}.", std::process::id(), rand::random::<u64>()));

/// How many programs were started.
static STARTED: AtomicU64 = AtomicU64::new(0);

/// The mark of one more program. None is the beginning of another.
pub(super) fn next_mark() -> String {
    format!("{}{}.", *INSTANCE, STARTED.fetch_add(1, Ordering::Relaxed))
}

/// The reaper of this process, once there is one. It goes with the process, so
/// there is exactly one, however many upstreams and runtimes there are.
static REAPER: Mutex<Option<PipeWriter>> = Mutex::new(None);

/// Has the reaper watch a group. Starts the reaper first when there is none.
pub(super) fn watch(launcher: &Launcher, group: Pid) {
    let mut reaper = REAPER.lock();
    tell(&mut reaper, '+', group);
    if reaper.is_some() {
        return;
    }
    match start(launcher) {
        Ok(started) => *reaper = Some(started),
        // The program itself ends with us all the same.
        Err(error) => return tracing::warn!(%error, "there is no reaper over upstreams"),
    }
    tell(&mut reaper, '+', group);
}

/// Tells the reaper that a group is gone, before its id can be somebody else's.
pub(super) fn forget(group: Pid) {
    tell(&mut REAPER.lock(), '-', group);
}

fn tell(reaper: &mut Option<PipeWriter>, sign: char, group: Pid) {
    let line = format!("{sign}{}\n", group.as_raw_nonzero());
    if let Some(pipe) = reaper
        && let Err(error) = pipe.write_all(line.as_bytes())
    {
        tracing::warn!(%error, "the reaper over upstreams is gone");
        *reaper = None;
    }
}

/// Starts the reaper by way of a process that ends at once, so that the reaper is
/// nobody's child: whoever waits for our children does not wait for it.
fn start(launcher: &Launcher) -> io::Result<PipeWriter> {
    let (reader, mut writer) = io::pipe()?;
    let mut command = launcher.command();
    // It needs none of our secrets, and no mark of whoever started us.
    command.env_clear().arg(START).stdin(reader).stdout(Stdio::null()).stderr(Stdio::null());
    let status = command.process_group(0).status()?;
    if !status.success() {
        return Err(io::Error::other(format!("it could not be started ({status})")));
    }
    writeln!(writer, "={}", *INSTANCE)?;
    Ok(writer)
}

/// Does what `argument` asks for, if it asks for a reaper.
pub(super) fn take(argument: &OsStr) -> Option<io::Result<()>> {
    match argument.to_str()? {
        START => Some(Launcher::Ourselves.command().arg(RUN).process_group(0).spawn().map(drop)),
        RUN => Some(run(io::stdin().lock())),
        _ => None,
    }
}

/// Listens until the pipe ends, and ends whoever is left.
fn run(orders: impl BufRead) -> io::Result<()> {
    let Left { groups, instance } = left(orders);
    for group in groups.into_iter().filter_map(Pid::from_raw) {
        // A group that is gone needs no signal.
        kill_process_group(group, Signal::KILL).ok();
    }
    if !instance.is_empty() {
        platform::kill_marked(MARK_VARIABLE, &instance);
    }
    Ok(())
}

/// What is to be ended.
#[derive(Default)]
struct Left {
    /// The groups that were to be watched and never forgotten.
    groups: BTreeSet<i32>,
    /// How the mark of everything begins that was started.
    instance: String,
}

fn left(orders: impl BufRead) -> Left {
    let Left { mut groups, mut instance } = Left::default();
    for order in orders.lines().map_while(Result::ok) {
        if let Some(mark) = order.strip_prefix('=') {
            mark.clone_into(&mut instance);
        }
        let group = order.get(1..).and_then(|id| id.parse().ok());
        match (order.chars().next(), group) {
            (Some('+'), Some(group)) => drop(groups.insert(group)),
            (Some('-'), Some(group)) => drop(groups.remove(&group)),
            _ => {}
        }
    }
    Left { groups, instance }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_was_not_forgotten_is_left() {
        let left = left(&b"=1-a.\n+7\n+8\nnonsense\n-7\n+\n+9"[..]);
        assert_eq!(Vec::from_iter(left.groups), [8, 9]);
        assert_eq!(left.instance, "1-a.");
    }
}
