//! What the reference computed, against the live surface. Where it taxes small
//! results, loses blobs or mistakes numbers for status codes, we do not follow.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use tool::{RpcError, Sent};

use super::*;
use crate::surface::stripped::{decode, encode};
use artifacts::envelope::parts;
use artifacts::{Artifact, Owner};

fn vectors(name: &str) -> Value {
    let text = match name {
        "execute" => include_str!("../../../../tests/vectors/contextweaver_execute_envelope.json"),
        _ => include_str!("../../../../tests/vectors/contextweaver_meta_tools.json"),
    };
    serde_json::from_str(text).unwrap()
}

/// A surface over upstreams that are labelled like the namespaces of these
/// tools and all answer alike.
async fn over(
    surface: Surface,
    tools: &[Value],
    answer: impl Fn() -> Result<Reply, Failure> + Clone + Send + Sync + 'static,
    change: impl FnOnce(&mut GatewayParts),
) -> Opened {
    let label = |tool: &Value| tool["name"].as_str().unwrap().split('.').next().unwrap().to_owned();
    let mut labels: Vec<String> = tools.iter().map(label).collect();
    labels.sort();
    labels.dedup();
    let providers: Vec<Arc<Scripted>> = labels
        .iter()
        .map(|own| {
            let mine = tools.iter().filter(|tool| label(tool) == *own);
            let tools = mine.map(|raw| Tool::parse(raw.clone().into()).unwrap()).collect();
            let answer = answer.clone();
            Scripted::new(Listing { tools, ..Listing::default() }, move |_| answer())
        })
        .collect();
    let upstreams = labels.iter().zip(&providers);
    let upstreams = upstreams.map(|(own, it)| Upstream::new(own, Scripts::of(Arc::clone(it))));
    let mut parts = GatewayParts::new(upstreams.collect(), Arc::new(Fake::default()));
    change(&mut parts);
    let gate = Gate::new(parts);
    let client = Arc::new(Client::named("test", ""));
    let surface = gate.surface(surface).provider_for(&client, &Arc::default());
    settle().await;
    Opened { surface, provider: Arc::clone(&providers[0]), gate }
}

#[tokio::test(start_paused = true)]
async fn small_results_pass_as_they_are_whatever_they_hold() {
    let vectors = vectors("execute");
    let tool = &vectors["execute"][0]["tool"];
    for case in vectors["mcp_result_to_envelope"].as_array().unwrap() {
        let result: Json = case["result"].clone().into();
        let reply = Reply::Result(result.clone());
        let answer = {
            let reply = reply.clone();
            move || Ok(reply.clone())
        };
        let opened = over(Surface::Gateway, std::slice::from_ref(tool), answer, |_| {}).await;
        let call = json!({"tool_id": "demo:tool#3cc65d02", "args": {"n": 1}});
        let said = opened.ask("tool_execute", call).await;
        let is_empty = case["result"]["content"].as_array().is_some_and(Vec::is_empty);
        match case["full_text"].as_str() {
            // The reference says so in its envelope, we beside the content. To us an
            // image or a link is an answer, and what has no content another kind of answer.
            Some("(no content)") if is_empty => {
                assert_eq!(said.tool_result().unwrap().text(), "(The answer is empty.)");
            }
            _ => assert_eq!(said, reply, "{case}"),
        }
    }
}

#[test]
fn everything_that_the_reference_keeps_is_a_part() {
    for case in vectors("execute")["mcp_result_to_envelope"].as_array().unwrap() {
        let artifact = Artifact {
            handle: "h".to_owned(),
            owner: Owner::from_context(&Context::anonymous()),
            made: 0,
            upstream: "demo".to_owned(),
            tool: "tool".to_owned(),
            id: String::new(),
            key: String::new(),
            chars: 0,
            result: case["result"].clone().into(),
            raw: None,
            parts: artifacts::PartIndex::default(),
        };
        let parts = parts(&artifact);
        for (handle, stored) in case["stored"].as_object().unwrap() {
            let mut bytes = BASE64.decode(stored["b64"].as_str().unwrap()).unwrap();
            if bytes.is_empty() {
                // The reference ignores blobs; we do not.
                let blob = &case["result"]["content"][0]["resource"]["blob"];
                bytes = BASE64.decode(blob.as_str().unwrap()).unwrap();
            }
            let same = |part: &artifacts::envelope::Part| {
                let json = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).ok();
                let equal = json(&part.bytes).is_some() && json(&part.bytes) == json(&bytes);
                (part.bytes == bytes || equal) && part.media_type == stored["media_type"]
            };
            assert!(parts.iter().any(same), "{handle} of {case}");
        }
    }
}

/// The failure or refusal that an exception of the reference stands for.
fn raised(exception: &Value) -> Result<Reply, Failure> {
    let text = exception["text"].as_str().unwrap().to_owned();
    let bases = exception["bases"].to_string();
    if bases.contains("TimeoutError") {
        Err(Failure::Timeout { after: Duration::from_secs(1) })
    } else if bases.contains("ConnectionRefusedError") {
        Err(Failure::Unavailable { reason: text })
    } else if bases.contains("ConnectionError") {
        Err(Failure::Lost { reason: text, sent: Sent::Perhaps })
    } else {
        Ok(Reply::Error(RpcError::new(-32000, text)))
    }
}

#[tokio::test(start_paused = true)]
async fn calls_end_with_the_codes_of_the_reference() {
    let vectors = vectors("execute");
    let usual = &vectors["execute"][0]["tool"];
    // The vectors tell of a schema that breaks its own rules without showing it.
    let broken =
        json!({"name": "demo.bad", "inputSchema": {"properties": {"a": {"type": "nope"}}}});
    for case in vectors["execute"].as_array().unwrap() {
        let is_broken = case["case"] == "bad schema";
        let tool = if is_broken { &broken } else { usual };
        let tool = if case["tool"].is_object() { &case["tool"] } else { tool };
        let (exception, result) = (case["exception"].clone(), case["upstream_result"].clone());
        let answer = move || match exception.is_object() {
            true => raised(&exception),
            false => Ok(Reply::Result(result.clone().into())),
        };
        let opened = over(Surface::Gateway, std::slice::from_ref(tool), answer, |_| {}).await;
        let id = if is_broken { "demo:bad" } else { "demo:tool#3cc65d02" };
        let args = if case["args"].is_object() { case["args"].clone() } else { json!({"n": 1}) };
        let said = opened.say("tool_execute", json!({"tool_id": id, "args": args})).await;
        match case["response"]["error"].as_str() {
            Some(code) => {
                let text = said.strip_prefix('!').unwrap_or_else(|| panic!("{case}: {said}"));
                let error: Value = serde_json::from_str(text).unwrap();
                // `4010` is no status code; what is left says 403.
                let code = match case["exception"]["text"].as_str() {
                    Some("error 4010 in row 403") => "PERMISSION_DENIED",
                    _ => code,
                };
                assert_eq!(error["error"], code, "{case}");
                assert_eq!(error["retryable"], case["response"]["retryable"], "{case}");
                assert!(error["path"].as_str().unwrap().starts_with(id), "{error}");
                let message = error["message"].as_str().unwrap();
                assert!(message.chars().count() <= 300 && !message.contains('\n'), "{message}");
            }
            None => {
                let failed = case["response"]["status"] == "error";
                assert_eq!(said.starts_with('!'), failed, "{case}: {said}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn dry_runs_report_what_the_reference_reports() {
    let vectors = vectors("execute");
    let tool = &vectors["execute"][0]["tool"];
    for case in vectors["dry_run"].as_array().unwrap() {
        let action = match case["case"].as_str().unwrap() {
            "policy deny" => rules::Action::Deny,
            "policy approval" => rules::Action::Ask,
            _ => rules::Action::Allow,
        };
        let ruled = |parts: &mut GatewayParts| {
            let rules = vec![rules::Rule::any(action)];
            let config = rules::Config { rules, ..rules::Config::default() };
            parts.policies.stages.checks.push(Arc::new(rules::Rules::new(config)));
        };
        let answer = || panic!("a dry run asks nobody");
        let opened = over(Surface::Gateway, std::slice::from_ref(tool), answer, ruled).await;
        let args = if case["case"] == "invalid args" { json!({}) } else { json!({"n": 1}) };
        let dry = json!({"tool_id": "demo:tool#3cc65d02", "args": args, "dry_run": true});
        let said = opened.say("tool_execute", dry).await;
        let told: Value = serde_json::from_str(said.trim_start_matches('!')).unwrap();
        match case["out"]["error"].is_string() {
            true => assert_eq!(told["error"], case["out"]["error"], "{case}"),
            false => assert_eq!(told, case["out"], "{case}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_meta_tools_take_what_the_reference_takes_for_less() {
    let vectors = vectors("meta");
    let all = ["gateway", "primitives", "proxy_meta"].map(|key| vectors[key].as_array().unwrap());
    for theirs in all.into_iter().flatten() {
        let name = theirs["name"].as_str().unwrap();
        let ours = meta::definition::definition(name, "");
        let schema = |raw: &Value| raw["inputSchema"]["properties"].clone();
        for (key, their) in schema(theirs).as_object().unwrap() {
            assert_eq!(schema(&ours)[key]["type"], their["type"], "{name} {key}");
        }
        let cost = |raw: &Value| tokens::count(&raw.to_string());
        assert!(cost(&ours) < cost(theirs), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_proxy_says_that_it_has_no_browsing() {
    let opened = open_on(Surface::Proxy, |_, _| {}).await;
    for name in ["tool_browse", "resource_read", "tool_run"] {
        let reply = opened.ask(name, json!({"query": "read a file"})).await;
        let Reply::Error(RpcError { message: said, .. }) = reply else { panic!("{reply:?}") };
        assert!(said.contains(&format!("no tool `{name}` here")), "{said}");
        assert!(said.contains("tool_hydrate(tool_id)") && !said.contains("HYDRATE"), "{said}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_proxy_strips_and_hydrates_what_the_reference_does() {
    let vectors = vectors("meta");
    let example = &vectors["proxy_tools_list_example"];
    let tools = example["upstream"].as_array().unwrap();
    let answer = || Ok(Reply::text("hello"));
    let opened = over(Surface::Proxy, tools, answer, |_| {}).await;
    let listed = opened.surface.listing();
    for stripped in example["stripped"].as_array().unwrap() {
        let id = stripped["name"].as_str().unwrap();
        if !id.contains(':') {
            continue;
        }
        let name = encode(id);
        assert_eq!(decode(&name).as_deref(), Some(id));
        let ours = listed.tools.iter().find(|tool| tool.name == name);
        let ours = ours.unwrap_or_else(|| panic!("no {name}"));
        assert_eq!(json!(ours.description), stripped["description"]);
    }
    let id = "n0:tool_0#1dee421e";
    let told = opened.say("tool_hydrate", json!({"tool_id": id})).await;
    let told: Value = serde_json::from_str(&told).unwrap();
    let theirs = &vectors["tool_hydrate_example"]["response"]["content"][0]["text"];
    let theirs: Value = serde_json::from_str(theirs.as_str().unwrap()).unwrap();
    assert_eq!(
        (&told["tool_id"], &told["args_schema"]),
        (&theirs["tool_id"], &theirs["args_schema"])
    );
    let unknown = opened.error("tool_hydrate", json!({"tool_id": "x:y#00000000"})).await;
    assert_eq!(
        (unknown["error"].as_str(), unknown["path"].as_str()),
        (Some("HYDRATE_FAILED"), Some("x:y#00000000"))
    );
}
