use std::sync::Arc;

use serde_json::{Value, json};
use testkit::{Scripted, listing, tool};
use tool::{Client, GetPrompt, Identity, Prompt, ReadResource, Resource, Template};

use super::*;
use crate::fixture::{Opened, Scripts, open};
use roster::Upstream;

const SURFACES: [Surface; 4] = [Surface::Cash, Surface::Gateway, Surface::Proxy, Surface::Direct];

/// A gate in front of one upstream that answers everything it hears.
async fn gate() -> (Opened, Arc<Scripted>) {
    let mut listed =
        listing(vec![tool("plain", "Does a thing.", &json!({"query": {"type": "string"}}))]);
    let resource = json!({"uri": "file:///pub/a", "name": "a"});
    listed.resources.push(Resource::parse(resource.into()).unwrap());
    let template = json!({"uriTemplate": "file:///{+path}", "name": "any"});
    listed.templates.push(Template::parse(template.into()).unwrap());
    listed.prompts.push(Prompt::parse(json!({"name": "p"}).into()).unwrap());
    let provider = Scripted::new(listed, |_| Ok(Reply::text("ran")));
    let upstreams = vec![Upstream::new("shop", Scripts::of(Arc::clone(&provider)))];
    let opened = open(upstreams, |parts| parts.server.listed.read_tool = true).await;
    (opened, provider)
}

async fn answer(opened: &Opened, surface: Surface, ask: Ask) -> String {
    let (client, caller) = (Arc::new(Client::named("test", "")), Arc::<Identity>::default());
    let provider = opened.gateway.surface(surface).provider_for(&client, &caller);
    let context = Context { caller, ..Context::anonymous() };
    format!("{:?}", provider.ask(ask, &context).await)
}

fn call(name: &str, arguments: Value) -> Ask {
    Ask::Call(Call::new(name, arguments.into()))
}

fn other(method: &str, params: Value) -> Ask {
    Ask::Other { method: method.to_owned(), params: Object::parse(&params.into()).unwrap() }
}

fn complete(reference: &Value, argument: &Value) -> Ask {
    let params = json!({"ref": reference, "argument": argument});
    Ask::Complete(Object::parse(&params.into()).unwrap())
}

fn read(uri: &str) -> Ask {
    Ask::ReadResource(ReadResource { uri: uri.to_owned(), other_params: Object::new() })
}

/// Every way to name something, on every surface that has it.
fn questions(long: &str) -> Vec<(Surface, Ask)> {
    let mut all = Vec::new();
    for tool in ["call", "call_read"] {
        for key in ["namespace", "function", "Name_Space", "FUNCTION"] {
            let mut given = json!({"namespace": "shop", "function": "plain"});
            given.as_object_mut().unwrap().retain(|known, _| !name::same(known, key));
            given[key] = json!(long);
            all.push((Surface::Cash, call(tool, given.clone())));
            all.push((Surface::Cash, call(tool, json!({"calls": [given]}))));
        }
    }
    for (tool, keys) in [("help", &HELP_NAMES[..]), ("skill", &SKILL_NAMES[..])] {
        for key in keys {
            all.push((Surface::Cash, call(tool, json!({*key: long}))));
            all.push((Surface::Cash, call(tool, json!({"kwargs": {*key: long}}))));
            let written = json!({*key: long}).to_string();
            all.push((Surface::Cash, call(tool, json!({"kwargs": written}))));
        }
    }
    for empty in ["", "x"] {
        let given = json!({"skillname": empty, "kwargs": {"Skill_Name": "", "query": long}});
        all.push((Surface::Cash, call("skill", given)));
    }
    let find = json!({"namespace": "gatelet", "function": "find", "kwargs": {"query": long}});
    all.push((Surface::Cash, call("call", find)));
    for surface in [Surface::Gateway, Surface::Proxy] {
        for tool in meta::names() {
            if surface == Surface::Proxy && !super::super::stripped::META_TOOLS.contains(&tool) {
                continue;
            }
            for key in meta::definition::arguments_of(tool) {
                if META_NAMES.iter().any(|name| name::same(name, key)) {
                    all.push((surface, call(tool, json!({key: long}))));
                }
            }
        }
    }
    for surface in SURFACES {
        all.push((surface, call(long, json!({}))));
        all.push((surface, read(long)));
        let prompt =
            GetPrompt { name: long.to_owned(), arguments: None, other_params: Object::new() };
        all.push((surface, Ask::Prompt(prompt)));
        for method in ["resources/subscribe", "resources/unsubscribe", "skills/get"] {
            all.push((surface, other(method, json!({"uri": long}))));
        }
        all.push((surface, other("tasks/get", json!({"taskId": long}))));
        all.push((surface, other("skills/list", json!({"cursor": long}))));
        all.push((surface, other("logging/setLevel", json!({"level": long}))));
        all.push((surface, other(long, json!({}))));
        let argument = json!({"name": "a", "value": "b"});
        all.push((surface, complete(&json!({"type": "ref/resource", "uri": long}), &argument)));
        all.push((surface, complete(&json!({"type": "ref/prompt", "name": long}), &argument)));
    }
    all
}

#[tokio::test(start_paused = true)]
async fn a_name_that_is_too_long_is_refused_whatever_it_names() {
    let (opened, provider) = gate().await;
    let before = provider.asked().len();
    for (surface, ask) in questions(&"a.".repeat(uri::MAX_CHARS)) {
        let said = answer(&opened, surface, ask.clone()).await;
        let shown = catalog::summary::cut(&format!("{ask:?}"), 120);
        assert!(said.contains("is too long"), "{} {shown}: {said}", surface.name());
        assert!(said.len() < 1_000, "what is too long is not repeated: {shown}");
    }
    assert_eq!(provider.asked().len(), before, "no upstream hears of it");
}

#[tokio::test(start_paused = true)]
async fn a_name_of_ordinary_length_is_judged_by_what_it_names() {
    let (opened, _) = gate().await;
    for (surface, ask) in questions(&"a.".repeat(20)) {
        let said = answer(&opened, surface, ask).await;
        assert!(!said.contains("is too long"), "{}: {said}", surface.name());
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_tool_or_a_skill_takes_may_be_long() {
    let (opened, _) = gate().await;
    let long = "a.".repeat(uri::MAX_CHARS);
    let kwargs = json!({"namespace": "shop", "function": "plain", "kwargs": {"query": long}});
    for (surface, ask) in [
        (Surface::Cash, call("call", kwargs)),
        (Surface::Direct, call("shop_plain", json!({"query": long}))),
        (
            Surface::Gateway,
            call("tool_execute", json!({"tool_id": "shop:plain", "args": {"query": long}})),
        ),
    ] {
        let said = answer(&opened, surface, ask).await;
        assert!(said.contains("ran"), "{}: {said}", surface.name());
    }
    let skill = call("skill", json!({"skillname": "way", "kwargs": {"query": long, "name": long}}));
    let said = answer(&opened, Surface::Cash, skill).await;
    assert!(!said.contains("is too long"), "{said}");
}

#[tokio::test(start_paused = true)]
async fn a_uri_with_what_servers_drop_from_it_reaches_none() {
    let (opened, provider) = gate().await;
    let before = provider.asked().len();
    for uri in [
        "file:///p\tub/a",
        "file:///pub/a\n",
        "\u{1}file:///pub/a",
        " file:///pub/a",
        "file:///pub/.\r./x",
    ] {
        for surface in SURFACES {
            let argument = json!({"name": "path", "value": "pub"});
            for ask in [
                read(uri),
                other("resources/subscribe", json!({"uri": uri})),
                other("skills/get", json!({"uri": uri})),
                complete(&json!({"type": "ref/resource", "uri": uri}), &argument),
            ] {
                let said = answer(&opened, surface, ask).await;
                assert!(said.contains("leave it out"), "{} {uri:?}: {said}", surface.name());
            }
        }
        for given in [json!({"uri": uri}), json!({"resource_id": uri})] {
            let said = answer(&opened, Surface::Gateway, call("resource_read", given)).await;
            assert!(!said.contains("ran"), "{uri:?}: {said}");
        }
        let value = json!({"name": "path", "value": uri});
        let reference = json!({"type": "ref/resource", "uri": "file:///{+path}"});
        let said = answer(&opened, Surface::Cash, complete(&reference, &value)).await;
        assert!(uri.starts_with(' ') || !said.contains("ran"), "{uri:?}: {said}");
    }
    let heard = provider.asked().len() - before;
    assert!(heard <= 1, "only the space within a longer URI goes on: {heard}");
}
