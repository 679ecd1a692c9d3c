//! Remembers which caller and which upstream an MCP task belongs to.
//!
//! A result may be a task that goes on at the upstream; later requests name only
//! the task's id. The upstream chose that id: other upstreams may use the same one, and
//! a caller who guesses it must not learn that the task exists.

use std::collections::VecDeque;

use catalog::{Catalog, Slot};
use parking_lot::Mutex;
use tool::{Context, Json, Reply};

use artifacts::Owner;
use roster::Snapshot;

/// How many tasks are remembered; the oldest are forgotten first.
const MAX_TASKS: usize = 4096;
/// How many tasks of one owner are remembered.
const MAX_TASKS_PER_OWNER: usize = 256;
/// Longer results are not searched for a task, in bytes.
const MAX_TASK_BYTES: usize = 4096;
/// An id of at least this length cannot be guessed, so knowing it is enough for callers
/// who are identified by nothing but a connection.
const UNGUESSABLE_LENGTH: usize = 20;

/// The most recent tasks.
#[derive(Debug, Default)]
pub(crate) struct Tasks(Mutex<VecDeque<Task>>);

/// One task.
#[derive(Debug)]
struct Task {
    owner: Owner,
    id: String,
    started_by: TaskOrigin,
}

/// The tool that started a task, by its upstream's label and its own name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TaskOrigin {
    pub(crate) upstream: String,
    pub(crate) tool: String,
}

impl Tasks {
    /// Remembers the tool and the caller of a task, if the reply is a task.
    pub(crate) fn remember(&self, context: &Context, upstream: &str, tool: &str, reply: &Reply) {
        let Reply::Result(json) = reply else { return };
        if MAX_TASK_BYTES < json.as_bytes().len() || !json.mentions("\"taskId\"") {
            return;
        }
        let Some(id) = task_id(json) else { return };
        let owner = Owner::from_context(context);
        let started_by = TaskOrigin { upstream: upstream.to_owned(), tool: tool.to_owned() };
        let mut tasks = self.0.lock();
        let own = tasks.iter().filter(|task| task.owner == owner).count();
        if MAX_TASKS_PER_OWNER <= own {
            let oldest = tasks.iter().position(|task| task.owner == owner);
            oldest.and_then(|at| tasks.remove(at));
        } else if tasks.len() == MAX_TASKS {
            tasks.pop_front();
        }
        tasks.push_back(Task { owner, id, started_by });
    }

    /// Remembers the task that a call of a function started, if its reply is a task.
    pub(crate) fn remember_call(
        &self,
        snapshot: &Snapshot,
        slot: Slot,
        context: &Context,
        reply: &Reply,
    ) {
        let catalog = &snapshot.catalog;
        self.remember(context, &catalog.source(slot).label, &catalog.tool(slot).name, reply);
    }

    /// Returns the tools that started this owner's tasks with an id: one for each upstream
    /// that uses the id.
    pub(crate) fn origins(&self, owner: &Owner, id: &str) -> Vec<TaskOrigin> {
        let may_access = |task: &&Task| {
            task.owner == *owner || (UNGUESSABLE_LENGTH <= id.len() && owner.opens(&task.owner))
        };
        let tasks = self.0.lock();
        let mut found: Vec<TaskOrigin> = Vec::new();
        for task in tasks.iter().rev().filter(|task| task.id == id).filter(may_access) {
            if !found.iter().any(|one| one.upstream == task.started_by.upstream) {
                found.push(task.started_by.clone());
            }
        }
        found
    }
}

impl TaskOrigin {
    /// Returns the function, if it still exists.
    pub(crate) fn slot(&self, catalog: &Catalog) -> Option<Slot> {
        let is_meant = |slot: &Slot| {
            catalog.tool(*slot).name == self.tool && catalog.source(*slot).label == self.upstream
        };
        catalog.slots().find(is_meant)
    }
}

/// Returns the id of a task, in the form of either protocol revision.
fn task_id(result: &Json) -> Option<String> {
    let inner = result.member("task").and_then(|task| task.member_as("taskId"));
    inner.or_else(|| result.member_as("taskId"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn by(session: &str) -> Context {
        Context { session: session.into(), ..Context::anonymous() }
    }

    fn upstreams(tasks: &Tasks, session: &str, id: &str) -> Vec<String> {
        let origins = tasks.origins(&Owner::from_context(&by(session)), id);
        origins.into_iter().map(|origin| format!("{}/{}", origin.upstream, origin.tool)).collect()
    }

    fn begun(id: &str) -> Reply {
        Reply::Result(json!({"task": {"taskId": id}}).into())
    }

    #[test]
    fn a_task_leads_its_owner_back_to_its_upstream() {
        let tasks = Tasks::default();
        tasks.remember(&by("s"), "one", "f", &begun("a"));
        let flat = json!({"resultType": "task", "taskId": "b"});
        tasks.remember(&by("s"), "two", "g", &Reply::Result(flat.into()));
        tasks.remember(&by("s"), "two", "g", &Reply::text("no taskId here"));
        assert_eq!(upstreams(&tasks, "s", "a"), ["one/f"]);
        assert_eq!(upstreams(&tasks, "s", "b"), ["two/g"]);
        assert!(upstreams(&tasks, "s", "c").is_empty());
        assert!(upstreams(&tasks, "t", "a").is_empty());
        tasks.remember(&by("s"), "two", "g", &begun("a"));
        assert_eq!(upstreams(&tasks, "s", "a"), ["two/g", "one/f"]);
    }

    #[test]
    fn visitors_come_back_with_an_id_that_nobody_guesses() {
        let (tasks, long) = (Tasks::default(), "6f1c2a4e-aaaa-4bbb-8ccc-0123456789ab");
        for id in ["7", long] {
            tasks.remember(&by("visit:1 c"), "up", "f", &begun(id));
        }
        assert!(upstreams(&tasks, "visit:2 c", "7").is_empty());
        assert_eq!(upstreams(&tasks, "visit:2 c", long), ["up/f"]);
        assert!(upstreams(&tasks, "s", long).is_empty());
    }

    #[test]
    fn who_has_many_tasks_makes_nobody_else_forget_theirs() {
        let tasks = Tasks::default();
        tasks.remember(&by("s"), "up", "f", &begun("a"));
        for n in 0..2 * MAX_TASKS {
            tasks.remember(&by("t"), "up", "f", &begun(&n.to_string()));
        }
        assert_eq!(upstreams(&tasks, "s", "a"), ["up/f"]);
        assert!(upstreams(&tasks, "t", "0").is_empty());
    }
}
