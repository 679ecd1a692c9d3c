//! A child process that runs a server, in its own process group.
//!
//! One thread starts the child and waits for it to its end, so that the
//! parent-death signal, which Linux ties to the starting thread, comes exactly
//! when this process ends; see [`super::launcher`]. When the child ends, whatever
//! is left of its group is killed while the child's id still cannot belong to
//! another process, then whatever has left the group, and then the child is reaped: no
//! zombies and no stray processes stay behind.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use tokio::net::unix::pipe;
use tokio::sync::oneshot;

use super::launcher::Launcher;
use super::options::Program;
use super::{environment, platform, reaper};

/// The stack size of the waiting thread, in bytes.
const STACK: usize = 128 << 10;

/// A running child. Dropping it kills its whole process group.
pub(super) struct Child {
    group: Arc<Group>,
    ended: oneshot::Receiver<io::Result<ExitStatus>>,
}

/// The standard streams of the child, non-blocking.
pub(super) struct ChildPipes {
    pub(super) stdin: pipe::Sender,
    pub(super) stdout: pipe::Receiver,
    pub(super) stderr: pipe::Receiver,
}

/// A process group, by its leader; `None` once the leader is about to be reaped.
struct Group(Mutex<Option<Pid>>);

/// The process group, with stdin, stdout and stderr of its leader.
type GroupAndPipes = (Arc<Group>, [OwnedFd; 3]);

impl Child {
    /// Starts a program.
    pub(super) async fn start(
        program: &Program,
        launcher: Option<&Launcher>,
    ) -> io::Result<(Child, ChildPipes)> {
        let mark = reaper::next_mark();
        let command = build_command(program, launcher, &mark);
        let (started, parts) = oneshot::channel();
        let (end, ended) = oneshot::channel();
        let launcher = launcher.cloned();
        std::thread::Builder::new()
            .name("upstream".to_owned())
            .stack_size(STACK)
            .spawn(move || run_child(command, &mark, launcher.as_ref(), started, end))?;
        let gone = |_| io::Error::other("the thread that starts children is gone");
        let (group, [stdin, stdout, stderr]) = parts.await.map_err(gone)??;
        let child = Child { group, ended };
        let pipes = ChildPipes {
            stdin: pipe::Sender::from_owned_fd(stdin)?,
            stdout: pipe::Receiver::from_owned_fd(stdout)?,
            stderr: pipe::Receiver::from_owned_fd(stderr)?,
        };
        Ok((child, pipes))
    }

    /// Ends the child and returns how it ended: waits up to `grace` for it to exit by itself
    /// (its input is closed), again after SIGTERM, and then sends SIGKILL.
    pub(super) async fn end(mut self, grace: Duration) -> String {
        for signal in [None, Some(Signal::TERM)] {
            if let Some(signal) = signal {
                self.group.signal(signal);
            }
            if let Ok(ended) = tokio::time::timeout(grace, &mut self.ended).await {
                return describe_exit(ended);
            }
        }
        self.group.signal(Signal::KILL);
        describe_exit((&mut self.ended).await)
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.group.signal(Signal::KILL);
    }
}

impl Group {
    fn signal(&self, signal: Signal) {
        let leader = self.0.lock();
        if let Some(leader) = *leader {
            // A group that is gone needs no signal.
            kill_process_group(leader, signal).ok();
        }
    }

    /// Kills the group and forgets the leader, which is about to be reaped.
    fn kill_and_forget(&self) {
        self.signal(Signal::KILL);
        *self.0.lock() = None;
    }
}

/// Builds the command; `mark` identifies the process and its descendants by their
/// environment.
fn build_command(program: &Program, launcher: Option<&Launcher>, mark: &str) -> Command {
    let mut command = match launcher {
        Some(launcher) => launcher.command_for(&program.command),
        None => Command::new(&program.command),
    };
    command
        .args(&program.args)
        .env_clear()
        .envs(environment::inherited(program.inherit))
        .envs(&program.env)
        .env(reaper::MARK_VARIABLE, mark)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    if let Some(cwd) = &program.cwd {
        command.current_dir(cwd);
    }
    command
}

/// Starts the child and waits for its end, on its own thread. Sends its pipes to `started`
/// and its exit status to `end`.
fn run_child(
    mut command: Command,
    mark: &str,
    launcher: Option<&Launcher>,
    started: oneshot::Sender<io::Result<GroupAndPipes>>,
    end: oneshot::Sender<io::Result<ExitStatus>>,
) {
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => {
            started.send(Err(error)).ok();
            return;
        }
    };
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    if let (Some(pid), Some(launcher)) = (pid, launcher) {
        reaper::watch(launcher, pid);
    }
    let group = Arc::new(Group(Mutex::new(pid)));
    let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    if let (Some(stdin), Some(stdout), Some(stderr)) = pipes {
        let parts = (Arc::clone(&group), [stdin.into(), stdout.into(), stderr.into()]);
        if started.send(Ok(parts)).is_err() {
            group.signal(Signal::KILL);
        }
    }
    if let Some(pid) = pid {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        while let Err(rustix::io::Errno::INTR) = waitid(WaitId::Pid(pid), options) {}
    }
    group.kill_and_forget();
    let n_strays = platform::kill_marked(reaper::MARK_VARIABLE, mark);
    if 0 < n_strays {
        tracing::debug!(n_strays, "what a program left behind is killed");
    }
    if let (Some(pid), Some(_)) = (pid, launcher) {
        reaper::unwatch(pid);
    }
    end.send(child.wait()).ok();
}

fn describe_exit(ended: Result<io::Result<ExitStatus>, oneshot::error::RecvError>) -> String {
    match ended {
        Ok(Ok(status)) => match (status.code(), status.signal()) {
            (Some(code), _) => format!("exit code {code}"),
            (None, Some(signal)) => format!("signal {signal}"),
            (None, None) => "it ended".to_owned(),
        },
        Ok(Err(error)) => format!("it cannot be waited for: {error}"),
        Err(_) => "it ended".to_owned(),
    }
}
