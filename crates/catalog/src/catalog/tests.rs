use std::sync::Arc;

use proptest::prelude::*;
use serde_json::json;
use testkit::{listing, tool};
use tool::{Listing, Prompt, Resource, Template};

use super::*;
use crate::State;

fn source(label: &str, names: &[&str]) -> Source {
    let tools = names.iter().map(|name| tool(name, "Does it. Well.", &json!({}))).collect();
    Source::new(label, Arc::new(listing(tools)))
}

fn addresses(catalog: &Catalog) -> Vec<String> {
    let address = |slot| format!("{}/{}", catalog.path(slot), catalog.function(slot).name);
    catalog.slots().map(address).collect()
}

#[track_caller]
fn check(sources: Vec<Source>, expected: &[&str]) {
    let (catalog, _) = Catalog::build(sources);
    assert_eq!(addresses(&catalog), expected);
}

#[test]
fn a_tool_is_found_by_what_its_author_filed_it_under() {
    let filed = |category: &str, tags: &[&str]| {
        let about = json!({"category": category, "tags": tags, "version": "1.0.0"});
        let raw = json!({
            "name": format!("t_{}", tags.len()), "description": "Does it.", "inputSchema": {},
            "_meta": {"gatelet/tool": about},
        });
        tool::Tool::parse(raw.into()).unwrap()
    };
    let tools = vec![filed("general", &[]), filed("gardening", &["compost"])];
    let (catalog, _) = Catalog::build(vec![Source::new("x", Arc::new(listing(tools)))]);
    for query in ["gardening", "compost"] {
        let hits = catalog.find(query, 5, &|_| true);
        assert_eq!(hits.first().map(|hit| hit.slot), Some(Slot(1)), "{query}: {hits:?}");
    }
    assert!(catalog.find("general", 5, &|_| true).is_empty());
}

#[test]
fn dots_in_names_become_levels() {
    check(
        vec![source("cms", &["evo.content.search", "ping"])],
        &["cms.evo.content/search", "cms/ping"],
    );
}

#[test]
fn a_level_that_repeats_the_label_is_left_out() {
    check(vec![source("evo", &["evo.content.search"])], &["evo.content/search"]);
    check(vec![source("evo", &["evo"])], &["evo/evo"]);
}

#[test]
fn names_deeper_than_three_levels_spill_into_the_function() {
    check(vec![source("a", &["b.c.d.e.f"])], &["a.b.c/d_e_f"]);
}

#[test]
fn odd_names_get_legal_ones() {
    check(
        vec![source("x", &["get-user", "repos/list", "..", "a..b", "c."])],
        &["x/get_user", "x/repos_list", &format!("x/{}", name::alias("..")), "x.a/b", "x/c"],
    );
}

#[test]
fn of_two_names_that_mean_the_same_one_is_tagged_whatever_the_order() {
    let one = Catalog::build(vec![source("x", &["get-user", "get_user"])]);
    let two = Catalog::build(vec![source("x", &["get_user", "get-user"])]);
    let mut names = addresses(&two.0);
    names.reverse();
    assert_eq!(addresses(&one.0), names);
    assert_eq!(names[1], "x/get_user");
    assert!(names[0].starts_with("x/get_user_"), "{names:?}");
    assert!(one.1.iter().any(|finding| finding.code == "name-alias"));
}

#[test]
fn what_an_upstream_tells_apart_is_reached_by_its_own_spelling_only() {
    let names = ["Order_New", "orderNew", "deep.Get", "deep.get", "list_all"];
    let (catalog, _) = Catalog::build(vec![source("x", &names)]);
    for (namespace, function, slot) in [
        ("x", "Order_New", 0),
        ("x", "orderNew", 1),
        ("x.deep", "Get", 2),
        ("x.deep", "get", 3),
        ("x", "listAll", 4),
    ] {
        assert_eq!(catalog.resolve(namespace, function), Ok(Slot(slot)), "{function}");
    }
    for slot in catalog.slots() {
        let name = &catalog.function(slot).name;
        assert_eq!(catalog.resolve(catalog.path(slot), name), Ok(slot), "{name}");
    }
    assert_eq!(catalog.resolve("x", "order_new"), Err(Unresolved::Ambiguous));
    assert_eq!(catalog.lookalikes("x", "order_new"), [Slot(0), Slot(1)]);
    assert_eq!(catalog.lookalikes("x", "list_all"), []);
}

#[test]
fn a_tool_listed_twice_counts_once_and_is_a_finding() {
    let (catalog, findings) = Catalog::build(vec![source("x", &["a", "a"])]);
    assert_eq!(addresses(&catalog), ["x/a"]);
    assert_eq!(findings[0].code, "duplicate-tool");
}

#[test]
fn labels_that_mean_the_same_are_told_apart_in_the_operators_order() {
    let sources = vec![source("Order_Mgmt", &["a"]), source("ordermgmt", &["b"])];
    check(sources, &["Order_Mgmt/a", "ordermgmt_2/b"]);
}

#[test]
fn the_gates_own_label_is_reserved() {
    let own = Source { role: Role::Builtin, ..source("gatelet", &["find"]) };
    check(vec![source("gatelet", &["x"]), own], &["gatelet/find", "gatelet_2/x"]);
}

#[test]
fn a_name_that_had_to_be_replaced_is_still_understood() {
    let (catalog, _) = Catalog::build(vec![source("x", &["日本語", "sub.für alle", "get user"])]);
    for (namespace, function, slot) in
        [("x", "日本語", 0), ("x.sub", "für alle", 1), ("x", "get user", 2)]
    {
        assert_eq!(catalog.resolve(namespace, function), Ok(Slot(slot)), "{function}");
    }
    assert_eq!(catalog.resolve("x", "中文"), Err(Unresolved::Function));
}

#[test]
fn any_spelling_resolves() {
    let (catalog, _) = Catalog::build(vec![source("Order_Mgmt", &["retail.contact_update"])]);
    for (namespace, function) in
        [("ordermgmt.Retail", "contactUpdate"), ("ORDER_MGMT.retail", "CONTACT-UPDATE")]
    {
        assert_eq!(catalog.resolve(namespace, function), Ok(Slot(0)));
    }
    assert_eq!(catalog.resolve("ordermgmt", "x"), Err(Unresolved::Function));
    assert_eq!(catalog.resolve("zzz", "x"), Err(Unresolved::Namespace));
    assert_eq!(catalog.resolve("a..b", "x"), Err(Unresolved::Malformed));
    assert_eq!(catalog.resolve("", "ordermgmt.retail.contact_update"), Err(Unresolved::Function));
}

#[test]
fn a_namespace_is_described_by_the_operator_or_the_server_or_not_at_all() {
    let (catalog, _) = Catalog::build(vec![
        Source { description: Some("Mine. All.".into()), ..source("a", &["x", "n.y"]) },
        source("b", &["x"]),
    ]);
    let lines: Vec<&str> =
        catalog.namespaces()[1..].iter().map(|n| n.description.as_str()).collect();
    assert_eq!(lines, ["Mine.", "", ""]);
}

#[test]
fn a_namespace_without_functions_stays() {
    let away = Source { state: State::Unavailable { reason: "gone".into() }, ..source("a", &[]) };
    let (catalog, _) = Catalog::build(vec![away]);
    assert_eq!(catalog.root().children.len(), 1);
}

#[test]
fn near_functions_come_from_the_namespace_first() {
    let (catalog, _) =
        Catalog::build(vec![source("a", &["serch"]), source("b", &["search", "list"])]);
    let near = catalog.nearest_functions("b", "saerch", 3, GuessBy::SpellingAndMeaning, &|_| true);
    let names: Vec<&str> = near.iter().map(|slot| catalog.function(*slot).name.as_str()).collect();
    assert_eq!(names, ["search", "serch"]);
}

#[test]
fn a_query_finds_what_it_is_about() {
    let tools = vec![
        tool("create_order", "Create a new order for a customer.", &json!({})),
        tool("listStock", "Query stock levels.", &json!({})),
    ];
    let (catalog, _) = Catalog::build(vec![Source::new("shop", Arc::new(listing(tools)))]);
    let hits = catalog.find("stock level", 5, &|_| true);
    assert_eq!(hits[0].slot, Slot(1));
    let hidden = catalog.find("order", 5, &|slot| slot != Slot(0));
    assert!(hidden.iter().all(|hit| hit.slot != Slot(0)));
}

#[test]
fn resources_templates_and_prompts_are_found_beside_functions_and_never_among_them() {
    let listing = Listing {
        tools: vec![tool("read_log", "Read the log.", &json!({}))],
        resources: vec![
            Resource::parse(json!({"uri": "file:///log", "name": "log"}).into()).unwrap(),
        ],
        templates: vec![
            Template::parse(
                json!({"uriTemplate": "log://{day}", "name": "log of a day", "description": "The log of one day."}).into(),
            )
            .unwrap(),
        ],
        prompts: vec![
            Prompt::parse(json!({"name": "greet", "description": "Says hello."}).into()).unwrap(),
            Prompt::parse(json!({"name": "sum_up", "description": "Sums up the log."}).into())
                .unwrap(),
        ],
        ..Listing::default()
    };
    let (catalog, _) = Catalog::build(vec![Source::new("ops", Arc::new(listing))]);
    let places = |kind, query| -> Vec<ItemRef> {
        let found = catalog.search_items(&[kind], query, 5, &Priors::new(), &|_| true);
        found.hits.into_iter().map(|(place, _)| place).collect()
    };
    assert_eq!(catalog.find("log", 5, &|_| true).len(), 1);
    assert_eq!(places(Kind::Tool, "log"), [ItemRef::Tool(Slot(0))]);
    let mut resources = places(Kind::Resource, "log of a day");
    assert_eq!(resources.remove(0), ItemRef::Template { source: 0, at: 0 });
    assert_eq!(resources, [ItemRef::Resource { source: 0, at: 0 }]);
    assert_eq!(places(Kind::Prompt, "sum up the log")[0], ItemRef::Prompt { source: 0, at: 1 });
    assert_eq!(places(Kind::Prompt, "hello")[0], ItemRef::Prompt { source: 0, at: 0 });
    let hidden = catalog.search_items(&[Kind::Resource], "log", 5, &Priors::new(), &|_| false);
    assert_eq!(hidden.hits, []);
}

#[test]
fn a_catalog_takes_over_what_was_found_out_about_the_same_listings() {
    let (one, two) = (source("one", &["a", "b", "b", "c"]), source("two", &["x"]));
    let (before, _) = Catalog::build(vec![one.clone(), two]);
    let c = before.resolve("one", "c").unwrap();
    let contract: *const Contract = before.contract(c);
    let (after, _) = Catalog::build(vec![source("zero", &["x"]), one.clone()]);
    let after = after.reusing(&before);
    let again = after.resolve("one", "c").unwrap();
    assert!(std::ptr::eq(after.contract(again), contract));
    let away = Source { state: State::Unavailable { reason: "x".into() }, ..one };
    let (moved, _) = Catalog::build(vec![after.sources()[0].clone(), away]);
    after.warm();
    let moved = moved.reusing(&after);
    assert!(Arc::ptr_eq(&moved.finder, &after.finder));
}

proptest! {
    #[test]
    fn every_tool_is_reachable_by_exactly_one_name(
        listings in prop::collection::vec(prop::collection::vec("[aA_.\\-é/b1]{0,7}", 0..12), 1..4),
        labels in prop::collection::vec("[aAb_\\-]{0,3}", 4),
    ) {
        let sources: Vec<Source> = listings.iter().zip(&labels)
            .map(|(names, label)| source(label, &names.iter().map(String::as_str).collect::<Vec<_>>()))
            .collect();
        let (catalog, _) = Catalog::build(sources);
        let distinct: usize = listings.iter()
            .map(|names| names.iter().collect::<std::collections::HashSet<_>>().len()).sum();
        prop_assert_eq!(catalog.functions().len(), distinct);
        for slot in catalog.slots() {
            let name = &catalog.function(slot).name;
            prop_assert!(name::is_legal(name), "{}", name);
            prop_assert_eq!(catalog.resolve(catalog.path(slot), name), Ok(slot));
            prop_assert!(catalog.path(slot).split('.').all(name::is_legal));
            prop_assert!(catalog.path(slot).split('.').count() <= 3);
        }
        for namespace in catalog.namespaces() {
            let mut labels: Vec<String> = namespace.children.iter()
                .map(|child| name::canonical(&catalog.namespaces()[*child].label)).collect();
            labels.sort();
            labels.dedup();
            prop_assert_eq!(labels.len(), namespace.children.len());
        }
    }
}
