//! The official conformance suite.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use mcp::serve::http::{Endpoint, Options, at};
use serde_json::Value;
use testkit::balancer::Balancer;
use tokio::net::TcpListener;
use tokio::process::Command;
use tool::{FixedProvider, Provider};
use web::listen::listen_plain;

use crate::replicas::Shared;
use crate::tools;

/// Which suite, and for which revision.
#[derive(Clone, Copy)]
pub(crate) enum Suite {
    /// 0.1.16: what is stable, up to 2025-11-25.
    Stable,
    /// 0.2.0-alpha.12, for one revision.
    Next(&'static str),
}

/// Checks that a provider cannot pass, with the reason.
///
/// The questions of a provider that asks while it runs have no names of their
/// own; the suite wants one by the name that a modern provider would give it,
/// and sends an answer under that name before it was asked for.
pub(crate) const NAMELESS: &[(&str, &str)] = &[
    ("input-required-result-basic-elicitation", "sep-2322-elicitation-incomplete"),
    ("input-required-result-ignore-extra-params", "sep-2322-ignore-unexpected-params"),
];

/// Serves the provider, runs the suite against it and compares what failed.
pub(crate) async fn check(
    provider: Arc<dyn Provider>,
    suite: Suite,
    expected: &[(&str, &str)],
    at_least: usize,
) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    // Streams open early, so that priming and resuming are tried.
    let options = Options { stream_after: Duration::from_millis(50), ..Options::default() };
    let endpoint = Endpoint::new(Arc::new(FixedProvider(provider)), options);
    let serving = tokio::spawn(listen_plain(listener, at("/mcp", endpoint)));
    let results = tempfile::tempdir().unwrap();
    let mut command = suite.command("server");
    command.args(["--url", &url, "--suite", "all"]);
    run(command, results.path()).await;
    serving.abort();
    Outcome::read(results.path()).check(expected, at_least);
}

/// The same with three replicas behind nginx, which sends each request to the next one.
/// They share the provider, as replicas share a server somewhere else.
pub(crate) async fn check_balanced(
    provider: Arc<dyn Provider>,
    suite: Suite,
    expected: &[(&str, &str)],
    at_least: usize,
) {
    let shared = Arc::<Shared>::default();
    let (mut addresses, mut serving) = (Vec::new(), Vec::new());
    for tag in 1..=3 {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        addresses.push(listener.local_addr().unwrap().to_string());
        let stream_after = Duration::from_millis(50);
        let options = Options { stream_after, ..shared.options(tag) };
        let source = Arc::new(FixedProvider(Arc::clone(&provider)));
        let endpoint = Endpoint::new(source, options);
        shared.join(tag, &endpoint);
        serving.push(tokio::spawn(listen_plain(listener, at("/mcp", endpoint))));
    }
    let addresses: Vec<&str> = addresses.iter().map(String::as_str).collect();
    let balancer = Balancer::nginx(&addresses);
    let results = tempfile::tempdir().unwrap();
    let mut command = suite.command("server");
    command.args(["--url", &balancer.url(), "--suite", "all"]);
    run(command, results.path()).await;
    serving.iter().for_each(tokio::task::JoinHandle::abort);
    Outcome::read(results.path()).check(expected, at_least);
}

/// Runs scenarios for a client, with the driver as the client.
pub(crate) async fn check_driver(suite: Suite, scenarios: &[&str], at_least: usize) {
    let results = tempfile::tempdir().unwrap();
    for scenario in scenarios {
        let mut command = suite.command("client");
        command.arg("--command").arg(tools::example("driver")).args(["--scenario", scenario]);
        run(command, results.path()).await;
    }
    Outcome::read(results.path()).check(&[], at_least);
}

async fn run(mut command: Command, results: &Path) {
    command.arg("-o").arg(results).kill_on_drop(true).stdin(std::process::Stdio::null());
    // The exit code only says that something failed; the results say what.
    let ended = tokio::time::timeout(Duration::from_secs(180), command.output()).await;
    ended.expect("the suite ends in time").expect("the suite starts");
}

impl Suite {
    /// The suite, to try a `server` or a `client`.
    fn command(self, what: &str) -> Command {
        let bin = "node_modules/.bin/conformance";
        let (version, revision) = match self {
            Suite::Stable => ("0.1", None),
            Suite::Next(revision) => ("0.2", Some(revision)),
        };
        let mut command = tools::node(&format!("npm-conf-{version}/{bin}"));
        command.arg(what);
        if let Some(revision) = revision {
            command.args(["--spec-version", revision]);
        }
        command
    }
}

/// What a run of the suite found.
struct Outcome {
    n_passed: usize,
    failed: Vec<(String, String)>,
}

impl Outcome {
    fn check(&self, expected: &[(&str, &str)], at_least: usize) {
        let name = |(scenario, check): &(&str, &str)| format!("{scenario}: {check}");
        let expected: BTreeSet<_> = expected.iter().map(name).collect();
        let failed: BTreeSet<_> = self.failed.iter().map(|(name, _)| name.clone()).collect();
        assert_eq!(failed, expected, "{:#?}", self.failed);
        assert!(at_least <= self.n_passed, "only {} checks passed", self.n_passed);
    }

    fn read(results: &Path) -> Outcome {
        let mut outcome = Outcome { n_passed: 0, failed: Vec::new() };
        for entry in std::fs::read_dir(results).unwrap() {
            let directory = entry.unwrap().path();
            let text = std::fs::read(directory.join("checks.json")).unwrap();
            let checks: Vec<Value> = serde_json::from_slice(&text).unwrap();
            let name = directory.file_name().unwrap().to_string_lossy().into_owned();
            for check in &checks {
                outcome.count(scenario(&name), check);
            }
        }
        outcome
    }

    fn count(&mut self, scenario: &str, check: &Value) {
        let id = check["id"].as_str().unwrap_or_default();
        match check["status"].as_str().unwrap_or_default() {
            "SUCCESS" => self.n_passed += 1,
            "FAILURE" | "WARNING" => {
                let why = check["errorMessage"].as_str().unwrap_or_default().to_owned();
                self.failed.push((format!("{scenario}: {id}"), why));
            }
            _ => {}
        }
    }
}

/// The scenario in the name of its directory, `server-SCENARIO-TIME`.
fn scenario(directory: &str) -> &str {
    let name = directory.strip_prefix("server-").unwrap_or(directory);
    // Scenarios may end in a revision, so only the first date with a time counts.
    let is_time = |rest: &str| rest.as_bytes().get(11) == Some(&b'T');
    let time = name.match_indices("-20").find(|(at, _)| is_time(&name[*at..]));
    time.map_or(name, |(at, _)| &name[..at])
}
