//! The stages of a call as events of its span.

use gateway::record::{Ending, Record, Sink};
use tool::trace::TraceEvent;

use super::tracer::Tracer;

/// The stages of a traced call become events of its span.
impl Sink for Tracer {
    fn put(&self, record: Record) {
        let Some(trace) = &record.trace else { return };
        trace.add_events(notes(&record));
    }
}

/// One event for every stage that decided something, and one that says how the
/// call ended.
fn notes(record: &Record) -> Vec<TraceEvent> {
    let last = record.stages.last().map(|entry| entry.stage);
    let mut notes: Vec<TraceEvent> = record
        .stages
        .iter()
        .map(|entry| TraceEvent {
            name: entry.stage.as_str(),
            offset: entry.at,
            attributes: match Some(entry.stage) == last {
                true => vec![("gatelet.decision", record.ending.as_str().to_owned())],
                false => Vec::new(),
            },
        })
        .collect();
    let mut attributes = vec![
        ("gatelet.ending", record.ending.as_str().to_owned()),
        ("gatelet.surface", record.surface.name().to_owned()),
        ("gatelet.tool.id", record.callee.id.clone()),
        ("gatelet.upstream", record.callee.upstream.clone()),
        ("gatelet.attempts", record.attempts.to_string()),
    ];
    if let Ending::Refused(why) = &record.ending {
        attributes.push(("gatelet.refusal", why.as_str().to_owned()));
    }
    if let Some(code) = record.ending.code() {
        attributes.push(("gatelet.error.code", code.as_str()));
    }
    attributes.retain(|(_, value)| !value.is_empty());
    notes.push(TraceEvent { name: "gatelet.call", offset: record.took, attributes });
    notes
}
