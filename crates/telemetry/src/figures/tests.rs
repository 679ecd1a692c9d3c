use gateway::Surface;
use gateway::record::Ending;
use policy::refusal::RefusalCode;
use tool::clock::Fake;

use super::*;
use crate::fixture::record;

fn figures(collect: Collect) -> (Figures, Arc<Fake>) {
    let clock = Arc::new(Fake::default());
    (Figures::new(Arc::clone(&clock) as _, collect), clock)
}

fn refused() -> Ending {
    Ending::Refused(RefusalCode::RateLimited)
}

#[test]
fn a_reading_has_every_call_that_ended_before() {
    let (figures, clock) = figures(Collect::FromTheStart);
    for _ in 0..500 {
        figures.put(record(&clock, "files", "read", Ending::Answered));
        figures.put(record(&clock, "mail", "send", refused()));
        clock.advance(Duration::from_millis(100));
    }
    let overview = figures.overview();
    assert_eq!((overview.hour.calls, overview.hour.errors, overview.lost), (1000, 500, 0));
    assert_eq!(overview.minutes.len(), 60);
    let last: u64 = overview.minutes[58..].iter().map(|minute| minute.total.calls).sum();
    assert_eq!(last, 1000);
    let shown: Vec<_> = overview.upstreams.iter().map(|one| (&*one.label, one.errors)).collect();
    assert_eq!(shown, [("files", 0), ("mail", 500)]);
    assert_eq!((overview.tools[0].id.as_str(), overview.tools[0].calls), ("files:read#1", 500));
    assert!(0 < overview.hour.tokens_saved() && overview.hour.p95_ms.unwrap() < 4.0);
}

#[test]
fn nothing_is_collected_before_somebody_reads_and_after_nobody_does() {
    let (figures, clock) = figures(Collect::WhileRead(Duration::from_secs(600)));
    assert!(!figures.takes_records() && !figures.takes_events());
    assert_eq!(figures.overview().since, clock.unix_millis());
    assert!(figures.takes_records() && figures.takes_events());
    figures.put(record(&clock, "files", "read", Ending::Answered));
    clock.advance(Duration::from_secs(599));
    assert_eq!(figures.overview().hour.calls, 1);
    clock.advance(Duration::from_secs(600));
    figures.collector.stop_unless_read();
    assert!(!figures.takes_records());
    // Whoever reads again is not shown a gap as if it had been quiet.
    assert_eq!((figures.overview().hour.calls, figures.overview().since), (0, clock.unix_millis()));
}

#[test]
fn thousands_of_odd_names_take_no_more_room_than_the_first() {
    let (figures, clock) = figures(Collect::FromTheStart);
    for n in 0..3_000 {
        let (upstream, tool) = (format!("u{n}\n"), "\u{202e}\0".repeat(1000) + &n.to_string());
        figures.put(record(&clock, &upstream, &tool, Ending::Answered));
    }
    let overview = figures.overview();
    assert_eq!((overview.upstreams.len(), overview.tools.len()), (MAX_UPSTREAMS + 1, SHOWN_TOOLS));
    let other = overview.upstreams.iter().find(|one| one.label == OTHER).unwrap();
    assert_eq!(other.calls, 3_000 - MAX_UPSTREAMS as u64);
    assert!(figures.collector.sums.lock().tools.len() <= MAX_TOOLS + 1);
}

#[test]
fn records_that_come_too_fast_are_counted_as_lost() {
    let (figures, clock) = figures(Collect::FromTheStart);
    // Nobody adds up while this is held.
    let sums = figures.collector.sums.lock();
    for _ in 0..MAX_QUEUED.items + 10 {
        figures.put(record(&clock, "files", "read", Ending::Answered));
    }
    drop(sums);
    let overview = figures.overview();
    assert_eq!(overview.hour.calls + overview.lost, MAX_QUEUED.items as u64 + 10);
    assert_eq!(overview.lost, 10);
}

#[test]
fn what_definitions_cost_comes_with_the_catalog() {
    let (figures, _) = figures(Collect::FromTheStart);
    let definition = |name: &str| Json::encode(&serde_json::json!({"name": name}));
    assert_eq!(figures.overview().definitions, None);
    figures.event(GatewayEvent {
        at: 0,
        session: "".into(),
        id: String::new(),
        took: None,
        error: None,
        what: EventKind::Published {
            generation: 1,
            namespaces: vec![("one".to_owned(), 2), ("other".to_owned(), 1)],
            definitions: ["a", "b", "c"].map(definition).to_vec(),
            surface: Surface::Cash,
            exposed: vec![definition("call")],
            findings: Vec::new(),
        },
    });
    let overview = figures.overview();
    let of = &overview.definitions_by_upstream;
    assert!(0 < of["other"] && of["other"] < of["one"], "{of:?}");
    let definitions = figures.quick_overview().definitions.unwrap();
    assert_eq!(definitions.n_tools, 3);
    assert!(0 < definitions.saved() && definitions.exposed < definitions.direct);
}

#[test]
fn a_session_counts_once_whatever_it_asks() {
    let (figures, clock) = figures(Collect::FromTheStart);
    for session in ["one", "two", "one", "one"] {
        let record = record(&clock, "files", "read", Ending::Answered);
        figures.put(Record { session: session.into(), ..record });
        clock.advance(Duration::from_secs(60));
    }
    let overview = figures.overview();
    assert_eq!(overview.hour.sessions, 2);
    let by_minute: Vec<u64> = overview.minutes.iter().map(|one| one.total.sessions).collect();
    assert_eq!(by_minute[55..], [1, 1, 0, 0, 0]);
}
