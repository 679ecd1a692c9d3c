use proptest::prelude::*;

use super::*;
use crate::upstream::from_page;
use crate::{File, Library};

fn library(files: &[(&str, &str)]) -> Library {
    let file =
        |(path, text): &(&str, &str)| File { path: path.to_string(), text: text.to_string() };
    Library::parse(&files.iter().map(file).collect::<Vec<_>>()).0
}

fn served(library: &Library) -> SkillEntries {
    SkillEntries::new(library.newest())
}

/// Returns what an upstream lists, as it is served here.
fn of_entry(entry: &Value) -> SkillEntries {
    let page = json!({"skills": [entry]}).into();
    let skills: Vec<Arc<Skill>> = from_page("shop", &page).0.into_iter().map(Arc::new).collect();
    SkillEntries::new(&skills)
}

fn entries(served: &SkillEntries) -> Vec<Value> {
    served.list(None).to_value().unwrap()["skills"].as_array().unwrap().clone()
}

const REFUNDS: &str = "skill://acme/billing/refunds/SKILL.md";

fn refunds() -> Value {
    let text = "---\nname: refunds\ndescription: Pays back.\n---\n\nDo it.\n";
    json!({
        "uri": REFUNDS,
        "frontmatter": {"name": "refunds", "description": "Pays back.", "license": "MIT"},
        "resources": [
            {"uri": REFUNDS, "digest": digest(text.as_bytes()), "size": text.len()},
            {"uri": "skill://acme/billing/refunds/forms/a.md", "digest": digest(b"A"), "size": 1},
        ],
    })
}

#[test]
fn the_digest_of_a_skill_is_that_of_what_is_read() {
    let text = "---\nname: create-order\ndescription: 'Orders: how.'\nlicense: MIT\nmetadata:\n  \
                version: '2'\n---\n\nDo.\n\n```bash\nrm -rf /\n```\n";
    let library = library(&[("orders/create-order/SKILL.md", text)]);
    let served = served(&library);
    let [entry] = entries(&served).try_into().unwrap();
    let uri = "skill://gatelet/orders/create-order/SKILL.md";
    assert_eq!(entry["uri"], uri);
    let Some(FileLocation::Here { text }) = served.locate(uri) else { panic!("it is here") };
    assert!(!text.contains("rm -rf"), "{text}");
    let resources = json!([{"uri": uri, "digest": digest(text.as_bytes()), "size": text.len()}]);
    assert_eq!(entry["resources"], resources);
    assert_eq!(served.get(uri).unwrap().to_value().unwrap()["skill"], entry);
    assert!(served.get("skill://gatelet/orders/other/SKILL.md").is_none());
    assert_eq!(served.locate("skill://gatelet/orders/create-order/scripts/x.sh"), None);
}

#[test]
fn what_an_entry_says_is_what_stands_in_the_file() {
    for name in ["create-order", "2024", "true", "n", "1e3", "a1"] {
        let text = format!("---\nname: '{name}'\ndescription: \"a: b # c\"\n---\n\nDo.\n");
        let library = library(&[(&format!("{name}/SKILL.md"), &text)]);
        let served = served(&library);
        let [entry] = entries(&served).try_into().unwrap();
        assert_eq!(entry["frontmatter"]["name"], name);
        let uri = entry["uri"].as_str().unwrap();
        assert_eq!(uri, format!("skill://gatelet/{name}/SKILL.md"));
        let Some(FileLocation::Here { text }) = served.locate(uri) else { panic!("it is here") };
        let yaml = text.split("---\n").nth(1).unwrap();
        let read: Value = serde_saphyr::from_str(yaml).unwrap();
        assert_eq!(read, entry["frontmatter"], "{yaml}");
    }
}

#[test]
fn skills_that_would_share_a_directory_keep_apart() {
    let text = |name: &str| format!("---\nname: {name}\ndescription: d\n---\n\n{name}\n");
    let library = library(&[("a-b/SKILL.md", &text("a-b")), ("a_b/SKILL.md", &text("a_b"))]);
    let all = entries(&served(&library));
    let uris: Vec<&str> = all.iter().filter_map(|entry| entry["uri"].as_str()).collect();
    assert_eq!(uris.len(), 2, "{uris:?}");
    assert!(uris.iter().all(|uri| uri.ends_with("/a-b/SKILL.md")), "{uris:?}");
}

#[test]
fn an_upstreams_skill_keeps_its_entry_below_the_upstreams_label() {
    let served = of_entry(&refunds());
    let [entry] = entries(&served).try_into().unwrap();
    let own = "skill://shop/acme/billing/refunds/";
    assert_eq!(entry["uri"], format!("{own}SKILL.md"));
    assert_eq!(entry["frontmatter"], refunds()["frontmatter"]);
    let uris: Vec<&str> =
        entry["resources"].as_array().unwrap().iter().filter_map(|r| r["uri"].as_str()).collect();
    assert_eq!(uris, [format!("{own}SKILL.md"), format!("{own}forms/a.md")]);
    let Some(FileLocation::Upstream { label, uri, listed }) =
        served.locate(&format!("{own}forms/a.md"))
    else {
        panic!("it is the upstream's")
    };
    assert_eq!((label.as_str(), uri.as_str()), ("shop", "skill://acme/billing/refunds/forms/a.md"));
    assert!(listed.is_some());
    assert_eq!(served.locate(&format!("{own}forms/b.md")), None);
    assert_eq!(served.locate(REFUNDS), None, "the upstream's own address is not ours");
}

#[test]
fn what_was_not_listed_so_does_not_go_out() {
    let served = of_entry(&refunds());
    let uri = "skill://shop/acme/billing/refunds/forms/a.md";
    let Some(FileLocation::Upstream { uri: original, listed, .. }) = served.locate(uri) else {
        panic!()
    };
    let read = |content: Value| {
        let result = json!({"contents": [content], "x": 1}).into();
        with_own_uri(&result, &original, uri, listed.as_ref()).map(|json| json.to_string())
    };
    let whole = format!(r#"{{"contents":[{{"text":"A","uri":"{uri}"}}],"x":1}}"#);
    let read_back = read(json!({"uri": original, "text": "A"}));
    assert_eq!(
        read_back.map(|text| serde_json::from_str::<Value>(&text).unwrap()),
        Some(serde_json::from_str::<Value>(&whole).unwrap())
    );
    assert!(read(json!({"uri": original, "blob": "QQ=="})).is_some());
    assert_eq!(read(json!({"uri": original, "text": "B"})), None);
    assert_eq!(read(json!({"uri": original, "text": "AA"})), None);
    assert_eq!(read(json!({"uri": "skill://other", "text": "A"})), None);
    assert_eq!(read(json!({"uri": original})), None);
}

#[test]
fn dynamic_skills_are_read_below_their_directory_and_nowhere_else() {
    let mut entry = refunds();
    entry["resources"] = json!("dynamic");
    let served = of_entry(&entry);
    assert_eq!(entries(&served)[0]["resources"], "dynamic");
    let own = "skill://shop/acme/billing/refunds/";
    let place = |below: &str| served.locate(&format!("{own}{below}"));
    let Some(FileLocation::Upstream { uri, listed: None, .. }) = place("x/y.md") else { panic!() };
    assert_eq!(uri, "skill://acme/billing/refunds/x/y.md");
    for bad in [
        "",
        "../x",
        "a/../../x",
        "%2e%2E/x",
        "a%2f..%2fx",
        "a\\..\\x",
        "x?y",
        "x#y",
        "a b",
        ".",
        "a/./b",
    ] {
        assert_eq!(place(bad), None, "{bad}");
    }
}

#[test]
fn entries_that_hosts_must_refuse_are_not_served() {
    let with = |change: &dyn Fn(&mut Value)| {
        let mut entry = refunds();
        change(&mut entry);
        entries(&of_entry(&entry)).len()
    };
    assert_eq!(with(&|_| {}), 1);
    assert_eq!(with(&|e| e["frontmatter"]["name"] = json!("other")), 0);
    assert_eq!(with(&|e| e["resources"] = json!("no")), 0);
    assert_eq!(with(&|e| e["resources"] = json!([])), 0);
    assert_eq!(with(&|e| e["resources"][0]["digest"] = json!("sha256:1")), 0);
    assert_eq!(with(&|e| e["resources"][1]["uri"] = json!("skill://acme/other/a.md")), 0);
    assert_eq!(with(&|e| e["resources"][1]["uri"] = json!(format!("{REFUNDS}/../../x"))), 0);
    assert_eq!(with(&|e| e["resources"][1]["size"] = json!(17 << 20)), 0);
    assert_eq!(with(&|e| e["resources"][1] = e["resources"][0].clone()), 0);
    assert_eq!(with(&|e| e["uri"] = json!("skill://acme/billing/refunds")), 0);
}

#[test]
fn a_long_list_comes_in_pages_that_hold_everything_once() {
    let files: Vec<(String, String)> = (0..120)
        .map(|n| (format!("s{n}/SKILL.md"), format!("---\nname: s{n}\ndescription: d\n---\n\nx\n")))
        .collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
    let served = served(&library(&files));
    let (mut cursor, mut seen, mut pages): (Option<String>, Vec<String>, usize) =
        Default::default();
    loop {
        let page = served.list(cursor.as_deref());
        assert_eq!(page.member_as::<String>("cacheScope").as_deref(), Some("private"));
        assert!(page.member_as::<u64>("ttlMs").is_some());
        let skills: Vec<Json> = page.member_as("skills").unwrap();
        seen.extend(skills.iter().filter_map(|skill| skill.member_as::<String>("uri")));
        pages += 1;
        cursor = page.member_as("nextCursor");
        if cursor.is_none() {
            break;
        }
    }
    let all = seen.len();
    seen.sort();
    seen.dedup();
    assert_eq!((pages, all, seen.len()), (3, 120, 120));
}

proptest! {
    #[test]
    fn no_file_of_another_place_is_ever_named(
        below in "(\\.|\\.\\.|/|%2e|%2F|\\\\|[a-z]|\\?|#| ){0,12}",
    ) {
        let mut entry = refunds();
        entry["resources"] = json!("dynamic");
        let served = of_entry(&entry);
        let place = served.locate(&format!("skill://shop/acme/billing/refunds/{below}"));
        if let Some(FileLocation::Upstream { uri, .. }) = place {
            let rest = uri.strip_prefix("skill://acme/billing/refunds/").unwrap();
            prop_assert!(!rest.split('/').any(|s| s == ".." || s == "."), "{uri}");
            prop_assert!(!rest.contains(['?', '#', '\\', ' ']), "{uri}");
        }
    }
}
