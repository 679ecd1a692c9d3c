//! The official conformance suite's scenarios for clients, with everything in
//! between: a client of an older revision, our serving, our connection.
//!
//! Not here: `elicitation-sep1034-client-defaults`. Its server asks on the stream
//! that belongs to no request and forgets the question when that stream is not
//! open yet, so on a busy machine it depends on which arrives first.

use crate::suite::{Suite, check_driver};

#[tokio::test]
async fn an_older_server_sees_a_proper_client() {
    testkit::needs!(Tools);
    let scenarios = ["initialize", "tools_call", "sse-retry", "json-schema-2020-12-preservation"];
    check_driver(Suite::Next("2025-11-25"), &scenarios, 5).await;
}

#[tokio::test]
async fn a_modern_server_sees_a_proper_client() {
    testkit::needs!(Tools);
    let scenarios = [
        "tools_call",
        "http-standard-headers",
        "http-custom-headers",
        "http-invalid-tool-headers",
        "sep-2322-client-request-state",
        "json-schema-ref-no-deref",
        "json-schema-2020-12-preservation",
    ];
    check_driver(Suite::Next("2026-07-28"), &scenarios, 40).await;
}
