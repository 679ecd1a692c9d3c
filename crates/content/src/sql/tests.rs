use serde_json::json;

use super::*;
use crate::arguments::documents as read;
use crate::config::Limits;
use crate::site::{Site, TreeBy};
use crate::statement::{Dialect, Statement};

const DIALECTS: [Dialect; 3] = [Dialect::Sqlite, Dialect::MySql, Dialect::Postgres];

#[test]
fn what_a_caller_wrote_is_never_in_the_text() {
    let arguments = json!({
        "limit": 7, "parent": 31337,
        "with_tvs": ["zzname:d"],
        "tv_filters": [
            {"tv": "zzprice", "op": ">", "value": "4242.42", "cast": "DECIMAL(10,2)"},
            {"tv": "zzcolor", "op": "in", "value": ["zz'red", "zz\"blue", "zz`green"]},
            {"tv": "zzlike", "op": "like", "value": "zz%' or 1=1 --", "use_default": true},
        ],
        "tv_order": [{"tv": "zzorder"}],
        "tags_data": {"tv_id": 31338, "tags": ["zztag') drop table x"]},
    });
    let query = read::search(&arguments, &Limits::contract()).unwrap();
    for dialect in DIALECTS {
        for tree in [TreeBy::Closure, TreeBy::Parents] {
            let site = Site::complete(dialect, tree);
            let visibility = Visibility::User { id: 31339, groups: true, unpublished: false };
            let Statement { text, values } = documents(&site, &query, visibility);
            assert!(!text.contains("zz"), "{text}");
            assert!(!text.contains("3133"), "{text}");
            let placeholders = match dialect {
                Dialect::Sqlite | Dialect::MySql => text.matches('?').count(),
                Dialect::Postgres => text.matches('$').count(),
            };
            assert_eq!(placeholders, values.len(), "{text}");
        }
    }
}
