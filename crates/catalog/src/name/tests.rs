use proptest::prelude::*;

use super::*;

#[test]
fn visual_sugar_does_not_matter() {
    for spelling in ["Order_Mgmt", "order_mgmt", "orderMgmt", "ORDERMGMT", "order-mgmt"] {
        assert_eq!(canonical(spelling), "ordermgmt");
        assert!(same(spelling, "ordermgmt"));
    }
}

#[test]
fn an_illegal_name_gets_a_legal_one_close_to_it() {
    assert_eq!(alias("per-page"), "per_page");
    assert_eq!(alias("$filter"), "filter");
    assert_eq!(alias("repos/list"), "repos_list");
    assert_eq!(alias("fine_Name9"), "fine_Name9");
    assert!(alias("搜索").starts_with('x'));
    assert_ne!(alias("搜索"), alias("取得"));
}

#[test]
fn a_path_with_an_empty_level_is_no_path() {
    for text in ["orders..x", ".orders", "orders.", ".", "_", "a.__.b"] {
        assert_eq!(path(text), None, "{text}");
    }
    assert_eq!(path(""), Some(vec![]));
    assert_eq!(path("Orders.Re_tail").unwrap(), ["orders", "retail"]);
}

proptest! {
    #[test]
    fn folding_twice_changes_nothing(text in "\\PC*") {
        prop_assert_eq!(canonical(&canonical(&text)), canonical(&text));
    }

    #[test]
    fn every_alias_is_legal_and_its_own_alias(text in "\\PC{0,12}") {
        let name = alias(&text);
        prop_assert!(is_legal(&name), "{} from {}", name, text);
        prop_assert_eq!(alias(&name), name.clone());
        prop_assert!(!canonical(&name).is_empty());
        prop_assert!(canonical(&name).bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit()));
    }

    #[test]
    fn a_legal_name_keeps_its_meaning(text in "[A-Za-z0-9_]{1,20}") {
        if is_legal(&text) {
            prop_assert_eq!(alias(&text), text);
        }
    }
}
