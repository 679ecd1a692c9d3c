//! Kept answers as resources: there for whoever they were made for, and for
//! nobody else.

use serde_json::{Value, json};

use crate::kit::{Home, Pipe, Served, Site, shell};

const SURFACES: [&str; 4] = ["cash", "gateway", "proxy", "direct"];

/// An answer that is too long to go out.
fn long() -> Value {
    let numbers: Vec<u32> = (0..10_000).collect();
    json!({"namespace": "json", "function": "query", "kwargs": {"json": numbers, "filter": "."}})
}

/// The kept answers among listed resources.
fn kept(listed: &Value) -> Vec<Value> {
    let resources = listed["resources"].as_array().unwrap_or_else(|| panic!("{listed}"));
    let ours = |one: &&Value| one["uri"].as_str().unwrap().starts_with("artifact://");
    resources.iter().filter(ours).cloned().collect()
}

fn listed(site: &Site, key: Option<&str>) -> Vec<Value> {
    kept(&site.asked(key, "resources/list", &json!({}))["result"])
}

#[test]
fn a_kept_answer_is_a_resource_of_its_owner_on_every_surface() {
    let home = Home::with("[builtin]\ntools = true\n");
    let key = |who: &str| shell(&home, &["key", "create", who]).out.trim().to_owned();
    let (ann, bob) = (key("ann"), key("bob"));
    let served = Served::start(&home);
    assert_eq!(listed(&served.at("cash"), Some(&ann)), Vec::<Value>::new());
    served.told(Some(&ann), "call", &long());
    let uri = listed(&served.at("cash"), Some(&ann))[0]["uri"].clone();
    for surface in SURFACES {
        let site = served.at(surface);
        let mine = listed(&site, Some(&ann));
        assert_eq!(mine.len(), 1, "{surface}: {mine:?}");
        assert_eq!(mine[0]["uri"], uri, "{surface}");
        assert_eq!(mine[0]["name"], "json/query", "{surface}");
        assert_eq!(mine[0]["mimeType"], "application/json", "{surface}");
        let read = |key| {
            site.asked(key, "resources/read", &json!({"uri": uri}))["result"]["contents"][0]["text"]
                .as_str()
                .map(str::to_owned)
        };
        let whole = read(Some(&ann)).unwrap();
        assert_eq!(mine[0]["size"], whole.len(), "{surface}");
        assert_eq!(serde_json::from_str::<Vec<u32>>(&whole).unwrap().len(), 10_000, "{surface}");
        for other in [Some(bob.as_str()), None] {
            assert_eq!(listed(&site, other), Vec::<Value>::new(), "{surface}");
            assert_eq!(read(other), None, "{surface}");
        }
    }
}

#[test]
fn a_kept_answer_is_a_resource_of_its_session() {
    let home = Home::with("[builtin]\ntools = true\n[artifacts]\nstore = \"memory\"\n");
    let mut pipe = Pipe::open(&home);
    pipe.verb("call", &long());
    let list = |pipe: &mut Pipe| kept(&pipe.request("resources/list", &json!({}))["result"]);
    let mine = list(&mut pipe);
    assert_eq!(mine.len(), 1, "{mine:?}");
    let read = pipe.request("resources/read", &json!({"uri": mine[0]["uri"]}));
    assert!(read["result"]["contents"][0]["text"].is_string(), "{read}");
    assert_eq!(list(&mut Pipe::open(&home)), Vec::<Value>::new());
}
