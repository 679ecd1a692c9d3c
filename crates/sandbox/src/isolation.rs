//! A process that only computes: no files, no network, no other programs.

use std::collections::BTreeMap;

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetStatus,
    Scope,
};
use rustix::process::{Resource, Rlimit, setrlimit};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, TargetArch, apply_filter};

use crate::policy::Unenforceable;

/// The newest interface that we know; what an older kernel lacks of it is left out.
const NEWEST: ABI = ABI::V6;

/// What a process needs that reads from a socket, computes and writes to it:
/// its descriptors, its memory, its locks, its end.
const COMPUTING: &[i64] = &[
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

/// Leaves this process its open descriptors and so many bytes of memory beside what
/// it has, for good. Everything that the kernel can enforce is in force afterwards, also when
/// an error says what it cannot.
pub fn isolate(memory: u64) -> Result<(), Unenforceable> {
    limit(memory)?;
    let files = without_files();
    let calls = only_computing();
    files.and(calls)
}

fn refused(error: impl std::fmt::Display) -> Unenforceable {
    Unenforceable::Refused(error.to_string())
}

fn limit(memory: u64) -> Result<(), Unenforceable> {
    // An allocator may have reserved far more than it uses.
    let memory = memory.saturating_add(reserved().unwrap_or(1 << 40));
    for (resource, bound) in
        [(Resource::Core, 0), (Resource::Data, memory), (Resource::Fsize, 0), (Resource::Nproc, 0)]
    {
        let limit = Rlimit { current: Some(bound), maximum: Some(bound) };
        setrlimit(resource, limit).map_err(refused)?;
    }
    Ok(())
}

/// Bytes of memory that this process may write to already.
fn reserved() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmData:"))?;
    let kilobytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kilobytes * 1024)
}

fn without_files() -> Result<(), Unenforceable> {
    let rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(NEWEST))
        .and_then(|rules| rules.handle_access(AccessNet::from_all(NEWEST)))
        .and_then(|rules| rules.scope(Scope::from_all(NEWEST)))
        .and_then(Ruleset::create)
        .and_then(landlock::RulesetCreated::restrict_self)
        .map_err(refused)?;
    match rules.ruleset {
        RulesetStatus::NotEnforced => Err(Unenforceable::NoLandlock),
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => Ok(()),
    }
}

fn only_computing() -> Result<(), Unenforceable> {
    let rules: BTreeMap<i64, Vec<seccompiler::SeccompRule>> =
        COMPUTING.iter().map(|number| (*number, Vec::new())).collect();
    let denied = SeccompAction::Errno(libc::EACCES.unsigned_abs());
    let arch: TargetArch =
        std::env::consts::ARCH.try_into().map_err(|_| Unenforceable::NoSeccomp)?;
    let filter = SeccompFilter::new(rules, denied, SeccompAction::Allow, arch).map_err(refused)?;
    let program: BpfProgram = filter.try_into().map_err(refused)?;
    apply_filter(&program).map_err(refused)
}
