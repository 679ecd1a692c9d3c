//! The official conformance suite, against our serving.
//!
//! Every check that the suite makes of a server passes, for providers of either
//! style and clients of either era, which are the four cells of the bridge.
//! What cannot pass is listed with the reason.

use crate::suite::{NAMELESS, Suite, check, check_balanced};
use testkit::everything::{Everything, Style};

#[tokio::test]
async fn the_stable_suite_passes() {
    testkit::needs!(Tools);
    check(Everything::new(Style::Asking), Suite::Stable, &[], 40).await;
}

#[tokio::test]
async fn an_older_client_meets_a_provider_that_asks() {
    testkit::needs!(Tools);
    check(Everything::new(Style::Asking), Suite::Next("2025-11-25"), &[], 80).await;
}

#[tokio::test]
async fn an_older_client_meets_a_provider_that_requires_input() {
    testkit::needs!(Tools);
    check(Everything::new(Style::Requiring), Suite::Next("2025-11-25"), &[], 80).await;
}

#[tokio::test]
async fn a_modern_client_meets_a_provider_that_requires_input() {
    testkit::needs!(Tools);
    check(Everything::new(Style::Requiring), Suite::Next("2026-07-28"), &[], 150).await;
}

#[tokio::test]
async fn a_modern_client_meets_a_provider_that_asks() {
    testkit::needs!(Tools);
    check(Everything::new(Style::Asking), Suite::Next("2026-07-28"), NAMELESS, 145).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn three_replicas_behind_nginx_pass_for_an_older_client() {
    testkit::needs!(Tools);
    testkit::needs!(Nginx);
    check_balanced(Everything::new(Style::Asking), Suite::Next("2025-11-25"), &[], 80).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn three_replicas_behind_nginx_pass_for_a_modern_client() {
    testkit::needs!(Tools);
    testkit::needs!(Nginx);
    check_balanced(Everything::new(Style::Requiring), Suite::Next("2026-07-28"), &[], 150).await;
}
