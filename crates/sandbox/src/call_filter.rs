//! The seccomp filter: system calls that a confined program is refused.
//!
//! Landlock restricts which files are opened. It does not restrict calls that affect
//! other processes, the whole machine, or a file without opening it. Those are refused
//! here, by the number of the call and its plain arguments: seccomp cannot follow
//! pointers.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter,
};

use crate::policy::{Network, Policy, Unenforceable};

/// Calls that no server needs, or that would bypass the sandbox.
const ALWAYS_REFUSED: &[i64] = &[
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

// These numbers are the same on every architecture; `libc` does not always have them.
const PROCESS_MRELEASE: i64 = 448;
const FCHMODAT2: i64 = 452;
const SETXATTRAT: i64 = 463;
const REMOVEXATTRAT: i64 = 466;
const FILE_SETATTR: i64 = 469;

/// Calls that change the owner or the extended attributes of a file by its name, which
/// Landlock does not restrict.
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

/// Calls that change the owner or attributes of an open file, or the times of any file.
const OPEN_FILE_ATTRIBUTES_AND_TIMES: &[i64] = &[
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

/// Calls that change the mode of a file, each with the index of its mode argument.
const MODE_CALLS: &[(i64, u8)] = &[
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chmod, 1),
    (libc::SYS_fchmod, 1),
    (libc::SYS_fchmodat, 2),
    (FCHMODAT2, 2),
];

/// Mode bits that no program may set: setuid, setgid, writable by everybody.
const REFUSED_MODE_BITS: [u64; 3] = [0o4000, 0o2000, 0o002];

/// Calls that make a file of any type, each with the index of its mode argument.
const NODE_CALLS: &[(i64, u8)] = &[
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mknod, 1),
    (libc::SYS_mknodat, 2),
];

/// The types of file that no program may make: devices.
const REFUSED_TYPES: [u32; 2] = [libc::S_IFCHR, libc::S_IFBLK];

/// Calls of the x32 interface have this bit; a filter without it would miss them.
#[cfg(target_arch = "x86_64")]
const X32_BIT: i64 = 0x4000_0000;

/// Those of [`ALWAYS_REFUSED`] that have other numbers in x32: `ptrace`, `kexec_load`,
/// `move_pages`, `process_vm_readv` and `process_vm_writev`.
#[cfg(target_arch = "x86_64")]
const X32_NUMBERS: [i64; 5] = [521, 528, 533, 539, 540];

type Rules = Vec<(i64, Vec<SeccompRule>)>;

/// Applies the filter to this process and whatever it becomes or starts, for ever.
pub(crate) fn apply(policy: &Policy) -> Result<(), Unenforceable> {
    // A call without a rule is refused whatever its arguments.
    let mut rules: Rules = ALWAYS_REFUSED.iter().map(|number| (*number, Vec::new())).collect();
    rules.push((libc::SYS_socket, socket_rules(policy.network)?));
    rules.extend(other_process_rules()?);
    rules.extend(file_attribute_rules(policy)?);
    rules.extend(device_rules()?);
    #[cfg(target_arch = "x86_64")]
    let rules = {
        let own = X32_NUMBERS.map(|number| (number | X32_BIT, Vec::new()));
        let both = rules
            .into_iter()
            .flat_map(|(number, rules)| [(number, rules.clone()), (number | X32_BIT, rules)]);
        both.chain(own)
    };
    let rules: BTreeMap<i64, Vec<SeccompRule>> = rules.into_iter().collect();
    let denied = SeccompAction::Errno(libc::EACCES.unsigned_abs());
    let arch = arch().ok_or(Unenforceable::NoSeccomp)?;
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, denied, arch).map_err(refused)?;
    let program: BpfProgram = filter.try_into().map_err(refused)?;
    apply_filter(&program).map_err(refused)
}

/// Returns the architecture of this machine, if filters support it.
pub(crate) fn arch() -> Option<TargetArch> {
    std::env::consts::ARCH.try_into().ok()
}

fn refused(error: impl std::fmt::Display) -> Unenforceable {
    Unenforceable::Refused(error.to_string())
}

/// Creates a rule that matches if all conditions on arguments hold. A condition is the
/// index of an argument, a comparison, and the value to compare with.
fn rule(conditions: &[(u8, SeccompCmpOp, u64)]) -> Result<SeccompRule, Unenforceable> {
    let condition = |(argument, compared, to): &(u8, SeccompCmpOp, u64)| {
        SeccompCondition::new(*argument, SeccompCmpArgLen::Dword, compared.clone(), *to)
    };
    let conditions = conditions.iter().map(condition).collect::<Result<Vec<_>, _>>();
    SeccompRule::new(conditions.map_err(refused)?).map_err(refused)
}

/// Returns the rules for sockets that are refused; no rule means all.
fn socket_rules(network: Network) -> Result<Vec<SeccompRule>, Unenforceable> {
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

/// Returns the rules against changing limits and priorities of other processes, gatelet
/// among them, which the kernel allows for every process of the same user. A program
/// may change its own, which it names by 0.
fn other_process_rules() -> Result<Rules, Unenforceable> {
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
    // They can also name all processes of a group or of a user.
    for (number, one_process) in
        [(libc::SYS_setpriority, u64::from(libc::PRIO_PROCESS)), (libc::SYS_ioprio_set, 1)]
    {
        let not_one = rule(&[(0, SeccompCmpOp::Ne, one_process)])?;
        rules.push((number, vec![not_one, of_another(1)?]));
    }
    Ok(rules)
}

/// Returns the rules against making devices, which lead past all paths.
fn device_rules() -> Result<Rules, Unenforceable> {
    let of_type = |mode: u8, file_type: u32| {
        let is_type = SeccompCmpOp::MaskedEq(u64::from(libc::S_IFMT));
        rule(&[(mode, is_type, u64::from(file_type))])
    };
    let calls = NODE_CALLS.iter().map(|(number, mode)| {
        let refused = REFUSED_TYPES.into_iter().map(|file_type| of_type(*mode, file_type));
        Ok((*number, refused.collect::<Result<_, _>>()?))
    });
    calls.collect()
}

/// Returns the rules for calls that change files without opening them. A program that
/// may write nothing needs none of them. For others, package managers, version control
/// and copying need modes and times, and a filter does not see of which file; owners,
/// attributes and dangerous modes stay refused.
fn file_attribute_rules(policy: &Policy) -> Result<Rules, Unenforceable> {
    let mut rules: Rules =
        OWNERS_AND_ATTRIBUTES.iter().map(|number| (*number, Vec::new())).collect();
    if policy.write.is_empty() {
        rules.extend(OPEN_FILE_ATTRIBUTES_AND_TIMES.iter().map(|number| (*number, Vec::new())));
        rules.extend(MODE_CALLS.iter().map(|(number, _)| (*number, Vec::new())));
        return Ok(rules);
    }
    for (number, mode) in MODE_CALLS {
        let bit = |bit: u64| rule(&[(*mode, SeccompCmpOp::MaskedEq(bit), bit)]);
        rules.push((*number, REFUSED_MODE_BITS.into_iter().map(bit).collect::<Result<_, _>>()?));
    }
    Ok(rules)
}

#[cfg(test)]
mod tests;
