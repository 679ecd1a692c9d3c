use tool::Identity;

use super::*;

fn rule(callers: &[&str], show: &[&str], hide: &[&str]) -> Rule {
    let what = |list: &[&str]| list.iter().map(|text| text.parse().unwrap()).collect();
    let callers = callers.iter().map(|text| text.parse().unwrap()).collect();
    Rule { callers, show: what(show), hide: what(hide) }
}

fn caller(subject: &str, roles: &[&str]) -> Identity {
    let roles = roles.iter().map(|role| (*role).to_owned()).collect();
    Identity { subject: subject.to_owned(), roles, ..Identity::default() }
}

fn function<'a>(path: &'a str, name: &'a str) -> Item<'a> {
    Item::Function { path, name, upstream_name: name, has_lookalike: false }
}

#[track_caller]
fn check(hide: &str, item: &Item<'_>, shown: bool) {
    let config = Config { rules: vec![rule(&[], &[], &[hide])], ..Config::default() };
    assert_eq!(config.shows(&caller("ann", &[]), item), shown, "{hide} {item:?}");
}

#[test]
fn a_namespace_stands_for_all_that_belongs_to_it() {
    for hide in ["orders", "Or_ders", "order?", "*"] {
        check(hide, &function("orders", "list"), false);
        check(hide, &function("orders.retail", "create"), false);
        check(hide, &Item::Namespace("orders.retail"), false);
        check(hide, &Item::Skill { namespace: "orders", name: "refund" }, false);
        check(hide, &Item::Prompt { upstream: "orders", name: "greet" }, false);
        check(hide, &Item::Resource { upstream: "orders", uri: "a://b.c" }, false);
    }
    for hide in ["order", "orders.retail", "orders2"] {
        check(hide, &function("orders", "list"), true);
        check(hide, &Item::Resource { upstream: "orders", uri: "a://b" }, true);
    }
    check("orders.retail", &function("orders.retail", "create"), false);
}

#[test]
fn single_things_are_named_by_their_kind() {
    check("orders.delete_*", &function("orders", "delete_all"), false);
    check("orders.delete_*", &function("orders", "list"), true);
    check("function:delete*", &function("orders.retail", "delete_one"), false);
    check("function:orders.list", &function("orders", "list"), false);
    check("function:list", &Item::Skill { namespace: "", name: "list" }, true);
    check("skill:refund", &Item::Skill { namespace: "orders", name: "re_fund" }, false);
    check("skill:orders.refund", &Item::Skill { namespace: "orders", name: "refund" }, false);
    check("prompt:orders.greet", &Item::Prompt { upstream: "orders", name: "greet" }, false);
    check("resource:file:///etc/*", &Item::Resource { upstream: "x", uri: "file:///etc/p" }, false);
    check("resource:file:///etc/*", &Item::Resource { upstream: "x", uri: "file:///home" }, true);
    // A dot in the name of a prompt or a function is no level.
    check("orders.a", &Item::Prompt { upstream: "orders", name: "a.b" }, true);
}

#[test]
fn what_is_hidden_stays_hidden_under_the_name_that_its_upstream_gives_it() {
    let odd = |path, name, upstream_name| Item::Function {
        path,
        name,
        upstream_name,
        has_lookalike: false,
    };
    for hide in ["up.a.b.c.d", "up.a.b.c_d", "up/a.b.c.d", "function:a.b.c.d"] {
        check(hide, &odd("up.a.b", "c_d", "a.b.c.d"), false);
    }
    for hide in ["up.get item", "up/get item", "function:get item", "up.GET-ITEM"] {
        check(hide, &odd("up", "get_item", "get item"), false);
    }
    for hide in ["up.a/", "up./a", "function:.a/", "up/.a/"] {
        check(hide, &odd("up", "a", ".a/"), false);
    }
    for hide in ["prompt:a.b", "prompt:up.a.b", "prompt:up/a.b"] {
        check(hide, &Item::Prompt { upstream: "up", name: "a.b" }, false);
    }
    check("prompt:up.a", &Item::Prompt { upstream: "up", name: "a.b" }, true);
    check(
        "skill:up.retail.refund it",
        &Item::Skill { namespace: "up.retail", name: "refund it" },
        false,
    );
    // A server decides what its tools are called, and hides nothing of others by that.
    check("files.read", &odd("evil.files", "read", "files.read"), true);
}

#[test]
fn of_two_that_are_spelled_alike_both_are_hidden_and_one_is_shown() {
    let both = [("get_sum", "get_sum"), ("get_sum_1a2b", "get-sum")];
    let both = both.map(|(name, upstream_name)| Item::Function {
        path: "up",
        name,
        upstream_name,
        has_lookalike: true,
    });
    for hide in ["up.get-sum", "up.get_sum", "up.getSum", "function:get-sum", "up"] {
        both.iter().for_each(|item| check(hide, item, false));
    }
    for (show, shown) in [
        ("up.get_sum", [true, false]),
        ("up.get-sum", [false, true]),
        ("up.get_sum_1a2b", [false, true]),
        ("up.getSum", [false, false]),
        ("function:get-sum", [false, true]),
        ("up", [true, true]),
        ("up.*", [true, true]),
    ] {
        let config =
            Config { default: DefaultVisibility::Hidden, rules: vec![rule(&[], &[show], &[])] };
        let seen = both.map(|item| config.shows(&caller("ann", &[]), &item));
        assert_eq!(seen, shown, "{show}");
    }
}

#[test]
fn what_shows_with_a_star_behind_a_letter_of_no_alphabet_here_does_not_show_all() {
    for show in ["é*", "up.é*", "function:é*", "é*.list", "_*.list", "?é.list"] {
        let config =
            Config { default: DefaultVisibility::Hidden, rules: vec![rule(&[], &[show], &[])] };
        assert!(!config.shows(&caller("ann", &[]), &function("up", "list")), "{show}");
    }
}

#[test]
fn the_first_rule_that_speaks_of_caller_and_thing_decides() {
    let rules = vec![
        rule(&["role:ops", "key:ci"], &["billing"], &[]),
        rule(&["anonymous"], &[], &["*"]),
        rule(&[], &["billing.prices"], &["billing"]),
    ];
    let config = Config { default: DefaultVisibility::Shown, rules };
    let sees = |who: &Identity, name| config.shows(who, &function("billing", name));
    let (ops, key, ann) = (caller("x", &["ops"]), caller("key:ci", &[]), caller("ann", &[]));
    let nobody = Identity::default();
    assert!(sees(&ops, "refund") && sees(&key, "refund"));
    assert!(!sees(&ann, "refund") && sees(&ann, "prices"));
    assert!(!sees(&nobody, "prices"));
    assert!(config.shows(&ann, &function("other", "x")));
    assert!(!config.shows(&nobody, &function("other", "x")));
    assert_eq!(config.view_key(&ops), "0,2,");
    assert_ne!(config.view_key(&ops), config.view_key(&ann));
}

#[test]
fn what_is_hidden_by_default_has_to_be_shown() {
    let rules = vec![rule(&["scope:mcp:*", "group:staff"], &["orders"], &[])];
    let config = Config { default: DefaultVisibility::Hidden, rules };
    let mut who = caller("ann", &[]);
    assert!(!config.shows(&who, &function("orders", "list")));
    who.scopes.insert("mcp:call".to_owned());
    assert!(config.shows(&who, &function("orders", "list")));
    assert!(!config.shows(&who, &function("billing", "list")));
    assert!(!config.is_open() && Config::default().is_open());
}

#[test]
fn a_name_does_not_make_an_anonymous_caller_somebody() {
    let config = Config {
        default: DefaultVisibility::Hidden,
        rules: vec![rule(&["subject:*"], &["*"], &[])],
    };
    assert!(config.shows(&caller("ann", &[]), &function("a", "b")));
    assert!(!config.shows(&Identity::default(), &function("a", "b")));
}

#[test]
fn what_stands_for_nothing_is_refused_with_what_would() {
    for text in ["", "ops", "role:", "planet:mars"] {
        assert!(
            text.parse::<CallerPattern>().unwrap_err().to_string().contains("role:…"),
            "{text}"
        );
    }
    for text in ["", "skill:", "planet:mars"] {
        assert!(text.parse::<ItemPattern>().unwrap_err().to_string().contains("skill:…"), "{text}");
    }
}
