//! Adds the stages of a call to its span, as events.

use gateway::record::{Ending, Record, Sink};
use tool::trace::TraceEvent;

use super::tracer::Tracer;

/// Adds the stages of a traced call to its span.
impl Sink for Tracer {
    fn put(&self, record: Record) {
        let Some(trace) = &record.trace else { return };
        trace.add_events(stage_events(&record));
    }
}

/// Returns one event for every stage of a call, and one for how it ended.
fn stage_events(record: &Record) -> Vec<TraceEvent> {
    let last = record.stages.last().map(|entry| entry.stage);
    let mut events: Vec<TraceEvent> = record
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
    events.push(TraceEvent { name: "gatelet.call", offset: record.took, attributes });
    events
}
