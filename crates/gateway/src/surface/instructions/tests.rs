use std::sync::Arc;

use serde_json::json;
use testkit::{Scripted, listing, tool};
use tool::{Client, Event, Identity, Reply};

use super::*;
use crate::fixture::{Opened, Scripts, one, open, settle, shop};
use policy::visibility;
use roster::Upstream;

const SURFACES: [Surface; 4] = [Surface::Cash, Surface::Gateway, Surface::Proxy, Surface::Direct];

/// What a client of a surface is told.
fn told(opened: &Opened, surface: Surface, caller: Identity) -> String {
    let client = Arc::new(Client::named("test", ""));
    let provider = opened.gateway.surface(surface).provider_for(&client, &Arc::new(caller));
    provider.listing().server.instructions.clone().expect("every surface has instructions")
}

fn many(n: usize) -> Vec<Upstream> {
    let schema = json!({});
    (0..n)
        .map(|n| one(&format!("server_{n:03}"), "send_mail", "Sends an email.", &schema))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn every_surface_says_how_to_start_and_what_is_behind() {
    let opened = open(shop().0, |_| {}).await;
    for (surface, start) in SURFACES.into_iter().zip([
        "help(kwargs=",
        "tool_browse(query=",
        "tool_hydrate(tool_id)",
        "server_tool",
    ]) {
        let text = told(&opened, surface, Identity::default());
        assert!(text.contains(start), "{text}");
        assert!(text.contains("crm (Manage contacts and accounts), inventory ("), "{text}");
        assert!(!text.contains("gatelet"), "the built-in namespace is no server: {text}");
        assert!(length(&text) <= FIRST_CHARS, "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn however_many_servers_there_are_the_first_512_characters_stand_alone() {
    for n in [1, 5, 12, 30, 67, 400] {
        let opened = open(many(n), |_| {}).await;
        for surface in SURFACES {
            let text = told(&opened, surface, Identity::default());
            assert!(length(&text) <= MAX_CHARS, "{n}: {} characters", length(&text));
            let first: String = text.chars().take(FIRST_CHARS).collect();
            assert!(first.contains("Namespaces: server_000"), "{n}: {first}");
            let head = text.lines().next().unwrap();
            assert!(length(head) <= FIRST_CHARS && head.ends_with('.'), "{n}: {head}");
            assert!(first.contains("(Sends an email)"), "{n}: {first}");
            let described = text.lines().filter(|line| line.starts_with("- server_")).count();
            let whole = text.lines().count() == 1 || described == n;
            assert!(whole || text.ends_with(" more"), "{n}: {text}");
            let named = (0..n).filter(|n| text.contains(&format!("server_{n:03}"))).count();
            assert!(named == n || 100 < n, "{named} of {n} are named: {text}");
        }
    }
}

#[test]
fn what_a_purpose_is_cut_to_says_something() {
    let cut = |words| first_words("create, update and delete issues of a team.", words);
    assert_eq!(cut(12), "create, update and delete issues of a team");
    assert_eq!(cut(5), "create, update and delete issues…");
    assert_eq!(cut(3), "create, update…");
    assert_eq!(cut(7), "create, update and delete issues…");
    assert_eq!(first_words("", 4), "");
}

#[tokio::test(start_paused = true)]
async fn the_text_does_not_change_with_the_order_or_the_state_of_upstreams() {
    let (mut upstreams, _) = shop();
    let text = told(&open(shop().0, |_| {}).await, Surface::Cash, Identity::default());
    upstreams.reverse();
    let turned = open(upstreams, |_| {}).await;
    assert_eq!(told(&turned, Surface::Cash, Identity::default()), text);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_dies_leaves_the_text_as_it_is() {
    let provider = Scripted::new(listing(vec![tool("send_mail", "Sends.", &json!({}))]), |_| {
        Ok(Reply::text("x"))
    });
    let upstream = Upstream::new("post", Scripts::of(Arc::clone(&provider)));
    let opened = open(vec![upstream], |_| {}).await;
    let before = told(&opened, Surface::Cash, Identity::default());
    provider.tell(Event::Gone { reason: "crashed".to_owned() });
    settle().await;
    assert_eq!(told(&opened, Surface::Cash, Identity::default()), before);
}

#[tokio::test(start_paused = true)]
async fn nobody_reads_of_what_they_do_not_see() {
    let provider = Scripted::new(
        listing(vec![tool("list_fees", "", &json!({})), tool("wipe_ledgers", "", &json!({}))]),
        |_| Ok(Reply::text("x")),
    );
    let upstreams = vec![
        Upstream::new("bank", Scripts::of(provider)),
        one("vault", "open_safe", "Opens the safe.", &json!({})),
    ];
    let hide = ["bank.wipe_*", "vault"].map(|what| what.parse().unwrap()).to_vec();
    let admin = vec!["subject:admin".parse().unwrap()];
    let rules = vec![
        visibility::Rule { callers: admin, show: hide.clone(), ..visibility::Rule::default() },
        visibility::Rule { hide, ..visibility::Rule::default() },
    ];
    let rules = visibility::Config { rules, ..visibility::Config::default() };
    let opened = open(upstreams, |parts| parts.policies.visibility = rules.into()).await;
    for surface in SURFACES {
        let text = told(&opened, surface, Identity::default());
        assert!(text.contains("bank (list fees)."), "{text}");
        assert!(!text.contains("vault") && !text.contains("ledgers"), "{text}");
        let admin = Identity { subject: "admin".into(), ..Identity::default() };
        let text = told(&opened, surface, admin);
        assert!(text.contains("wipe ledgers") && text.contains("vault (Opens the safe)"), "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_gate_without_servers_says_so() {
    let opened = open(Vec::new(), |_| {}).await;
    let text = told(&opened, Surface::Cash, Identity::default());
    assert!(text.ends_with("No server is connected yet."), "{text}");
}
