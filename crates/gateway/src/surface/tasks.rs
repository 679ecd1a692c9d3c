//! Which caller and which upstream a task belongs to.
//!
//! A result may be a task that goes on at the upstream; later requests name only
//! the task's id. That id is the upstream's: others may use the same, and a caller
//! who guesses one must not learn that it exists.

use std::collections::VecDeque;

use catalog::{Catalog, Slot};
use parking_lot::Mutex;
use tool::{Context, Json, Reply};

use artifacts::Owner;
use roster::Snapshot;

/// How many tasks are remembered; the oldest are forgotten first.
const ROOM: usize = 4096;
/// How many of them may belong to one owner.
const OWN: usize = 256;
/// A result that is a task is short: longer ones are not looked at.
const LONGEST: usize = 4096;
/// An id of this length cannot be guessed, so it is enough for callers who are
/// known by nothing but a connection.
const KEY: usize = 20;

/// The most recent tasks.
#[derive(Debug, Default)]
pub(crate) struct Tasks(Mutex<VecDeque<Task>>);

/// One task.
#[derive(Debug)]
struct Task {
    owner: Owner,
    id: String,
    began: Began,
}

/// What began a task: a tool of an upstream, by its own name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Began {
    pub(crate) upstream: String,
    pub(crate) tool: String,
}

impl Tasks {
    /// Remembers what began a reply that is a task, and for whom.
    pub(crate) fn notice(&self, context: &Context, upstream: &str, tool: &str, reply: &Reply) {
        let Reply::Result(json) = reply else { return };
        if LONGEST < json.as_bytes().len() || !json.mentions("\"taskId\"") {
            return;
        }
        let Some(id) = task(json) else { return };
        let owner = Owner::from_context(context);
        let began = Began { upstream: upstream.to_owned(), tool: tool.to_owned() };
        let mut tasks = self.0.lock();
        let own = tasks.iter().filter(|task| task.owner == owner).count();
        if OWN <= own {
            let oldest = tasks.iter().position(|task| task.owner == owner);
            oldest.and_then(|at| tasks.remove(at));
        } else if tasks.len() == ROOM {
            tasks.pop_front();
        }
        tasks.push_back(Task { owner, id, began });
    }

    /// Remembers a task that a function began.
    pub(crate) fn notice_call(
        &self,
        snapshot: &Snapshot,
        slot: Slot,
        context: &Context,
        reply: &Reply,
    ) {
        let catalog = &snapshot.catalog;
        self.notice(context, &catalog.source(slot).label, &catalog.tool(slot).name, reply);
    }

    /// What began this owner's task; one for each upstream that uses the id.
    pub(crate) fn began(&self, owner: &Owner, id: &str) -> Vec<Began> {
        let opens =
            |task: &&Task| task.owner == *owner || (KEY <= id.len() && owner.opens(&task.owner));
        let tasks = self.0.lock();
        let mut found: Vec<Began> = Vec::new();
        for task in tasks.iter().rev().filter(|task| task.id == id).filter(opens) {
            if !found.iter().any(|one| one.upstream == task.began.upstream) {
                found.push(task.began.clone());
            }
        }
        found
    }
}

impl Began {
    /// The function, if it still exists.
    pub(crate) fn slot(&self, catalog: &Catalog) -> Option<Slot> {
        let is_meant = |slot: &Slot| {
            catalog.tool(*slot).name == self.tool && catalog.source(*slot).label == self.upstream
        };
        catalog.slots().find(is_meant)
    }
}

fn task(result: &Json) -> Option<String> {
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
        let began = tasks.began(&Owner::from_context(&by(session)), id);
        began.into_iter().map(|began| format!("{}/{}", began.upstream, began.tool)).collect()
    }

    fn begun(id: &str) -> Reply {
        Reply::Result(json!({"task": {"taskId": id}}).into())
    }

    #[test]
    fn a_task_leads_its_owner_back_to_its_upstream() {
        let tasks = Tasks::default();
        tasks.notice(&by("s"), "one", "f", &begun("a"));
        let flat = json!({"resultType": "task", "taskId": "b"});
        tasks.notice(&by("s"), "two", "g", &Reply::Result(flat.into()));
        tasks.notice(&by("s"), "two", "g", &Reply::text("no taskId here"));
        assert_eq!(upstreams(&tasks, "s", "a"), ["one/f"]);
        assert_eq!(upstreams(&tasks, "s", "b"), ["two/g"]);
        assert!(upstreams(&tasks, "s", "c").is_empty());
        assert!(upstreams(&tasks, "t", "a").is_empty());
        tasks.notice(&by("s"), "two", "g", &begun("a"));
        assert_eq!(upstreams(&tasks, "s", "a"), ["two/g", "one/f"]);
    }

    #[test]
    fn visitors_come_back_with_an_id_that_nobody_guesses() {
        let (tasks, long) = (Tasks::default(), "6f1c2a4e-aaaa-4bbb-8ccc-0123456789ab");
        for id in ["7", long] {
            tasks.notice(&by("visit:1 c"), "up", "f", &begun(id));
        }
        assert!(upstreams(&tasks, "visit:2 c", "7").is_empty());
        assert_eq!(upstreams(&tasks, "visit:2 c", long), ["up/f"]);
        assert!(upstreams(&tasks, "s", long).is_empty());
    }

    #[test]
    fn who_has_many_tasks_makes_nobody_else_forget_theirs() {
        let tasks = Tasks::default();
        tasks.notice(&by("s"), "up", "f", &begun("a"));
        for n in 0..2 * ROOM {
            tasks.notice(&by("t"), "up", "f", &begun(&n.to_string()));
        }
        assert_eq!(upstreams(&tasks, "s", "a"), ["up/f"]);
        assert!(upstreams(&tasks, "t", "0").is_empty());
    }
}
