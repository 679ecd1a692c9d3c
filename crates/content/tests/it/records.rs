//! Conditions on the fields of models mean the same on every engine.

use content::Config;
use serde_json::{Value, json};
use tool::{Context, Provider};

use crate::ask::{call, ids};

/// Checks the sample site, whose templates 1 and 3 have category 0, and 2 and
/// 4 have category 1.
pub(crate) async fn check(config: &Config) {
    let provider = content::open(config).await.unwrap();
    let found = async |op: &str, value: Value| list(&*provider, op, value).await;
    // Text is no number: not zero, and not what it starts with.
    for text in ["abc", "", "0x", "1 apple"] {
        assert!(found("=", json!(text)).await.is_empty(), "{text}");
        assert!(found(">", json!(text)).await.is_empty(), "{text}");
        assert_eq!(found("!=", json!(text)).await.len(), 4, "{text}");
        assert_eq!(found("<", json!(text)).await.len(), 4, "{text}");
    }
    assert_eq!(found("in", json!(["abc", "1"])).await, [2, 4]);
    assert!(found("in", json!(["abc"])).await.is_empty());
    assert_eq!(found("not_in", json!(["abc", "1"])).await, [1, 3]);
    // One statement, asked with a fraction and then with an integer.
    assert_eq!(found(">=", json!("0.5")).await, [2, 4]);
    assert_eq!(found(">=", json!("1")).await, [2, 4]);
    assert_eq!(found("=", json!("1.0")).await, [2, 4]);
    assert_eq!(found("=", json!(" 1 ")).await, [2, 4]);
    assert_eq!(found("<", json!("1e3")).await.len(), 4);
    assert_eq!(found("in", json!(["1.0", "7"])).await, [2, 4]);
    assert!(found("=", json!("99999999999999999999999")).await.is_empty());
}

async fn list(provider: &dyn Provider, op: &str, value: Value) -> Vec<i64> {
    let condition = json!({"field": "category", "op": op, "value": value});
    let few = json!({"field": "id", "op": "<=", "value": 4});
    let filters = json!({"where": [condition, few]});
    let arguments = json!({"model": "SiteTemplate", "limit": 100, "filters": filters});
    ids(&call(provider, &Context::anonymous(), "evo.model.list", &arguments).await)
}
