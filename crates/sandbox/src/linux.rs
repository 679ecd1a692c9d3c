//! Enforces a policy on Linux, by Landlock, seccomp and resource limits.

use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd,
    Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetStatus, Scope,
};
use rustix::process::{Resource, Rlimit, setrlimit};

use crate::policy::{Network, Policy, Unenforceable};
use crate::{Support, call_filter, own_network, privileges};

/// The newest version of Landlock's interface that this code knows; an older kernel
/// enforces what it can.
const NEWEST_ABI: ABI = ABI::V6;

/// Paths that every program may read: libraries, certificates, names, time zones.
const ALWAYS_READABLE: &[&str] = &[
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/opt",
    "/nix/store",
    "/gnu/store",
    "/run/current-system",
    "/snap",
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/gai.conf",
    "/etc/group",
    "/etc/host.conf",
    "/etc/hosts",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/ld.so.preload",
    "/etc/localtime",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/os-release",
    "/etc/passwd",
    "/etc/pki",
    "/etc/protocols",
    "/etc/python3",
    "/etc/resolv.conf",
    "/etc/services",
    "/etc/ssl",
    "/etc/timezone",
    "/proc/self",
    "/proc/cpuinfo",
    "/proc/loadavg",
    "/proc/meminfo",
    "/proc/stat",
    "/proc/version",
    "/proc/filesystems",
    "/proc/sys/vm/overcommit_memory",
    "/sys/devices/system/cpu",
    "/sys/fs/cgroup",
    "/run/systemd/resolve",
];

/// Files that every program may write to. The terminal is not among them: a program
/// that may write to it can also inject input.
const ALWAYS_WRITABLE: &[&str] =
    &["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/proc/self"];

/// Returns which features of a sandbox this kernel has.
pub fn support() -> Support {
    let versions =
        [(ABI::V1, 1), (ABI::V2, 2), (ABI::V3, 3), (ABI::V4, 4), (ABI::V5, 5), (ABI::V6, 6)];
    let has = |abi: ABI| {
        let asked = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
        asked.handle_access(AccessFs::from_all(abi)).and_then(Ruleset::create).is_ok()
    };
    Support {
        landlock: versions.into_iter().take_while(|(abi, _)| has(*abi)).last().map(|(_, n)| n),
        seccomp: Path::new("/proc/sys/kernel/seccomp").exists() && call_filter::arch().is_some(),
        namespaces: own_network::is_allowed(),
    }
}

/// Confines this process, and whatever it becomes or starts, for ever.
pub fn confine(policy: &Policy) -> Result<(), Unenforceable> {
    policy.check(support())?;
    match policy.network {
        Network::Loopback => own_network::enter(&policy.ports)?,
        Network::None | Network::All => {}
    }
    set_limits(policy)?;
    privileges::drop_all()?;
    restrict_files(policy)?;
    call_filter::apply(policy)
}

fn refused(error: impl std::fmt::Display) -> Unenforceable {
    Unenforceable::Refused(error.to_string())
}

fn set_limits(policy: &Policy) -> Result<(), Unenforceable> {
    let set = |resource, bound: u64| {
        let limit = Rlimit { current: Some(bound), maximum: Some(bound) };
        setrlimit(resource, limit).map_err(refused)
    };
    set(Resource::Core, 0)?;
    if let Some(memory) = policy.memory {
        // Address space would be the wrong measure: runtimes reserve far more
        // than they use.
        set(Resource::Data, memory)?;
    }
    match policy.files {
        Some(files) => set(Resource::Nofile, files),
        None => Ok(()),
    }
}

fn restrict_files(policy: &Policy) -> Result<(), Unenforceable> {
    let ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(NEWEST_ABI))
        .map_err(refused)?
        .scope(Scope::from_all(NEWEST_ABI))
        .map_err(refused)?;
    let ruleset = match policy.network {
        Network::None => ruleset.handle_access(AccessNet::from_all(NEWEST_ABI)).map_err(refused)?,
        Network::Loopback | Network::All => ruleset,
    };
    let mut rules = ruleset.create().map_err(refused)?;
    let existing = |paths: &[&str]| {
        let paths = paths.iter().map(PathBuf::from).filter(|path| path.exists());
        paths.collect::<Vec<_>>()
    };
    rules = allow(
        rules,
        &existing(ALWAYS_READABLE),
        AccessFs::from_read(NEWEST_ABI),
        Missing::Skipped,
    )?;
    let device = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::IoctlDev;
    rules = allow(rules, &existing(ALWAYS_WRITABLE), device, Missing::Skipped)?;
    rules = allow(rules, &policy.read, AccessFs::from_read(NEWEST_ABI), Missing::Error)?;
    // A device leads past all paths.
    let write = AccessFs::from_all(NEWEST_ABI) & !(AccessFs::MakeChar | AccessFs::MakeBlock);
    rules = allow(rules, &policy.write, write, Missing::Error)?;
    let status = rules.restrict_self().map_err(refused)?;
    match status.ruleset {
        RulesetStatus::NotEnforced => Err(Unenforceable::NoLandlock),
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => Ok(()),
    }
}

/// What to do with a path that does not exist.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Missing {
    Error,
    Skipped,
}

fn allow(
    mut rules: RulesetCreated,
    paths: &[PathBuf],
    access: BitFlags<AccessFs>,
    missing: Missing,
) -> Result<RulesetCreated, Unenforceable> {
    for path in paths {
        let opened = match PathFd::new(path) {
            Ok(opened) => opened,
            Err(_) if missing == Missing::Skipped => continue,
            Err(error) => {
                return Err(Unenforceable::Path { path: path.clone(), why: error.to_string() });
            }
        };
        // Landlock refuses rights on files that only directories have.
        let access = if path.is_dir() { access } else { access & AccessFs::from_file(NEWEST_ABI) };
        rules = rules.add_rule(PathBeneath::new(opened, access)).map_err(refused)?;
    }
    Ok(rules)
}
