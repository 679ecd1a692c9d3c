//! Records as lines of JSON in a file, for `gatelet stats` and everything else
//! that reads lines.
//!
//! Written off the path of the call: a queue takes records at once and a
//! thread writes them. What cannot be taken or written is lost; how many were
//! is said in the log and, as soon as it can be, in the file. Never a query, an argument's value or a result: names,
//! sizes, tokens and how it ended.

mod rotation;

use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, SyncSender, channel, sync_channel};
use std::time::{Duration, Instant};

use artifacts::Artifact;
use gateway::record::{Ending, EventKind, GatewayEvent, Record, Sink, tokens};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use tool::{Json, Object, Reply, hex};

pub use rotation::{Rotation, all_files};

use rotation::RotatingFile;

/// How many records may wait; more are dropped rather than waited for.
const QUEUE: usize = 4_096;

/// What the one session on a pipe is called, in every process that has one.
const PIPE: &str = "stdio";

/// How often losses are told of in the log.
const PACE: Duration = Duration::from_secs(60);

/// A file of events.
pub struct Events {
    queue: SyncSender<Task>,
    /// How many did not fit into the queue and are not told of yet.
    dropped: Arc<AtomicU64>,
    /// How many could not be taken or written, since the start.
    lost: Arc<AtomicU64>,
}

/// What the thread that writes has to do.
enum Task {
    Record(Box<Record>),
    Event(Box<GatewayEvent>),
    /// Say so when everything before this is written.
    Tell(Sender<()>),
}

impl Events {
    /// Appends to the file at `path`, which is put aside when it is full.
    pub fn open(path: &Path, rotation: Rotation) -> std::io::Result<Events> {
        Events::into(RotatingFile::open(path, rotation)?)
    }

    fn into(file: impl Write + Send + 'static) -> std::io::Result<Events> {
        let (dropped, lost) = (Arc::<AtomicU64>::default(), Arc::<AtomicU64>::default());
        let (queue, tasks) = sync_channel::<Task>(QUEUE);
        let mut writer = Writer {
            file,
            process: uuid::Uuid::new_v4().simple().to_string(),
            dropped: Arc::clone(&dropped),
            lost_in_all: Arc::clone(&lost),
            lost: 0,
            told: None,
        };
        std::thread::Builder::new().name("events".to_owned()).spawn(move || {
            for task in tasks {
                writer.work(task);
            }
        })?;
        Ok(Events { queue, dropped, lost })
    }

    /// Waits until what was put so far is in the file, but no longer than
    /// `limit`. For the end of a process, which nothing else waits for.
    pub fn flush(&self, limit: Duration) {
        let (done, told) = channel();
        if self.queue.try_send(Task::Tell(done)).is_ok() {
            let _ = told.recv_timeout(limit);
        }
    }

    fn send(&self, task: Task) {
        if self.queue.try_send(task).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How many records could not be taken or written since the start.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}

/// The thread that writes.
struct Writer<F> {
    file: F,
    /// What no session brought about belongs to this process.
    process: String,
    dropped: Arc<AtomicU64>,
    lost_in_all: Arc<AtomicU64>,
    /// How many are missing in the file, which does not say so yet.
    lost: u64,
    /// When the log was last told.
    told: Option<Instant>,
}

impl<F: Write> Writer<F> {
    fn work(&mut self, task: Task) {
        let mut event = match task {
            Task::Record(record) => event(&record),
            Task::Event(event) => event_json(&event),
            Task::Tell(done) => {
                let _ = done.send(());
                return;
            }
        };
        if event["session_id"] == "" || event["session_id"] == PIPE {
            event["session_id"] = self.process.as_str().into();
        }
        self.lost += self.dropped.swap(0, Ordering::Relaxed);
        if self.lost != 0 {
            self.report("more came than could be written");
            let gap = gap(&event, self.lost);
            if self.write(gap).is_ok() {
                self.lost = 0;
            }
        }
        // A full disk must not stop calls; the next line tries again.
        if let Err(error) = self.write(event) {
            self.lost += 1;
            self.lost_in_all.fetch_add(1, Ordering::Relaxed);
            self.report(&error.to_string());
        }
    }

    /// Line by line and each in one piece: another process may append to the
    /// same file.
    fn write(&mut self, mut event: Value) -> std::io::Result<()> {
        event.sort_all_objects();
        self.file.write_all(format!("{event}\n").as_bytes())
    }

    fn report(&mut self, reason: &str) {
        if self.told.is_none_or(|told| PACE <= told.elapsed()) {
            self.told = Some(Instant::now());
            tracing::warn!(lost = self.lost, reason, "records of calls are lost");
        }
    }
}

/// An event that says how many are missing before the `next` one.
fn gap(next: &Value, lost: u64) -> Value {
    json!({
        "version": 1,
        "event": LOST,
        "timestamp": next["timestamp"],
        "success": false,
        "duration_ms": null,
        "session_id": next["session_id"],
        "namespace": "",
        "tool_id": "",
        "attributes": {"count": lost},
    })
}

/// The name of the event that says how many others are missing.
pub const LOST: &str = "records.lost";

impl Sink for Events {
    fn put(&self, record: Record) {
        self.send(Task::Record(Box::new(record)));
    }

    fn takes_events(&self) -> bool {
        true
    }

    fn event(&self, event: GatewayEvent) {
        self.send(Task::Event(Box::new(event)));
    }
}

/// A record as one event.
pub fn event(record: &Record) -> Value {
    let keys = json!(record.arguments.as_ref().map(keys).unwrap_or_default());
    let code = match record.ending == Ending::Cancelled {
        true => Some(json!("CANCELLED")),
        false => record.ending.code().map(|code| json!(code)),
    };
    let (name, success, attributes) = match &record.ending {
        Ending::Answered | Ending::Gated | Ending::Replayed | Ending::ToolError => {
            let success = record.ending != Ending::ToolError;
            let mut attributes = answered(record);
            attributes["status"] = if success { "ok" } else { "error" }.into();
            ("execute.completed", success, attributes)
        }
        Ending::Cached => {
            let mut attributes = answered(record);
            attributes["cache_hit"] = true.into();
            attributes["dispatched"] = false.into();
            attributes["status"] = "ok".into();
            ("execute.cache_hit", true, attributes)
        }
        Ending::Planned => ("execute.dry_run", true, json!({"dispatched": false})),
        Ending::Refused(_) | Ending::Rejected(_) | Ending::Failed(_) | Ending::Cancelled => {
            // What a model reads of a mistake costs it, too.
            let attributes = json!({
                "error_code": code,
                "attempts": record.attempts,
                "compact_tokens": record.tokens_sent(),
            });
            ("execute.failed", false, attributes)
        }
    };
    let mut attributes = attributes;
    attributes["arg_keys"] = keys;
    attributes["surface"] = record.surface.name().into();
    if let Some(script) = &record.script {
        attributes["script_id"] = script.as_ref().into();
    }
    attributes["caller"] = record.caller.subject.as_str().into();
    attributes["client"] = short(&record.client.name).into();
    let about = About { id: &record.callee.id, upstream: &record.callee.upstream };
    framed(name, record.at, success, Some(record.took), &record.session, &about, &attributes)
}

/// What came back, in sizes.
fn answered(record: &Record) -> Value {
    let chars = |json: Option<&Json>| json.map_or(0, |json| json.as_str().chars().count());
    let (raw, sent) = (record.tokens_raw(), record.tokens_sent());
    let parts = record.artifact.as_deref().map(Artifact::parts).unwrap_or_default();
    json!({
        "raw_chars": chars(record.raw.as_ref()),
        "raw_tokens": raw,
        "compact_chars": chars(record.sent.as_ref()),
        "compact_tokens": sent,
        "tokens_saved": raw.saturating_sub(sent),
        "artifact_count": parts.len(),
        "artifact_bytes": parts.iter().map(|part| part.size_bytes).sum::<usize>(),
        "artifact_refs": parts.iter().map(|part| &part.handle).collect::<Vec<_>>(),
        "firewall_triggered": record.ending == Ending::Gated,
        "attempts": record.attempts,
        "cache_hit": false,
    })
}

/// An event as JSON.
pub fn event_json(event: &GatewayEvent) -> Value {
    let size = |sent: &Json| {
        let text = Reply::Result(sent.clone()).tool_result().map(|result| result.text());
        let text = text.filter(|text| !text.is_empty()).unwrap_or_else(|| sent.to_string());
        (text.chars().count(), tokens(&text))
    };
    let ended = |word: &str| match event.error {
        None => format!("{word}.completed"),
        Some(_) => format!("{word}.failed"),
    };
    let (name, mut attributes) = match &event.what {
        EventKind::Browsed { query_chars, path_depth, ids, definitions, sent } => {
            let mut told = json!({"query_chars": query_chars, "path_depth": path_depth});
            if event.error.is_none() {
                told["card_count"] = ids.len().into();
                told["tool_ids"] = json!(ids);
                let cards = size(sent).1;
                told["card_tokens"] = cards.into();
                told["schema_tokens_avoided"] = cost(definitions).saturating_sub(cards).into();
            }
            (ended("browse"), told)
        }
        EventKind::Hydrated { sent } => {
            let told = match event.error {
                None => json!({"schema_tokens": size(sent).1}),
                Some(_) => json!({}),
            };
            (ended("hydrate"), told)
        }
        EventKind::Viewed { handle, selector, sent } => {
            let (chars, count) = size(sent);
            let mut told = json!({"artifact_ref": handle, "selector_type": selector});
            if event.error.is_none() {
                told["result_chars"] = chars.into();
                told["result_tokens"] = count.into();
            }
            (ended("view"), told)
        }
        EventKind::Published {
            generation,
            namespaces,
            definitions,
            surface,
            exposed,
            findings,
        } => {
            let counts: Map<String, Value> =
                namespaces.iter().map(|(label, n)| (label.clone(), (*n).into())).collect();
            let mut told = json!({
                "mode": surface.name(),
                "tool_count": definitions.len(),
                "exposed_tool_count": exposed.len(),
                "registered": definitions.len(),
                "namespace_counts": counts,
                "findings": findings,
                "outcome": "refreshed",
            });
            // The first one of a process; later ones only change something.
            if *generation <= 1 {
                let (full, shown) = (cost(definitions), cost(exposed));
                told["full_schema_tokens"] = full.into();
                told["exposed_schema_tokens"] = shown.into();
                told["schema_tokens_avoided"] = full.saturating_sub(shown).into();
                ("catalog.loaded".to_owned(), told)
            } else {
                ("catalog.refresh.live".to_owned(), told)
            }
        }
    };
    if let Some(code) = event.error {
        attributes["error_code"] = json!(code);
    }
    let upstream = event.id.split(':').next().unwrap_or_default();
    let about = About { id: &event.id, upstream };
    let success = event.error.is_none();
    framed(&name, event.at, success, event.took, &event.session, &about, &attributes)
}

/// What definitions cost a model that reads them all.
fn cost(definitions: &[Json]) -> usize {
    if definitions.is_empty() { 0 } else { tokens(Json::array(definitions).as_str()) }
}

/// What an event is about.
struct About<'a> {
    id: &'a str,
    upstream: &'a str,
}

fn framed(
    name: &str,
    at: u64,
    success: bool,
    took: Option<Duration>,
    session: &str,
    about: &About<'_>,
    attributes: &Value,
) -> Value {
    json!({
        "version": 1,
        "event": name,
        "timestamp": timestamp(at),
        "success": success,
        "duration_ms": took.map(|took| (took.as_secs_f64() * 1e6).round() / 1e3),
        "session_id": shown(session),
        "namespace": about.upstream,
        "tool_id": about.id,
        "attributes": attributes,
    })
}

/// Tells sessions apart without giving away the id, by which whoever knows it may
/// speak in the session. Traces show the same.
fn shown(session: &str) -> String {
    match session {
        "" | PIPE => session.to_owned(),
        session => hex::encode(&Sha256::digest(session.as_bytes())[..8]),
    }
}

/// UTC in ISO 8601, with milliseconds.
fn timestamp(millis: u64) -> String {
    let millis = i64::try_from(millis).unwrap_or(i64::MAX);
    let moment = jiff::Timestamp::from_millisecond(millis).unwrap_or(jiff::Timestamp::MAX);
    format!("{moment:.3}")
}

fn keys(arguments: &Json) -> Vec<String> {
    let object = Object::parse(arguments).unwrap_or_default();
    object.keys().take(KEYS).map(short).collect()
}

/// What somebody else chose to call something, cut where it is too long.
fn short(name: &str) -> String {
    name.chars().take(KEY).collect()
}

/// How many keys of a call's arguments are written down.
const KEYS: usize = 32;
/// How much of each.
const KEY: usize = 80;

#[cfg(test)]
mod tests {
    use std::io::Error;
    use std::sync::{Arc, Condvar, Mutex};
    use std::time::Duration;

    use gateway::Surface;
    use policy::call::Callee;
    use policy::code::Code;
    use tool::Client;

    use super::*;

    fn record(ending: Ending) -> Record {
        Record {
            at: 1,
            surface: Surface::Gateway,
            session: "s".into(),
            client: Arc::new(Client::named("c", "")),
            caller: Arc::default(),
            callee: Arc::new(Callee::new("up:t#12345678", "up", "t")),
            meta_tool: "tool_execute",
            ending,
            arguments: Some(json!({"path": "three"}).into()),
            script: None,
            attempts: 1,
            took: Duration::from_micros(1500),
            stages: Vec::new(),
            counts: Arc::default(),
            trace: None,
            artifact: None,
            raw: Some(Json::encode(&"one two three four five six")),
            sent: Some(Json::encode(&"one")),
        }
    }

    #[test]
    fn an_event_tells_sizes_and_endings_and_no_content() {
        let event = event(&record(Ending::Gated));
        assert_eq!(event["event"], "execute.completed");
        assert_eq!(event["duration_ms"], 1.5);
        assert_eq!(event["timestamp"], "1970-01-01T00:00:00.001Z");
        assert_eq!(event["tool_id"], "up:t#12345678");
        assert_eq!(event["attributes"]["arg_keys"], json!(["path"]));
        let mut many = Object::new();
        many.push("k".repeat(100_000), Json::encode(&1));
        (0..20_000).for_each(|n| many.push(format!("k{n}"), Json::encode(&n)));
        let kept = keys(&many.to_json());
        assert!(kept.len() == KEYS && kept.iter().all(|key| key.chars().count() <= KEY));
        assert_eq!(event["attributes"]["firewall_triggered"], true);
        assert!(event["attributes"]["tokens_saved"].as_u64().is_some_and(|saved| 0 < saved));
        assert!(!event.to_string().contains("three"));
        let failed = super::event(&record(Ending::Refused(policy::refusal::Refused::RateLimited)));
        assert_eq!(
            (failed["success"].as_bool(), &failed["attributes"]["error_code"]),
            (Some(false), &json!("RATE_LIMITED"))
        );
        assert_eq!(failed["attributes"]["compact_tokens"], tokens("\"one\""));
        let rejected = super::event(&record(Ending::Rejected(Code::ArgsInvalid)));
        assert_eq!(rejected["event"], "execute.failed");
        assert_eq!(rejected["attributes"]["error_code"], "ARGS_INVALID");
    }

    fn definition() -> Json {
        let words = "Does what it is told, and says at length what that was and why.";
        Json::encode(&json!({"name": "t", "description": words, "inputSchema": {"type": "object"}}))
    }

    /// What whoever reads the events finds in the first.
    const LOADED: [&str; 7] = [
        "mode",
        "tool_count",
        "exposed_tool_count",
        "namespace_counts",
        "full_schema_tokens",
        "exposed_schema_tokens",
        "schema_tokens_avoided",
    ];

    #[test]
    fn what_is_no_call_is_an_event_too() {
        let note = |error, what| GatewayEvent {
            at: 1,
            session: "s".into(),
            id: String::new(),
            took: Some(Duration::from_millis(2)),
            error,
            what,
        };
        let browsed = |sent: Json| EventKind::Browsed {
            query_chars: 11,
            path_depth: 0,
            ids: vec!["up:t#12345678".to_owned()],
            definitions: vec![definition()],
            sent,
        };
        let Reply::Result(cards) = Reply::text("up:t#12345678 Does.") else { panic!("no result") };
        let event = event_json(&note(None, browsed(cards)));
        assert_eq!(event["event"], "browse.completed");
        assert_eq!(event["attributes"]["card_count"], 1);
        let (cards, whole) = (tokens("up:t#12345678 Does."), cost(&[definition()]));
        assert_eq!(event["attributes"]["card_tokens"], cards);
        assert_eq!(event["attributes"]["schema_tokens_avoided"], whole - cards);
        let failed = event_json(&note(Some(Code::PathInvalid), browsed(Json::null())));
        assert_eq!(failed["event"], "browse.failed");
        assert_eq!(failed["attributes"]["error_code"], "PATH_INVALID");
        let published = |generation| EventKind::Published {
            generation,
            namespaces: vec![("up".to_owned(), 1)],
            definitions: vec![definition(), definition()],
            surface: Surface::Gateway,
            exposed: vec![definition()],
            findings: Vec::new(),
        };
        let loaded = event_json(&note(None, published(1)));
        for key in LOADED {
            assert!(loaded["attributes"].get(key).is_some(), "no {key} in {loaded}");
        }
        assert_eq!(loaded["attributes"]["mode"], "gateway");
        assert_eq!(loaded["attributes"]["tool_count"], 2);
        assert_eq!(loaded["attributes"]["exposed_tool_count"], 1);
        let number = |key: &str| loaded["attributes"][key].as_u64().unwrap();
        assert_eq!(number("exposed_schema_tokens"), whole as u64);
        let saved = number("full_schema_tokens") - number("exposed_schema_tokens");
        assert_eq!(number("schema_tokens_avoided"), saved);
        assert_eq!(loaded["event"], "catalog.loaded");
        assert_eq!(loaded["attributes"]["namespace_counts"], json!({"up": 1}));
        assert!(loaded["attributes"]["full_schema_tokens"].as_u64().is_some_and(|n| 0 < n));
        assert_eq!(event_json(&note(None, published(2)))["event"], "catalog.refresh.live");
    }

    #[test]
    #[cfg(unix)]
    fn nobody_else_reads_the_file_and_no_line_lets_anybody_into_a_session() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("events.jsonl");
        let events = Events::open(&path, Rotation { bytes: 1, keep: None }).unwrap();
        for _ in 0..3 {
            let session = "5c0f7a52-session".into();
            events.put(Record { session, ..record(Ending::Answered) });
        }
        events.flush(Duration::from_secs(60));
        let files: Vec<_> = std::fs::read_dir(directory.path()).unwrap().collect();
        assert!(1 < files.len(), "the rotated ones too");
        let mut ids = std::collections::BTreeSet::new();
        for file in files {
            let file = file.unwrap();
            assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
            for line in std::fs::read_to_string(file.path()).unwrap().lines() {
                assert!(!line.contains("5c0f7a52"), "{line}");
                let line: Value = serde_json::from_str(line).unwrap();
                ids.insert(line["session_id"].as_str().unwrap().to_owned());
            }
        }
        assert_eq!(ids.len(), 1, "one session is still one: {ids:?}");
    }

    #[test]
    fn every_record_becomes_one_line() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("events.jsonl");
        let events = Events::open(&path, Rotation { bytes: 1 << 30, keep: None }).unwrap();
        for _ in 0..3 {
            events.put(Record { session: PIPE.into(), ..record(Ending::Answered) });
        }
        events.put(record(Ending::Answered));
        events.flush(Duration::from_secs(60));
        let text = std::fs::read_to_string(&path).unwrap();
        let sessions: Vec<String> = text
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap()["session_id"].to_string())
            .collect();
        assert_eq!(sessions.len(), 4);
        // Every process on a pipe has its own; the other is what it was.
        assert!(sessions[0] == sessions[1] && sessions[0].len() == 34, "{sessions:?}");
        assert_ne!(sessions[0], sessions[3]);
    }

    /// A file that stands still until it may go on, and is full at first.
    #[derive(Clone, Default)]
    struct Stuck {
        written: Arc<Mutex<Option<Vec<u8>>>>,
        opened: Arc<Condvar>,
    }

    impl Write for Stuck {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            let written = self.written.lock().unwrap();
            let mut written = self.opened.wait_while(written, |it| it.is_none()).unwrap();
            match written.as_mut().unwrap() {
                full if full.is_empty() => {
                    full.push(b'\n');
                    Err(Error::other("no space left"))
                }
                text => text.write(bytes),
            }
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_is_lost_is_counted_in_the_file() {
        let file = Stuck::default();
        let events = Events::into(file.clone()).unwrap();
        // One is at the file or waits, as many wait as fit, and some do not.
        for _ in 0..QUEUE + 10 {
            events.put(record(Ending::Answered));
        }
        *file.written.lock().unwrap() = Some(Vec::new());
        file.opened.notify_all();
        let mut told = Vec::new();
        // Whether the queue has room for a question is for the other thread to say.
        while told.is_empty() {
            events.flush(Duration::from_secs(60));
            let text = String::from_utf8(file.written.lock().unwrap().clone().unwrap()).unwrap();
            let events = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
            told = events.filter(|event| event["event"] == LOST).collect();
        }
        // The first could not be written, and eight or nine had no room.
        let counts: u64 = told.iter().filter_map(|gap| gap["attributes"]["count"].as_u64()).sum();
        assert!((9..=11).contains(&counts), "{told:?}");
    }
}
