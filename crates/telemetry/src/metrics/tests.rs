use gateway::record::{Ending, EventKind};
use policy::refusal::RefusalCode;
use tool::Json;
use tool::clock::Fake;

use super::*;
use crate::fixture::record;

fn metrics(n_tools: usize) -> Metrics {
    Metrics::new(&Config { n_tools, version: "1.2.3".to_owned() })
}

fn readings() -> Readings {
    Readings {
        upstreams: vec![UpstreamReading {
            label: "files".to_owned(),
            state: UpstreamState::Up,
            tools: 11,
            restarts: 2,
            unanswered: 0,
            waiting: 3,
        }],
        sessions: 4,
        artifacts: Some((5, 600)),
        approvals_waiting: Some(2),
        process: Some(ProcessReading { processor_seconds: 1.5, ..ProcessReading::default() }),
        ..Readings::default()
    }
}

/// The value of a series, as it is written.
#[track_caller]
fn value(text: &str, series: &str) -> String {
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("{series} ")));
    line.unwrap_or_else(|| panic!("no {series} in {text}")).to_owned()
}

#[test]
fn calls_are_counted_by_upstream_tool_and_ending() {
    let (mut metrics, clock) = (metrics(10), Fake::default());
    metrics.add(&record(&clock, "files", "read", Ending::Answered));
    metrics.add(&record(&clock, "files", "read", Ending::Answered));
    metrics.add(&record(&clock, "files", "read", Ending::Refused(RefusalCode::RateLimited)));
    let text = metrics.text(&readings(), None, 7);
    let calls = |ending: &str| {
        let of = r#"upstream="files",tool="read",method="tools/call""#;
        value(&text, &format!("gatelet_calls_total{{{of},ending=\"{ending}\"}}"))
    };
    assert_eq!((calls("answered").as_str(), calls("refused").as_str()), ("2", "1"));
    let check = |series: &str, expected: &str| assert_eq!(value(&text, series), expected);
    check(r#"gatelet_call_errors_total{upstream="files",code="RATE_LIMITED"}"#, "1");
    check(r#"gatelet_quota_refusals_total{upstream="files"}"#, "1");
    check(r#"gatelet_call_duration_seconds_count{upstream="files",tool="read"}"#, "3");
    check(r#"gatelet_call_duration_seconds_bucket{le="0.005",upstream="files",tool="read"}"#, "3");
    check(r#"gatelet_upstream_state{upstream="files",state="up"}"#, "1");
    check(r#"gatelet_upstream_state{upstream="files",state="down"}"#, "0");
    check(r#"gatelet_upstream_restarts_total{upstream="files"}"#, "2");
    check(r#"gatelet_records_lost_total{by="figures"}"#, "7");
    check("gatelet_sessions", "4");
    check("gatelet_artifact_bytes", "600");
    check("gatelet_approvals_waiting{}", "2");
    check("process_cpu_seconds_total", "1.5");
    check(r#"gatelet_build_info{version="1.2.3"}"#, "1");
    assert!(text.ends_with("# EOF\n"), "{text}");
}

#[test]
fn searches_and_their_time_are_counted() {
    let mut metrics = metrics(10);
    metrics.add_event(&GatewayEvent {
        at: 0,
        session: "".into(),
        id: String::new(),
        took: Some(std::time::Duration::from_millis(2)),
        error: None,
        what: EventKind::Browsed {
            query_chars: 1,
            path_depth: 0,
            ids: Vec::new(),
            definitions: Vec::new(),
            sent: Json::empty_object(),
        },
    });
    let text = metrics.text(&readings(), None, 0);
    assert_eq!(value(&text, r#"gatelet_searches_total{ending="answered"}"#), "1");
    assert_eq!(value(&text, "gatelet_search_duration_seconds_count"), "1");
}

#[test]
fn thousands_of_odd_names_make_no_more_series_than_allowed() {
    let (mut metrics, clock) = (metrics(20), Fake::default());
    for n in 0..3_000 {
        let name = format!("tool \"{n}\"\n\\}} {}", "\u{202e}x".repeat(200));
        metrics.add(&record(&clock, "hostile", &name, Ending::Answered));
        let uri = format!("file:///{n}");
        let read = Record {
            meta_tool: "resource_read",
            ..record(&clock, "hostile", &uri, Ending::Answered)
        };
        metrics.add(&read);
    }
    let text = metrics.text(&readings(), None, 0);
    let series = text.lines().filter(|line| line.starts_with("gatelet_calls_total")).count();
    assert_eq!(series, 20 + 2, "20 tools, the others, and all resources");
    assert!(text.len() < 200_000, "{} bytes", text.len());
    let other = r#"upstream="hostile",tool="(other)",method="tools/call",ending="answered""#;
    assert_eq!(value(&text, &format!("gatelet_calls_total{{{other}}}")), "2980");
    // Quotes and backslashes are escaped, and no name breaks a line.
    assert!(text.contains(r#"tool="tool \"0\"\\} "#), "{}", &text[..2_000]);
}

#[test]
fn an_upstream_that_is_gone_is_not_told_of() {
    let metrics = metrics(10);
    assert!(metrics.text(&readings(), None, 0).contains("upstream=\"files\""));
    assert!(!metrics.text(&Readings::default(), None, 0).contains("upstream=\"files\""));
}

#[test]
fn what_waits_for_approval_is_told_only_while_it_is_known() {
    let metrics = metrics(10);
    assert!(metrics.text(&readings(), None, 0).contains("\ngatelet_approvals_waiting{} 2\n"));
    let unknown = Readings { approvals_waiting: None, ..readings() };
    assert!(!metrics.text(&unknown, None, 0).contains("\ngatelet_approvals_waiting{"));
}
