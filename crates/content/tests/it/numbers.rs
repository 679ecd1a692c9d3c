//! Numbers in template variables mean the same on every engine.

use content::Config;
use serde_json::{Value, json};
use tool::{Context, Provider};

use crate::ask::{call, ids};

/// Statements that prepare the sample site: prices as people write them.
pub(crate) const PREPARE: [&str; 2] = [
    "insert into evo_site_tmplvars (id, name) values (90, 'probe')",
    "insert into evo_site_tmplvar_contentvalues (id, tmplvarid, contentid, value) values \
     (901, 90, 1, '99.955'), (902, 90, 2, '2.675'), (903, 90, 3, '1.005'), (904, 90, 4, '0.285'), \
     (905, 90, 5, '1.115 each'), (906, 90, 6, '-2.675'), (907, 90, 8, '9223372036854775808'), \
     (908, 90, 10, '-9223372036854775809'), (909, 90, 11, '  12e3'), (910, 90, 12, 'free'), \
     (911, 90, 20, '9223372036854775807'), (912, 90, 21, '99999999999999999999.5')",
];

/// Checks a site that was prepared with [`PREPARE`].
pub(crate) async fn check(config: &Config) {
    let provider = content::open(config).await.unwrap();
    let found = async |op: &str, value: Value, cast: &str| {
        let filter = json!({"tv": "probe", "op": op, "value": value, "cast": cast});
        search(&*provider, json!({"tv_filters": [filter]})).await
    };
    for (value, id) in [
        ("99.96", 1),
        ("2.68", 2),
        ("1.01", 3),
        ("0.29", 4),
        ("1.12", 5),
        ("-2.68", 6),
        ("12", 11),
        ("0.00", 12),
        ("9223372036854775808", 8),
    ] {
        assert_eq!(found("=", json!(value), "DECIMAL(10,2)").await, [id], "{value}");
    }
    // What no rounding gives is equal to nothing, and lies between two.
    assert!(found("=", json!("99.955"), "DECIMAL(10,2)").await.is_empty());
    assert_eq!(found("!=", json!("99.955"), "DECIMAL(10,2)").await.len(), 12);
    assert_eq!(found(">", json!("99.955"), "DECIMAL(10,2)").await, [1, 8, 20, 21]);
    assert_eq!(found("<", json!("-2.675"), "DECIMAL(10,2)").await, [6, 10]);
    assert_eq!(found(">=", json!("-2.675"), "DECIMAL(10,2)").await.len(), 10);

    for cast in ["UNSIGNED", "SIGNED"] {
        assert_eq!(found(">", json!(1000), cast).await, [8, 20, 21], "{cast}");
        assert_eq!(found(">", json!("9223372036854775807"), cast).await, [8, 21], "{cast}");
        assert_eq!(found("=", json!("9223372036854775807"), cast).await, [20], "{cast}");
        assert_eq!(found("=", json!("9223372036854775808"), cast).await, [8], "{cast}");
        assert_eq!(found("<", json!("-9223372036854775808"), cast).await, [10], "{cast}");
        assert_eq!(found(">=", json!("1.5"), cast).await, [1, 2, 8, 11, 20, 21], "{cast}");
        assert_eq!(found("<=", json!("-1.5"), cast).await, [6, 10], "{cast}");
    }
    let order = json!([{"tv": "probe", "cast": "SIGNED", "dir": "desc"}]);
    let all = json!({"tv_order": order, "tv_filters": [{"tv": "probe", "op": "!null"}]});
    let ordered = search(&*provider, all).await;
    assert_eq!((&ordered[3..6], &ordered[10..]), (&[1, 11, 2][..], &[6, 10][..]), "{ordered:?}");
}

async fn search(provider: &dyn Provider, mut arguments: Value) -> Vec<i64> {
    arguments["limit"] = json!(100);
    ids(&call(provider, &Context::anonymous(), "evo.content.search", &arguments).await)
}
