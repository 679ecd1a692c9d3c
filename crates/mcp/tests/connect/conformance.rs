//! The client scenarios of the official conformance suite, with an upstream as
//! the client, and a human with a browser where one is needed.

use std::path::PathBuf;
use std::process::Stdio;

use tokio::process::Command;

use crate::real::{node, tools};
use crate::support::SCRIPTED;

fn suite() -> PathBuf {
    tools().join("npm-conf-0.2/node_modules/.bin/conformance")
}

async fn check(scenario: &str, revision: &str) {
    let driver = format!("{SCRIPTED} driver");
    let output = Command::new(node())
        .arg(suite())
        .args(["client", "--command", &driver, "--scenario", scenario])
        .args(["--spec-version", revision, "--timeout", "60000"])
        .current_dir(tempfile::tempdir().unwrap().path())
        .stdin(Stdio::null())
        .output()
        .await
        .unwrap();
    let report = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && report.contains(" 0 failed, 0 warnings"), "{report}");
}

macro_rules! scenarios {
    ($($name:ident: $scenario:literal $revision:literal;)+) => {
    /// Those that are run.
    const SCENARIOS: &[&str] = &[$($scenario),+];

    $(
        #[tokio::test]
        async fn $name() {
            testkit::needs!(Tools);
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
    where_to_log_in_is_found: "auth/metadata-default" "2025-11-25";
    where_to_log_in_is_found_without_a_session: "auth/metadata-default" "2026-07-28";
    where_to_log_in_is_found_at_an_issuer_of_another_kind: "auth/metadata-var1" "2025-11-25";
    where_to_log_in_is_found_at_an_issuer_of_another_kind_without_a_session: "auth/metadata-var1" "2026-07-28";
    where_to_log_in_is_found_at_an_issuer_with_a_path: "auth/metadata-var2" "2025-11-25";
    where_to_log_in_is_found_at_an_issuer_with_a_path_without_a_session: "auth/metadata-var2" "2026-07-28";
    where_to_log_in_is_found_where_the_refusal_says: "auth/metadata-var3" "2025-11-25";
    where_to_log_in_is_found_where_the_refusal_says_without_a_session: "auth/metadata-var3" "2026-07-28";
    a_client_is_described_by_an_address: "auth/basic-cimd" "2025-11-25";
    a_client_is_described_by_an_address_without_a_session: "auth/basic-cimd" "2026-07-28";
    the_scope_of_the_refusal_is_asked_for: "auth/scope-from-www-authenticate" "2025-11-25";
    the_scope_of_the_refusal_is_asked_for_without_a_session: "auth/scope-from-www-authenticate" "2026-07-28";
    the_scopes_of_the_resource_are_asked_for: "auth/scope-from-scopes-supported" "2025-11-25";
    the_scopes_of_the_resource_are_asked_for_without_a_session: "auth/scope-from-scopes-supported" "2026-07-28";
    no_scope_is_asked_for_when_none_is_named: "auth/scope-omitted-when-undefined" "2025-11-25";
    no_scope_is_asked_for_when_none_is_named_without_a_session: "auth/scope-omitted-when-undefined" "2026-07-28";
    more_is_asked_for_when_more_is_needed: "auth/scope-step-up" "2025-11-25";
    more_is_asked_for_when_more_is_needed_without_a_session: "auth/scope-step-up" "2026-07-28";
    what_is_never_enough_is_not_asked_for_for_ever: "auth/scope-retry-limit" "2025-11-25";
    what_is_never_enough_is_not_asked_for_for_ever_without_a_session: "auth/scope-retry-limit" "2026-07-28";
    a_secret_is_shown_in_a_header: "auth/token-endpoint-auth-basic" "2025-11-25";
    a_secret_is_shown_in_a_header_without_a_session: "auth/token-endpoint-auth-basic" "2026-07-28";
    a_secret_is_shown_in_a_form: "auth/token-endpoint-auth-post" "2025-11-25";
    a_secret_is_shown_in_a_form_without_a_session: "auth/token-endpoint-auth-post" "2026-07-28";
    a_client_without_a_secret_says_its_name: "auth/token-endpoint-auth-none" "2025-11-25";
    a_client_without_a_secret_says_its_name_without_a_session: "auth/token-endpoint-auth-none" "2026-07-28";
    a_client_that_was_registered_by_hand_is_used: "auth/pre-registration" "2025-11-25";
    a_client_that_was_registered_by_hand_is_used_without_a_session: "auth/pre-registration" "2026-07-28";
    a_resource_that_is_another_is_refused: "auth/resource-mismatch" "2026-07-28";
    a_way_to_renew_is_asked_for_where_it_has_a_scope: "auth/offline-access-scope" "2026-07-28";
    it_is_not_asked_for_where_it_has_none: "auth/offline-access-not-supported" "2026-07-28";
    an_authorization_server_may_move: "auth/authorization-server-migration" "2026-07-28";
    the_issuer_of_an_answer_is_checked: "auth/iss-supported" "2026-07-28";
    an_answer_may_name_no_issuer_where_none_is_promised: "auth/iss-not-advertised" "2026-07-28";
    an_answer_without_its_promised_issuer_is_refused: "auth/iss-supported-missing" "2026-07-28";
    an_answer_of_another_issuer_is_refused: "auth/iss-wrong-issuer" "2026-07-28";
    an_unexpected_issuer_is_refused: "auth/iss-unexpected" "2026-07-28";
    an_issuer_is_compared_letter_by_letter: "auth/iss-normalized" "2026-07-28";
    metadata_of_another_issuer_is_refused: "auth/metadata-issuer-mismatch" "2026-07-28";
    metadata_as_of_2025_03_26_is_found: "auth/2025-03-26-oauth-metadata-backcompat" "2025-03-26";
    endpoints_as_of_2025_03_26_are_guessed: "auth/2025-03-26-oauth-endpoint-fallback" "2025-03-26";
}

/// Scenarios that are not here, and why. All are extensions of the protocol
/// that an operator would have to switch on, and we have no such switch.
const LEFT_OUT: [(&str, &str); 10] = [
    ("auth/client-credentials-jwt", "clients show a secret, and sign nothing"),
    (
        "auth/client-credentials-basic",
        "the suite names no issuer, and the secret goes to that alone",
    ),
    ("auth/enterprise-managed-authorization", "there is no identity provider to ask"),
    ("auth/dpop", "tokens are not bound to keys"),
    ("auth/dpop-nonce", "tokens are not bound to keys"),
    ("auth/wif-jwt-bearer", "there is no workload identity to show"),
    ("sep-2640-client-no-prefetch", "skills are read by the gateway, which tests them"),
    ("sep-2640-client-verify-digest", "skills are read by the gateway, which tests them"),
    ("sep-2640-client-verify-size", "skills are read by the gateway, which tests them"),
    ("sep-2640-client-verify-frontmatter", "skills are read by the gateway, which tests them"),
];

/// A new release of the suite must not bring scenarios that nobody looks at.
#[tokio::test]
async fn every_client_scenario_is_here_or_has_a_reason() {
    testkit::needs!(Tools);
    let output = Command::new(node()).arg(suite()).arg("list").output().await.unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let (_, text) = text.split_once("Client scenarios").expect("a list of client scenarios");
    let (text, _) = text.split_once("Authorization server").unwrap_or((text, ""));
    let named = text.lines().filter_map(|line| line.trim().strip_prefix("- "));
    let named = named.filter_map(|line| line.split(' ').next());
    let known = |name: &&str| {
        SCENARIOS.contains(name) || LEFT_OUT.iter().any(|(left_out, _)| left_out == name)
    };
    let unknown: Vec<&str> = named.clone().filter(|name| !known(name)).collect();
    assert!(20 < named.count(), "{text}");
    assert!(unknown.is_empty(), "{unknown:?}");
}
