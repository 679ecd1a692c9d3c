use std::sync::Arc;

use serde_json::{Value, json};
use testkit::{Scripted, listing, tool};
use tool::{Ask, Client, Context, Json, Listing, Provider, Reply, RpcError, Server};

use crate::choice::Surface;
use crate::fixture::{Opened, Scripts, open};
use roster::Upstream;

const SURFACES: [Surface; 4] = [Surface::Cash, Surface::Gateway, Surface::Proxy, Surface::Direct];

/// What each capability promises: methods, each with parameters that can be read.
const PROMISES: &[(&str, &[(&str, &str)])] = &[
    ("tools", &[]),
    (
        "resources",
        &[
            ("resources/read", r#"{"uri":"x://y"}"#),
            ("resources/subscribe", r#"{"uri":"x://y"}"#),
            ("resources/unsubscribe", r#"{"uri":"x://y"}"#),
        ],
    ),
    ("prompts", &[("prompts/get", r#"{"name":"x"}"#)]),
    (
        "completions",
        &[(
            "completion/complete",
            r#"{"ref":{"type":"ref/prompt","name":"x"},"argument":{"name":"a","value":""}}"#,
        )],
    ),
    ("logging", &[("logging/setLevel", r#"{"level":"info"}"#)]),
    ("tasks", &[("tasks/get", r#"{"taskId":"1"}"#), ("tasks/cancel", r#"{"taskId":"1"}"#)]),
    ("tasks.cancel", &[("tasks/cancel", r#"{"taskId":"1"}"#)]),
    ("tasks.requests", &[]),
    (
        "io.modelcontextprotocol/tasks",
        &[
            ("tasks/get", r#"{"taskId":"1"}"#),
            ("tasks/update", r#"{"taskId":"1"}"#),
            ("tasks/cancel", r#"{"taskId":"1"}"#),
        ],
    ),
    ("io.modelcontextprotocol/ui", &[]),
    ("io.modelcontextprotocol/grouping", &[("groups/list", "{}")]),
    (
        "io.modelcontextprotocol/skills",
        &[("skills/list", "{}"), ("skills/get", r#"{"uri":"skill://x/SKILL.md"}"#)],
    ),
];

/// An upstream that declares all that there is, and answers none of it.
fn boasting() -> Upstream {
    let capabilities = json!({
        "tools": {},
        "tasks": {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}},
        "extensions": {
            "io.modelcontextprotocol/tasks": {},
            "io.modelcontextprotocol/ui": {},
            "io.modelcontextprotocol/skills": {"directoryRead": true},
            "io.modelcontextprotocol/grouping": {},
            "com.example/own": {},
            "gatelet/cash": {},
        },
    });
    let listing = Listing {
        server: Server::new("boast", "1", capabilities.into()),
        ..listing(vec![tool("f", "F.", &json!({}))])
    };
    let provider =
        Scripted::new(listing, |_| Ok(Reply::Error(RpcError::new(-32601, "not here, either"))));
    Upstream::new("boast", Scripts::of(provider))
}

fn provider(opened: &Opened, surface: Surface) -> Arc<dyn Provider> {
    let client = Arc::new(Client::named("test", ""));
    opened.gateway.surface(surface).provider_for(&client, &Arc::default())
}

fn capabilities(provider: &Arc<dyn Provider>) -> Value {
    provider.listing().server.capabilities.to_value().unwrap()
}

#[tokio::test(start_paused = true)]
async fn no_capability_promises_a_method_that_is_not_answered() {
    for groups in [false, true] {
        promises_are_kept(
            &open(vec![boasting()], |parts| parts.server.listed.groups = groups).await,
        )
        .await;
    }
}

async fn promises_are_kept(opened: &Opened) {
    for surface in SURFACES {
        let provider = provider(opened, surface);
        let declared = capabilities(&provider);
        let keys = |value: &Value, before: &str| -> Vec<String> {
            let members = value.as_object().into_iter().flatten();
            members.map(|(key, _)| format!("{before}{key}")).collect()
        };
        let mut all = keys(&declared, "");
        all.retain(|key| !["extensions", "experimental"].contains(&key.as_str()));
        all.extend(keys(&declared["extensions"], ""));
        all.extend(keys(&declared["tasks"], "tasks."));
        for key in all {
            let promise = PROMISES.iter().find(|(name, _)| *name == key);
            let (_, methods) = promise.unwrap_or_else(|| panic!("what does `{key}` promise?"));
            for (method, params) in *methods {
                let ask = Ask::parse(method, &Json::parse(*params).unwrap()).unwrap();
                let reply = provider.ask(ask, &Context::anonymous()).await.unwrap();
                let unknown = matches!(&reply, Reply::Error(error) if error.code == -32601);
                assert!(!unknown, "{surface:?} declares `{key}` and does not answer {method}");
            }
        }
        let skills = &declared["extensions"]["io.modelcontextprotocol/skills"];
        assert_eq!(*skills, json!({}), "directories are not read here");
    }
}

#[tokio::test(start_paused = true)]
async fn what_nobody_has_is_not_declared() {
    let opened = open(Vec::new(), |_| {}).await;
    for surface in SURFACES {
        let declared = capabilities(&provider(&opened, surface));
        assert_eq!(declared.get("extensions"), None, "{surface:?} {declared}");
        assert_eq!(declared.get("tasks"), None, "{surface:?} {declared}");
    }
}
