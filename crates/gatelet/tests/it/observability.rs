//! Metrics to a real Prometheus, traces to a collector with the official
//! definitions, records over time.

mod alerts;
mod headers;

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::kit::{Home, Pipe, Served, Site, eventually, program, shell, tool};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// A program of others that ends with its test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A port that nobody has at the moment.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// An upstream that answers with the `_meta` it got.
fn echo(label: &str) -> String {
    let code = program(
        "say(id, {\"content\": [{\"type\": \"text\", \"text\": json.dumps(message['params'].get('_meta'))}]})",
    );
    format!(
        "[[upstream]]\nlabel = {label:?}\ncommand = \"python3\"\nargs = {}\n",
        json!(["-c", code])
    )
}

/// The arguments of `call` that call it.
fn act() -> Value {
    json!({"namespace": "files", "function": "act", "kwargs": {}})
}

fn scraped(port: u16, headers: &[(&str, &str)]) -> crate::kit::Answer {
    Site { url: format!("http://127.0.0.1:{port}/metrics") }.send("GET", headers, "")
}

/// The names of the metrics in a text that Prometheus reads, as queries name them.
fn exported(text: &str) -> BTreeSet<String> {
    let kinds = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    kinds
        .map(|line| match line.split_once(' ').unwrap() {
            (name, "counter") => format!("{name}_total"),
            (name, "info") => format!("{name}_info"),
            (name, _) => name.to_owned(),
        })
        .collect()
}

/// The names of metrics that a text mentions.
fn mentioned(text: &str) -> BTreeSet<String> {
    let name = regex::Regex::new(r"\b(gatelet|process)_[a-z_]+\b").unwrap();
    let names = name.find_iter(text).map(|found| found.as_str());
    names.map(|name| name.trim_end_matches("_bucket").to_owned()).collect()
}

#[test]
fn every_metric_is_documented_shown_and_exported() {
    let port = free_port();
    let home = Home::with(&format!(
        "[metrics]\nlisten = \"127.0.0.1:{port}\"\n\
         [[controls.rate]]\nmeta_tool = \"tool_execute\"\nper_minute = 2\n{}",
        echo("files")
    ));
    let served = Served::start(&home);
    // The third one is over the quota.
    (0..3).for_each(|_| drop(served.call("call", &act())));
    served.call("help", &json!({"query": "what time is it"}));
    let answer = scraped(port, &[]);
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert!(answer.head.contains("application/openmetrics-text"), "{}", answer.head);
    let exported = exported(&answer.body);
    let read = |path: &str| std::fs::read_to_string(Path::new(ROOT).join(path)).unwrap();
    let documented = mentioned(&read("docs/guide/observability.md"));
    let mut shown = mentioned(&read("examples/observability/dashboard.json"));
    shown.extend(mentioned(&read("examples/observability/alerts.yml")));
    assert_eq!(documented, exported, "docs/guide/observability.md");
    assert_eq!(shown, exported, "examples/observability");
    assert!(answer.body.contains("upstream=\"files\",tool=\"act\""), "{}", answer.body);
    assert!(answer.body.contains("gatelet_upstream_processes 1"), "{}", answer.body);
}

#[test]
fn only_who_may_reads_metrics() {
    let port = free_port();
    let home = Home::with(&format!(
        "[builtin]\ntools = true\n[metrics]\nlisten = \"127.0.0.1:{port}\"\ntoken = \"abc\"\n\
         on_gate = true\n"
    ));
    let served = Served::start(&home);
    assert_eq!(scraped(port, &[]).status, 401);
    assert_eq!(scraped(port, &[("Authorization", "Bearer abd")]).status, 401);
    assert_eq!(scraped(port, &[("Authorization", "Bearer abc")]).status, 200);
    let gate = Site { url: format!("http://{}/metrics", served.authority()) };
    assert_eq!(gate.send("GET", &[], "").status, 200);
    assert_eq!(gate.send("GET", &[("Host", "evil.example")], "").status, 403);
    assert_eq!(gate.send("GET", &[("Origin", "http://127.0.0.1")], "").status, 403);
    assert_eq!(gate.send("POST", &[], "").status, 405);
    drop(served);
    for (wrong, why) in [
        ("[metrics]\nlisten = \"0.0.0.0:9464\"\n", "token"),
        ("[metrics]\ntoken = \"abc\"\non_gate = true\n", "listen"),
        ("[traces]\nendpoint = \"mailto:a@b\"\n", "http"),
        ("[traces]\nsample = 2\nendpoint = \"http://127.0.0.1\"\n", "sample"),
    ] {
        let refused = shell(&Home::with(wrong), &["config", "check"]);
        assert_eq!(refused.code, 2, "{wrong}: {refused:?}");
        assert!(refused.err.contains(why), "{wrong}: {refused:?}");
    }
}

#[test]
fn metrics_on_the_gate_take_a_key_with_the_scope_where_callers_need_one() {
    let home =
        Home::with("[builtin]\ntools = true\n[auth]\nrequired = true\n[metrics]\non_gate = true\n");
    let key = |name: &str, scope: &[&str]| {
        let words = [&["key", "create", name], scope].concat();
        let made = shell(&home, &words);
        assert_eq!(made.code, 0, "{made:?}");
        made.out.trim().to_owned()
    };
    let (other, scraper) = (key("ann", &[]), key("prometheus", &["--scope", "metrics"]));
    let served = Served::start(&home);
    let gate = Site { url: format!("http://{}/metrics", served.authority()) };
    assert_eq!(gate.send("GET", &[], "").status, 401);
    assert_eq!(gate.send("GET", &[("X-Api-Key", &other)], "").status, 403);
    assert_eq!(gate.send("GET", &[("X-Api-Key", &scraper)], "").status, 200);
}

/// Asks Prometheus; the values of the series that a query has.
fn query(port: u16, query: &str) -> Vec<String> {
    let escaped: String = url_escape(query);
    let site = Site { url: format!("http://127.0.0.1:{port}/api/v1/query?query={escaped}") };
    let Ok(found) = serde_json::from_str::<Value>(&site.send("GET", &[], "").body) else {
        return Vec::new();
    };
    let series = found["data"]["result"].as_array().cloned().unwrap_or_default();
    series.iter().map(|one| one["value"][1].as_str().unwrap().to_owned()).collect()
}

fn url_escape(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02x}")).collect()
}

#[test]
fn a_real_prometheus_scrapes_the_gate_and_takes_the_rules() {
    testkit::needs!(Prometheus);
    let (port, web) = (free_port(), free_port());
    let home = Home::with(&format!("[metrics]\nlisten = \"127.0.0.1:{port}\"\n{}", echo("files")));
    let served = Served::start(&home);
    served.call("call", &json!({"function": "nobody.nothing", "kwargs": {}}));
    let examples = PathBuf::from(ROOT).join("examples/observability");
    let checked = Command::new("promtool")
        .args(["check", "config", "prometheus.yml"])
        .current_dir(&examples)
        .output()
        .unwrap();
    assert!(checked.status.success(), "{checked:?}");
    let config = std::fs::read_to_string(examples.join("prometheus.yml")).unwrap();
    let config = config
        .replace("127.0.0.1:9464", &format!("127.0.0.1:{port}"))
        .replace("15s", "1s")
        .replace("alerts.yml", examples.join("alerts.yml").to_str().unwrap());
    home.write("prometheus.yml", &config);
    let prometheus = Command::new("prometheus")
        .arg(format!("--config.file={}", home.path().join("prometheus.yml").display()))
        .arg(format!("--storage.tsdb.path={}", home.path().join("tsdb").display()))
        .arg(format!("--web.listen-address=127.0.0.1:{web}"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let _prometheus = Running(prometheus);
    eventually("Prometheus listens", || std::net::TcpStream::connect(("127.0.0.1", web)).is_ok());
    eventually("it scrapes the gate", || query(web, "up{job=\"gatelet\"}") == ["1"]);
    eventually("it has the call", || query(web, "sum(gatelet_calls_total)") == ["1"]);
    assert_eq!(query(web, "sum(gatelet_call_duration_seconds_count)"), ["1"]);
    assert_eq!(query(web, "count(gatelet_build_info)"), ["1"]);
    // Everything that the dashboard asks for is a query that Prometheus understands.
    let dashboard = std::fs::read_to_string(examples.join("dashboard.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&dashboard).unwrap();
    for panel in dashboard["panels"].as_array().unwrap() {
        for target in panel["targets"].as_array().unwrap() {
            let asked = target["expr"].as_str().unwrap();
            let asked = asked.replace("$__rate_interval", "1m").replace("$upstream", ".*");
            let url = format!("http://127.0.0.1:{web}/api/v1/query?query={}", url_escape(&asked));
            let answer = Site { url }.send("GET", &[], "");
            assert_eq!(answer.status, 200, "{asked}: {}", answer.body);
        }
    }
}

/// A collector of traces, and what it has written so far.
struct Collector {
    _running: Running,
    port: u16,
    file: PathBuf,
}

impl Collector {
    fn start(home: &Home) -> Collector {
        let file = home.path().join("collected.jsonl");
        let script =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/observability/collector.py");
        let mut child = Command::new(tool("otlp/bin/python"))
            .arg(script)
            .arg(&file)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Collector { _running: Running(child), port: line.trim().parse().unwrap(), file }
    }

    fn lines(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(&self.file).unwrap_or_default();
        let lines: Vec<Value> = text.lines().filter_map(|l| serde_json::from_str(l).ok()).collect();
        assert!(lines.iter().all(|line| line["refused"].is_null()), "{lines:?}");
        lines
    }

    fn spans(&self, kind: &str) -> Vec<Value> {
        self.lines().into_iter().filter(|line| line["kind"] == kind).collect()
    }
}

fn traced(collector: &Collector, more: &str) -> String {
    let port = collector.port;
    format!("{more}\n[traces]\nendpoint = \"http://127.0.0.1:{port}\"\ninterval = \"100ms\"\n")
}

#[test]
fn a_call_is_traced_through_client_gate_and_upstream() {
    testkit::needs!(Tools);
    let home = Home::new();
    let collector = Collector::start(&home);
    home.write("gatelet.toml", &traced(&collector, &echo("files")));
    let served = Served::start(&home);
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    let parent = format!("00-{trace}-00f067aa0ba902b7-01");
    let carried = format!("00-{}-00f067aa0ba902b7-01", "ab".repeat(16));
    let revision = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "traceparent": parent,
        "tracestate": "vendor=1",
    });
    let params = json!({"name": "call", "arguments": act(), "_meta": revision});
    let message =
        json!({"jsonrpc": "2.0", "id": "seven", "method": "tools/call", "params": params});
    let headers = [
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", "tools/call"),
        ("Mcp-Name", "call"),
        ("traceparent", carried.as_str()),
    ];
    let answer = served.post(&message, &headers);
    assert_eq!(answer.status, 200, "{}", answer.body);
    eventually("both spans are there", || {
        !collector.spans("server").is_empty() && !collector.spans("client").is_empty()
    });
    let (server, client) = (&collector.spans("server")[0], &collector.spans("client")[0]);
    assert_eq!(
        (&server["name"], &client["name"]),
        (&json!("tools/call call"), &json!("tools/call act"))
    );
    assert_eq!((&server["trace"], &client["trace"]), (&json!(trace), &json!(trace)));
    assert_eq!(
        (&server["parent"], &client["parent"]),
        (&json!("00f067aa0ba902b7"), &server["span"])
    );
    assert_eq!(server["links"], json!(["ab".repeat(16)]));
    assert_eq!((&server["state"], &server["status"]), (&json!("vendor=1"), &json!(0)));
    let about = &server["attributes"];
    assert_eq!(about["mcp.method.name"], "tools/call");
    assert_eq!(about["gen_ai.tool.name"], "call");
    assert_eq!(about["gen_ai.operation.name"], "execute_tool");
    assert_eq!(about["jsonrpc.request.id"], "seven");
    assert_eq!(about["mcp.protocol.version"], "2026-07-28");
    assert_eq!(about["network.transport"], "tcp");
    let about = &client["attributes"];
    assert_eq!(
        (&about["gen_ai.tool.name"], &about["network.transport"]),
        (&json!("act"), &json!("pipe"))
    );
    assert!(about["jsonrpc.request.id"].is_string(), "{client}");
    let events: Vec<&str> =
        server["events"].as_array().unwrap().iter().map(|e| e["name"].as_str().unwrap()).collect();
    let stages = ["validate", "admission", "kept", "quota", "cache", "upstream", "scrub", "gate"];
    assert_eq!(events[..8], stages);
    assert_eq!(server["events"][8]["gatelet.upstream"], "files");
    assert_eq!(server["resource"]["service.name"], "gatelet");
    // The upstream was told of the client span, in the very same trace.
    let span = client["span"].as_str().unwrap();
    assert!(answer.body.contains(&format!("00-{trace}-{span}-01")), "{}", answer.body);
    assert!(answer.body.contains("vendor=1"), "{}", answer.body);
    eventually("the histograms are there", || {
        let names: BTreeSet<String> = collector
            .lines()
            .iter()
            .filter_map(|l| Some(l["metric"].as_str()?.to_owned()))
            .collect();
        ["mcp.server.operation.duration", "mcp.client.operation.duration"]
            .into_iter()
            .all(|name| names.contains(name))
    });
}

#[test]
fn a_traced_call_over_a_pipe_ends_with_its_gate_and_loses_nothing() {
    testkit::needs!(Tools);
    let home = Home::new();
    let collector = Collector::start(&home);
    let config = traced(&collector, &echo("files")).replace("100ms", "1h");
    home.write("gatelet.toml", &config);
    let mut pipe = Pipe::open(&home);
    assert!(pipe.call("files.act", &json!({})).contains("traceparent"));
    let missing = json!({"namespace": "files", "function": "nothing", "kwargs": {}});
    assert_eq!(pipe.verb("call", &missing)["isError"], true);
    // Lists are answered from memory, and are spans all the same.
    let lists = ["tools/list", "resources/list", "resources/templates/list"];
    lists.iter().for_each(|list| drop(pipe.request(list, &json!({}))));
    assert!(pipe.close().success());
    // What was not sent yet is sent at the end.
    let (servers, clients) = (collector.spans("server"), collector.spans("client"));
    for list in lists {
        let span = servers.iter().find(|span| span["name"] == list).expect(list);
        assert_eq!(span["attributes"]["mcp.method.name"], list);
        assert!(span["attributes"]["jsonrpc.request.id"].is_string(), "{span}");
    }
    let is_call = |span: &&Value| span["attributes"]["mcp.method.name"] == "tools/call";
    let n_calls = servers.iter().filter(is_call).count();
    assert_eq!((n_calls, clients.len()), (2, 1), "{servers:?}");
    assert!(
        servers
            .iter()
            .all(|span| span["parent"] == "" && span["attributes"]["network.transport"] == "pipe")
    );
    let failed = servers.iter().find(|span| span["attributes"]["error.type"] == "tool_error");
    assert_eq!(failed.map(|span| &span["status"]), Some(&json!(2)), "{servers:?}");
    let sessions = collector.lines().into_iter().filter(|line| {
        line["metric"] == "mcp.server.session.duration"
            || line["metric"] == "mcp.client.session.duration"
    });
    assert_eq!(sessions.count(), 2);
}

#[test]
fn a_collector_that_is_gone_holds_nobody_up_and_is_counted() {
    let (port, metrics) = (free_port(), free_port());
    let home = Home::with(&format!(
        "{}[traces]\nendpoint = \"http://127.0.0.1:{port}\"\ninterval = \"100ms\"\n\
         [metrics]\nlisten = \"127.0.0.1:{metrics}\"\n",
        echo("files")
    ));
    let served = Served::start(&home);
    let told = served.call("call", &act());
    assert!(told.to_string().contains("traceparent"), "{told}");
    // A server span, and a client span inside of it.
    let spans = |outcome: &str| {
        let text = scraped(metrics, &[]).body;
        let series = format!("gatelet_spans_total{{outcome=\"{outcome}\"}} ");
        text.lines().find_map(|line| line.strip_prefix(&series)?.parse::<u64>().ok())
    };
    eventually("the spans are counted as dropped", || {
        spans("dropped").is_some_and(|dropped| 2 <= dropped)
    });
    assert_eq!(spans("exported"), Some(0));
    assert!(served.call("call", &act()).to_string().contains("traceparent"));
    assert!(served.terminate().success());
}

#[test]
fn without_traces_nothing_is_added_and_what_a_client_says_passes() {
    let home = Home::with(&echo("files"));
    let mut pipe = Pipe::open(&home);
    assert!(!pipe.call("files.act", &json!({})).contains("traceparent"));
    let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let params = json!({"name": "call", "arguments": act(),
                        "_meta": {"traceparent": parent}});
    let answer = pipe.request("tools/call", &params);
    assert!(answer.to_string().contains(parent), "{answer}");
}

#[test]
fn records_are_rotated_and_stats_add_them_up_over_time() {
    let home = Home::with(
        "[builtin]\ntools = true\n[records]\nfile = \"calls.jsonl\"\nrotate_megabytes = 1\n",
    );
    // As if an earlier gate had filled the file.
    let old = json!({"event": "execute.completed", "timestamp": "2026-01-02T03:04:05.000Z", "tool_id": "a:b#1",
                     "namespace": "a", "success": true, "duration_ms": 1.0, "session_id": "s", "version": 1,
                     "attributes": {"caller": "ann", "filler": "x".repeat(1000)}});
    home.write("calls.jsonl", &format!("{old}\n").repeat(1_100));
    let mut pipe = Pipe::open(&home);
    pipe.call("time.now", &json!({}));
    pipe.call("time.now", &json!({}));
    assert!(pipe.close().success());
    let names: Vec<String> = std::fs::read_dir(home.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with("calls"))
        .collect();
    assert_eq!(names.len(), 2, "{names:?}");
    let days = shell(&home, &["stats", "--by", "day"]).json();
    assert_eq!(
        (&days["days"]["2026-01-02"]["calls"], &days["total"]["calls"]),
        (&json!(1100), &json!(1102))
    );
    let callers = shell(&home, &["stats", "--by", "caller"]).json();
    assert_eq!(
        (&callers["callers"]["ann"]["calls"], &callers["callers"][""]["calls"]),
        (&json!(1100), &json!(2))
    );
    let recent = shell(&home, &["stats", "--since", "1d"]).json();
    assert_eq!(recent["total"]["calls"], 2, "{recent}");
    let text = shell(&home, &["stats", "--by", "upstream", "--format", "text"]);
    assert!(text.out.contains('█') && text.out.contains("1,100"), "{}", text.out);
    assert_eq!(shell(&home, &["stats", "--since", "yesterday"]).code, 2);
}

#[test]
fn top_shows_the_running_gate_from_the_first_look_on() {
    let home = Home::with(&echo("files"));
    let mut pipe = Pipe::open(&home);
    pipe.call("files.act", &json!({}));
    let first = shell(&home, &["top"]).json();
    assert_eq!(first["figures"]["hour"]["calls"], 0, "nothing was counted before: {first}");
    assert!(first["figures"]["definitions"]["direct"].as_u64().unwrap() > 0, "{first}");
    pipe.call("files.act", &json!({}));
    let missing = json!({"namespace": "files", "function": "nothing", "kwargs": {}});
    pipe.verb("call", &missing);
    let then = shell(&home, &["top"]).json();
    let hour = &then["figures"]["hour"];
    assert_eq!((&hour["calls"], &hour["errors"]), (&json!(2), &json!(1)), "{then}");
    assert_eq!(then["figures"]["upstreams"][0]["label"], "files");
    assert_eq!(then["figures"]["minutes"].as_array().unwrap().len(), 60);
    let page = shell(&home, &["top", "--once", "--format", "text"]);
    assert!(page.out.contains("2 calls") && page.out.contains("files"), "{page:?}");
    assert!(pipe.close().success());
    assert_eq!(shell(&home, &["top"]).code, 3);
}
