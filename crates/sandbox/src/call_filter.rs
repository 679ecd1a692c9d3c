//! The calls to the kernel that a confined program is refused.
//!
//! Landlock bounds which files are opened. What works on other processes, on what the
//! whole machine shares, or on a file without opening it passes Landlock and is refused
//! here, by the number of the call and its plain arguments: seccomp does not see what a
//! pointer leads to.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter,
};

use crate::policy::{Network, Policy, Unenforceable};

/// What no server needs, and what would lead around the rest.
const NEVER: &[i64] = &[
    // Into another process.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    PROCESS_MRELEASE,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_migrate_pages,
    libc::SYS_move_pages,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    // Memory and messages that every process of the user shares, whatever it may open.
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    // Another view of the files.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsmount,
    libc::SYS_mount_setattr,
    libc::SYS_setns,
    libc::SYS_unshare,
    libc::SYS_open_by_handle_at,
    libc::SYS_fanotify_init,
    // The machine.
    libc::SYS_bpf,
    libc::SYS_kexec_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_quotactl,
    libc::SYS_acct,
    libc::SYS_syslog,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    // Sockets and files past this very filter.
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
];

// The same on every architecture; not every library has names for them.
const PROCESS_MRELEASE: i64 = 448;
const FCHMODAT2: i64 = 452;
const SETXATTRAT: i64 = 463;
const REMOVEXATTRAT: i64 = 466;
const FILE_SETATTR: i64 = 469;

/// Changes whose a file is, or what is noted beside it. Landlock has no right for it.
const OWNERS_AND_ATTRIBUTES: &[i64] = &[
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chown,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_lchown,
    libc::SYS_fchownat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    SETXATTRAT,
    REMOVEXATTRAT,
    FILE_SETATTR,
];

/// The same, of a file that was opened, and its times.
const OF_OPENED_AND_TIMES: &[i64] = &[
    libc::SYS_fchown,
    libc::SYS_fsetxattr,
    libc::SYS_fremovexattr,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utime,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utimes,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_futimesat,
    libc::SYS_utimensat,
];

/// Changes who may do what with a file, with the number of the argument that says what.
const MODES: &[(i64, u8)] = &[
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chmod, 1),
    (libc::SYS_fchmod, 1),
    (libc::SYS_fchmodat, 2),
    (FCHMODAT2, 2),
];

/// What no program gives to a file: to run as its owner or group, to be changed by everybody.
const NO_MODE: [u64; 3] = [0o4000, 0o2000, 0o002];

/// Calls of the x32 interface have this bit, and would not be seen without.
#[cfg(target_arch = "x86_64")]
const X32: i64 = 0x4000_0000;

/// Those of [`NEVER`] that have numbers of their own there: `ptrace`, `kexec_load`,
/// `move_pages`, `process_vm_readv` and `process_vm_writev`.
#[cfg(target_arch = "x86_64")]
const ONLY_X32: [i64; 5] = [521, 528, 533, 539, 540];

type Rules = Vec<(i64, Vec<SeccompRule>)>;

/// Refuses this process, and whatever it becomes or starts, these calls for good.
pub(crate) fn apply(policy: &Policy) -> Result<(), Unenforceable> {
    // A call without a rule is refused whatever its arguments.
    let mut rules: Rules = NEVER.iter().map(|number| (*number, Vec::new())).collect();
    rules.push((libc::SYS_socket, sockets(policy.network)?));
    rules.extend(other_processes()?);
    rules.extend(files_by_name(policy)?);
    #[cfg(target_arch = "x86_64")]
    let rules = {
        let own = ONLY_X32.map(|number| (number | X32, Vec::new()));
        let both = rules
            .into_iter()
            .flat_map(|(number, rules)| [(number, rules.clone()), (number | X32, rules)]);
        both.chain(own)
    };
    let rules: BTreeMap<i64, Vec<SeccompRule>> = rules.into_iter().collect();
    let denied = SeccompAction::Errno(libc::EACCES.unsigned_abs());
    let arch = arch().ok_or(Unenforceable::NoSeccomp)?;
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, denied, arch).map_err(refused)?;
    let program: BpfProgram = filter.try_into().map_err(refused)?;
    apply_filter(&program).map_err(refused)
}

/// The architecture, if there are filters for it.
pub(crate) fn arch() -> Option<TargetArch> {
    std::env::consts::ARCH.try_into().ok()
}

fn refused(error: impl std::fmt::Display) -> Unenforceable {
    Unenforceable::Refused(error.to_string())
}

/// A rule that fits where all of these arguments are so.
fn rule(conditions: &[(u8, SeccompCmpOp, u64)]) -> Result<SeccompRule, Unenforceable> {
    let condition = |(argument, compared, to): &(u8, SeccompCmpOp, u64)| {
        SeccompCondition::new(*argument, SeccompCmpArgLen::Dword, compared.clone(), *to)
    };
    let conditions = conditions.iter().map(condition).collect::<Result<Vec<_>, _>>();
    SeccompRule::new(conditions.map_err(refused)?).map_err(refused)
}

/// The sockets that are refused; all, where there is no rule.
fn sockets(network: Network) -> Result<Vec<SeccompRule>, Unenforceable> {
    let family = |family: i32| u64::from(family.unsigned_abs());
    match network {
        // No family at all: a local socket may lead to a daemon that has the network.
        Network::None => Ok(Vec::new()),
        // Sockets that stay in a network namespace are those of the internet and of
        // routes; all others are refused, local ones among them.
        Network::Loopback => {
            let families = [libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];
            Ok(vec![rule(&families.map(|one| (0, SeccompCmpOp::Ne, family(one))))?])
        }
        // A local socket leads to a program that nothing confines, such as a container
        // engine or gatelet itself, and Landlock does not ask about it. A pair of them
        // leads nowhere else, and is another call.
        Network::All => Ok(vec![rule(&[(0, SeccompCmpOp::Eq, family(libc::AF_UNIX))])?]),
    }
}

/// Limits and priorities of other processes, the gate among them: the kernel lets a
/// program change them for every process of its user. A program may change its own, which
/// it names by 0.
fn other_processes() -> Result<Rules, Unenforceable> {
    let of_another = |argument| rule(&[(argument, SeccompCmpOp::Ne, 0)]);
    let mut rules = Vec::new();
    for number in [
        libc::SYS_sched_setscheduler,
        libc::SYS_sched_setparam,
        libc::SYS_sched_setattr,
        libc::SYS_sched_setaffinity,
    ] {
        rules.push((number, vec![of_another(0)?]));
    }
    // Reading them is harmless, and common. A pointer is one of two halves.
    let limit = libc::SYS_prlimit64;
    let sets = SeccompCondition::new(2, SeccompCmpArgLen::Qword, SeccompCmpOp::Ne, 0);
    let is_other = SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, 0);
    let conditions = vec![is_other.map_err(refused)?, sets.map_err(refused)?];
    rules.push((limit, vec![SeccompRule::new(conditions).map_err(refused)?]));
    // Besides one process there are all of a group and of a user.
    for (number, one_process) in
        [(libc::SYS_setpriority, u64::from(libc::PRIO_PROCESS)), (libc::SYS_ioprio_set, 1)]
    {
        let not_one = rule(&[(0, SeccompCmpOp::Ne, one_process)])?;
        rules.push((number, vec![not_one, of_another(1)?]));
    }
    Ok(rules)
}

/// What changes files that the program need not open. Where it may write nothing,
/// nothing of it is needed. Where it may, package managers, version control and copies
/// set modes and times by name, and no filter sees whose; owners and attributes they
/// leave alone, and no mode opens a file to everybody.
fn files_by_name(policy: &Policy) -> Result<Rules, Unenforceable> {
    let mut rules: Rules =
        OWNERS_AND_ATTRIBUTES.iter().map(|number| (*number, Vec::new())).collect();
    if policy.write.is_empty() {
        rules.extend(OF_OPENED_AND_TIMES.iter().map(|number| (*number, Vec::new())));
        rules.extend(MODES.iter().map(|(number, _)| (*number, Vec::new())));
        return Ok(rules);
    }
    for (number, mode) in MODES {
        let bit = |bit: u64| rule(&[(*mode, SeccompCmpOp::MaskedEq(bit), bit)]);
        rules.push((*number, NO_MODE.into_iter().map(bit).collect::<Result<_, _>>()?));
    }
    Ok(rules)
}

#[cfg(test)]
mod tests;
