//! What is asked.

use serde_json::{Value, json};

/// Every tool, and the searches that cost the most.
pub(crate) fn questions(n_documents: u64) -> Vec<(&'static str, &'static str, Value)> {
    // Deep in the tree, and a branch near the root.
    let leaf = n_documents - 3;
    let branch = 3;
    vec![
        ("search", "evo.content.search", json!({"limit": 20})),
        ("search, offset 5000", "evo.content.search", json!({"limit": 20, "offset": 5000})),
        ("search below a branch", "evo.content.search", json!({"limit": 20, "parent": branch})),
        ("search below the root", "evo.content.search", json!({"limit": 20, "parent": 0})),
        ("search by template", "evo.content.search", json!({"limit": 20, "template": 3})),
        (
            "search, order by title",
            "evo.content.search",
            json!({"limit": 20, "order_by": "pagetitle"}),
        ),
        (
            "search, newest first",
            "evo.content.search",
            json!({"limit": 20, "order_by_date": "desc"}),
        ),
        ("search for deleted", "evo.content.search", json!({"limit": 20, "deleted": true})),
        ("search for unpublished", "evo.content.search", json!({"limit": 20, "published": false})),
        (
            "search with 3 variables",
            "evo.content.search",
            json!({"limit": 20, "with_tvs": ["tv1", "tv2:d", "tv3"]}),
        ),
        (
            "search by a variable",
            "evo.content.search",
            json!({"limit": 20, "tv_filters":
                [{"tv": "tv1", "op": ">", "value": 5000, "cast": "UNSIGNED"}]}),
        ),
        (
            "search below, by variable order",
            "evo.content.search",
            json!({"limit": 20, "parent": 60, "depth": 2,
                "tv_order": [{"tv": "tv2", "cast": "SIGNED"}]}),
        ),
        (
            "get with 3 variables",
            "evo.content.get",
            json!({"id": leaf, "with_tvs": ["tv1", "tv2"]}),
        ),
        ("root_tree", "evo.content.root_tree", json!({"limit": 20, "depth": 2})),
        ("descendants", "evo.content.descendants", json!({"limit": 20, "id": branch})),
        (
            "descendants, depth 3",
            "evo.content.descendants",
            json!({"limit": 20, "id": branch, "depth": 3}),
        ),
        ("ancestors", "evo.content.ancestors", json!({"limit": 20, "id": leaf})),
        ("children", "evo.content.children", json!({"limit": 20, "id": branch})),
        ("siblings", "evo.content.siblings", json!({"limit": 20, "id": leaf})),
        ("neighbors", "evo.content.neighbors", json!({"limit": 20, "id": leaf})),
        ("prev_siblings", "evo.content.prev_siblings", json!({"limit": 20, "id": leaf})),
        ("next_siblings", "evo.content.next_siblings", json!({"limit": 20, "id": leaf})),
        (
            "children_range",
            "evo.content.children_range",
            json!({"limit": 20, "id": branch, "from": 3, "to": 9}),
        ),
        (
            "siblings_range",
            "evo.content.siblings_range",
            json!({"limit": 20, "id": leaf, "from": 3, "to": 9}),
        ),
        ("model.list", "evo.model.list", json!({"model": "SiteTmplvarContentvalue", "limit": 20})),
        ("model.get", "evo.model.get", json!({"model": "SiteTmplvarContentvalue", "id": leaf})),
    ]
}
