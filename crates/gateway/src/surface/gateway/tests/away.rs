//! Upstreams that are starting or down are there all the same.

use super::*;
use crate::record::{Ending, RecentRecords};

/// A gate with one upstream that is up and one that cannot be reached.
async fn half_down(surface: Surface) -> (Opened, Arc<RecentRecords>) {
    let records = Arc::new(RecentRecords::new(100));
    let opened = open_on(surface, |parts, _| {
        let down = Scripts::new(|_, _| {
            Err(Failure::Unavailable { reason: "no such program `frobnicate`".into() })
        });
        parts.upstreams.push(Upstream::new("f", down));
        parts.observers.records = Arc::clone(&records) as _;
    })
    .await;
    (opened, records)
}

#[tokio::test(start_paused = true)]
async fn every_namespace_has_a_card_and_one_that_is_down_says_why() {
    let (opened, _) = half_down(Surface::Gateway).await;
    let root = opened.say("tool_browse", json!({"path": "/"})).await;
    assert!(root.contains("/demo "), "{root}");
    let line =
        root.lines().find(|line| line.starts_with("/f ")).unwrap_or_else(|| panic!("{root}"));
    assert!(line.contains("unavailable") && line.contains("frobnicate"), "{line}");
    let error = opened.error("tool_browse", json!({"path": "/f"})).await;
    assert_eq!(
        (&error["error"], &error["retryable"]),
        (&json!("UPSTREAM_UNAVAILABLE"), &json!(true))
    );
    assert!(error["message"].as_str().unwrap().contains("frobnicate"), "{error}");
    let error = opened.error("tool_browse", json!({"path": "/nothing"})).await;
    assert_eq!(error["error"], "PATH_NOT_FOUND");
}

#[tokio::test(start_paused = true)]
async fn a_tool_of_an_upstream_that_is_down_is_not_said_to_be_unknown() {
    for surface in [Surface::Gateway, Surface::Proxy] {
        let (opened, records) = half_down(surface).await;
        let error = opened.error("tool_execute", json!({"tool_id": "f:read#12345678"})).await;
        assert_eq!(error["error"], "UPSTREAM_UNAVAILABLE", "{error}");
        assert_eq!(error["retryable"], true);
        let ending = records.records().last().unwrap().ending.clone();
        assert_eq!(ending, Ending::Refused(policy::refusal::RefusalCode::Unavailable));
        let error = opened.error("tool_execute", json!({"tool_id": "g:read#12345678"})).await;
        assert_eq!(error["error"], "HYDRATE_FAILED");
    }
}

/// Takes its time to come up.
struct Slow(Arc<Scripted>);

#[async_trait]
impl roster::Connector for Slow {
    async fn connect(&self, _: &Client) -> Result<Arc<dyn Provider>, Failure> {
        tokio::time::sleep(Duration::from_secs(2)).await;
        Ok(Arc::clone(&self.0) as _)
    }
}

#[tokio::test(start_paused = true)]
async fn an_upstream_that_is_starting_is_waited_for() {
    for (tool, given) in [
        ("tool_execute", json!({"tool_id": "slow:read_file", "args": {"path": "x"}})),
        ("tool_browse", json!({"path": "/slow"})),
    ] {
        let opened = open_on(Surface::Gateway, |parts, _| {
            parts.upstreams.push(Upstream::new("slow", Arc::new(Slow(demo()))));
        })
        .await;
        let root = opened.say("tool_browse", json!({"path": "/"})).await;
        assert!(root.contains("/slow ") && root.contains("still starting"), "{root}");
        let said = opened.say(tool, given).await;
        assert!(said.starts_with("hello") || said.contains("slow:read_file#"), "{said}");
    }
}

#[tokio::test(start_paused = true)]
async fn who_must_not_know_of_an_upstream_is_told_nothing() {
    let opened = open_on(Surface::Gateway, |parts, _| {
        let down = Scripts::new(|_, _| Err(Failure::Unavailable { reason: "gone".into() }));
        parts.upstreams.push(Upstream::new("f", down));
        let default = visibility::DefaultVisibility::Hidden;
        parts.policies.visibility =
            visibility::Config { default, ..visibility::Config::default() }.into();
    })
    .await;
    let root = opened.say("tool_browse", json!({"path": "/"})).await;
    assert!(!root.contains("/f"), "{root}");
    let error = opened.error("tool_execute", json!({"tool_id": "f:read#12345678"})).await;
    assert_eq!(error["error"], "HYDRATE_FAILED", "{error}");
}
