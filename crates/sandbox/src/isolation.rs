//! Isolates a process that only computes: no files, no network, no other programs.

use std::collections::BTreeMap;

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetStatus,
    Scope,
};
use rustix::process::{Resource, Rlimit, setrlimit};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, TargetArch, apply_filter};

use crate::policy::Unenforceable;

/// The newest version of Landlock's interface that this code knows; an older kernel
/// enforces what it can.
const NEWEST_ABI: ABI = ABI::V6;

/// The system calls of a process that reads from a socket, computes and writes to it.
const ALLOWED_CALLS: &[i64] = &[
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_readv,
    libc::SYS_writev,
    libc::SYS_recvfrom,
    libc::SYS_sendto,
    libc::SYS_close,
    libc::SYS_brk,
    libc::SYS_mmap,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_mprotect,
    libc::SYS_madvise,
    libc::SYS_futex,
    libc::SYS_sched_yield,
    libc::SYS_clock_gettime,
    libc::SYS_getrandom,
    libc::SYS_gettid,
    libc::SYS_getpid,
    libc::SYS_tgkill,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    libc::SYS_restart_syscall,
    libc::SYS_exit,
    libc::SYS_exit_group,
];

/// Isolates this process for ever: it keeps its open descriptors and may use `memory`
/// more bytes. If this fails, everything that the kernel can enforce is still enforced.
pub fn isolate(memory: u64) -> Result<(), Unenforceable> {
    set_limits(memory)?;
    let files = deny_files_and_network();
    let calls = filter_calls();
    files.and(calls)
}

fn refused(error: impl std::fmt::Display) -> Unenforceable {
    Unenforceable::Refused(error.to_string())
}

fn set_limits(memory: u64) -> Result<(), Unenforceable> {
    // An allocator may have reserved far more than it uses.
    let memory = memory.saturating_add(reserved_bytes().unwrap_or(1 << 40));
    for (resource, bound) in
        [(Resource::Core, 0), (Resource::Data, memory), (Resource::Fsize, 0), (Resource::Nproc, 0)]
    {
        let limit = Rlimit { current: Some(bound), maximum: Some(bound) };
        setrlimit(resource, limit).map_err(refused)?;
    }
    Ok(())
}

/// Returns how many bytes of writable memory this process has already.
fn reserved_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmData:"))?;
    let kilobytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kilobytes * 1024)
}

fn deny_files_and_network() -> Result<(), Unenforceable> {
    let rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(NEWEST_ABI))
        .and_then(|rules| rules.handle_access(AccessNet::from_all(NEWEST_ABI)))
        .and_then(|rules| rules.scope(Scope::from_all(NEWEST_ABI)))
        .and_then(Ruleset::create)
        .and_then(landlock::RulesetCreated::restrict_self)
        .map_err(refused)?;
    match rules.ruleset {
        RulesetStatus::NotEnforced => Err(Unenforceable::NoLandlock),
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => Ok(()),
    }
}

fn filter_calls() -> Result<(), Unenforceable> {
    let rules: BTreeMap<i64, Vec<seccompiler::SeccompRule>> =
        ALLOWED_CALLS.iter().map(|number| (*number, Vec::new())).collect();
    let denied = SeccompAction::Errno(libc::EACCES.unsigned_abs());
    let arch: TargetArch =
        std::env::consts::ARCH.try_into().map_err(|_| Unenforceable::NoSeccomp)?;
    let filter = SeccompFilter::new(rules, denied, SeccompAction::Allow, arch).map_err(refused)?;
    let program: BpfProgram = filter.try_into().map_err(refused)?;
    apply_filter(&program).map_err(refused)
}
