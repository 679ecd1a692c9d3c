//! The client scenarios of the official conformance suite, with an upstream as
//! the client, and a human with a browser where one is needed.

use std::process::Stdio;

use tokio::process::Command;

use crate::real::{node, tools};
use crate::support::SCRIPTED;

async fn check(scenario: &str, revision: &str) {
    let suite = tools().join("npm-conf-0.2/node_modules/.bin/conformance");
    let driver = format!("{SCRIPTED} driver");
    let output = Command::new(node())
        .arg(suite)
        .args(["client", "--command", &driver, "--scenario", scenario])
        .args(["--spec-version", revision, "--timeout", "60000"])
        .current_dir(tempfile::tempdir().unwrap().path())
        .stdin(Stdio::null())
        .output()
        .await
        .unwrap();
    let report = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && report.contains(" 0 failed"), "{report}");
}

macro_rules! scenarios {
    ($($name:ident: $scenario:literal $revision:literal;)+) => {$(
        #[tokio::test]
        async fn $name() {
            check($scenario, $revision).await;
        }
    )+};
}

scenarios! {
    a_session_is_opened: "initialize" "2025-11-25";
    tools_are_called: "tools_call" "2025-11-25";
    tools_are_called_without_a_session: "tools_call" "2026-07-28";
    defaults_of_an_elicitation_reach_the_server: "elicitation-sep1034-client-defaults" "2025-11-25";
    a_stream_is_resumed_when_the_server_says: "sse-retry" "2025-11-25";
    every_request_says_who_asks: "request-metadata" "2026-07-28";
    the_state_of_a_request_is_given_back: "sep-2322-client-request-state" "2026-07-28";
    standard_headers_are_sent: "http-standard-headers" "2026-07-28";
    custom_headers_are_sent: "http-custom-headers" "2026-07-28";
    tools_with_invalid_headers_are_not_used: "http-invalid-tool-headers" "2026-07-28";
    references_in_schemas_are_not_followed: "json-schema-ref-no-deref" "2026-07-28";
    schemas_are_preserved: "json-schema-2020-12-preservation" "2025-11-25";
    schemas_are_preserved_without_a_session: "json-schema-2020-12-preservation" "2026-07-28";
}
