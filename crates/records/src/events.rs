//! Writes records and events as lines of JSON to a file, for `gatelet stats` and
//! other programs.
//!
//! Calls do not wait for it: a queue takes records at once and a thread writes them.
//! Records that do not fit into the queue or cannot be written are lost; the log and,
//! as soon as possible, the file say how many. A line has names, sizes, tokens and
//! how the call ended, and never a query, the value of an argument or a result.

mod rotation;

use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, SyncSender, TrySendError, channel, sync_channel};
use std::time::{Duration, Instant};

use artifacts::Artifact;
use gateway::record::{Ending, EventKind, GatewayEvent, Record, Sink, tokens};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use tool::{Json, Object, Reply, hex};

pub use rotation::{Rotation, all_files};

use rotation::RotatingFile;

/// How many records may wait; more are dropped.
const QUEUE_CAPACITY: usize = 4_096;

/// The id of the one session on stdio, the same in every process.
const STDIO_SESSION: &str = "stdio";

/// How often a full queue is looked at.
const ROOM_INTERVAL: Duration = Duration::from_millis(5);

/// How often the log reports losses.
const REPORT_INTERVAL: Duration = Duration::from_secs(60);

/// A sink that writes records and events to a file.
pub struct Events {
    queue: SyncSender<Task>,
    /// How many did not fit into the queue and are not reported yet.
    dropped: Arc<AtomicU64>,
    /// How many were lost since the start.
    lost: Arc<AtomicU64>,
    /// How many were taken and are not written yet.
    waiting: Arc<AtomicU64>,
}

/// Work for the thread that writes.
enum Task {
    Record(Box<Record>),
    Event(Box<GatewayEvent>),
    /// Answer on this channel; everything before it is written then.
    Flush(Sender<()>),
}

impl Events {
    /// Appends to the file at `path`, which is rotated when it is full.
    pub fn open(path: &Path, rotation: Rotation) -> std::io::Result<Events> {
        Events::writing_to(RotatingFile::open(path, rotation)?)
    }

    fn writing_to(file: impl Write + Send + 'static) -> std::io::Result<Events> {
        let (dropped, lost) = (Arc::<AtomicU64>::default(), Arc::<AtomicU64>::default());
        let waiting = Arc::<AtomicU64>::default();
        let (queue, tasks) = sync_channel::<Task>(QUEUE_CAPACITY);
        let mut writer = Writer {
            file,
            process: uuid::Uuid::new_v4().simple().to_string(),
            dropped: Arc::clone(&dropped),
            total_lost: Arc::clone(&lost),
            waiting: Arc::clone(&waiting),
            lost: 0,
            is_line_cut: false,
            last_report: None,
        };
        std::thread::Builder::new().name("events".to_owned()).spawn(move || {
            for task in tasks {
                writer.write_task(task);
            }
        })?;
        Ok(Events { queue, dropped, lost, waiting })
    }

    /// Blocks until all records so far are in the file, but no longer than `limit`. For
    /// the end of a process: what is not written by then is counted as lost, and the
    /// log says so.
    pub fn flush(&self, limit: Duration) {
        let started = Instant::now();
        let (done, flushed) = channel();
        let mut question = Task::Flush(done);
        // A full queue has room again in a moment.
        while let Err(TrySendError::Full(again)) = self.queue.try_send(question) {
            if limit <= started.elapsed() {
                break;
            }
            question = again;
            std::thread::sleep(ROOM_INTERVAL);
        }
        let left = limit.saturating_sub(started.elapsed());
        let is_flushed = flushed.recv_timeout(left).is_ok();
        let waiting = self.waiting.load(Ordering::Relaxed);
        if !is_flushed && waiting != 0 {
            self.lost.fetch_add(waiting, Ordering::Relaxed);
            tracing::warn!(
                lost = waiting,
                "records of calls are lost: it takes too long to write them"
            );
        }
    }

    fn send(&self, task: Task) {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        if self.queue.try_send(task).is_err() {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            self.dropped.fetch_add(1, Ordering::Relaxed);
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns how many records were lost since the start.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}

/// The state of the thread that writes.
struct Writer<F> {
    file: F,
    /// The id of this process, which stands for the session where there is none.
    process: String,
    dropped: Arc<AtomicU64>,
    total_lost: Arc<AtomicU64>,
    waiting: Arc<AtomicU64>,
    /// How many are missing in the file without a line that says so.
    lost: u64,
    /// Whether the file ends with a part of a line.
    is_line_cut: bool,
    /// When losses were last logged.
    last_report: Option<Instant>,
}

impl<F: Write> Writer<F> {
    fn write_task(&mut self, task: Task) {
        let mut event = match task {
            Task::Record(record) => event(&record),
            Task::Event(event) => event_json(&event),
            Task::Flush(done) => {
                let _ = done.send(());
                return;
            }
        };
        if event["session_id"] == "" || event["session_id"] == STDIO_SESSION {
            event["session_id"] = self.process.as_str().into();
        }
        self.lost += self.dropped.swap(0, Ordering::Relaxed);
        if self.lost != 0 {
            self.report("more came than could be written");
            let lost_event = lost_event(&event, self.lost);
            if self.write(lost_event).is_ok() {
                self.lost = 0;
            }
        }
        // A full disk must not stop calls; the next line tries again.
        if let Err(error) = self.write(event) {
            self.lost += 1;
            self.total_lost.fetch_add(1, Ordering::Relaxed);
            self.report(&error.to_string());
        }
        self.waiting.fetch_sub(1, Ordering::Relaxed);
    }

    /// Writes one line with one write: another process may append to the same file.
    /// After a line of which a full disk took a part, a line end comes first, so that
    /// the next one can be read.
    fn write(&mut self, mut event: Value) -> std::io::Result<()> {
        event.sort_all_objects();
        let start = if self.is_line_cut { "\n" } else { "" };
        let line = format!("{start}{event}\n");
        let mut rest = line.as_bytes();
        while !rest.is_empty() {
            match self.file.write(rest) {
                Ok(0) => return Err(std::io::ErrorKind::WriteZero.into()),
                Ok(n_bytes) => {
                    rest = &rest[n_bytes..];
                    self.is_line_cut = !rest.is_empty();
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn report(&mut self, reason: &str) {
        if self.last_report.is_none_or(|last| REPORT_INTERVAL <= last.elapsed()) {
            self.last_report = Some(Instant::now());
            tracing::warn!(lost = self.lost, reason, "records of calls are lost");
        }
    }
}

/// Creates an event that says how many are missing before the `next` one.
fn lost_event(next: &Value, lost: u64) -> Value {
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

/// Renders the record of a call as an event.
pub fn event(record: &Record) -> Value {
    let keys = json!(record.arguments.as_ref().map(argument_keys).unwrap_or_default());
    let code = match record.ending == Ending::Cancelled {
        true => Some(json!("CANCELLED")),
        false => record.ending.code().map(|code| json!(code)),
    };
    let (name, success, attributes) = match &record.ending {
        Ending::Answered | Ending::Gated | Ending::Replayed | Ending::ToolError => {
            let success = record.ending != Ending::ToolError;
            let mut attributes = result_sizes(record);
            attributes["status"] = if success { "ok" } else { "error" }.into();
            ("execute.completed", success, attributes)
        }
        Ending::Cached => {
            let mut attributes = result_sizes(record);
            attributes["cache_hit"] = true.into();
            attributes["dispatched"] = false.into();
            attributes["status"] = "ok".into();
            ("execute.cache_hit", true, attributes)
        }
        Ending::Planned => ("execute.dry_run", true, json!({"dispatched": false})),
        Ending::Refused(_) | Ending::Rejected(_) | Ending::Failed(_) | Ending::Cancelled => {
            // A model reads error messages, too, so their tokens count.
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
    attributes["client"] = cut_name(&record.client.name).into();
    let subject = Subject { id: &record.callee.id, upstream: &record.callee.upstream };
    event_object(
        name,
        record.at,
        success,
        Some(record.took),
        &record.session,
        &subject,
        &attributes,
    )
}

/// Renders the sizes of the result of a call.
fn result_sizes(record: &Record) -> Value {
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

/// Renders an event that is not a call.
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
            let mut attributes = json!({"query_chars": query_chars, "path_depth": path_depth});
            if event.error.is_none() {
                attributes["card_count"] = ids.len().into();
                attributes["tool_ids"] = json!(ids);
                let cards = size(sent).1;
                attributes["card_tokens"] = cards.into();
                attributes["schema_tokens_avoided"] =
                    definition_tokens(definitions).saturating_sub(cards).into();
            }
            (ended("browse"), attributes)
        }
        EventKind::Hydrated { sent } => {
            let attributes = match event.error {
                None => json!({"schema_tokens": size(sent).1}),
                Some(_) => json!({}),
            };
            (ended("hydrate"), attributes)
        }
        EventKind::Viewed { handle, selector, sent } => {
            let (chars, count) = size(sent);
            let mut attributes = json!({"artifact_ref": handle, "selector_type": selector});
            if event.error.is_none() {
                attributes["result_chars"] = chars.into();
                attributes["result_tokens"] = count.into();
            }
            (ended("view"), attributes)
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
            let mut attributes = json!({
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
                let (full, shown) = (definition_tokens(definitions), definition_tokens(exposed));
                attributes["full_schema_tokens"] = full.into();
                attributes["exposed_schema_tokens"] = shown.into();
                attributes["schema_tokens_avoided"] = full.saturating_sub(shown).into();
                ("catalog.loaded".to_owned(), attributes)
            } else {
                ("catalog.refresh.live".to_owned(), attributes)
            }
        }
    };
    if let Some(code) = event.error {
        attributes["error_code"] = json!(code);
    }
    let upstream = event.id.split(':').next().unwrap_or_default();
    let subject = Subject { id: &event.id, upstream };
    let success = event.error.is_none();
    event_object(&name, event.at, success, event.took, &event.session, &subject, &attributes)
}

/// Counts the tokens of tool definitions.
fn definition_tokens(definitions: &[Json]) -> usize {
    if definitions.is_empty() { 0 } else { tokens(Json::array(definitions).as_str()) }
}

/// The tool that an event is about.
struct Subject<'a> {
    id: &'a str,
    upstream: &'a str,
}

fn event_object(
    name: &str,
    at: u64,
    success: bool,
    took: Option<Duration>,
    session: &str,
    subject: &Subject<'_>,
    attributes: &Value,
) -> Value {
    json!({
        "version": 1,
        "event": name,
        "timestamp": timestamp(at),
        "success": success,
        "duration_ms": took.map(|took| (took.as_secs_f64() * 1e6).round() / 1e3),
        "session_id": session_digest(session),
        "namespace": subject.upstream,
        "tool_id": subject.id,
        "attributes": attributes,
    })
}

/// Hashes the id of a session: somebody who knows the id could use the session. Traces
/// show the same hash.
fn session_digest(session: &str) -> String {
    match session {
        "" | STDIO_SESSION => session.to_owned(),
        session => hex::encode(&Sha256::digest(session.as_bytes())[..8]),
    }
}

/// Formats a time as ISO 8601 in UTC, with milliseconds.
fn timestamp(millis: u64) -> String {
    let millis = i64::try_from(millis).unwrap_or(i64::MAX);
    let moment = jiff::Timestamp::from_millisecond(millis).unwrap_or(jiff::Timestamp::MAX);
    format!("{moment:.3}")
}

fn argument_keys(arguments: &Json) -> Vec<String> {
    let object = Object::parse(arguments).unwrap_or_default();
    object.keys().take(MAX_KEYS).map(cut_name).collect()
}

/// Cuts a name that a caller chose.
fn cut_name(name: &str) -> String {
    name.chars().take(MAX_NAME_CHARS).collect()
}

/// The maximum number of argument keys in an event.
const MAX_KEYS: usize = 32;
/// The maximum length of a name in an event.
const MAX_NAME_CHARS: usize = 80;

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
        let kept = argument_keys(&many.to_json());
        assert!(
            kept.len() == MAX_KEYS && kept.iter().all(|key| key.chars().count() <= MAX_NAME_CHARS)
        );
        assert_eq!(event["attributes"]["firewall_triggered"], true);
        assert!(event["attributes"]["tokens_saved"].as_u64().is_some_and(|saved| 0 < saved));
        assert!(!event.to_string().contains("three"));
        let failed =
            super::event(&record(Ending::Refused(policy::refusal::RefusalCode::RateLimited)));
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
        let (cards, whole) = (tokens("up:t#12345678 Does."), definition_tokens(&[definition()]));
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
            events.put(Record { session: STDIO_SESSION.into(), ..record(Ending::Answered) });
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
        let events = Events::writing_to(file.clone()).unwrap();
        // One is at the file or waits, as many wait as fit, and some do not.
        for _ in 0..QUEUE_CAPACITY + 10 {
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

    /// A disk with room for so many bytes, until somebody makes more.
    #[derive(Clone)]
    struct Full {
        room: Arc<Mutex<usize>>,
        written: Arc<Mutex<Vec<u8>>>,
    }

    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            let mut room = self.room.lock().unwrap();
            let n_bytes = bytes.len().min(*room);
            if n_bytes == 0 {
                return Err(Error::other("no space left"));
            }
            *room -= n_bytes;
            self.written.lock().unwrap().extend_from_slice(&bytes[..n_bytes]);
            Ok(n_bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_line_that_a_full_disk_cut_takes_no_other_with_it() {
        let file = Full { room: Arc::new(Mutex::new(10)), written: Arc::default() };
        let events = Events::writing_to(file.clone()).unwrap();
        events.put(record(Ending::Answered));
        events.flush(Duration::from_secs(60));
        *file.room.lock().unwrap() = usize::MAX;
        events.put(record(Ending::Answered));
        events.flush(Duration::from_secs(60));
        let text = String::from_utf8(file.written.lock().unwrap().clone()).unwrap();
        let lines: Vec<Value> =
            text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let names: Vec<_> = lines.iter().filter_map(|line| line["event"].as_str()).collect();
        assert_eq!(names.len(), 2, "{text}");
        assert_eq!((names[0], events.lost()), (LOST, 1));
    }

    #[test]
    fn what_is_not_written_at_the_end_is_counted() {
        let file = Stuck::default();
        let events = Events::writing_to(file.clone()).unwrap();
        for _ in 0..3 {
            events.put(record(Ending::Answered));
        }
        events.flush(Duration::ZERO);
        assert_eq!(events.lost(), 3);
        *file.written.lock().unwrap() = Some(vec![b'\n']);
        file.opened.notify_all();
    }
}
