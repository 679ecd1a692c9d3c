use serde_json::json;
use testkit::{Scripted, listing};
use tool::{Ask, Call, Client, Listing, Provider, Reply};

use super::*;
use crate::choice::Surface;
use crate::fixture::{Scripts, settle};
use crate::{Gateway, GatewayParts};
use roster::Upstream;
use tool::clock::Fake;

/// Kept in memory.
#[derive(Default)]
struct Pad(Mutex<UsageHistory>);

impl UsageStore for Pad {
    fn read(&self) -> Arc<UsageHistory> {
        Arc::new(self.0.lock().clone())
    }

    fn note(&self, query: &str, tool: &str, day: u32) {
        self.0.lock().note(query, tool, day);
    }
}

/// Two upstreams that offer the same, behind one surface.
struct Twins {
    surface: Arc<dyn Provider>,
    context: Context,
}

async fn twins(surface: Surface, usage: Arc<dyn UsageStore>) -> Twins {
    let upstream = |label: &str| {
        let raw = json!({
            "name": "save_note",
            "description": "Saves a note.",
            "inputSchema": {},
            "_meta": {"gatelet/cash": {"namespace": "", "function": "save_note"}},
        });
        let save = tool::Tool::parse(raw.into()).unwrap();
        let provider = Scripted::new(Listing { is_nested: true, ..listing(vec![save]) }, |ask| {
            Ok(Reply::text(if ask.method() == "tools/call" { "saved" } else { "Their page." }))
        });
        Upstream::new(label, Scripts::of(provider))
    };
    let upstreams = vec![upstream("one"), upstream("two")];
    let mut parts = GatewayParts::new(upstreams, Arc::new(Fake::default()));
    parts.observers.usage = usage;
    let gateway = Gateway::new(parts);
    let context = Context { session: "s".into(), ..Context::anonymous() };
    let surface =
        gateway.surface(surface).provider_for(&Arc::new(Client::named("c", "")), &context.caller);
    settle().await;
    Twins { surface, context }
}

impl Twins {
    async fn ask(&self, name: &str, arguments: serde_json::Value) -> String {
        let call = Ask::Call(Call::new(name, arguments.into()));
        self.surface.ask(call, &self.context).await.unwrap().tool_result().unwrap().text()
    }

    /// The upstream that a search names first.
    async fn first(&self) -> &'static str {
        let said = self.ask("help", json!({"kwargs": {"query": "save a note"}})).await;
        // What both offer is the same, so it has one line, which names the other at its end.
        let leads = |label: &str| said.contains(&format!("{label} / save_note"));
        match (leads("one"), leads("two")) {
            (true, false) if said.contains("Same in: two.") => "one",
            (false, true) if said.contains("Same in: one.") => "two",
            (_, _) => panic!("{said}"),
        }
    }

    async fn call(&self, namespace: &str) {
        let said = self.ask("call", json!({"namespace": namespace, "function": "save_note"})).await;
        assert_eq!(said, "saved");
    }
}

fn other(label: &str) -> &'static str {
    if label == "one" { "two" } else { "one" }
}

#[tokio::test(start_paused = true)]
async fn what_was_called_after_a_search_comes_first_the_next_time() {
    let pad = Arc::new(Pad::default());
    let twins = twins(Surface::Cash, Arc::clone(&pad) as _).await;
    let other = other(twins.first().await);
    twins.call(other).await;
    assert_eq!(twins.first().await, other);
    let name = format!("{other}/save_note");
    assert!(pad.read().iter().all(|(_, chosen)| chosen.contains_key(&name)));
}

#[tokio::test(start_paused = true)]
async fn only_the_first_call_after_a_search_is_learnt() {
    let pad = Arc::new(Pad::default());
    let twins = twins(Surface::Cash, Arc::clone(&pad) as _).await;
    twins.call("two").await;
    assert!(pad.read().is_empty());
    twins.first().await;
    // gatelet's own functions are not a choice.
    twins.ask("call", json!({"namespace": "gatelet", "function": "status"})).await;
    twins.call("two").await;
    twins.call("one").await;
    assert!(pad.read().iter().all(|(_, chosen)| !chosen.contains_key("one/save_note")));
    assert!(!pad.read().is_empty());
}

#[tokio::test(start_paused = true)]
async fn whoever_reads_about_a_function_has_not_chosen_it_yet() {
    let pad = Arc::new(Pad::default());
    let twins = twins(Surface::Cash, Arc::clone(&pad) as _).await;
    let other = other(twins.first().await);
    let asked = json!({"namespace": twins.first().await, "function": "save_note"});
    assert!(twins.ask("help", asked).await.contains("> Their page."));
    assert!(pad.read().is_empty());
    twins.call(other).await;
    let name = format!("{other}/save_note");
    assert!(pad.read().iter().all(|(_, chosen)| chosen.contains_key(&name)));
    assert!(!pad.read().is_empty());
}

#[tokio::test(start_paused = true)]
async fn browsing_learns_and_is_taught_alike() {
    for (label, rest) in [("one", "two"), ("two", "one")] {
        let pad = Arc::new(Pad::default());
        for _ in 0..4 {
            pad.note("save a note", &format!("{label}/save_note"), 1_000_000);
        }
        let twins = twins(Surface::Gateway, Arc::clone(&pad) as _).await;
        let said = twins.ask("tool_browse", json!({"query": "save a note"})).await;
        let at = |label: &str| said.find(&format!("{label}:save_note")).unwrap();
        assert!(at(label) < at(rest), "{said}");
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_learnt_unless_asked_for() {
    let twins = twins(Surface::Cash, Arc::new(NoLearning)).await;
    let before = twins.first().await;
    twins.call(other(before)).await;
    assert_eq!(twins.first().await, before);
}
