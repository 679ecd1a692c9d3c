use super::label::{Server, assign};
use super::refresh::RefreshSchedule;
use super::*;
use crate::manifest::sign::SecretKey;
use crate::manifest::{CASH_VERSION, SuggestedNamespace};

fn url(text: &str) -> Url {
    Url::parse(text).unwrap()
}

fn source(text: &str) -> Source {
    Source::new(url(text))
}

fn manifest(endpoint: &str, namespaces: &[&str]) -> Manifest {
    let suggested = |label: &&str| SuggestedNamespace {
        suggested: (*label).to_owned(),
        description: "Things.".to_owned(),
    };
    Manifest {
        cash_version: CASH_VERSION.into(),
        last_updated: "2026-11-15".into(),
        publisher: "Shop".into(),
        copyright: None,
        endpoint: endpoint.into(),
        cache_ttl: None,
        authentication: None,
        namespaces: namespaces.iter().map(suggested).collect(),
        skills: vec![],
        signature: None,
        whole: None,
    }
}

const SHOP: &str = "https://shop.example/.well-known/cash-mcp.yaml";

#[track_caller]
fn check(source: &Source, asked: &str, expected: &str) {
    let told = match source.admits(&url(asked)) {
        Ok(()) => "yes".to_owned(),
        Err(refused) => refused.to_string(),
    };
    assert!(told.contains(expected), "{asked}: {told}");
}

#[test]
fn only_https_on_the_same_host_is_asked() {
    let shop = source(SHOP);
    check(&shop, "https://shop.example/mcp", "yes");
    check(&shop, "https://SHOP.example:443/mcp", "yes");
    check(&shop, "http://shop.example/mcp", "not https");
    check(&shop, "ftp://shop.example/mcp", "not https");
    check(&shop, "file:///etc/passwd", "not https");
    check(&shop, "https://shop.example:8443/mcp", "not on `shop.example`");
    check(&shop, "https://mcp.shop.example/mcp", "not on `shop.example`");
    check(&shop, "https://shop.example.evil.example/mcp", "not on `shop.example`");
    check(&shop, "https://shop.example@evil.example/mcp", "user name");
    check(&shop, "https://user:secret@shop.example/mcp", "user name");
    let told = shop.admits(&url("https://user:secret@shop.example/")).unwrap_err().to_string();
    assert!(!told.contains("secret"), "{told}");
}

#[test]
fn trusted_hosts_are_names_or_everything_below_one() {
    let trusting = |host: &str| Source { trusted_hosts: vec![host.into()], ..source(SHOP) };
    check(&trusting("mcp.shop.example"), "https://mcp.shop.example/mcp", "yes");
    check(&trusting("*.shop.example"), "https://a.b.shop.example/mcp", "yes");
    check(&trusting("*.shop.example"), "https://evilshop.example/mcp", "not on");
    check(&trusting("*.shop.example"), "https://.shop.example/mcp", "not on");
    check(&trusting("shop.example:8443"), "https://shop.example:8443/mcp", "yes");
    check(&trusting("shop.example:8443"), "https://shop.example:8444/mcp", "not on");
    check(&trusting("mcp.shop.example"), "http://mcp.shop.example/mcp", "not https");
}

#[test]
fn plain_http_is_for_this_machine_and_only_when_allowed() {
    let here = "http://127.0.0.1:4747/.well-known/cash-mcp.yaml";
    check(&source(here), "http://127.0.0.1:4747/mcp", "not https");
    let allowed = |text: &str| Source { insecure: InsecureLoopback::Allowed, ..source(text) };
    check(&allowed(here), "http://127.0.0.1:4747/mcp", "yes");
    check(&allowed("http://[::1]:1/m"), "http://[::1]:1/mcp", "yes");
    check(&allowed("http://10.0.0.1/m"), "http://10.0.0.1/mcp", "not https");
    check(
        &allowed("http://localhost.evil.example/m"),
        "http://localhost.evil.example/m",
        "not https",
    );
    assert!(allowed(here).reaches_private(&url(here)));
    assert!(!allowed(here).reaches_private(&url("https://127.0.0.1.example/")));
    assert!(!source(here).reaches_private(&url(here)));
}

#[test]
fn a_manifest_is_believed_only_as_far_as_its_source_is() {
    let shop = source(SHOP);
    let good = manifest("https://shop.example/mcp", &["orders"]);
    assert_eq!(shop.accept(&good.to_yaml()).unwrap().0, good);
    let told = |source: &Source, text: &str| source.accept(text).unwrap_err().to_string();
    let other = manifest("https://evil.example/mcp", &["orders"]).to_yaml();
    assert!(told(&shop, &other).contains("not on `shop.example`"));
    assert!(told(&shop, "a: [").contains("no manifest"));
    let stdio = good.to_yaml().replace("https://shop.example/mcp", "stdio:rm -rf /");
    assert!(told(&shop, &stdio).contains("endpoint"));
}

#[test]
fn pinned_keys_must_have_signed_and_can_be_rotated() {
    let (old, new) = (SecretKey::from_seed([1; 32]), SecretKey::from_seed([2; 32]));
    let pins = vec![old.public(), new.public()];
    let shop = Source { pins, ..source(SHOP) };
    let good = manifest("https://shop.example/mcp", &["orders"]);
    assert!(shop.accept(&old.sign(&good).to_yaml()).is_ok());
    assert!(shop.accept(&new.sign(&good).to_json()).is_ok());
    let told = |manifest: &Manifest| shop.accept(&manifest.to_yaml()).unwrap_err().to_string();
    assert!(told(&good).contains("not signed"));
    assert!(told(&SecretKey::from_seed([3; 32]).sign(&good)).contains("not a pinned key"));
    let mut forged = old.sign(&good);
    forged.publisher = "Somebody else".into();
    assert!(told(&forged).contains("changed after signing"));
}

#[test]
fn labels_are_unique_and_do_not_depend_on_who_answered_first() {
    let (one, two, three) = (
        url("https://mcp.shop.example/m"),
        url("https://store.example/m"),
        url("https://127.0.0.1:4747/m"),
    );
    let orders = manifest("https://x.example/", &["or_ders"]);
    let many = manifest("https://x.example/", &["orders", "stock"]);
    let server = |source, manifest| Server { source, label: None, manifest, kept_label: None };
    let reserved = ["time".to_owned()];
    let labels = assign(
        &reserved,
        &[server(&one, Some(&orders)), server(&two, Some(&orders)), server(&three, Some(&many))],
    );
    assert_eq!(labels, ["or_ders", "store_or_ders", "host_127_0_0_1"]);
    // One that has not answered yet claims nothing, so a later one has the label until then.
    let unseen = [server(&one, None), server(&two, Some(&orders))];
    assert_eq!(assign(&reserved, &unseen), ["shop", "or_ders"]);
    let kept = [Server { kept_label: Some("or_ders"), ..unseen[0] }, unseen[1]];
    assert_eq!(assign(&reserved, &kept), ["or_ders", "store_or_ders"]);
    // The operator's word counts, and a static label always does.
    let named = [Server { label: Some("Orders"), ..unseen[1] }];
    assert_eq!(assign(&["orders".to_owned()], &named), ["store_Orders"]);
    assert_eq!(assign(&[], &named), ["Orders"]);
    // What is put together is no longer than any other label.
    let long = "a".repeat(64);
    let second = [Server { label: Some(&long), ..unseen[1] }];
    let given = assign(std::slice::from_ref(&long), &second).remove(0);
    assert!(given.len() <= 64 && given.starts_with("store_aaa"), "{given}");
}

#[test]
fn a_numbered_label_is_no_longer_than_any_other() {
    let host = "a".repeat(63);
    let source = url(&format!("https://{host}.example/m"));
    // The same source many times, so that only numbers are left to tell them apart.
    let server = Server { source: &source, label: None, manifest: None, kept_label: None };
    let labels = assign(&[], &[server; 50]);
    assert!(labels.iter().all(|label| label.len() <= 64), "{labels:?}");
    let distinct: std::collections::HashSet<String> =
        labels.iter().map(|label| catalog::name::canonical(label)).collect();
    assert_eq!(distinct.len(), labels.len(), "{labels:?}");
}

#[test]
fn a_manifest_is_never_looked_at_sooner_than_it_says() {
    let mut schedule = RefreshSchedule::default();
    assert_eq!(schedule.due(), 0, "at once");
    let mut short = manifest("https://shop.example/mcp", &["orders"]);
    short.cache_ttl = Some(2);
    schedule.succeeded(&short, 1000);
    assert_eq!(schedule.due(), 1060, "never under a minute");
    short.cache_ttl = Some(600);
    schedule.succeeded(&short, 1060);
    assert_eq!(schedule.due(), 1660);
    schedule.failed(1660);
    assert_eq!(schedule.due(), 2260, "nor after a failure");
    short.cache_ttl = None;
    schedule.succeeded(&short, 2260);
    assert_eq!(schedule.due(), 2260 + 3600, "an hour where it does not say");
}

#[test]
fn a_manifest_that_was_never_seen_is_looked_for_more_and_more_rarely() {
    let (mut schedule, mut now, mut pauses) = (RefreshSchedule::default(), 0, Vec::new());
    for _ in 0..9 {
        schedule.failed(now);
        pauses.push(schedule.due() - now);
        now = schedule.due();
    }
    assert_eq!(pauses, [5, 10, 20, 40, 80, 160, 300, 300, 300]);
}
