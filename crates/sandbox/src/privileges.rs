//! Gives up what the kernel lets root do: a confined program has no capabilities and gets
//! none, whoever runs it and whatever it starts.
//!
//! Landlock restricts paths. It does not restrict what is behind a device that root makes
//! at a path which may be written.

use rustix::io::Errno;
use rustix::thread::{
    CapabilitySet, CapabilitySets, capability_is_in_bounding_set, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_no_new_privs,
};

use crate::policy::Unenforceable;

/// Drops the capabilities of this thread and of whatever it becomes or starts, for ever.
pub(crate) fn drop_all() -> Result<(), Unenforceable> {
    let refused = |error: Errno| Unenforceable::Refused(format!("its privileges: {error}"));
    // From here on, no program that is started has more than the one that starts it.
    set_no_new_privs(true).map_err(refused)?;
    match clear_ambient_capability_set() {
        // An older kernel has no such set.
        Ok(()) | Err(Errno::INVAL) => {}
        Err(error) => return Err(refused(error)),
    }
    empty_bounding_set().map_err(refused)?;
    let none = CapabilitySet::empty();
    let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
    set_capabilities(None, sets).map_err(refused)
}

/// Only who has a certain capability may do this. For all others, what is set above is
/// enough.
fn empty_bounding_set() -> Result<(), Errno> {
    for number in 0..u64::BITS {
        let one = CapabilitySet::from_bits_retain(1 << number);
        match capability_is_in_bounding_set(one) {
            Ok(true) => match remove_capability_from_bounding_set(one) {
                Ok(()) => {}
                Err(Errno::PERM) => return Ok(()),
                Err(error) => return Err(error),
            },
            Ok(false) => {}
            // The kernel knows no more of them.
            Err(Errno::INVAL) => return Ok(()),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use crate::policy::Policy;

    const TRYING: &str = r#"
import os, stat, subprocess, sys
at = lambda name: os.path.join(sys.argv[1], name)
def go(name, act):
    try: act(); print(name)
    except OSError: pass
go("fifo", lambda: os.mkfifo(at("fifo")))
go("file", lambda: open(at("file"), "w").write("x"))
go("character device", lambda: os.mknod(at("null"), stat.S_IFCHR | 0o600, os.makedev(1, 3)))
go("block device", lambda: os.mknod(at("disk"), stat.S_IFBLK | 0o600, os.makedev(7, 0)))
go("device beneath", lambda: os.mknod("zero", stat.S_IFCHR | 0o600, os.makedev(1, 5), dir_fd=os.open(sys.argv[1], os.O_RDONLY)))
go("another user", lambda: os.setuid(os.getuid() + 1))
go("another group", lambda: os.setgroups([os.getgid() + 1]))
status = subprocess.run(["cat", "/proc/self/status"], capture_output=True, text=True).stdout
for line in status.splitlines():
    name, _, value = line.partition(":")
    if name in ("CapInh", "CapPrm", "CapEff", "CapAmb") or (name == "CapBnd" and os.getuid() == 0):
        if int(value, 16): print(line)
    if name == "NoNewPrivs" and value.strip() != "1": print(line)
"#;

    /// As root every line of it goes without the mend; as another user, some of them.
    #[test]
    fn a_confined_program_has_none_of_the_powers_of_root() {
        if Policy::default().check(crate::support()).is_err() {
            return;
        }
        let directory = tempfile::tempdir().unwrap();
        let write = vec![directory.path().to_owned()];
        let policy = Policy { write, ..Policy::default() };
        let output = std::thread::scope(|scope| {
            let confined = scope.spawn(|| {
                crate::confine(&policy).unwrap();
                let mut python = Command::new("python3");
                python.args(["-c", TRYING]).arg(directory.path()).output().unwrap()
            });
            confined.join().unwrap()
        });
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let done = String::from_utf8(output.stdout).unwrap();
        assert_eq!(done.lines().collect::<Vec<_>>(), ["fifo", "file"]);
    }
}
