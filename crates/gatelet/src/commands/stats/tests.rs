use serde_json::{Value, json};

use super::sum::{GroupBy, Period, Stats};
use super::*;

fn line(at: &str, tool: &str, caller: &str, success: bool, raw: usize, sent: usize) -> String {
    let saved = raw.saturating_sub(sent);
    let attributes = json!({"raw_tokens": raw, "compact_tokens": sent, "tokens_saved": saved,
                            "caller": caller, "client": "c"});
    let (event, time) = ("execute.completed", 1.5);
    json!({"event": event, "timestamp": at, "tool_id": tool, "success": success,
           "namespace": tool.split(':').next(), "duration_ms": time, "attributes": attributes})
    .to_string()
        + "\n"
}

fn three() -> String {
    line("2026-11-16T10:00:00.000Z", "a:x", "ann", true, 100, 10)
        + &line("2026-11-17T23:59:59.999Z", "b:y", "", false, 5, 9)
        + &line("2026-11-18T00:00:00.000Z", "a:x", "ann", true, 7, 7)
}

fn stats(by: GroupBy, period: Period, text: &str) -> Stats {
    let mut stats = Stats::new(by, period);
    add_lines(&mut stats, text.as_bytes()).unwrap();
    stats.finish();
    stats
}

fn calls(by: GroupBy, key: &str) -> Value {
    let told = stats(by, Period::default(), &three()).to_json();
    let groups = told[key].as_object().unwrap().iter();
    groups
        .map(|(name, sum)| (name.clone(), sum["calls"].clone()))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

#[test]
fn calls_errors_and_tokens_are_added_up_by_tool() {
    let browse = json!({"event": "browse.completed", "tool_id": "", "success": true,
                        "duration_ms": 99.0, "attributes": {"card_tokens": 7}});
    let text = three() + &format!("{browse}\n\n{{\"cut");
    let stats = stats(GroupBy::Tool, Period::default(), &text);
    let told = stats.to_json();
    assert_eq!(told["events"], json!({"execute.completed": 3, "browse.completed": 1}));
    assert_eq!(told["duration_ms"]["max"], 1.5);
    let x = json!({"calls": 2, "errors": 0, "mean_ms": 1.5, "tokens_raw": 107, "tokens_sent": 17,
                   "tokens_saved": 90});
    assert_eq!(told["tools"]["a:x"], x);
    assert_eq!(
        (told["total"]["calls"].as_u64(), told["total"]["errors"].as_u64()),
        (Some(3), Some(1))
    );
    assert_eq!((stats.odd, stats.lost), (1, 0));
    let table = stats.to_table();
    assert!(table.find("a:x") < table.find("b:y") && table.contains("107"), "{table}");
    assert!(table.contains("mean ms") && table.contains("1.5 ms (median)"), "{table}");
}

#[test]
fn they_are_added_up_by_day_caller_and_upstream_too() {
    let days = json!({"2026-11-16": 1, "2026-11-17": 1, "2026-11-18": 1});
    assert_eq!(calls(GroupBy::Day, "days"), days);
    assert_eq!(calls(GroupBy::Caller, "callers"), json!({"": 1, "ann": 2}));
    assert_eq!(calls(GroupBy::Upstream, "upstreams"), json!({"a": 2, "b": 1}));
    assert_eq!(calls(GroupBy::Client, "clients"), json!({"c": 3}));
    assert_eq!(calls(GroupBy::Hour, "hours").as_object().unwrap().len(), 3);
    let table = stats(GroupBy::Caller, Period::default(), &three()).to_table();
    assert!(table.contains("(anonymous)"), "{table}");
}

#[test]
fn a_period_leaves_out_what_was_before_and_after() {
    let period = |since: Option<&str>, until: Option<&str>| Period {
        since: since.map(|text| parse_moment(text).unwrap()),
        until: until.map(|text| parse_moment(text).unwrap()),
    };
    let n_calls = |since, until| stats(GroupBy::Tool, period(since, until), &three()).total.calls;
    assert_eq!(n_calls(Some("2026-11-17"), None), 2);
    assert_eq!(n_calls(Some("2026-11-17"), Some("2026-11-18")), 1);
    assert_eq!(n_calls(None, Some("2026-11-16")), 0);
    assert_eq!(n_calls(Some("0h"), None), 0);
    for wrong in ["", "yesterday", "7", "7x", "-1d", "99999999999999999999d"] {
        assert!(parse_moment(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn a_chart_has_a_bar_for_every_day_in_order() {
    let chart = stats(GroupBy::Day, Period::default(), &three()).to_chart().unwrap();
    let lines: Vec<&str> = chart.lines().collect();
    assert!(lines[0].starts_with("2026-11-16") && lines[2].starts_with("2026-11-18"), "{chart}");
    assert!(lines[1].contains('▒') && !lines[0].contains('▒'), "{chart}");
    assert_eq!(stats(GroupBy::Client, Period::default(), &three()).to_chart(), None);
}

#[test]
fn records_that_were_lost_are_added_up() {
    let gap = json!({"event": "records.lost", "tool_id": "", "success": false,
                     "duration_ms": null, "attributes": {"count": 3}});
    let stats = stats(GroupBy::Tool, Period::default(), &format!("{gap}\n{gap}\n"));
    assert_eq!((stats.lost, stats.total.calls, stats.odd), (6, 0, 0));
    assert_eq!(stats.to_json()["lost"], 6);
}
