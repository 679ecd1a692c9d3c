//! A record of a call, for tests.

use std::sync::Arc;
use std::time::Duration;

use gateway::Surface;
use gateway::record::{Ending, Record, Stage, StageEntry};
use policy::call::Callee;
use tool::clock::{Clock, Fake};
use tool::{Client, Json};

/// Creates the record of a call that took three milliseconds and whose answer was cut.
pub(crate) fn record(clock: &Fake, upstream: &str, tool: &str, ending: Ending) -> Record {
    let entry = |stage, millis| StageEntry { stage, at: Duration::from_millis(millis) };
    Record {
        at: clock.unix_millis(),
        surface: Surface::Cash,
        session: "s".into(),
        client: Arc::new(Client::named("c", "")),
        caller: Arc::default(),
        callee: Arc::new(Callee::new(&format!("{upstream}:{tool}#1"), upstream, tool)),
        meta_tool: "tool_execute",
        ending,
        arguments: None,
        script: None,
        attempts: 1,
        took: Duration::from_millis(3),
        stages: vec![entry(Stage::Validate, 0), entry(Stage::Upstream, 1), entry(Stage::Gate, 2)],
        artifact: None,
        raw: Some(Json::encode(&"one two three four five six")),
        sent: Some(Json::encode(&"one")),
        counts: Arc::default(),
        trace: None,
    }
}
