//! Gates behind gates: what their skills say, through any number of them.

use serde_json::{Value, json};

use crate::kit::{Home, Served, eventually, shell};

const REFUND: &str = "---\nname: refund\ndescription: Refunds an order.\nmetadata:\n  version: '2'\n---\n\
    Give {{ amount }} back. Ask call(namespace=\"time\", function=\"now\") first, read \
    skill(namespace=\"orders\", skillname=\"thanks\") after it, and never \
    call(namespace=\"time\", function=\"vanish\").\n\n```sh\nrm -rf /\n```\n";

/// A gate with two skills of its own.
fn shop() -> Home {
    let home = Home::with("[builtin]\ntools = true\n[skills]\ndirectories = [\"skills\"]\n");
    home.write("skills/orders/refund/SKILL.md", REFUND);
    let thanks = "---\nname: thanks\ndescription: Says thank you.\n---\nThank you.\n";
    home.write("skills/orders/thanks/SKILL.md", thanks);
    home
}

fn behind(label: &str, served: &Served, more: &str) -> Home {
    let url = &served.url;
    Home::with(&format!("[[upstream]]\nlabel = {label:?}\nurl = {url:?}\n\n{more}"))
}

fn skill(served: &Served, key: Option<&str>, arguments: &Value) -> String {
    served.told(key, "skill", arguments)
}

#[track_caller]
fn holds(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "`{part}` is not in:\n{text}");
    }
}

#[test]
fn skills_come_through_three_gates_with_their_values_and_stay_true() {
    let far_home = shop();
    let far = Served::start(&far_home);
    let middle_home = behind("far", &far, "");
    let middle = Served::start(&middle_home);
    let near_home = behind("middle", &middle, "");
    let near = Served::start(&near_home);
    eventually("the skills are there", || {
        skill(&near, None, &json!({})).contains("## namespace middle.far.orders")
    });
    // What a skill calls is known a moment later than the skill.
    let now = json!({"namespace": "middle.far.time", "function": "now"});
    eventually("the functions are there", || near.told(None, "call", &now).contains("UTC"));
    let index = skill(&near, None, &json!({"namespace": "middle.far.orders"}));
    holds(&index, &["- **refund** — Refunds an order.", "- **thanks** — Says thank you."]);
    let wanted = json!({"namespace": "middle.far.orders", "skillname": "refund",
                        "kwargs": {"amount": "5 EUR", "version": "2"}});
    let told = skill(&near, None, &wanted);
    holds(
        &told,
        &[
            "Give 5 EUR back.",
            "call(namespace=\"middle.far.time\", function=\"now\")",
            "skill(namespace=\"middle.far.orders\", skillname=\"thanks\")",
            "needs `middle.far.time.vanish`, which is not available",
            "[code omitted: 1 lines of sh]",
        ],
    );
    // What it says can be done here, by the words that it says.
    let page = near.told(None, "help", &now);
    holds(&page, &["call(namespace=\"middle.far.time\", function=\"now\""]);
    let short = skill(&near, None, &json!({"skillname": "refund"}));
    holds(&short, &["Not filled in (pass in kwargs): amount."]);
    let wrong = json!({"skillname": "refund", "kwargs": {"version": "7"}});
    holds(&skill(&near, None, &wrong), &["has no version `7`"]);
}

#[test]
fn skills_of_a_gate_that_went_away_say_so_until_it_is_back() {
    let far_home = shop();
    let far = Served::start(&far_home);
    let address = far.authority().to_owned();
    let manifest = far.path("/.well-known/cash-mcp.yaml").url;
    let home = Home::with(&format!(
        "[[mount]]\nlabel = \"far\"\nmanifest = {manifest:?}\ninsecure_loopback = true\n"
    ));
    let near = Served::start(&home);
    let wanted = json!({"namespace": "far.orders", "skillname": "thanks"});
    eventually("it is there", || skill(&near, None, &wanted).contains("Thank you."));
    drop(far);
    let line = || {
        let index = skill(&near, None, &json!({}));
        index.lines().find(|line| line.contains("**thanks**")).unwrap_or_default().to_owned()
    };
    eventually("the outage shows", || {
        near.told(None, "call", &json!({"namespace": "far.time", "function": "now"}));
        line().contains("available: false — unavailable:")
    });
    let away = skill(&near, None, &wanted);
    holds(&away, &["**Error:** `far.orders.thanks` cannot be given out", "unavailable"]);
    drop(near);

    // A gate that starts without it knows its place, not its skills.
    let near = Served::start(&home);
    eventually("the outage shows", || {
        let index = skill(&near, None, &json!({}));
        index.contains("## namespace far\n\navailable: false — unavailable:")
    });
    holds(&skill(&near, None, &wanted), &["No skill `thanks`", "`far` is unavailable"]);
    let _far = Served::start_at(&far_home, &address, &[]);
    eventually("it is back", || skill(&near, None, &wanted).contains("Thank you."));
    assert!(!skill(&near, None, &json!({})).contains("available: false"));
}

#[test]
fn rules_hold_for_the_skills_of_other_gates() {
    let far_home = shop();
    let far = Served::start(&far_home);
    let rules = "[[visibility.rule]]\ncallers = [\"role:ops\"]\nshow = [\"*\"]\n\
                 [[visibility.rule]]\nhide = [\"skill:far.orders.refund\", \"hidden\"]\n";
    let url = &far.url;
    let hidden = format!("[[upstream]]\nlabel = \"hidden\"\nurl = {url:?}\n\n");
    let home = behind("far", &far, &(hidden + rules));
    let key = shell(&home, &["key", "create", "ops", "--role", "ops"]).out.trim().to_owned();
    let near = Served::start(&home);
    let ops = Some(key.as_str());
    eventually("all is there for who may see it", || {
        let all = skill(&near, ops, &json!({}));
        all.contains("**refund**") && all.contains("namespace hidden.orders")
    });
    let some = skill(&near, None, &json!({}));
    assert!(some.contains("**thanks**"), "{some}");
    assert!(!some.contains("**refund**") && !some.contains("hidden"), "{some}");
    let named = |namespace: &str, name: &str| {
        skill(&near, None, &json!({"namespace": namespace, "skillname": name}))
    };
    let unknown = named("far.orders", "refuse");
    assert_eq!(named("far.orders", "refund").replace("refund", "refuse"), unknown);
    assert_eq!(named("hidden.orders", "thanks"), named("hidder.orders", "thanks"));
    let about = json!({"namespace": "hidden.orders"});
    assert!(skill(&near, None, &about).contains("No skills in namespace"));
}

#[test]
fn a_gate_that_callers_enter_as_themselves_is_listed_for_all_and_asked_by_them() {
    let far_home = Home::with("[builtin]\ntools = true\n[auth]\nrequired = true\n");
    let far = Served::start(&far_home);
    let own = shell(&far_home, &["key", "create", "ann"]).out.trim().to_owned();
    let access = format!(
        "per_caller = true\n[upstream.callers.\"key:ann\"]\nheaders = {{ Authorization = \"Bearer {own}\" }}\n"
    );
    let home = behind("far", &far, &access);
    let near = Served::start(&home);
    let ann = shell(&home, &["key", "create", "ann"]).out.trim().to_owned();
    let help = json!({"namespace": "far.time"});
    eventually("it is listed", || near.told(None, "help", &help).contains("**now**"));
    let now = json!({"namespace": "far.time", "function": "now"});
    eventually("ann gets in", || near.told(Some(&ann), "call", &now).contains("UTC"));
    let nobody = near.told(None, "call", &now);
    assert!(nobody.contains("only callers with a name"), "{nobody}");
}
