//! How much memory long messages may take together, and giving it back to the system.
//!
//! The messages of upstreams may take a quarter of the memory of the machine or container,
//! within bounds, and the requests and answers of clients as much again each. Memory that
//! they took is given back soon after they are gone.

use std::path::Path;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use mcp::memory::MemoryBudget;
use mcp::serve::http::{AnswerMemory, FairMemory};
use tokio::sync::Notify;

/// The largest budget, however much memory there is.
const MAX_BUDGET: usize = 256 << 20;

/// The smallest budget: one long answer has to pass.
const MIN_BUDGET: usize = 16 << 20;

/// One budget for the process, because its memory is one.
static MEMORY: LazyLock<LongMessageMemory> = LazyLock::new(|| {
    let freed = Arc::new(Notify::new());
    let notify = || {
        let freed = Arc::clone(&freed);
        move || freed.notify_one()
    };
    let n_bytes = budget_bytes(available());
    let budget = MemoryBudget::new(n_bytes).when_freed(notify());
    let requests = FairMemory::new(n_bytes).when_freed(notify());
    let answers = AnswerMemory::new(FairMemory::new(n_bytes).when_freed(notify()));
    LongMessageMemory { budget, requests, answers, freed }
});

struct LongMessageMemory {
    budget: MemoryBudget,
    requests: FairMemory,
    answers: AnswerMemory,
    /// Notified whenever a long message is gone.
    freed: Arc<Notify>,
}

/// The memory that the long messages of all upstreams share.
pub(crate) fn for_long_messages() -> MemoryBudget {
    MEMORY.budget.clone()
}

/// The memory that the long requests of all clients share.
pub(crate) fn for_long_requests() -> FairMemory {
    MEMORY.requests.clone()
}

/// The memory that the long answers to all clients share.
pub(crate) fn for_long_answers() -> AnswerMemory {
    MEMORY.answers.clone()
}

/// How long after a long message is gone its memory is given back. The allocator itself
/// waits a tenth of a second.
const GIVE_BACK_AFTER: Duration = Duration::from_millis(300);

/// An allocation so large that the allocator does not serve it from its caches.
const NUDGE_BYTES: usize = 32 << 20;

/// Gives memory back to the system after long messages, for ever.
pub(crate) async fn give_back() {
    loop {
        MEMORY.freed.notified().await;
        tokio::time::sleep(GIVE_BACK_AFTER).await;
        // The allocator gives old memory back only when it frees something large, so
        // something large is allocated and freed. It is never written to, so it costs
        // nothing.
        let nudge = || drop(std::hint::black_box(Vec::<u8>::with_capacity(NUDGE_BYTES)));
        // Giving back much memory takes a while.
        let _ = tokio::task::spawn_blocking(nudge).await;
    }
}

/// The budget for a process that has `available` bytes of memory.
fn budget_bytes(available: Option<u64>) -> usize {
    let quarter = available.and_then(|bytes| usize::try_from(bytes / 4).ok());
    quarter.unwrap_or(MAX_BUDGET).clamp(MIN_BUDGET, MAX_BUDGET)
}

/// The bytes of memory that this process may use, where the system says so.
fn available() -> Option<u64> {
    let read = |path: &Path| std::fs::read_to_string(path).ok();
    let machine = read(Path::new("/proc/meminfo")).and_then(|text| parse_total(&text));
    let cgroups = read(Path::new("/proc/self/cgroup")).unwrap_or_default();
    let files = limit_files(&cgroups);
    let limits = files.iter().filter_map(|path| read(Path::new(path))?.trim().parse().ok());
    limits.chain(machine).min()
}

/// The bytes of memory of the machine, from the text of `/proc/meminfo`.
fn parse_total(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1024)
}

/// The files that may hold a memory limit for this process, from the text of
/// `/proc/self/cgroup`: those of its group and of all groups around it.
fn limit_files(cgroups: &str) -> Vec<String> {
    let mut files = Vec::new();
    for line in cgroups.lines() {
        let mut parts = line.splitn(3, ':');
        let (_, kinds, path) = (parts.next(), parts.next(), parts.next());
        let (Some(kinds), Some(path)) = (kinds, path) else { continue };
        let (root, file) = match kinds {
            "" => ("/sys/fs/cgroup", "memory.max"),
            kinds if kinds.split(',').any(|kind| kind == "memory") => {
                ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
            }
            _ => continue,
        };
        for group in Path::new(path.trim()).ancestors() {
            let group = group.to_string_lossy();
            files.push(format!("{root}{}/{file}", group.trim_end_matches('/')));
        }
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_messages_have_a_quarter_of_what_there_is_within_bounds() {
        assert_eq!(budget_bytes(None), MAX_BUDGET);
        assert_eq!(budget_bytes(Some(64 << 30)), MAX_BUDGET);
        assert_eq!(budget_bytes(Some(200 << 20)), 50 << 20);
        assert_eq!(budget_bytes(Some(1 << 20)), MIN_BUDGET);
    }

    #[test]
    fn limits_are_looked_for_in_the_group_and_around_it() {
        assert_eq!(
            limit_files("0::/a/b\n"),
            [
                "/sys/fs/cgroup/a/b/memory.max",
                "/sys/fs/cgroup/a/memory.max",
                "/sys/fs/cgroup/memory.max"
            ]
        );
        let older = limit_files("9:cpu:/x\n4:memory:/c\nnonsense\n");
        assert_eq!(
            older,
            [
                "/sys/fs/cgroup/memory/c/memory.limit_in_bytes",
                "/sys/fs/cgroup/memory/memory.limit_in_bytes"
            ]
        );
    }

    #[test]
    fn the_memory_of_the_machine_is_read() {
        let meminfo = "MemFree: 1 kB\nMemTotal:       24683520 kB\n";
        assert_eq!(parse_total(meminfo), Some(24_683_520 * 1024));
        assert_eq!(parse_total("MemTotal: lots\n"), None);
        assert_eq!(parse_total(""), None);
    }
}
