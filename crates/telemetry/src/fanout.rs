//! A sink that passes records and events to several other sinks.

use std::sync::Arc;

use gateway::record::{GatewayEvent, Record, Sink};

/// Passes records and events to every sink that takes them.
pub struct Fanout(pub Vec<Arc<dyn Sink>>);

impl Sink for Fanout {
    fn put(&self, record: Record) {
        let mut takers = self.0.iter().filter(|sink| sink.takes_records());
        // The last one gets the record itself, so that a single taker costs no copy.
        let Some(mut taker) = takers.next() else { return };
        for next in takers {
            taker.put(record.clone());
            taker = next;
        }
        taker.put(record);
    }

    fn takes_records(&self) -> bool {
        self.0.iter().any(|sink| sink.takes_records())
    }

    fn takes_events(&self) -> bool {
        self.0.iter().any(|sink| sink.takes_events())
    }

    fn event(&self, event: GatewayEvent) {
        for sink in self.0.iter().filter(|sink| sink.takes_events()) {
            sink.event(event.clone());
        }
    }
}
