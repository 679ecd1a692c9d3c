//! How much memory long messages may take, and giving it back.
//!
//! The machine, or the container, has so much memory; a quarter of it may be taken by
//! long messages of upstreams at any time, and no more than is sensible. What they
//! took is given back soon after they are gone.

use std::path::Path;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use mcp::memory::MemoryBudget;
use tokio::sync::Notify;

/// Never more than this, however much there is.
const MOST: usize = 256 << 20;

/// Never less: one answer of some length has to pass.
const LEAST: usize = 16 << 20;

/// The memory is the machine's, so this is one for the process.
static MEMORY: LazyLock<Memory> = LazyLock::new(|| {
    let freed = Arc::new(Notify::new());
    let told = Arc::clone(&freed);
    let budget = MemoryBudget::new(share(available())).when_freed(move || told.notify_one());
    Memory { budget, freed }
});

struct Memory {
    budget: MemoryBudget,
    freed: Arc<Notify>,
}

/// The memory that the long messages of all upstreams share.
pub(crate) fn for_long_messages() -> MemoryBudget {
    MEMORY.budget.clone()
}

/// How long after a long message is gone its memory is given back. The allocator
/// waits a tenth of a second in case that it is needed again.
const PAUSE: Duration = Duration::from_millis(300);

/// More than the allocator takes from what it has at hand.
const NUDGE: usize = 32 << 20;

/// Gives memory back to the system after long messages, for ever.
pub(crate) async fn give_back() {
    loop {
        MEMORY.freed.notified().await;
        tokio::time::sleep(PAUSE).await;
        // The allocator gives back what was freed long enough ago when it next
        // frees something large, and there may never be anything else. Nothing is
        // written to this memory, so it costs nothing.
        let nudge = || drop(std::hint::black_box(Vec::<u8>::with_capacity(NUDGE)));
        // There may be much to give back.
        let _ = tokio::task::spawn_blocking(nudge).await;
    }
}

/// What long messages may take of so much memory.
fn share(available: Option<u64>) -> usize {
    let quarter = available.and_then(|bytes| usize::try_from(bytes / 4).ok()).unwrap_or(MOST);
    quarter.clamp(LEAST, MOST)
}

/// How much memory there is for this process, where the system says so.
fn available() -> Option<u64> {
    let read = |path: &Path| std::fs::read_to_string(path).ok();
    let machine = read(Path::new("/proc/meminfo")).and_then(|text| total(&text));
    let groups = read(Path::new("/proc/self/cgroup")).unwrap_or_default();
    let limits = limits(&groups);
    let own = limits.iter().filter_map(|path| read(Path::new(path))?.trim().parse().ok());
    own.chain(machine).min()
}

/// The memory of the machine, as `/proc/meminfo` has it.
fn total(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1024)
}

/// The files that may hold a limit for the groups of `/proc/self/cgroup`: of the group
/// itself and of those around it. In a container its group is the root of what is
/// seen.
fn limits(groups: &str) -> Vec<String> {
    let mut files = Vec::new();
    for line in groups.lines() {
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
        assert_eq!(share(None), MOST);
        assert_eq!(share(Some(64 << 30)), MOST);
        assert_eq!(share(Some(200 << 20)), 50 << 20);
        assert_eq!(share(Some(1 << 20)), LEAST);
    }

    #[test]
    fn limits_are_looked_for_in_the_group_and_around_it() {
        assert_eq!(
            limits("0::/a/b\n"),
            [
                "/sys/fs/cgroup/a/b/memory.max",
                "/sys/fs/cgroup/a/memory.max",
                "/sys/fs/cgroup/memory.max"
            ]
        );
        let older = limits("9:cpu:/x\n4:memory:/c\nnonsense\n");
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
        assert_eq!(total("MemFree: 1 kB\nMemTotal:       24683520 kB\n"), Some(24_683_520 * 1024));
        assert_eq!(total("MemTotal: lots\n"), None);
        assert_eq!(total(""), None);
    }
}
