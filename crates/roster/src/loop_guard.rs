//! Keeps gatelet from being mounted behind itself.
//!
//! A gatelet declares among its capabilities the instances that are reached
//! through it: itself and those behind it. An instance that finds itself in the
//! declaration of an upstream does not use that upstream: it would list its own
//! functions as the upstream's, then list those again, without end. What is
//! behind an instance changes while it runs, so its declaration is refreshed
//! whenever its listing changes.

use std::sync::Arc;
use std::time::Duration;

use catalog::{Source, State};
use serde_json::{Value, json};
use tool::{Ask, Context, Json, Object, Provider, Reply, Server};

/// The key of the declaration among the experimental capabilities.
const KEY: &str = "gatelet/gates";

/// The most instances of one declaration.
const MAX_INSTANCES: usize = 64;

/// How many instances may be chained. Instances that start each other as programs
/// are new ones each time, so their ids do not reveal the loop.
const MAX_DEPTH: u64 = 8;

/// The method that asks a server for its capabilities.
const DISCOVER: &str = "server/discover";

/// How long an instance may take to answer it.
const DISCOVER_TIMEOUT: Duration = Duration::from_secs(5);

/// Declares in the capabilities of the instance with the id `own` which instances are
/// reached through it. Unavailable sources reach none.
pub fn declare<'a>(capabilities: &mut Value, own: &str, sources: impl Iterator<Item = &'a Source>) {
    if own.is_empty() {
        return;
    }
    let (mut all, mut depth) = (vec![own.to_owned()], 1);
    for source in sources.filter(|source| source.state == State::Available) {
        depth = depth.max(1 + self::depth(&source.listing.server));
        for instance in reached(&source.listing.server) {
            if !all.contains(&instance) {
                all.push(instance);
            }
        }
    }
    all.truncate(MAX_INSTANCES);
    if !capabilities["experimental"].is_object() {
        capabilities["experimental"] = json!({});
    }
    capabilities["experimental"][KEY] = json!({"ids": all, "depth": depth});
}

/// Returns why the instance with the id `own` must not use this server, if it must not.
pub fn refusal(server: &Server, own: &str) -> Option<String> {
    if own.is_empty() {
        return None;
    }
    Some(match reached(server).iter().position(|instance| instance == own) {
        Some(0) => "this is gatelet itself: take it out of its own upstreams".to_owned(),
        Some(_) => "this gatelet is behind it: each would list the other without end".to_owned(),
        None if MAX_DEPTH <= depth(server) => {
            format!("{MAX_DEPTH} gatelets are chained behind it already")
        }
        None => return None,
    })
}

/// Returns whether a server declares itself to be a gatelet.
pub fn is_declared(server: &Server) -> bool {
    !reached(server).is_empty()
}

/// Asks another gatelet what it declares now; `None` for other servers, and if it does not
/// answer.
pub(crate) async fn refresh(provider: &Arc<dyn Provider>) -> Option<Server> {
    let listing = provider.listing();
    declaration(&listing.server)?;
    let ask = Ask::Other { method: DISCOVER.to_owned(), params: Object::new() };
    let context = Context { timeout: Some(DISCOVER_TIMEOUT), ..Context::anonymous() };
    let reply = tokio::time::timeout(DISCOVER_TIMEOUT, provider.ask(ask, &context)).await;
    let Ok(Ok(Reply::Result(result))) = reply else { return None };
    let capabilities = result.member("capabilities")?;
    Some(Server { capabilities, ..listing.server.clone() })
}

/// Returns the ids of the instances that are reached through a server, its own first.
fn reached(server: &Server) -> Vec<String> {
    let ids = declaration(server).and_then(|declared| declared.member_as::<Vec<String>>("ids"));
    ids.unwrap_or_default().into_iter().take(MAX_INSTANCES).collect()
}

/// Returns how many instances are chained from this server on; 0 for other servers.
fn depth(server: &Server) -> u64 {
    let Some(declared) = declaration(server) else { return 0 };
    declared.member_as("depth").unwrap_or(1)
}

fn declaration(server: &Server) -> Option<Json> {
    server.capabilities.member("experimental")?.member(KEY)
}

#[cfg(test)]
mod tests {
    use tool::Listing;

    use super::*;

    fn instance(own: &str, behind: &[Source]) -> Server {
        let mut capabilities = json!({});
        declare(&mut capabilities, own, behind.iter());
        Server::new("gatelet", "1", capabilities.into())
    }

    fn source(server: Server) -> Source {
        Source::new("up", Arc::new(Listing { server, ..Listing::default() }))
    }

    #[test]
    fn an_instance_is_recognised_by_itself_and_through_others() {
        let inner = instance("inner", &[]);
        assert!(refusal(&inner, "inner").unwrap().starts_with("this is gatelet itself"));
        let outer = instance("outer", &[source(inner)]);
        let far = instance("far", &[source(outer)]);
        assert!(refusal(&far, "inner").unwrap().starts_with("this gatelet is behind it"));
        assert_eq!(refusal(&far, "another"), None);
    }

    #[test]
    fn chains_of_instances_have_a_limit() {
        let mut last = instance("0", &[]);
        for n in 1..8 {
            assert_eq!(refusal(&last, "another"), None, "{n}");
            last = instance(&n.to_string(), &[source(last), source(instance("beside", &[]))]);
        }
        assert_eq!(refusal(&last, "another").unwrap(), "8 gatelets are chained behind it already");
    }

    #[test]
    fn what_is_not_available_reaches_no_instance() {
        let reason = "gone".to_owned();
        let away = Source { state: State::Unavailable { reason }, ..source(instance("a", &[])) };
        assert_eq!(refusal(&instance("b", &[away]), "a"), None);
    }

    #[test]
    fn an_instance_without_an_id_declares_nothing_and_refuses_nobody() {
        let nameless = instance("", &[]);
        assert_eq!(nameless.capabilities.as_str(), "{}");
        assert_eq!(refusal(&nameless, ""), None);
    }
}
