//! Which gates stand on the way, so that none stands behind itself.
//!
//! A gate tells among its capabilities which gates one reaches through it:
//! itself and those behind it. A gate that finds itself among those of an
//! upstream does not take that upstream up: it would list its own functions as
//! another's, then those again, and never come to an end. What stands behind a
//! gate changes while it runs, so it is asked again whenever it lists something
//! else.

use std::sync::Arc;
use std::time::Duration;

use catalog::{Source, State};
use serde_json::{Value, json};
use tool::{Ask, Context, Json, Object, Provider, Reply, Server};

/// Among the experimental capabilities of a gate.
const KEY: &str = "gatelet/gates";

/// No list is longer, and none that a stranger sends is read further.
const MOST: usize = 64;

/// So many gates may stand one behind the other. Gates that start each other as
/// programs are others each time, and no id tells that they go in a circle.
const DEEPEST: u64 = 8;

/// How one asks a server what it can do.
const DISCOVER: &str = "server/discover";

/// How long a gate may take to say what stands behind it.
const ANSWER: Duration = Duration::from_secs(5);

/// Adds to the capabilities of the gate `own` which gates one reaches through
/// it. What cannot be reached leads nowhere.
pub fn tell<'a>(capabilities: &mut Value, own: &str, sources: impl Iterator<Item = &'a Source>) {
    if own.is_empty() {
        return;
    }
    let (mut all, mut depth) = (vec![own.to_owned()], 1);
    for source in sources.filter(|source| source.state == State::Available) {
        depth = depth.max(1 + self::depth(&source.listing.server));
        for gate in reached(&source.listing.server) {
            if !all.contains(&gate) {
                all.push(gate);
            }
        }
    }
    all.truncate(MOST);
    if !capabilities["experimental"].is_object() {
        capabilities["experimental"] = json!({});
    }
    capabilities["experimental"][KEY] = json!({"ids": all, "depth": depth});
}

/// Why the gate `own` does not take up this server, if it does not.
pub fn refuse(server: &Server, own: &str) -> Option<String> {
    if own.is_empty() {
        return None;
    }
    Some(match reached(server).iter().position(|gate| gate == own) {
        Some(0) => "this is the gate itself: take it out of its own upstreams".to_owned(),
        Some(_) => "this gate stands behind it: each would list the other without end".to_owned(),
        None if DEEPEST <= depth(server) => {
            format!("{DEEPEST} gates stand one behind the other there")
        }
        None => return None,
    })
}

/// What a gate says of itself now; `None` for who is none, or does not say.
pub(crate) async fn ask_again(provider: &Arc<dyn Provider>) -> Option<Server> {
    let listing = provider.listing();
    told(&listing.server)?;
    let ask = Ask::Other { method: DISCOVER.to_owned(), params: Object::new() };
    let context = Context { timeout: Some(ANSWER), ..Context::anonymous() };
    let reply = tokio::time::timeout(ANSWER, provider.ask(ask, &context)).await;
    let Ok(Ok(Reply::Result(result))) = reply else { return None };
    let capabilities = result.member("capabilities")?;
    Some(Server { capabilities, ..listing.server.clone() })
}

/// The gates that a server says one reaches through it, itself first.
fn reached(server: &Server) -> Vec<String> {
    let ids = told(server).and_then(|told| told.member_as::<Vec<String>>("ids"));
    ids.unwrap_or_default().into_iter().take(MOST).collect()
}

/// How many gates stand one behind the other there; none where there is none.
fn depth(server: &Server) -> u64 {
    let Some(told) = told(server) else { return 0 };
    told.member_as("depth").unwrap_or(1)
}

fn told(server: &Server) -> Option<Json> {
    server.capabilities.member("experimental")?.member(KEY)
}

#[cfg(test)]
mod tests {
    use tool::Listing;

    use super::*;

    fn gate(own: &str, behind: &[Source]) -> Server {
        let mut capabilities = json!({});
        tell(&mut capabilities, own, behind.iter());
        Server::new("gatelet", "1", capabilities.into())
    }

    fn source(server: Server) -> Source {
        Source::new("up", Arc::new(Listing { server, ..Listing::default() }))
    }

    #[test]
    fn a_gate_is_known_by_itself_and_by_those_before_it() {
        let inner = gate("inner", &[]);
        assert!(refuse(&inner, "inner").unwrap().starts_with("this is the gate itself"));
        let outer = gate("outer", &[source(inner)]);
        let far = gate("far", &[source(outer)]);
        assert!(refuse(&far, "inner").unwrap().starts_with("this gate stands behind it"));
        assert_eq!(refuse(&far, "another"), None);
    }

    #[test]
    fn gates_stand_behind_each_other_only_so_deep() {
        let mut last = gate("0", &[]);
        for n in 1..8 {
            assert_eq!(refuse(&last, "another"), None, "{n}");
            last = gate(&n.to_string(), &[source(last), source(gate("beside", &[]))]);
        }
        assert_eq!(refuse(&last, "another").unwrap(), "8 gates stand one behind the other there");
    }

    #[test]
    fn what_cannot_be_reached_leads_nowhere() {
        let reason = "gone".to_owned();
        let away = Source { state: State::Unavailable { reason }, ..source(gate("a", &[])) };
        assert_eq!(refuse(&gate("b", &[away]), "a"), None);
    }

    #[test]
    fn a_gate_without_a_name_says_nothing_and_refuses_nobody() {
        let nameless = gate("", &[]);
        assert_eq!(nameless.capabilities.as_str(), "{}");
        assert_eq!(refuse(&nameless, ""), None);
    }
}
