use std::path::Path;
use std::process::Command;

use crate::policy::Policy;

/// Tries what is called `try_*` and prints the names of what was not refused.
const TRYING: &str = r#"
import ctypes, os, resource, sys
libc = ctypes.CDLL(None, use_errno=True)
parent, path, inside = os.getppid(), sys.argv[1], sys.argv[2]
def call(number, *args):
    if libc.syscall(number, *args) == -1:
        raise OSError(ctypes.get_errno(), "")
numbers = {"x86_64": (251, 141, 29, 68, 64), "aarch64": (30, 140, 194, 186, 190)}[os.uname().machine]
ioprio_set, setpriority, shmget, msgget, semget = numbers
attempts = {
    "limits of the parent": lambda: resource.prlimit(parent, resource.RLIMIT_NOFILE, (64, 64)),
    "look at the parent's limits": lambda: resource.prlimit(parent, resource.RLIMIT_NOFILE),
    "own limits": lambda: resource.prlimit(0, resource.RLIMIT_NOFILE, (64, 64)),
    "own limits by setrlimit": lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (60, 60)),
    "scheduler of the parent": lambda: os.sched_setscheduler(parent, os.SCHED_BATCH, os.sched_param(0)),
    "own scheduler": lambda: os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0)),
    "processors of the parent": lambda: os.sched_setaffinity(parent, os.sched_getaffinity(0)),
    "own processors": lambda: os.sched_setaffinity(0, os.sched_getaffinity(0)),
    "priority of the parent": lambda: call(setpriority, 0, parent, 1),
    "priority of the user": lambda: call(setpriority, 2, 0, 1),
    "own priority": lambda: os.nice(1),
    "disk priority of the parent": lambda: call(ioprio_set, 1, parent, 0x4004),
    "disk priority of the user": lambda: call(ioprio_set, 3, 0, 0x4004),
    "own disk priority": lambda: call(ioprio_set, 1, 0, 0x4004),
    "shared memory": lambda: call(shmget, 0, 4096, 0o1600),
    "shared messages": lambda: call(msgget, 0, 0o1600),
    "shared semaphores": lambda: call(semget, 0, 1, 0o1600),
    "mode": lambda: os.chmod(path, 0o600),
    "mode for everybody": lambda: os.chmod(path, 0o666),
    "mode of the owner": lambda: os.chmod(path, 0o4755),
    "mode by another call": lambda: call(452, -100, path.encode(), 0o666, 0),
    "owner": lambda: os.chown(path, os.getuid(), os.getgid()),
    "owner of a link": lambda: os.lchown(path, os.getuid(), os.getgid()),
    "attribute": lambda: os.setxattr(path, "user.x", b"1"),
    "times": lambda: os.utime(path, (1, 1)),
    "mode of an opened file": lambda: os.fchmod(os.open(inside, os.O_RDONLY), 0o640),
    "times of an opened file": lambda: os.utime(os.open(inside, os.O_RDONLY), (1, 1)),
}
for name, act in attempts.items():
    try: act(); print(name)
    except OSError as error:
        if error.errno != 13: print(name, "failed otherwise:", error)
"#;

/// What a program may do that is confined by this policy, on a thread of its own: the
/// filter is a thread's, and its children's.
fn allowed(policy: impl FnOnce(&Path) -> Policy) -> Vec<String> {
    let directory = tempfile::tempdir().unwrap();
    let (outside, inside) = (directory.path().join("outside"), directory.path().join("in"));
    std::fs::write(&outside, "x").unwrap();
    std::fs::write(&inside, "x").unwrap();
    let policy = policy(&inside);
    let mut python = Command::new("python3");
    python.args(["-c", TRYING]).arg(&outside).arg(&inside);
    let output = std::thread::scope(|scope| {
        let confined = scope.spawn(|| {
            crate::confine(&policy).unwrap();
            python.output().unwrap()
        });
        confined.join().unwrap()
    });
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{told}");
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

/// What programs do to themselves, which is theirs.
const OWN: [&str; 7] = [
    "look at the parent's limits",
    "own limits",
    "own limits by setrlimit",
    "own scheduler",
    "own processors",
    "own priority",
    "own disk priority",
];

fn is_supported() -> bool {
    Policy::default().check(crate::support()).is_ok()
}

#[test]
fn other_processes_and_files_stay_as_they_are_where_nothing_may_be_written() {
    if !is_supported() {
        return;
    }
    let read = |inside: &Path| Policy { read: vec![inside.to_owned()], ..Policy::default() };
    assert_eq!(allowed(read), OWN);
}

#[test]
fn a_program_that_writes_sets_modes_and_times_and_opens_nothing_to_everybody() {
    if !is_supported() {
        return;
    }
    let write = |inside: &Path| Policy { write: vec![inside.to_owned()], ..Policy::default() };
    let files = ["mode", "times", "mode of an opened file", "times of an opened file"];
    assert_eq!(allowed(write), [&OWN[..], &files[..]].concat());
}
