//! What is private stays private: through every tool, filter, walk and order.

use std::time::Duration;

use content::{Config, Ownership};
use serde_json::{Value, json};
use tool::{Context, Provider};

use crate::ask::{as_user, call, ids};

/// Statements that prepare the sample site; `{q}` is the engine's quote.
///
/// User 4 edits, but is in no group. Documents 5 (by its group alone), 11 (by
/// its flag alone) and 20 (by both) are private; 6, 12, 44 and 70 are drafts.
/// Users 5 and 6 are blocked at [`NOW`], 7 was, and will be again.
pub(crate) const PREPARE: [&str; 7] = [
    "insert into evo_users (id, username) values (4, 'outsider'), (5, 'until'), (6, 'after'), \
     (7, 'between')",
    "insert into evo_user_attributes (id, {q}internalKey{q}, role) values (4, 4, 2)",
    "insert into evo_user_attributes (id, {q}internalKey{q}, role, blockeduntil, blockedafter) \
     values (5, 5, 1, 1800000001, 0), (6, 6, 1, 0, 1799999999), (7, 7, 1, 1799999999, 1800000001)",
    "update evo_site_content set privatemgr = {true} where id in (11, 20)",
    "insert into evo_document_groups (id, document_group, document) values (2, 1, 20)",
    "insert into evo_role_permissions (id, permission, role_id) values (50, 'view_document', 2)",
    "insert into evo_site_tmplvar_access (id, tmplvarid, documentgroup) values (1, 2, 1)",
];

const NOW: fn() -> Duration = || Duration::from_secs(1_800_000_000);

const HIDDEN_FROM_OUTSIDER: [i64; 7] = [5, 11, 20, 6, 12, 44, 70];

const TREE_TOOLS: [&str; 9] = [
    "descendants",
    "ancestors",
    "children",
    "siblings",
    "neighbors",
    "prev_siblings",
    "next_siblings",
    "children_range",
    "siblings_range",
];

/// Checks a site that was prepared with [`PREPARE`].
pub(crate) async fn check(config: &Config) {
    let provider = content::open(config).await.unwrap();
    outsiders_see_nothing_private(&*provider).await;
    members_see_what_their_groups_may(&*provider).await;
    others(&*provider).await;
    let required = Config { ownership: Ownership::Required, ..config.clone() };
    let provider = content::open(&required).await.unwrap();
    let nobody = Context::anonymous();
    let all = ids(&search(&*provider, &nobody, json!({})).await);
    assert!(!all.contains(&6) && all.contains(&5), "{all:?}");
    let model = json!({"model": "User", "limit": 5});
    assert_eq!(call(&*provider, &nobody, "evo.model.list", &model).await["code"], -32602);
    named_callers_are_who_the_operator_says(config).await;
    the_permission_of_the_cms_can_be_asked_for(config).await;
    owners_are_blocked_by_date_too(config).await;
}

/// The operator's word on who somebody is wins over the roles they bring.
async fn named_callers_are_who_the_operator_says(config: &Config) {
    let owners = [("ann".to_owned(), 4)].into();
    let named = Config { owners, ownership: Ownership::Required, ..config.clone() };
    let provider = content::open(&named).await.unwrap();
    let mut ann = (*as_user(1).caller).clone();
    ann.subject = "ann".to_owned();
    let ann = Context { caller: ann.into(), ..Context::anonymous() };
    let seen = ids(&search(&*provider, &ann, json!({})).await);
    assert!(HIDDEN_FROM_OUTSIDER.iter().all(|id| !seen.contains(id)), "{seen:?}");
}

async fn the_permission_of_the_cms_can_be_asked_for(config: &Config) {
    let strict = Config { need_permission: true, ..config.clone() };
    let provider = content::open(&strict).await.unwrap();
    // Role 1 has it by itself, role 2 has not, and nobody else is asked.
    let refused = search(&*provider, &as_user(4), json!({})).await;
    assert!(refused["invalid"].as_str().unwrap().contains("`emcp`"), "{refused}");
    assert_eq!(refused["reason"], "forbidden");
    assert_eq!(ids(&search(&*provider, &as_user(1), json!({})).await).len(), 40);
    assert_eq!(ids(&search(&*provider, &Context::anonymous(), json!({})).await).len(), 40);
}

async fn owners_are_blocked_by_date_too(config: &Config) {
    let dated = Config { clock: NOW, ..config.clone() };
    let provider = content::open(&dated).await.unwrap();
    for blocked in [5, 6] {
        let refused = search(&*provider, &as_user(blocked), json!({})).await;
        assert!(refused["invalid"].as_str().unwrap().starts_with("Forbidden"), "{refused}");
    }
    assert_eq!(ids(&search(&*provider, &as_user(7), json!({})).await).len(), 40);
}

async fn search(provider: &dyn Provider, context: &Context, more: Value) -> Value {
    let mut arguments = json!({"limit": 100});
    arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    call(provider, context, "evo.content.search", &arguments).await
}

async fn outsiders_see_nothing_private(provider: &dyn Provider) {
    let outsider = as_user(4);
    let mut seen = Vec::new();
    for more in [
        json!({}),
        json!({"parent": 0}),
        json!({"parent": 0, "depth": 1}),
        json!({"parent": 2}),
        json!({"parent": 11}),
        json!({"published": false}),
        json!({"deleted": true}),
        json!({"order_by": "pagetitle", "order_dir": "desc"}),
        json!({"order_by_date": "asc"}),
        json!({"tv_filters": [{"tv": "price", "op": ">=", "value": 0, "cast": "SIGNED"}]}),
        json!({"tv_filters": [{"tv": "price", "op": "null"}]}),
        json!({"tv_order": [{"tv": "price", "use_default": true}]}),
        json!({"tags_data": {"tv_id": 17, "tags": ["a", "b", "c"]}}),
        json!({"tags_data": {"tv_id": 18, "tags": ["a"]}}),
    ] {
        seen.extend(ids(&search(provider, &outsider, more).await));
    }
    for depth in 1..=6 {
        let arguments = json!({"limit": 100, "depth": depth});
        seen.extend(ids(&call(provider, &outsider, "evo.content.root_tree", &arguments).await));
    }
    let everyone = ids(&search(provider, &Context::anonymous(), json!({})).await);
    for id in everyone.into_iter().filter(|id| id % 2 == 1 || HIDDEN_FROM_OUTSIDER.contains(id)) {
        for tool in TREE_TOOLS {
            let arguments = json!({"id": id, "limit": 100, "from": 0, "depth": 6});
            let name = format!("evo.content.{tool}");
            let found = ids(&call(provider, &outsider, &name, &arguments).await);
            if HIDDEN_FROM_OUTSIDER.contains(&id) {
                assert!(found.is_empty(), "{tool} of hidden {id} shows {found:?}");
            }
            seen.extend(found);
        }
        let got = call(provider, &outsider, "evo.content.get", &json!({"id": id})).await;
        seen.extend(got["ok"]["item"]["id"].as_i64());
    }
    for hidden in HIDDEN_FROM_OUTSIDER {
        assert!(!seen.contains(&hidden), "{hidden} was shown");
    }
    assert!(seen.contains(&30), "what is public is hidden");
    // Stored values belong to documents, and a variable may be private too.
    let values = json!({"model": "SiteTmplvarContentvalue", "limit": 100});
    let values = call(provider, &outsider, "evo.model.list", &values).await;
    let items = values["ok"]["items"].as_array().unwrap();
    assert!(!items.is_empty());
    assert!(items.iter().all(|item| item["contentid"] != 20 && item["tmplvarid"] != 2));
    let arguments = json!({"id": 30, "with_tvs": ["color:d"]});
    let color = call(provider, &outsider, "evo.content.get", &arguments).await;
    assert_eq!(color["ok"]["item"]["tvs"]["color"], Value::Null);
}

async fn members_see_what_their_groups_may(provider: &dyn Provider) {
    let member = as_user(2);
    let all = ids(&search(provider, &member, json!({})).await);
    assert!(all.contains(&5) && all.contains(&20), "{all:?}");
    assert!(!all.contains(&11) && !all.contains(&6), "{all:?}");
    let user = json!({"model": "User", "limit": 5});
    let refused = call(provider, &member, "evo.model.list", &user).await;
    assert!(refused["invalid"].as_str().unwrap().contains("edit_user"), "{refused}");
    assert_eq!(refused["reason"], "forbidden");
}

async fn others(provider: &dyn Provider) {
    let everyone = ids(&search(provider, &Context::anonymous(), json!({})).await);
    let administrator = ids(&search(provider, &as_user(1), json!({})).await);
    assert_eq!(everyone, administrator);
    assert_eq!(everyone.len(), 40);
    for blocked in [3, 999] {
        let refused = search(provider, &as_user(blocked), json!({})).await;
        assert!(refused["invalid"].as_str().unwrap().starts_with("Forbidden"), "{refused}");
    }
}
