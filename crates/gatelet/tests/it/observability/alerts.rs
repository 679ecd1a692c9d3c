//! The alerts and the dashboard against what the gate exports, label by label, and the
//! alerts as Prometheus runs them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use regex::Regex;
use serde_json::{Value, json};

use super::{ROOT, act, echo, free_port, scraped};
use crate::kit::{Home, Served, eventually};

/// Labels by metric.
type Labels = BTreeMap<String, BTreeSet<String>>;

fn read(path: &str) -> String {
    std::fs::read_to_string(Path::new(ROOT).join(path)).unwrap()
}

fn regex(text: &str) -> Regex {
    Regex::new(text).unwrap()
}

/// The labels of every series in a text that Prometheus reads, without those of histograms.
fn exported(text: &str) -> Labels {
    let (series, label) = (regex(r"^([a-z_]+)(?:\{(.*)\})? "), regex("([a-z_]+)=\""));
    let mut labels = Labels::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let found = series.captures(line).unwrap_or_else(|| panic!("no series: {line}"));
        let mut metric = &found[1];
        for end in ["_bucket", "_count", "_sum"] {
            metric = metric.strip_suffix(end).unwrap_or(metric);
        }
        let own = labels.entry(metric.to_owned()).or_default();
        let inside = found.get(2).map_or("", |inside| inside.as_str());
        own.extend(label.captures_iter(inside).map(|name| name[1].to_owned()));
        own.remove("le");
    }
    labels
}

/// The labels that the table of the guide names.
fn documented() -> Labels {
    let row = regex(r"(?m)^\| `((?:gatelet|process)_[a-z_]+)` \| ([a-z, ]*)\|");
    let guide = read("docs/guide/observability.md");
    let named = |cell: &str| {
        cell.split(',').map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect()
    };
    row.captures_iter(&guide).map(|row| (row[1].to_owned(), named(&row[2]))).collect()
}

/// Queries of the dashboard and of the alerts, each with the texts that show its labels.
fn queries() -> Vec<(String, String)> {
    let dashboard: Value =
        serde_json::from_str(&read("examples/observability/dashboard.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let targets = panels.flat_map(|panel| panel["targets"].as_array().unwrap());
    let mut queries: Vec<(String, String)> = targets
        .map(|target| {
            let legend = target["legendFormat"].as_str().unwrap_or_default();
            (target["expr"].as_str().unwrap().to_owned(), legend.to_owned())
        })
        .collect();
    let alerts = read("examples/observability/alerts.yml");
    for alert in alerts.split("- alert: ").skip(1) {
        let (_, rest) = alert.split_once("expr: ").unwrap();
        let (query, shown) = rest.split_once("labels:").unwrap();
        let query = query.split("for:").next().unwrap();
        queries.push((query.trim_start_matches('>').trim().to_owned(), shown.to_owned()));
    }
    queries
}

/// The labels that a query asks for and does not get.
fn unknown_labels(query: &str, shown: &str, labels: &Labels) -> Vec<String> {
    let metric =
        regex(r"\b((?:gatelet|process)_[a-z_]+?)(?:_bucket|_count|_sum)?\b(?:\{([^}]*)\})?");
    let matcher = regex("([a-z_]+) *(?:=~|!~|!=|=) *\"");
    let group = regex(r"by \(([^)]*)\)");
    let in_texts = regex(r"\{\{ *(?:\$labels\.)?([a-z_]+) *\}\}");
    // Prometheus adds these, and buckets have the third.
    let added = ["job", "instance", "le"];
    let (mut unknown, mut all) = (Vec::new(), BTreeSet::new());
    for found in metric.captures_iter(query) {
        let Some(own) = labels.get(&found[1]) else {
            unknown.push(found[1].to_owned());
            continue;
        };
        let inside = found.get(2).map_or("", |inside| inside.as_str());
        let asked = matcher.captures_iter(inside).map(|label| label[1].to_owned());
        unknown.extend(asked.filter(|label| !own.contains(label) && label != "job"));
        all.extend(own.iter().cloned());
    }
    let groups: Vec<BTreeSet<String>> = group
        .captures_iter(query)
        .map(|found| found[1].split(',').map(|label| label.trim().to_owned()).collect())
        .collect();
    let kept: BTreeSet<String> =
        if groups.is_empty() { all.clone() } else { groups.iter().flatten().cloned().collect() };
    let is_added = |label: &String| added.contains(&label.as_str());
    unknown.extend(groups.iter().flatten().filter(|l| !all.contains(*l) && !is_added(l)).cloned());
    let shown = in_texts.captures_iter(shown).map(|label| label[1].to_owned());
    unknown.extend(shown.filter(|label| !kept.contains(label) && !is_added(label)));
    unknown
}

#[test]
fn a_query_for_a_label_that_is_not_there_is_noticed() {
    let labels: Labels =
        [("gatelet_calls_total".to_owned(), ["upstream", "ending"].map(str::to_owned).into())]
            .into();
    for (query, shown, expected) in [
        ("sum by (ending) (rate(gatelet_calls_total{upstream=~\"a\"}[1m]))", "{{ending}}", vec![]),
        ("gatelet_calls_total{tool=\"x\"}", "", vec!["tool"]),
        ("sum by (tool, le) (gatelet_calls_total)", "", vec!["tool"]),
        ("sum by (ending) (gatelet_calls_total)", "of {{ $labels.upstream }}", vec!["upstream"]),
        ("gatelet_nothing", "", vec!["gatelet_nothing"]),
    ] {
        assert_eq!(unknown_labels(query, shown, &labels), expected, "{query}");
    }
}

#[test]
fn the_guide_the_dashboard_and_the_alerts_name_the_labels_that_are_exported() {
    let port = free_port();
    let home = Home::with(&format!(
        "[builtin]\ntools = true\n[approvals]\nwait = \"0s\"\n[metrics]\nlisten = \"127.0.0.1:{port}\"\n\
         [[controls.rate]]\ntool = \"files:act\"\nper_minute = 2\n\
         [[controls.rule]]\naction = \"ask\"\ntool = \"units.convert\"\n{}",
        echo("files")
    ));
    let served = Served::start(&home);
    (0..3).for_each(|_| drop(served.call("call", &act())));
    served.call("help", &json!({"query": "what time is it"}));
    let kwargs = json!({"value": 1, "from": "mi", "to": "km"});
    let convert = json!({"namespace": "units", "function": "convert", "kwargs": kwargs});
    let asked = served.call("call", &convert).to_string();
    assert!(asked.contains("approval request 1"), "{asked}");
    let (mut text, documented) = (String::new(), documented());
    eventually("every metric has a series", || {
        text = scraped(port, &[]).body;
        documented.keys().all(|name| exported(&text).contains_key(name))
    });
    assert_eq!(exported(&text), documented, "docs/guide/observability.md");
    assert!(text.contains("\ngatelet_approvals_waiting{} 1\n"), "{text}");
    let mut unknown: Vec<String> = Vec::new();
    for (query, shown) in queries() {
        let labels = unknown_labels(&query, &shown, &documented);
        unknown.extend(labels.iter().map(|label| format!("{label} in {query}")));
    }
    assert_eq!(unknown, Vec::<String>::new());
}

#[test]
fn alerts_say_what_they_should_when_they_should() {
    testkit::needs!(Prometheus);
    let home = Home::new();
    let rules = Path::new(ROOT).join("examples/observability/alerts.yml").canonicalize().unwrap();
    let cases = read("crates/gatelet/tests/it/observability/alerts_test.yml");
    home.write("alerts_test.yml", &cases.replace("ALERTS", rules.to_str().unwrap()));
    let mut promtool = Command::new("promtool");
    home.settle(&mut promtool);
    let tested = promtool.args(["test", "rules", "alerts_test.yml"]).output().unwrap();
    assert!(tested.status.success(), "{}", String::from_utf8_lossy(&tested.stdout));
}
