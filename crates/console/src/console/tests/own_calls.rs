//! Calls that are made by the forms of tools: who makes them, and who may agree to them.

use async_trait::async_trait;
use catalog::Catalog;
use futures::StreamExt;
use gateway::record::RecentRecords;
use policy::admission::{Admission, Check};
use policy::approval::{QueuedApproval, queued};
use policy::question::Question;
use policy::refusal::{Refusal, RefusalCode};
use policy::validate::ValidCall;
use roster::Connector;
use serde_json::json;
use testkit::{Scripted, listing, tool as one_tool};
use tool::{Client, Context, Failure, Provider, Reply};

use super::*;

struct Ready(Arc<Scripted>);

#[async_trait]
impl Connector for Ready {
    async fn connect(&self, _: &Client) -> Result<Arc<dyn Provider>, Failure> {
        Ok(Arc::clone(&self.0) as _)
    }
}

/// Asks about every call, and lets nobody call who has the role `barred`.
struct AsksAlways;

impl Check for AsksAlways {
    fn admit(&self, _: &Catalog, _: &ValidCall, context: &Context) -> Result<Admission, Refusal> {
        if context.caller.roles.contains("barred") {
            let message = "barred by a rule".to_owned();
            return Err(Refusal { code: RefusalCode::Denied, message, retry_after: None });
        }
        let text = "it is asked about".to_owned();
        Ok(Admission::Ask(Question { text, ended_by_trust: false }))
    }
}

/// A console with a tool, `bank.pay`, and the records of its calls.
async fn desk() -> (Desk, Arc<RecentRecords>) {
    let pay = one_tool("pay", "Pays.", &json!({"type": "object"}));
    let provider = Scripted::new(listing(vec![pay]), |_| Ok(Reply::text("it was paid")));
    let records = Arc::new(RecentRecords::new(10));
    let config = Config { tls: false, hosts: Vec::new() };
    let desk = desk_of(config, vec![Upstream::new("bank", Arc::new(Ready(provider)))], |parts| {
        let approvals = Arc::clone(&parts.policies.approvals);
        let stage = QueuedApproval::new(approvals, queued::Config::default());
        parts.policies.stages.approval = Arc::new(stage);
        parts.policies.stages.checks.push(Arc::new(AsksAlways));
        parts.observers.records = Arc::clone(&records) as _;
    })
    .await;
    let pool = desk.console.backend.gateway.roster().default_pool();
    let mut changes = pool.events();
    while pool.snapshot().catalog.resolve("bank", "pay").is_err() {
        changes.next().await.expect("the tool is listed soon");
    }
    (desk, records)
}

impl Desk {
    /// Sends the form of `bank.pay`; the page that answers.
    async fn pay(&self, cookie: &str) -> String {
        let session = [("cookie", cookie)];
        let page = self.send("GET", "/console/tools/bank.pay", &session, "").await;
        let body = format!("form_token={}", form_token(&page.text));
        self.send("POST", "/console/tools/bank.pay/call", &session, &body).await.text
    }

    async fn allow(&self, cookie: &str, number: u64) -> String {
        let session = [("cookie", cookie)];
        let path = format!("/console/approvals/{number}");
        let token = form_token(&self.send("GET", &path, &session, "").await.text);
        self.send("POST", &path, &session, &format!("form_token={token}&verdict=allow")).await;
        self.state_of(number).await.as_str().to_owned()
    }
}

#[tokio::test]
async fn nobody_agrees_with_a_key_to_a_call_that_they_made_by_a_form() {
    let (desk, records) = desk().await;
    let ann = desk.enter_with("operators").await;
    let page = desk.pay(&ann).await;
    assert!(page.contains("approval request 2"), "{page}");
    assert_eq!(desk.allow(&ann, 2).await, "waiting");
    // Neither from another session of the same identity.
    let again = desk.enter_with("operators").await;
    assert_eq!(desk.allow(&again, 2).await, "waiting");
    assert!(!desk.pay(&ann).await.contains("it was paid"));
    // Somebody else may, for the session that asked.
    let other = desk.enter_with("asker").await;
    assert_eq!(desk.allow(&other, 2).await, "allowed");
    assert!(!desk.pay(&again).await.contains("it was paid"), "another session made the call");
    assert!(desk.pay(&ann).await.contains("it was paid"));
    let last = records.records().pop().unwrap();
    assert_eq!(
        (last.caller.subject.as_str(), last.client.name.as_str()),
        ("ann", "gatelet-console")
    );
    let key = ann.split_once('=').unwrap().1;
    assert!(last.session.starts_with("console:") && !last.session.contains(key));
}

#[tokio::test]
async fn rules_about_callers_hold_for_calls_by_a_form() {
    let (desk, records) = desk().await;
    let cookie = desk.enter_with("operators").await;
    // The roles of a key are those that it has by now.
    desk.barred.store(true, Ordering::Relaxed);
    let page = desk.pay(&cookie).await;
    assert!(page.contains("barred by a rule"), "{page}");
    // A link names nobody.
    let page = desk.pay(&desk.enter().await).await;
    assert!(page.contains("approval request 2"), "{page}");
    assert_eq!(records.records().pop().unwrap().caller.subject, "");
}
