//! Servers that are found through their manifests.

use serde_json::{Value, json};

use crate::edge::conforms;
use crate::kit::{Home, Served, eventually, shell};

fn manifest(served: &Served) -> String {
    served.path("/.well-known/cash-mcp.yaml").url
}

fn mount(served: &Served, rest: &str) -> String {
    format!("[[mount]]\nmanifest = {:?}\ninsecure_loopback = true\n{rest}", manifest(served))
}

#[test]
fn a_mounted_server_works_through_its_outages() {
    let shop_home = Home::new();
    let shop = Served::start(&shop_home);
    let address = shop.authority().to_owned();
    let home = Home::with(&mount(&shop, "label = \"shop\"\n"));
    let served = Served::start(&home);
    let help = |arguments: Value| served.told(None, "help", &arguments);
    let call = |function: &str| {
        served.told(None, "call", &json!({"namespace": "shop.time", "function": function}))
    };
    eventually("the server is mounted", || help(json!({"namespace": "shop"})).contains("**time**"));

    // Its namespaces are below ours, its help is its own, its results pass.
    assert!(help(json!({})).contains("**shop**"));
    let page = help(json!({"namespace": "shop.time", "function": "now"}));
    assert!(page.contains("call(namespace=\"shop.time\", function=\"now\""), "{page}");
    assert!(page.contains("zone"), "the page is the other side's: {page}");
    assert!(call("now").contains("UTC"), "{}", call("now"));
    let skills = served.told(None, "skill", &json!({}));
    assert!(skills.contains("shop") && skills.contains("first_steps"), "{skills}");
    let skill = json!({"namespace": "shop", "skillname": "first_steps"});
    let skill = served.told(None, "skill", &skill);
    assert!(skill.contains("help"), "{skill}");
    let wrong = call("nonsense");
    assert!(wrong.contains("No function"), "{wrong}");
    conforms(&home, &served.url, "dynamic-aggregator");

    drop(shop);
    eventually("the outage shows", || {
        call("now");
        help(json!({}))
            .lines()
            .any(|line| line.contains("**shop**") && line.contains("available: false"))
    });
    assert!(call("now").contains("unavailable"), "{}", call("now"));
    let _shop = Served::start_at(&shop_home, &address, &[]);
    eventually("the server is back", || call("now").contains("UTC"));
    eventually("nothing is away", || !help(json!({})).contains("available: false"));
}

#[test]
fn a_server_that_is_not_there_yet_keeps_its_place() {
    let shop_home = Home::new();
    let shop = Served::start(&shop_home);
    let (address, config) = (shop.authority().to_owned(), mount(&shop, "label = \"shop\"\n"));
    drop(shop);
    let home = Home::with(&config);
    let served = Served::start(&home);
    let line = || {
        let help = served.told(None, "help", &json!({}));
        help.lines().find(|line| line.contains("**shop**")).map(str::to_owned).unwrap_or_default()
    };
    eventually("it is listed as away", || line().contains("available: false"));
    let _shop = Served::start_at(&shop_home, &address, &[]);
    eventually("it came", || !line().is_empty() && !line().contains("available: false"));
}

#[test]
fn operators_mount_and_unmount_while_the_gate_runs() {
    let (shop_home, home) = (Home::new(), Home::with("[builtin]\ntools = true\n"));
    let (shop, served) = (Served::start(&shop_home), Served::start(&home));
    let url = manifest(&shop);
    let plain = shell(&home, &["mount", &url]);
    assert_eq!(plain.code, 2);
    assert!(plain.err.contains("not https"), "{}", plain.err);

    let mounted = shell(&home, &["mount", &url, "--insecure-loopback", "--label", "shop"]).json();
    assert_eq!((&mounted["label"], &mounted["state"]), (&json!("shop"), &json!("mounted")));
    let help = || served.told(None, "help", &json!({"namespace": "shop"}));
    eventually("it is there", || help().contains("**time**"));
    assert_eq!(shell(&home, &["mounts"]).json()[0]["publisher"], "gatelet");
    let twice = shell(&home, &["mount", &url, "--insecure-loopback"]);
    assert!(twice.err.contains("mounted already"), "{}", twice.err);

    // Nobody else may, and the file that lets operators in is theirs alone.
    let admin = served.path("/admin/mounts");
    assert_eq!(admin.send("GET", &[], "").status, 403);
    let key = shell(&home, &["key", "create", "ci"]).out.trim().to_owned();
    eventually("a key is not enough", || {
        admin.send("GET", &[("X-Api-Key", &key)], "").status == 403
    });
    let key = shell(&home, &["key", "create", "ops", "--scope", "admin"]).out.trim().to_owned();
    eventually("an operator's is", || admin.send("GET", &[("X-Api-Key", &key)], "").status == 200);
    let odd = admin.send("POST", &[("X-Api-Key", &key)], "{\"nonsense\": 1}");
    assert_eq!(odd.status, 400, "{}", odd.body);
    let note = std::fs::metadata(home.path().join("state/gate.json")).unwrap();
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&note.permissions()) & 0o777, 0o600);

    assert_eq!(shell(&home, &["unmount", "shop"]).code, 0);
    eventually("it is gone", || help().contains("No namespace"));
    assert_eq!(shell(&home, &["unmount", "shop"]).code, 2);
    assert!(served.terminate().success());
    assert!(!home.path().join("state/gate.json").exists(), "the note goes with the gate");

    // Without a gate what is configured is listed, too, and has its label first.
    let other_home = Home::new();
    let other = Served::start(&other_home);
    home.write(
        "gatelet.toml",
        &format!("[builtin]\ntools = true\n{}", mount(&other, "label = \"text2\"\n")),
    );
    let listed = shell(&home, &["mounts"]).json();
    assert_eq!(
        (&listed[0]["label"], &listed[0]["from"]),
        (&json!("text2"), &json!("configuration"))
    );
    let derived = shell(&home, &["mount", &url, "--insecure-loopback", "--label", "time"]).json();
    assert_ne!(derived["label"], "time", "which is taken");
    let labels = || -> Vec<Value> {
        let all = shell(&home, &["mounts"]).json();
        all.as_array().unwrap().iter().map(|place| place["label"].clone()).collect()
    };
    assert_eq!(labels(), [json!("text2"), derived["label"].clone()]);
    assert_eq!(shell(&home, &["unmount", &url]).code, 0);
    assert_eq!(labels(), [json!("text2")]);
    drop(other);
    home.write("gatelet.toml", "[builtin]\ntools = true\n");

    // What is mounted there counts for the next one.
    let later = shell(&home, &["mount", &url, "--insecure-loopback", "--label", "shop"]);
    assert_eq!(later.code, 0, "{}", later.err);
    let served = Served::start(&home);
    eventually("it is there again", || {
        served.told(None, "help", &json!({"namespace": "shop"})).contains("**time**")
    });
}

#[test]
fn a_mounted_server_that_goes_is_missed_before_anybody_calls_it() {
    let (shop_home, home) = (Home::new(), Home::new());
    let (shop, served) = (Served::start(&shop_home), Served::start(&home));
    let (url, address) = (manifest(&shop), shop.authority().to_owned());
    let mounted = shell(&home, &["mount", &url, "--insecure-loopback", "--label", "shop"]);
    assert_eq!(mounted.code, 0, "{}", mounted.err);
    let state = || shell(&home, &["mounts"]).json()[0]["state"].clone();
    let shows = || served.told(None, "help", &json!({"namespace": "shop"}));
    eventually("it is there", || shows().contains("**time**") && state() == "mounted");
    assert!(shop.terminate().success());
    eventually("it is missed", || state() == "unavailable");
    assert!(!shell(&home, &["mounts"]).json()[0]["problem"].is_null());
    let _shop = Served::start_at(&shop_home, &address, &[]);
    eventually("it is back", || state() == "mounted");
}

#[test]
fn a_pinned_key_decides_what_is_mounted() {
    let shop_home = Home::with("[builtin]\ntools = true\n[manifest]\nkey = \"key\"\n");
    let pin = shell(&shop_home, &["manifest", "keygen", "key"]).out.trim().to_owned();
    let other = shell(&shop_home, &["manifest", "keygen", "other"]).out.trim().to_owned();
    let shop = Served::start(&shop_home);
    let home = Home::with("[builtin]\ntools = true\n");
    let _served = Served::start(&home);
    let url = manifest(&shop);
    let foreign = shell(&home, &["mount", &url, "--insecure-loopback", "--pin", &other]);
    assert_eq!(foreign.code, 2);
    assert!(foreign.err.contains("not a pinned key"), "{}", foreign.err);
    assert_eq!(shell(&home, &["mounts"]).json(), json!([]), "nothing is mounted");
    let good =
        shell(&home, &["mount", &url, "--insecure-loopback", "--pin", &other, "--pin", &pin]);
    assert_eq!(good.json()["state"], "mounted", "{}", good.err);
}

#[test]
fn what_may_not_be_mounted_is_a_wrong_configuration() {
    let check = |entry: &str, told: &str| {
        let home = Home::with(&format!("[[mount]]\n{entry}"));
        let checked = shell(&home, &["config", "check"]);
        assert_eq!(checked.code, 2, "{entry}");
        assert!(checked.err.contains(told), "{entry}: {}", checked.err);
    };
    check("manifest = \"http://shop.example/m\"", "not https");
    check("manifest = \"http://shop.example/m\"\ninsecure_loopback = true", "not https");
    check("manifest = \"shop\"", "no URL");
    check("manifest = \"https://a:b@shop.example/m\"", "user name");
    check("manifest = \"https://shop.example/m\"\npins = [\"x\"]", "keygen");
    check("manifest = \"https://shop.example/m\"\nlabel = \"gatelet\"", "cannot be a namespace");
}
