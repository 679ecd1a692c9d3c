//! Serves namespaces as groups, by MCP's grouping extension (a draft of 2026, off by
//! default).
//!
//! A group is a namespace that the caller sees, with its purpose. The `_meta` of a
//! tool names the group that it belongs to.

use catalog::source::Role;
use catalog::{Catalog, Namespace};
use serde_json::{Value, json};
use tool::{Json, Object, Tool};

use policy::visibility::CallerView;

/// The method of the extension, and the extension's name.
pub(crate) const LIST: &str = "groups/list";
pub(crate) const EXTENSION: &str = "io.modelcontextprotocol/grouping";
/// The key of `_meta` that names the groups of a tool.
const MEMBERSHIP: &str = "io.modelcontextprotocol/groups";
/// How many groups one page has.
const PAGE: usize = 100;

/// Answers `groups/list`. `cursor` is the path of the last group of the page before.
pub(crate) fn list(catalog: &Catalog, visible: &CallerView<'_>, cursor: Option<&str>) -> Json {
    let is_builtin = |namespace: &Namespace| {
        namespace.source.is_some_and(|at| catalog.sources()[at].role == Role::Builtin)
    };
    let seen = catalog.namespaces()[1..]
        .iter()
        .filter(|namespace| !is_builtin(namespace) && visible.shows_namespace(catalog, namespace));
    let mut seen: Vec<&Namespace> = seen.collect();
    seen.sort_by(|a, b| a.path.cmp(&b.path));
    let after = cursor.unwrap_or_default();
    let mut rest = seen.into_iter().filter(|namespace| after < namespace.path.as_str()).peekable();
    let page: Vec<&Namespace> = rest.by_ref().take(PAGE).collect();
    let sees = |slot| visible.shows_function(catalog, slot);
    let groups: Vec<Value> =
        page.iter().map(|one| group(one, &catalog.purpose(one, &sees))).collect();
    let mut result = json!({"groups": groups});
    if let (Some(_), Some(last)) = (rest.peek(), page.last()) {
        result["nextCursor"] = json!(last.path);
    }
    result.into()
}

fn group(namespace: &Namespace, purpose: &str) -> Value {
    let mut group = json!({"name": namespace.path});
    if !purpose.is_empty() {
        group["description"] = json!(purpose);
    }
    if let Some((parent, _)) = namespace.path.rsplit_once('.') {
        group["_meta"] = json!({MEMBERSHIP: [parent]});
    }
    group
}

/// Adds to a tool that it belongs to the group `path`.
pub(crate) fn with_group(tool: &Tool, path: &str) -> Tool {
    let Ok(mut raw) = Object::parse(&tool.raw) else { return tool.clone() };
    let meta = raw.get("_meta").and_then(|meta| Object::parse(meta).ok());
    let mut meta = meta.unwrap_or_default();
    // Groups that its own server names are not gatelet's.
    meta.set(MEMBERSHIP, Json::encode(&[path]));
    raw.set("_meta", meta.to_json());
    Tool { raw: raw.to_json(), ..tool.clone() }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tool::{Ask, Client, Context, Reply};

    use crate::choice::Surface;
    use crate::fixture::{Opened, open, shop};
    use policy::visibility;

    use super::*;

    async fn opened(groups: bool) -> Opened {
        let hide = vec![visibility::Rule {
            hide: vec!["crm".parse().unwrap()],
            ..visibility::Rule::default()
        }];
        open(shop().0, |parts| {
            parts.server.listed.groups = groups;
            parts.server.listed.pinned = vec![policy::pattern::Pattern::new("inventory.check")];
            let rules = visibility::Config { rules: hide, ..visibility::Config::default() };
            parts.policies.visibility = rules.into();
        })
        .await
    }

    async fn groups(opened: &Opened, surface: Surface) -> Result<Value, i64> {
        let client = Arc::new(Client::named("test", ""));
        let provider = opened.gateway.surface(surface).provider_for(&client, &Arc::default());
        let ask = Ask::parse(LIST, &json!({}).into()).unwrap();
        match provider.ask(ask, &Context::anonymous()).await.unwrap() {
            Reply::Result(result) => Ok(result.to_value().unwrap()["groups"].clone()),
            Reply::Error(error) => Err(error.code),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn namespaces_that_the_caller_sees_are_groups_with_their_members() {
        let opened = opened(true).await;
        let nested = |name: &str| json!({"name": name, "_meta": {MEMBERSHIP: ["orders"]}});
        for surface in [Surface::Cash, Surface::Gateway, Surface::Proxy, Surface::Direct] {
            let mut found = groups(&opened, surface).await.unwrap();
            let named = found.as_array().unwrap();
            assert_eq!(named[0]["name"], "inventory");
            assert_eq!(named[0]["description"], "Query and update stock levels.");
            for group in found.as_array_mut().unwrap() {
                group.as_object_mut().unwrap().remove("description");
            }
            let expected = json!([{"name": "inventory"}, {"name": "orders"},
                nested("orders.retail"), nested("orders.wholesale")]);
            assert_eq!(found, expected, "{surface:?}");
            let client = Arc::new(Client::named("test", ""));
            let provider = opened.gateway.surface(surface).provider_for(&client, &Arc::default());
            let listing = provider.listing();
            let declared = listing.server.capabilities.member("extensions").unwrap();
            assert!(declared.member(EXTENSION).is_some(), "{surface:?}");
            let check = listing.tools.iter().find(|tool| tool.name.contains("check")).unwrap();
            let membership = check.raw.member("_meta").unwrap().member(MEMBERSHIP).unwrap();
            assert_eq!(membership.as_str(), r#"["inventory"]"#, "{surface:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn without_the_switch_there_are_none() {
        let opened = opened(false).await;
        for surface in [Surface::Cash, Surface::Gateway, Surface::Proxy, Surface::Direct] {
            assert_eq!(groups(&opened, surface).await, Err(-32601), "{surface:?}");
            let client = Arc::new(Client::named("test", ""));
            let provider = opened.gateway.surface(surface).provider_for(&client, &Arc::default());
            let listing = Json::encode(&*provider.listing());
            assert!(!listing.as_str().contains("modelcontextprotocol/group"), "{surface:?}");
        }
    }
}
