//! Records as lines of JSON in a file, for `gatelet stats` and everything else
//! that reads lines.
//!
//! Written off the path of the call: a queue takes records at once and a
//! thread writes them. Never a query, an argument's value or a result: names,
//! sizes, tokens and how it ended.

use std::io::Write;
use std::path::Path;
use std::sync::mpsc::{Sender, SyncSender, channel, sync_channel};
use std::time::Duration;

use gateway::record::{Ending, Record, Sink};
use serde_json::{Value, json};

/// How many records may wait; more are dropped rather than waited for.
const QUEUE: usize = 4_096;

/// A file of events.
pub struct Events {
    queue: SyncSender<Task>,
}

/// What the thread that writes has to do.
enum Task {
    Write(Box<Record>),
    /// Say so when everything before this is written.
    Tell(Sender<()>),
}

impl Events {
    /// Appends to the file at `path`.
    pub fn open(path: &Path) -> std::io::Result<Events> {
        let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path)?;
        let (queue, tasks) = sync_channel::<Task>(QUEUE);
        std::thread::Builder::new().name("events".to_owned()).spawn(move || {
            for task in tasks {
                match task {
                    // Line by line and each in one piece: another process may
                    // append to the same file. A full disk must not stop
                    // calls; the next line tries again.
                    Task::Write(record) => {
                        let _ = file.write_all(format!("{}\n", event(&record)).as_bytes());
                    }
                    Task::Tell(done) => {
                        let _ = done.send(());
                    }
                }
            }
        })?;
        Ok(Events { queue })
    }

    /// Waits until what was put so far is in the file, but no longer than
    /// `patience`. For the end of a process, which nothing else waits for.
    pub fn flush(&self, patience: Duration) {
        let (done, told) = channel();
        if self.queue.try_send(Task::Tell(done)).is_ok() {
            let _ = told.recv_timeout(patience);
        }
    }
}

impl Sink for Events {
    fn put(&self, record: Record) {
        let _ = self.queue.try_send(Task::Write(Box::new(record)));
    }
}

/// A record as one event.
pub fn event(record: &Record) -> Value {
    let (name, success, code) = match &record.ending {
        Ending::Answered | Ending::Gated | Ending::Replayed => ("execute.completed", true, None),
        Ending::ToolError => ("execute.completed", false, None),
        Ending::Cached => ("execute.cache_hit", true, None),
        Ending::Planned => ("execute.dry_run", true, None),
        Ending::Refused(code) => ("execute.failed", false, Some((*code).to_owned())),
        Ending::Failed(_) => ("execute.failed", false, Some("failed".to_owned())),
        Ending::Cancelled => ("execute.failed", false, Some("cancelled".to_owned())),
    };
    let (raw, sent) = (record.tokens_raw(), record.tokens_sent());
    let mut attributes = json!({
        "surface": record.surface.name(),
        "raw_tokens": raw,
        "compact_tokens": sent,
        "tokens_saved": raw.saturating_sub(sent),
        "attempts": record.attempts,
        "cache_hit": record.ending == Ending::Cached,
        "firewall_triggered": record.ending == Ending::Gated,
    });
    if let Some(code) = code {
        attributes["error_code"] = code.into();
    }
    json!({
        "version": 1,
        "event": name,
        "timestamp_ms": record.at,
        "success": success,
        "duration_ms": (record.took.as_secs_f64() * 1e6).round() / 1e3,
        "session_id": &*record.session,
        "namespace": record.upstream,
        "tool_id": record.id,
        "attributes": attributes,
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use gateway::Surface;
    use tool::{Client, Json};

    use super::*;

    fn record(ending: Ending) -> Record {
        Record {
            at: 1,
            surface: Surface::Gateway,
            session: "s".into(),
            client: Arc::new(Client::named("c", "")),
            caller: Arc::default(),
            upstream: "up".to_owned(),
            tool: "t".to_owned(),
            id: "up:t#12345678".to_owned(),
            ending,
            attempts: 1,
            took: Duration::from_micros(1500),
            raw: Some(Json::of(&"one two three four five six")),
            sent: Some(Json::of(&"one")),
        }
    }

    #[test]
    fn an_event_tells_sizes_and_endings_and_no_content() {
        let event = event(&record(Ending::Gated));
        assert_eq!(event["event"], "execute.completed");
        assert_eq!(event["duration_ms"], 1.5);
        assert_eq!(event["attributes"]["firewall_triggered"], true);
        assert!(event["attributes"]["tokens_saved"].as_u64().is_some_and(|saved| 0 < saved));
        assert!(!event.to_string().contains("three"));
        let failed = super::event(&record(Ending::Refused("rate-limited")));
        assert_eq!(
            (failed["success"].as_bool(), &failed["attributes"]["error_code"]),
            (Some(false), &json!("rate-limited"))
        );
    }

    #[test]
    fn every_record_becomes_one_line() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("events.jsonl");
        let events = Events::open(&path).unwrap();
        for _ in 0..3 {
            events.put(record(Ending::Answered));
        }
        events.flush(Duration::from_secs(60));
        assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), 3);
    }
}
