//! Which upstream a task belongs to.
//!
//! A result may be a task that goes on elsewhere; what the client asks about
//! it later names only the task.

use std::collections::VecDeque;
use std::sync::Mutex;

use tool::{Json, Reply};

/// How many tasks are remembered; the oldest are forgotten first.
const ROOM: usize = 4096;
/// A result that is a task is short: longer ones are not looked at.
const LONGEST: usize = 4096;

/// The tasks of the last while.
#[derive(Debug, Default)]
pub(crate) struct Tasks(Mutex<VecDeque<(String, String)>>);

impl Tasks {
    /// Remembers the upstream of a reply that is a task.
    pub(crate) fn notice(&self, upstream: &str, reply: &Reply) {
        let Reply::Result(json) = reply else { return };
        if LONGEST < json.as_bytes().len() || !json.mentions("\"taskId\"") {
            return;
        }
        let Some(id) = task(json) else { return };
        let mut tasks = self.0.lock().expect("nothing panics while it holds this");
        if tasks.len() == ROOM {
            tasks.pop_front();
        }
        tasks.push_back((id, upstream.to_owned()));
    }

    pub(crate) fn upstream(&self, task: &str) -> Option<String> {
        let tasks = self.0.lock().expect("nothing panics while it holds this");
        let found = tasks.iter().rev().find(|(id, _)| id == task);
        found.map(|(_, upstream)| upstream.clone())
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

    #[test]
    fn a_task_leads_back_to_its_upstream() {
        let tasks = Tasks::default();
        tasks.notice("one", &Reply::Result(json!({"task": {"taskId": "a"}}).into()));
        tasks.notice("two", &Reply::Result(json!({"resultType": "task", "taskId": "b"}).into()));
        tasks.notice("two", &Reply::text("no taskId here"));
        assert_eq!(tasks.upstream("a").as_deref(), Some("one"));
        assert_eq!(tasks.upstream("b").as_deref(), Some("two"));
        assert_eq!(tasks.upstream("c"), None);
    }
}
