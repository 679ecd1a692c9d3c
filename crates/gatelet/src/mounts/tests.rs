use web::manifest::sign::SecretKey;
use web::manifest::{CASH_VERSION, Manifest, SuggestedNamespace};

use store::state::wait;

use super::*;
use crate::fetch::FetchError;

fn raw(url: &str) -> RawMount {
    RawMount { manifest: url.to_owned(), ..RawMount::default() }
}

fn mount(raw: &RawMount) -> Mount {
    parse_mount(raw, Path::new(""), &ProcessEnvironment).unwrap()
}

fn manifest(host: &str, label: &str) -> Manifest {
    Manifest {
        cash_version: CASH_VERSION.into(),
        last_updated: "2026-11-15".into(),
        publisher: "Shop".into(),
        copyright: None,
        endpoint: format!("https://{host}/mcp"),
        cache_ttl: Some(600),
        authentication: None,
        namespaces: vec![SuggestedNamespace {
            suggested: label.into(),
            description: "Orders.".into(),
        }],
        skills: vec![],
        signature: None,
        whole: None,
    }
}

const SHOP: &str = "https://shop.example/m.yaml";

fn place(raw: &RawMount) -> MountedServer {
    MountedServer::new(mount(raw), Origin::Command, &RememberedMounts::default())
}

fn seen(
    place: &MountedServer,
    manifest: &Manifest,
) -> Result<(Manifest, reqwest::Url), FetchError> {
    Ok(place.mount.source.accept(&manifest.to_yaml())?)
}

#[test]
fn an_outage_changes_nothing_but_what_is_said() {
    let mut shop = place(&raw(SHOP));
    let down = || Err(FetchError::Failed("cannot be reached".to_owned()));
    assert!(shop.update(down(), 100), "it is unavailable, and why");
    assert!(!shop.update(down(), 200), "which is no news the second time");
    let good = seen(&shop, &manifest("shop.example", "orders"));
    assert!(shop.update(good, 300));
    assert!(!shop.update(down(), 900));
    assert_eq!(shop.to_json()["state"], "mounted");
    assert_eq!(shop.to_json()["problem"], "cannot be reached");
    assert_eq!(shop.to_json()["next_look"], 1500, "not sooner than its cache_ttl");
}

#[test]
fn a_manifest_that_turns_bad_takes_its_server_away_until_it_is_good_again() {
    let key = SecretKey::from_seed([1; 32]);
    let pinned = RawMount { pins: vec![key.public().to_text()], ..raw(SHOP) };
    let mut shop = place(&pinned);
    let good = key.sign(&manifest("shop.example", "orders"));
    let accepted = seen(&shop, &good);
    assert!(shop.update(accepted, 100));
    let unsigned = seen(&shop, &manifest("shop.example", "orders"));
    assert!(shop.update(unsigned, 700));
    assert_eq!(shop.to_json()["state"], "unavailable");
    assert!(shop.to_json()["problem"].as_str().unwrap().contains("not signed"));
    let elsewhere = seen(&shop, &key.sign(&manifest("evil.example", "orders")));
    assert!(matches!(elsewhere, Err(FetchError::Refused(_))));
    let again = seen(&shop, &good);
    assert!(shop.update(again, 1300));
    assert_eq!(shop.to_json()["state"], "mounted");
}

#[test]
fn what_was_mounted_is_remembered_with_its_label_and_its_time() {
    let state = tempfile::tempdir().unwrap();
    let mounts = Mounts::open(state.path(), &[]);
    let mut asked_for = Vec::new();
    for (url, host) in [(SHOP, "shop.example"), ("https://store.example/m", "store.example")] {
        asked_for.push(raw(url));
        let mut place = place(&raw(url));
        let good = seen(&place, &manifest(host, "orders"));
        place.update(good, 1_000);
        mounts.servers().push(place);
    }
    let labels = |mounts: &Mounts| -> Vec<String> {
        mounts.with_labels(vec!["time".into()]).into_iter().map(|place| place.label).collect()
    };
    assert_eq!(labels(&mounts), ["orders", "store_orders"]);
    wait(mounts.save(|memory| memory.mounts.clone_from(&asked_for)));
    let again = Mounts::open(state.path(), &[]);
    assert_eq!(labels(&again), ["orders", "store_orders"]);
    assert_eq!(again.to_json()[0]["next_look"], 1_600, "a restart is no reason to look");
    // Who is gone leaves the others as they are called.
    wait(again.unmount("orders")).unwrap();
    assert_eq!(labels(&again), ["store_orders"]);
    assert!(matches!(wait(again.unmount("orders")), Err(MountError::Unknown(_))));
}

#[test]
fn a_label_is_the_same_before_and_after_a_restart() {
    let state = tempfile::tempdir().unwrap();
    let open = || Mounts::open(state.path(), &[mount(&raw(SHOP))]);
    let label = |mounts: &Mounts| mounts.with_labels(Vec::new())[0].label.clone();
    let mounts = open();
    assert_eq!(label(&mounts), "shop", "nothing is known of it yet");
    let good = seen(&mounts.servers()[0], &manifest("shop.example", "orders"));
    assert!(mounts.servers()[0].update(good, 1_000));
    wait(mounts.save(|_| ()));
    assert_eq!(label(&mounts), "orders");
    assert_eq!(label(&open()), "orders");
    // One that is not believed any more is not forgotten, only not believed.
    assert!(
        mounts.servers()[0].update(Err(FetchError::Unusable("is too large".to_owned())), 2_000)
    );
    wait(mounts.save(|_| ()));
    let again = open();
    assert_eq!(label(&again), "orders");
    assert_eq!(again.to_json()[0]["state"], "unavailable");
}

#[test]
fn two_with_the_same_state_do_not_forget_each_others_mounts() {
    let state = tempfile::tempdir().unwrap();
    let (one, two) = (Mounts::open(state.path(), &[]), Mounts::open(state.path(), &[]));
    for (mounts, url) in [(&one, SHOP), (&two, "https://store.example/m")] {
        let place = place(&raw(url));
        let url = place.mount.source.manifest.clone();
        mounts.add(place).unwrap();
        wait(mounts.save(|memory| memory.add(raw(url.as_str()), &url)));
    }
    wait(one.save(|_| ()));
    let all = Mounts::open(state.path(), &[]);
    assert_eq!(all.servers().len(), 2);
    wait(one.unmount(SHOP)).unwrap();
    let all = Mounts::open(state.path(), &[]);
    assert_eq!(all.servers()[0].mount.source.manifest.as_str(), "https://store.example/m");
}

#[test]
fn what_was_mounted_meanwhile_is_not_mounted_twice() {
    let state = tempfile::tempdir().unwrap();
    let mounts = Mounts::open(state.path(), &[]);
    assert!(mounts.add(place(&raw(SHOP))).is_ok());
    let twice = mounts.add(place(&raw(SHOP))).unwrap_err();
    assert_eq!(twice.status(), 409);
}

#[test]
fn what_is_configured_comes_first_and_is_not_unmounted_by_command() {
    let state = tempfile::tempdir().unwrap();
    let mounts = Mounts::open(state.path(), &[mount(&raw(SHOP))]);
    mounts.with_labels(Vec::new());
    assert!(matches!(wait(mounts.unmount("shop")), Err(MountError::Configured(_))));
    mounts.reconfigure(&[]);
    assert_eq!(mounts.to_json(), serde_json::json!([]));
}

#[tokio::test]
async fn what_may_not_be_fetched_is_not_asked_for() {
    let state = tempfile::tempdir().unwrap();
    let mounts = Mounts::open(state.path(), &[]);
    let told = |wrong: MountError| wrong.to_string();
    let plain = mounts.mount(raw("http://shop.example/m")).await;
    assert!(told(plain.unwrap_err()).contains("not https"));
    let metadata = mounts.mount(raw("https://169.254.169.254/m")).await;
    assert!(told(metadata.unwrap_err()).contains("private address"));
    let named = mounts.mount(raw("https://localhost:1/m")).await;
    assert!(told(named.unwrap_err()).contains("private address"));
    assert_eq!(mounts.to_json(), serde_json::json!([]), "nothing is mounted");
}
