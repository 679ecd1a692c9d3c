use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use serde_json::{Value, json};
use testkit::{Scripted, listing, tool};
use tool::{
    Ask, Client, Context, Event, Identity, Listing, Notification, Object, Provider, Reply,
    Resource, Template,
};

use crate::choice::Surface;
use crate::fixture::{Hung, Opened, Scripts, open, orders, settle};
use crate::gateway::Controls;
use crate::record::Ending;
use policy::Stages;
use policy::pattern::Pattern;
use policy::rules;
use policy::rules::{Action, Rule, Rules};
use policy::visibility;
use roster::{Start, SupervisedUpstream, Upstream};

mod methods;

const SECRET: &str = "sk-ant-A1b2C3d4E5f6G7h8I9j0K1l2";

/// An upstream whose function begins the task `id`, whose result is `text`.
fn worker(label: &str, id: &'static str, text: String) -> (Upstream, Arc<Scripted>) {
    let resource = json!({"uri": format!("{label}://x"), "name": "x"});
    let listing = Listing {
        resources: vec![Resource::parse(resource.into()).unwrap()],
        ..listing(vec![tool("f", "F.", &json!({}))])
    };
    let provider = Scripted::new(listing, move |ask| {
        let content = json!([{"type": "text", "text": text}]);
        let result = match ask.method() {
            "tools/call" => json!({"task": {"taskId": id, "status": "working"}}),
            "tasks/result" => json!({"content": content}),
            "tasks/get" => {
                json!({"taskId": id, "status": "completed", "result": {"content": content}})
            }
            _ => json!({"contents": [{"uri": "a://b", "text": text}]}),
        };
        Ok(Reply::Result(result.into()))
    });
    (Upstream::new(label, Scripts::of(Arc::clone(&provider))), provider)
}

fn caller(subject: &str) -> Context {
    let caller = Identity { subject: subject.to_owned(), ..Identity::default() };
    Context { caller: Arc::new(caller), ..Context::anonymous() }
}

async fn begin(opened: &Opened, label: &str, context: &Context) {
    let call = json!({"name": "call", "arguments": {"namespace": label, "function": "f"}});
    let ask = Ask::parse("tools/call", &call.into()).unwrap();
    opened.surface.ask(ask, context).await.unwrap();
}

async fn ask(opened: &Opened, method: &str, params: Value, context: &Context) -> Reply {
    let ask = Ask::parse(method, &params.into()).unwrap();
    opened.surface.ask(ask, context).await.unwrap()
}

fn told(reply: &Reply) -> String {
    match reply {
        Reply::Result(json) => json.to_string(),
        Reply::Error(error) => format!("error: {}", error.message),
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_is_nobodys_but_its_callers() {
    let opened = open(vec![worker("up", "t1", "done".to_owned()).0], |_| {}).await;
    let (ann, bob) = (caller("ann"), caller("bob"));
    begin(&opened, "up", &ann).await;
    for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
        let theirs = ask(&opened, method, json!({"taskId": "t1"}), &bob).await;
        assert_eq!(told(&theirs), "error: no upstream has that task", "{method}");
        let own = ask(&opened, method, json!({"taskId": "t1"}), &ann).await;
        assert!(matches!(own, Reply::Result(_)), "{method}: {own:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_that_two_upstreams_have_is_asked_of_neither() {
    let ((one, first), (two, second)) =
        (worker("one", "t1", "1".to_owned()), worker("two", "t1", "2".to_owned()));
    let opened = open(vec![one, two], |_| {}).await;
    let ann = caller("ann");
    begin(&opened, "one", &ann).await;
    begin(&opened, "two", &ann).await;
    let reply = ask(&opened, "tasks/cancel", json!({"taskId": "t1"}), &ann).await;
    assert_eq!(told(&reply), "error: several upstreams have a task `t1`");
    for provider in [first, second] {
        assert!(provider.asked().iter().all(|ask| ask.method() == "tools/call"));
    }
}

#[tokio::test(start_paused = true)]
async fn only_what_is_asked_about_tasks_goes_where_a_task_is() {
    let (upstream, provider) = worker("up", "t1", "done".to_owned());
    let rule = Rule { meta_tool: Some("resource_read".to_owned()), ..Rule::any(Action::Deny) };
    let rules = rules::Config { default: Action::Allow, rules: vec![rule] };
    let check = Arc::new(Rules::new(rules)) as _;
    let stages = Stages { checks: vec![check], ..Stages::default() };
    let opened = open(vec![upstream], |parts| parts.policies.stages = stages).await;
    let ann = caller("ann");
    begin(&opened, "up", &ann).await;
    let params = json!({"uri": "up://x", "taskId": "t1"});
    let reply = ask(&opened, "resources/read", params, &ann).await;
    assert!(told(&reply).contains("policy denied"), "{reply:?}");
    assert_eq!(provider.asked().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_came_of_a_task_is_masked_gated_and_recorded() {
    let text = format!("{SECRET} {}", "x".repeat(20_000));
    let opened = open(vec![worker("up", "t1", text).0], |_| {}).await;
    let ann = caller("ann");
    begin(&opened, "up", &ann).await;
    let task = json!({"taskId": "t1"});
    let result = told(&ask(&opened, "tasks/result", task.clone(), &ann).await);
    assert!(result.contains("**Gated:**") && result.len() < 2_000, "{result}");
    assert!(!result.contains("sizelimit"), "nothing may run again for it: {result}");
    let got = ask(&opened, "tasks/get", task.clone(), &ann).await;
    let Reply::Result(got) = got else { panic!("{got:?}") };
    let got = got.to_value().unwrap();
    assert_eq!((&got["taskId"], &got["status"]), (&json!("t1"), &json!("completed")));
    let inner = got["result"]["content"][0]["text"].as_str().unwrap();
    assert!(inner.starts_with("**Gated:**"), "{inner}");
    let endings: Vec<Ending> =
        opened.records.records().into_iter().map(|record| record.ending).collect();
    assert_eq!(endings, [Ending::Answered, Ending::Gated, Ending::Gated]);

    let client = Arc::new(Client::named("test", ""));
    let direct = opened.gateway.surface(Surface::Direct).provider_for(&client, &Arc::default());
    let whole = Ask::parse("tasks/result", &task.into()).unwrap();
    let whole = told(&direct.ask(whole, &ann).await.unwrap());
    assert!(20_000 < whole.len() && !whole.contains(SECRET));
}

#[tokio::test(start_paused = true)]
async fn a_log_level_is_told_without_waiting_for_who_does_not_answer() {
    let (upstream, provider) = worker("up", "t1", String::new());
    let hung = worker("hung", "t1", String::new()).1;
    let hung = Scripts::new(move |_, _| Ok(Arc::new(Hung(Arc::clone(&hung))) as Arc<dyn Provider>));
    let opened = open(vec![Upstream::new("hung", hung), upstream], |_| {}).await;
    settle().await;
    let since = tokio::time::Instant::now();
    ask(&opened, "logging/setLevel", json!({"level": "error"}), &caller("ann")).await;
    assert!(since.elapsed().as_secs() < 10, "{:?}", since.elapsed());
    assert_eq!(provider.asked().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn news_of_a_client_reach_what_is_up_and_start_nothing() {
    let awake = orders();
    let asleep = Scripts::of(orders());
    let resting = Upstream {
        start: Start::OnDemand,
        fixed_listing: Some(awake.listing()),
        ..Upstream::new("asleep", Arc::clone(&asleep) as _)
    };
    let awake_one = Upstream::new("awake", Scripts::of(Arc::clone(&awake)));
    let opened = open(vec![awake_one, resting], |_| {}).await;
    let news =
        Ask::Other { method: "notifications/roots/list_changed".to_owned(), params: Object::new() };
    opened.surface.ask(news.clone(), &Context::anonymous()).await.unwrap();
    assert_eq!(awake.asked(), [news]);
    assert_eq!(asleep.opened(), 0);
    let calls = |upstream: &Arc<SupervisedUpstream>| upstream.status().calls;
    let pool = opened.gateway.roster().default_pool();
    let calls: Vec<u64> = pool.snapshot().upstreams().iter().map(calls).collect();
    assert_eq!(calls, [0, 0], "it is no call");
}

#[tokio::test(start_paused = true)]
async fn news_of_a_resource_end_with_the_right_to_it() {
    let news = |uri: &str| Event::Updated {
        uri: uri.to_owned(),
        notification: Notification {
            method: "notifications/resources/updated".to_owned(),
            params: Object::new(),
        },
    };
    let deny = Rule { namespace: Some(Pattern::new("up")), ..Rule::any(Action::Deny) };
    let config = rules::Config { default: Action::Allow, rules: vec![deny] };
    let hide = visibility::Rule {
        hide: vec!["resource:up://x".parse().unwrap()],
        ..visibility::Rule::default()
    };
    let hide = visibility::Config { rules: vec![hide], ..visibility::Config::default() };
    for forbids in ["rule", "visibility"] {
        let (upstream, provider) = worker("up", "t1", "done".to_owned());
        let opened = open(vec![upstream], |_| {}).await;
        let mut events = opened.surface.events();
        provider.tell(news("up://x"));
        assert_eq!(events.next().await, Some(news("up://x")));
        match forbids {
            "rule" => {
                let checks = vec![Arc::new(Rules::new(config.clone())) as _];
                opened.gateway.control(Controls {
                    stages: Stages { checks, ..Stages::default() },
                    default_picks: crate::dispatch::DefaultPicks::default(),
                    gate: artifacts::gate::Config::default(),
                    meta: crate::surface::meta::Config::default(),
                    listed: crate::surface::listed::Config::default(),
                    inspection: roster::listing_check::Config::default(),
                });
            }
            _ => opened.gateway.set_visibility(hide.clone()),
        }
        provider.tell(news("up://x"));
        let last = Notification { method: "notifications/last".to_owned(), params: Object::new() };
        provider.tell(Event::Notification(last.clone()));
        let told = async {
            let mut told = Vec::new();
            while let Some(event) = events.next().await {
                let is_last = event == Event::Notification(last.clone());
                told.push(event);
                if is_last {
                    break;
                }
            }
            told
        };
        let told = tokio::time::timeout(Duration::from_secs(60), told).await.unwrap();
        let is_news = |event: &Event| matches!(event, Event::Updated { .. });
        assert!(!told.iter().any(is_news), "{forbids}: {told:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_template_is_completed_only_towards_what_may_be_read() {
    let template = json!({"uriTemplate": "file:///{+path}", "name": "any"});
    let listed =
        Listing { templates: vec![Template::parse(template.into()).unwrap()], ..listing(vec![]) };
    let found = ["srv/secret", "pub/x", "srv", "pub/../srv/key", "den/x#", "sub"];
    let completion = json!({"completion": {"values": found, "total": 6, "hasMore": true}, "x": 1});
    let provider = Scripted::new(listed, move |_| Ok(Reply::Result(completion.clone().into())));
    let upstreams = vec![Upstream::new("files", Scripts::of(Arc::clone(&provider)))];
    let deny = Rule { tool: Some(Pattern::new("file:///den/*")), ..Rule::any(Action::Deny) };
    let config = rules::Config { default: Action::Allow, rules: vec![deny] };
    let hide = visibility::Rule {
        hide: vec!["resource:file:///srv/*".parse().unwrap()],
        ..visibility::Rule::default()
    };
    let opened = open(upstreams, |parts| {
        let checks = vec![Arc::new(Rules::new(config)) as _];
        parts.policies.stages = Stages { checks, ..Stages::default() };
        let config = visibility::Config { rules: vec![hide], ..visibility::Config::default() };
        parts.policies.visibility = config.into();
    })
    .await;
    for (value, goes_on) in [
        ("pub/", true),
        ("", true),
        ("srv/", false),
        ("srv/secret", false),
        ("pub/../srv/", false),
        ("%73rv/", false),
        ("s\trv/", false),
        ("srv/secret#", false),
        ("srv?", false),
        ("den/", false),
        ("den/x", false),
        ("pub/..//den/x", false),
    ] {
        let before = provider.asked().len();
        let params = json!({"ref": {"type": "ref/resource", "uri": "file:///{+path}"},
                            "argument": {"name": "path", "value": value}});
        let reply = ask(&opened, "completion/complete", params, &Context::anonymous()).await;
        assert_eq!(before < provider.asked().len(), goes_on, "{value:?}: {}", told(&reply));
        if let Reply::Result(result) = &reply {
            let known = json!({"x": 1, "completion": {"values": ["pub/x", "sub"]}});
            assert_eq!(result.to_value().unwrap(), known, "{value:?}");
        }
    }
}
