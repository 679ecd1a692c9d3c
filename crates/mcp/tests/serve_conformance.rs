//! The official conformance suite, against our serving.
//!
//! Every check that the suite makes of a server passes, for providers of either
//! style and clients of either era, which are the four cells of the bridge.
//! What cannot pass is listed with the reason.

#[path = "support/tools.rs"]
mod tools;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use mcp::serve::http::{Endpoint, Options, at, listen};
use serde_json::Value;
use testkit::everything::{Everything, Style};
use tokio::net::TcpListener;
use tool::{Always, Provider};

/// Which suite, and for which revision.
#[derive(Clone, Copy)]
enum Suite {
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
const NAMELESS: &[(&str, &str)] = &[
    ("input-required-result-basic-elicitation", "sep-2322-elicitation-incomplete"),
    ("input-required-result-ignore-extra-params", "sep-2322-ignore-unexpected-params"),
];

#[tokio::test]
async fn the_stable_suite_passes() {
    check(Everything::new(Style::Asking), Suite::Stable, &[], 40).await;
}

#[tokio::test]
async fn an_older_client_meets_a_provider_that_asks() {
    check(Everything::new(Style::Asking), Suite::Next("2025-11-25"), &[], 80).await;
}

#[tokio::test]
async fn an_older_client_meets_a_provider_that_requires_input() {
    check(Everything::new(Style::Requiring), Suite::Next("2025-11-25"), &[], 80).await;
}

#[tokio::test]
async fn a_modern_client_meets_a_provider_that_requires_input() {
    check(Everything::new(Style::Requiring), Suite::Next("2026-07-28"), &[], 150).await;
}

#[tokio::test]
async fn a_modern_client_meets_a_provider_that_asks() {
    check(Everything::new(Style::Asking), Suite::Next("2026-07-28"), NAMELESS, 145).await;
}

/// Serves the provider, runs the suite against it and compares what failed.
async fn check(
    provider: Arc<dyn Provider>,
    suite: Suite,
    expected: &[(&str, &str)],
    at_least: usize,
) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    // Streams open early, so that priming and resuming are tried.
    let options = Options { settle: Duration::from_millis(50), ..Options::default() };
    let endpoint = Endpoint::new(Arc::new(Always(provider)), options);
    let serving = tokio::spawn(listen(listener, at("/mcp", endpoint), std::future::pending()));
    let results = tempfile::tempdir().unwrap();
    run(suite, &url, results.path()).await;
    serving.abort();
    let outcome = Outcome::read(results.path());
    let expected: BTreeSet<_> =
        expected.iter().map(|(scenario, check)| format!("{scenario}: {check}")).collect();
    let failed: BTreeSet<_> = outcome.failed.iter().map(|(name, _)| name.clone()).collect();
    assert_eq!(failed, expected, "{:#?}", outcome.failed);
    assert!(at_least <= outcome.n_passed, "only {} checks passed", outcome.n_passed);
}

async fn run(suite: Suite, url: &str, results: &Path) {
    let bin = "node_modules/.bin/conformance";
    let mut command = match suite {
        Suite::Stable => tools::node(&format!("npm-conf-0.1/{bin}")),
        Suite::Next(_) => tools::node(&format!("npm-conf-0.2/{bin}")),
    };
    command.args(["server", "--url", url, "--suite", "all"]).arg("-o").arg(results);
    if let Suite::Next(revision) = suite {
        command.args(["--spec-version", revision]);
    }
    command.kill_on_drop(true).stdin(std::process::Stdio::null());
    // The exit code only says that something failed; the results say what.
    let ended = tokio::time::timeout(Duration::from_secs(180), command.output()).await;
    ended.expect("the suite ends in time").expect("the suite starts");
}

/// What a run of the suite found.
struct Outcome {
    n_passed: usize,
    failed: Vec<(String, String)>,
}

impl Outcome {
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
    let time = name.rfind("-20").filter(|at| name[at + 1..].contains('T'));
    time.map_or(name, |at| &name[..at])
}
