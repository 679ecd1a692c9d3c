use std::sync::Arc;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use testkit::{Scripted, listing, tool};
use tool::{Ask, Client, Context, Json, Listing, Reply, RpcError, Server};

use crate::choice::Surface;
use crate::fixture::{Opened, Scripts, open};
use policy::visibility;
use roster::Upstream;
use skills::{File, Library};

const SURFACES: [Surface; 4] = [Surface::Cash, Surface::Gateway, Surface::Proxy, Surface::Direct];

const TEXT: &str = "---\nname: refunds\ndescription: Pays back.\n---\n\nPay.\n";

fn digest(text: &str) -> String {
    format!("sha256:{}", tool::hex::encode(&Sha256::digest(text)))
}

/// An upstream with a skill and a file beside it, which gives `text` for its
/// `SKILL.md`.
fn school(text: &'static str) -> Arc<Scripted> {
    let uri = "skill://acme/refunds/SKILL.md";
    let entry = json!({
        "uri": uri,
        "frontmatter": {"name": "refunds", "description": "Pays back."},
        "resources": [
            {"uri": uri, "digest": digest(TEXT), "size": TEXT.len()},
            {"uri": "skill://acme/refunds/form.md", "digest": digest("Form"), "size": 4},
        ],
    });
    let capabilities =
        json!({"resources": {}, "extensions": {"io.modelcontextprotocol/skills": {}}});
    let listing = Listing {
        server: Server::new("school", "1", capabilities.into()),
        ..listing(vec![tool("f", "F.", &json!({}))])
    };
    Scripted::new(listing, move |ask| {
        let contents = |uri: &str, text: &str| {
            Ok(Reply::Result(json!({"contents": [{"uri": uri, "text": text}]}).into()))
        };
        match ask {
            Ask::Other { method, .. } if method == "skills/list" => {
                Ok(Reply::Result(json!({"skills": [entry.clone()], "ttlMs": 60_000}).into()))
            }
            Ask::ReadResource(read) if read.uri.ends_with("form.md") => contents(&read.uri, "Form"),
            Ask::ReadResource(read) => contents(&read.uri, text),
            Ask::Call(_) | Ask::Prompt(_) | Ask::Complete(_) | Ask::Other { .. } => {
                Ok(Reply::Error(RpcError::new(-32601, "no")))
            }
        }
    })
}

fn library() -> Library {
    let text = "---\nname: create-order\ndescription: Orders.\n---\n\nDo.\n".to_owned();
    Library::parse(&[File { path: "orders/create-order/SKILL.md".to_owned(), text }]).0
}

async fn opened(text: &'static str, hide: &[&str]) -> (Opened, Arc<Scripted>) {
    let provider = school(text);
    let upstream = Upstream::new("shop", Scripts::of(Arc::clone(&provider)));
    let hide = hide.iter().map(|what| what.parse().unwrap()).collect();
    let rules = vec![visibility::Rule { hide, ..visibility::Rule::default() }];
    let opened = open(vec![upstream], |parts| {
        parts.skills = library();
        parts.policies.visibility =
            visibility::Config { rules, ..visibility::Config::default() }.into();
    })
    .await;
    (opened, provider)
}

async fn ask(opened: &Opened, surface: Surface, method: &str, params: Value) -> Result<Value, i64> {
    let client = Arc::new(Client::named("test", ""));
    let provider = opened.gateway.surface(surface).provider_for(&client, &Arc::default());
    let ask = Ask::parse(method, &Json::from(params)).unwrap();
    match provider.ask(ask, &Context::anonymous()).await.unwrap() {
        Reply::Result(result) => Ok(result.to_value().unwrap()),
        Reply::Error(error) => Err(error.code),
    }
}

const OWN: &str = "skill://gatelet/orders/create-order/SKILL.md";
const THEIRS: &str = "skill://shop/acme/refunds/SKILL.md";

#[tokio::test(start_paused = true)]
async fn every_surface_lists_gets_and_reads_skills_with_true_digests() {
    let (opened, _) = opened(TEXT, &[]).await;
    for surface in SURFACES {
        let listed = ask(&opened, surface, "skills/list", json!({})).await.unwrap();
        let skills = listed["skills"].as_array().unwrap();
        let uris: Vec<&str> = skills.iter().filter_map(|skill| skill["uri"].as_str()).collect();
        assert_eq!(uris, [OWN, THEIRS], "{surface:?}");
        assert!(listed["ttlMs"].is_u64() && listed["cacheScope"] == "private", "{listed}");
        for skill in skills {
            let uri = json!({"uri": skill["uri"]});
            let got = ask(&opened, surface, "skills/get", uri).await.unwrap();
            assert_eq!(got["skill"], *skill);
            for file in skill["resources"].as_array().unwrap() {
                let uri = json!({"uri": file["uri"]});
                let read = ask(&opened, surface, "resources/read", uri).await.unwrap();
                let content = &read["contents"][0];
                assert_eq!(content["uri"], file["uri"], "{surface:?}");
                let text = content["text"].as_str().unwrap();
                assert_eq!(file["digest"], digest(text), "{surface:?} {content}");
                assert_eq!(file["size"], text.len());
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_no_skill_is_an_invalid_parameter() {
    let (opened, school) = opened(TEXT, &[]).await;
    for uri in ["skill://acme/refunds/SKILL.md", "skill://shop/other/SKILL.md", "", "x"] {
        let got = ask(&opened, Surface::Cash, "skills/get", json!({"uri": uri})).await;
        assert_eq!(got, Err(-32602), "{uri}");
    }
    assert_eq!(ask(&opened, Surface::Cash, "skills/get", json!({})).await, Err(-32602));
    let before = school.asked().len();
    let outside = json!({"uri": "skill://shop/acme/refunds/../../etc/SKILL.md"});
    assert!(ask(&opened, Surface::Cash, "resources/read", outside).await.is_err());
    assert_eq!(school.asked().len(), before, "nothing was asked of the upstream");
}

#[tokio::test(start_paused = true)]
async fn a_text_that_is_not_the_listed_one_does_not_go_out() {
    let (opened, _) = opened("something else", &[]).await;
    let read = ask(&opened, Surface::Cash, "resources/read", json!({"uri": THEIRS})).await;
    assert_eq!(read, Err(-32603));
}

#[tokio::test(start_paused = true)]
async fn hidden_skills_are_neither_listed_nor_got_nor_read() {
    let hide = ["skill:orders.*", "skill:shop.*"];
    let (opened, school) = opened(TEXT, &hide).await;
    for surface in SURFACES {
        let listed = ask(&opened, surface, "skills/list", json!({})).await.unwrap();
        assert_eq!(listed["skills"], json!([]), "{surface:?}");
        // As the skill's file, and past the skill, by the upstream's own address.
        let past = ["skill://acme/refunds/SKILL.md", "SKILL://acme/x/../refunds/form.md"];
        for uri in [OWN, THEIRS].into_iter().chain(past) {
            let uri = json!({"uri": uri});
            assert_eq!(ask(&opened, surface, "skills/get", uri.clone()).await, Err(-32602));
            assert!(ask(&opened, surface, "resources/read", uri.clone()).await.is_err());
            assert!(ask(&opened, surface, "resources/subscribe", uri).await.is_err());
        }
    }
    let read = school.asked().iter().any(|ask| matches!(ask, Ask::ReadResource(_)));
    assert!(!read, "nothing hidden was read");
}

#[tokio::test(start_paused = true)]
async fn an_entry_with_a_secret_in_it_is_not_served() {
    let key = format!("sk-proj-{}", "a1B2c3D4".repeat(6));
    let uri = "skill://leak/SKILL.md";
    let entry = json!({
        "uri": uri,
        "frontmatter": {"name": "leak", "description": "Leaks.", "license": format!("key {key}")},
        "resources": [{"uri": uri, "digest": digest("x"), "size": 1}],
    });
    let capabilities = json!({"extensions": {"io.modelcontextprotocol/skills": {}}});
    let listing = Listing {
        server: Server::new("school", "1", capabilities.into()),
        ..listing(vec![tool("f", "F.", &json!({}))])
    };
    let provider = Scripted::new(listing, move |_| {
        Ok(Reply::Result(json!({"skills": [entry.clone()], "ttlMs": 60_000}).into()))
    });
    let opened = open(vec![Upstream::new("shop", Scripts::of(provider))], |parts| {
        let on = redact::Config { enabled: true, known_secrets: Vec::new() };
        parts.policies.stages.scrubber = Arc::new(redact::Scrubber::new(on));
    })
    .await;
    let listed = ask(&opened, Surface::Cash, "skills/list", json!({})).await.unwrap();
    assert_eq!(listed["skills"], json!([]));
}

#[tokio::test(start_paused = true)]
async fn the_extension_is_declared_where_it_is_served() {
    let declared = |opened: &Opened| {
        let client = Arc::new(Client::named("test", ""));
        SURFACES.map(|surface| {
            let provider = opened.gateway.surface(surface).provider_for(&client, &Arc::default());
            let capabilities = provider.listing().server.capabilities.to_value().unwrap();
            capabilities["extensions"]["io.modelcontextprotocol/skills"].clone()
        })
    };
    let (both, _) = opened(TEXT, &[]).await;
    assert_eq!(declared(&both), [(); 4].map(|()| json!({})));
    let none = open(Vec::new(), |_| {}).await;
    assert_eq!(declared(&none), [(); 4].map(|()| Value::Null));
    let own = open(Vec::new(), |parts| parts.skills = library()).await;
    assert_eq!(declared(&own), [(); 4].map(|()| json!({})));
    let (hidden, _) = opened(TEXT, &["skill:orders.*", "shop"]).await;
    assert_eq!(declared(&hidden), [(); 4].map(|()| Value::Null));
}
