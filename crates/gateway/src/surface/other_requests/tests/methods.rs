//! Every method of every revision, of extensions and of nobody, on every surface,
//! about things that the caller may ask for, that rules deny and that are hidden:
//! what reaches an upstream is what is allowed, and nothing else.

use std::sync::Arc;

use futures::{FutureExt, StreamExt};
use serde_json::{Value, json};
use testkit::{Scripted, listing};
use tool::{
    Ask, Client, Context, Event, Json, Listing, Notification, Object, Prompt, Reply, Resource,
    RpcError, Server, Template,
};

use super::SECRET;
use crate::choice::Surface;
use crate::fixture::{Opened, Scripts, open, settle};
use policy::Stages;
use policy::pattern::Pattern;
use policy::rules::{self, Action, Rule, Rules};
use policy::visibility;
use roster::Upstream;

/// Who may be asked: everybody may ask the first, rules deny what the second is
/// asked for, and the third is hidden.
const LABELS: [&str; 3] = ["free", "denied", "hidden"];

/// What servers answer, in any revision.
const METHODS: &[&str] = &[
    "initialize",
    "ping",
    "server/discover",
    "tools/list",
    "tools/call",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "resources/subscribe",
    "resources/unsubscribe",
    "subscriptions/listen",
    "prompts/list",
    "prompts/get",
    "completion/complete",
    "logging/setLevel",
    "tasks/get",
    "tasks/result",
    "tasks/list",
    "tasks/cancel",
    "tasks/update",
    // What clients answer.
    "sampling/createMessage",
    "elicitation/create",
    "roots/list",
    // What nobody answers.
    "notifications/initialized",
    "notifications/cancelled",
    "notifications/progress",
    "notifications/message",
    "notifications/roots/list_changed",
    "notifications/tools/list_changed",
    "notifications/resources/list_changed",
    "notifications/resources/updated",
    "notifications/prompts/list_changed",
    "notifications/elicitation/complete",
    "notifications/tasks/status",
    "notifications/subscriptions/acknowledged",
    // Extensions.
    "cash/help",
    "cash/skill",
    "cash/skills",
    "cash/call",
    "skills/list",
    "skills/get",
    "skills/read",
    "skills/activate",
    // Nobody's.
    "",
    "/",
    "resources/write",
    "resources/delete",
    "resources/read/x",
    "Resources/Read",
    "resources/read ",
    "resources\u{0}/read",
    "resources/subscribe2",
    "tasks/",
    "tasks/drop",
    "tools/call/x",
    "prompts/get2",
    "completion/complete2",
    "db/drop",
    "rpc.discover",
    "notifications/",
    "notifications/x",
    "initialize2",
    "$/cancelRequest",
];

/// What the server of `label` is asked for: one thing at a time, and all at once.
fn params(label: &str) -> Vec<Value> {
    let prompt = json!({"type": "ref/prompt", "name": format!("{label}_p")});
    let template = json!({"type": "ref/resource", "uri": format!("{label}://t/{{id}}")});
    let argument = json!({"name": "id", "value": "x"});
    vec![
        json!({}),
        json!({"uri": format!("{label}://x")}),
        json!({"uri": format!("{label}://t/1")}),
        json!({"name": format!("{label}_p")}),
        json!({"name": format!("{label}_f")}),
        json!({"ref": prompt, "argument": argument}),
        json!({"ref": template, "argument": argument}),
        json!({"taskId": "t1"}),
        json!({"level": "debug"}),
        json!({"uri": format!("{label}://x"), "namespace": "", "function": "f", "kwargs": {}}),
        json!({"uri": format!("{label}://x"), "namespace": "", "skillname": "s", "name": "s"}),
        json!({
            "uri": format!("{label}://x"), "name": format!("{label}_p"), "ref": prompt,
            "argument": argument, "taskId": "t1", "level": "debug", "requestId": 1,
            "namespace": label, "function": "f", "tool": "f",
        }),
    ]
}

/// Whether the server of `label` hears of it: said once more, in other words.
fn reaches(label: &str, method: &str, params: &Value, surface: Surface) -> bool {
    let has = |key: &str| params.get(key).is_some();
    match (label, method) {
        ("hidden", _) => false,
        (_, "logging/setLevel" | "notifications/roots/list_changed") => true,
        // What began may end, whatever the rules say by now.
        ("denied", "resources/unsubscribe") => has("uri"),
        ("denied", _) => false,
        (_, "resources/read" | "resources/subscribe" | "resources/unsubscribe") => has("uri"),
        (_, "prompts/get") => params["name"] == json!(format!("{label}_p")),
        (_, "completion/complete") => has("ref"),
        (_, "tools/call") => {
            surface == Surface::Direct && params["name"] == json!(format!("{label}_f"))
        }
        _ => false,
    }
}

fn server(label: &str) -> (Upstream, Arc<Scripted>) {
    let mark = json!({"gatelet/cash": {"namespace": "", "function": "f"}});
    let raw = json!({"name": "f", "inputSchema": {"type": "object"}, "_meta": mark});
    let resource = json!({"uri": format!("{label}://x"), "name": "x"});
    let template = json!({"uriTemplate": format!("{label}://t/{{id}}"), "name": "t"});
    let prompt = json!({"name": format!("{label}_p")});
    let capabilities = json!({"resources": {"subscribe": true}, "prompts": {}, "logging": {},
        "completions": {}, "tasks": {}, "extensions": {"gatelet/cash": {}}});
    let listing = Listing {
        server: Server::new(label, "1", capabilities.into()),
        resources: vec![Resource::parse(resource.into()).unwrap()],
        templates: vec![Template::parse(template.into()).unwrap()],
        prompts: vec![Prompt::parse(prompt.into()).unwrap()],
        ..listing(vec![tool::Tool::parse(raw.into()).unwrap()])
    };
    let provider = Scripted::new(listing, |ask| {
        Ok(match ask.method() {
            // A server that knows nothing of skills.
            "cash/skills" | "skills/list" => Reply::Error(RpcError::new(-32601, "no")),
            _ => Reply::Result(json!({"said": SECRET, "content": []}).into()),
        })
    });
    (Upstream::new(label, Scripts::of(Arc::clone(&provider))), provider)
}

async fn gate() -> (Opened, [Arc<Scripted>; 3]) {
    let (upstreams, providers): (Vec<_>, Vec<_>) = LABELS.into_iter().map(server).unzip();
    let deny = Rule { namespace: Some(Pattern::new("denied")), ..Rule::any(Action::Deny) };
    let config = rules::Config { default: Action::Allow, rules: vec![deny] };
    let hide = visibility::Rule {
        callers: Vec::new(),
        show: Vec::new(),
        hide: vec!["hidden".parse().unwrap()],
    };
    let stages = Stages { checks: vec![Arc::new(Rules::new(config)) as _], ..Stages::default() };
    let opened = open(upstreams, |parts| {
        parts.policies.stages = stages;
        let config = visibility::Config { rules: vec![hide], ..visibility::Config::default() };
        parts.policies.visibility = config.into();
    })
    .await;
    (opened, providers.try_into().unwrap_or_else(|_| unreachable!("as many as labels")))
}

#[tokio::test(start_paused = true)]
async fn what_reaches_an_upstream_is_exactly_what_is_allowed() {
    let (opened, providers) = gate().await;
    let client = Arc::new(Client::named("test", ""));
    let mut n_reached = 0;
    for surface in [Surface::Cash, Surface::Gateway, Surface::Proxy, Surface::Direct] {
        let served = opened.gateway.surface(surface).provider_for(&client, &Arc::default());
        for (label, method) in LABELS.iter().flat_map(|l| METHODS.iter().map(move |m| (*l, *m))) {
            for params in params(label) {
                let Ok(ask) = Ask::parse(method, &params.clone().into()) else { continue };
                let before = providers.each_ref().map(|provider| provider.asked().len());
                let n_records = opened.records.records().len();
                let reply = served.ask(ask, &Context::anonymous()).await.unwrap();
                let what = format!("{} {method} {params}: {reply:?}", surface.name());
                for (at, other) in LABELS.iter().enumerate() {
                    let heard = providers[at].asked()[before[at]..].to_vec();
                    let to_all =
                        matches!(method, "logging/setLevel" | "notifications/roots/list_changed");
                    let expected =
                        reaches(other, method, &params, surface) && (to_all || other == &label);
                    assert_eq!(heard.len(), usize::from(expected), "{other} heard of {what}");
                    n_reached += heard.len();
                    assert!(heard.iter().all(|ask| ask.method() == method), "{what}");
                    let is_recorded = n_records < opened.records.records().len()
                        || opened.records.records().len() == 100;
                    assert!(!expected || to_all || is_recorded, "no record of {what}");
                }
                assert!(!format!("{reply:?}").contains(SECRET), "{what}");
            }
        }
    }
    assert!(100 < n_reached, "{n_reached}");
}

#[tokio::test(start_paused = true)]
async fn what_a_hidden_upstream_logs_reaches_nobody_who_does_not_see_it() {
    let (opened, providers) = gate().await;
    let client = Arc::new(Client::named("test", ""));
    for surface in [Surface::Cash, Surface::Gateway, Surface::Proxy, Surface::Direct] {
        let served = opened.gateway.surface(surface).provider_for(&client, &Arc::default());
        let mut events = served.events();
        for (provider, label) in providers.iter().zip(LABELS) {
            let params = Object::from_iter([("data".to_owned(), Json::encode(label))]);
            provider.tell(Event::Notification(Notification {
                method: "notifications/message".into(),
                params,
            }));
        }
        settle().await;
        let mut heard = Vec::new();
        while let Some(Some(event)) = events.next().now_or_never() {
            if let Event::Notification(note) = event {
                heard.push(note.params.get("data").and_then(Json::string_value).unwrap());
            }
        }
        heard.sort();
        assert_eq!(heard, ["denied", "free"], "{}", surface.name());
    }
}

#[tokio::test(start_paused = true)]
async fn params_that_a_server_may_take_for_others_reach_nobody() {
    let (opened, providers) = gate().await;
    let x = "free://x";
    for (method, params) in [
        ("resources/read", format!(r#"{{"uri":"{x}","URI":"free://secret"}}"#)),
        ("resources/subscribe", format!(r#"{{"uri":"free://secret","uri":"{x}"}}"#)),
        ("resources/subscribe", format!(r#"{{"uri":"{x}","Uri":"free://secret"}}"#)),
        ("prompts/get", r#"{"name":"free_p","Name":"other"}"#.to_owned()),
        ("prompts/get", r#"{"name":"free_p","argument\u017f":{}}"#.to_owned()),
        ("prompts/get", r#"{"name":"free_p","arguments":{},"tas\u212A":1}"#.to_owned()),
        ("completion/complete", r#"{"ref":{"name":"free_p"},"ref":{"name":"free_p"}}"#.to_owned()),
        ("completion/complete", r#"{"ref":{"name":"free_p"},"REF":{"name":"b"}}"#.to_owned()),
        (
            "completion/complete",
            format!(r#"{{"ref":{{"type":"ref/prompt","name":"free_p","uri":"{x}"}}}}"#),
        ),
        (
            "completion/complete",
            format!(r#"{{"ref":{{"type":"ref/prompt","uri":"{x}"}},"argument":{{}}}}"#),
        ),
    ] {
        let ask = Ask::parse(method, &tool::Json::parse(params.clone()).unwrap()).unwrap();
        let reply = opened.surface.ask(ask, &Context::anonymous()).await.unwrap();
        assert!(matches!(reply, Reply::Error(_)), "{method} {params}: {reply:?}");
        assert_eq!(providers[0].asked(), [], "{method} {params}");
    }
    // What stands inside a reference is written anew.
    let twice = r#"{"ref":{"type":"ref/prompt","name":"hidden_p","name":"free_p","n":1}}"#;
    let ask = Ask::parse("completion/complete", &tool::Json::parse(twice).unwrap()).unwrap();
    opened.surface.ask(ask, &Context::anonymous()).await.unwrap();
    let Some(Ask::Complete(asked)) = providers[0].asked().pop() else { panic!() };
    let reference = Object::parse(asked.get("ref").unwrap()).unwrap();
    let reference: Vec<String> = reference.iter().map(|(key, v)| format!("{key}={v}")).collect();
    assert_eq!(reference.len(), 2, "{reference:?}");
    assert!(reference.contains(&"name=\"free_p\"".to_owned()), "{reference:?}");
}

#[tokio::test(start_paused = true)]
async fn completions_are_masked_and_may_be_denied_like_what_they_are_for() {
    let rule = Rule { meta_tool: Some("prompt_get".to_owned()), ..Rule::any(Action::Deny) };
    let config = rules::Config { default: Action::Allow, rules: vec![rule] };
    let stages = Stages { checks: vec![Arc::new(Rules::new(config)) as _], ..Stages::default() };
    let (upstream, provider) = server("free");
    let opened = open(vec![upstream], |parts| parts.policies.stages = stages).await;
    let complete = async |reference: Value| {
        let params = json!({"ref": reference, "argument": {"name": "id", "value": ""}});
        let ask = Ask::parse("completion/complete", &params.into()).unwrap();
        opened.surface.ask(ask, &Context::anonymous()).await.unwrap()
    };
    let denied = complete(json!({"type": "ref/prompt", "name": "free_p"})).await;
    assert!(super::told(&denied).contains("policy denied complete"), "{denied:?}");
    assert_eq!(provider.asked(), []);
    let values = complete(json!({"type": "ref/resource", "uri": "free://t/{id}"})).await;
    assert!(super::told(&values).contains("said"), "{values:?}");
    assert!(!super::told(&values).contains(SECRET), "{values:?}");
    let words: Vec<&str> = opened.records.records().iter().map(|record| record.meta_tool).collect();
    assert_eq!(words, ["complete", "complete"]);
}
