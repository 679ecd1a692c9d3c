//! Which gates stand on the way, so that none stands behind itself.
//!
//! A gate tells among its capabilities which gates one reaches through it:
//! itself and those behind it. A gate that finds itself among those of an
//! upstream does not take that upstream up: it would list its own functions as
//! another's, then those again, and never come to an end.

use catalog::{Source, State};
use serde_json::{Value, json};
use tool::{Json, Server};

/// Among the experimental capabilities of a gate.
const KEY: &str = "gatelet/gates";

/// No way is longer, and no list that a stranger sends is read further.
const MOST: usize = 64;

/// Adds to the capabilities of the gate `own` which gates one reaches through
/// it. What cannot be reached leads nowhere.
pub(crate) fn tell<'a>(
    capabilities: &mut Value,
    own: &str,
    sources: impl Iterator<Item = &'a Source>,
) {
    if own.is_empty() {
        return;
    }
    let mut all = vec![own.to_owned()];
    for source in sources.filter(|source| source.state == State::Available) {
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
    capabilities["experimental"][KEY] = json!({"ids": all});
}

/// Why the gate `own` does not take up this server, if it does not.
pub fn refuse(server: &Server, own: &str) -> Option<String> {
    let gates = reached(server);
    let at = gates.iter().position(|gate| gate == own).filter(|_| !own.is_empty())?;
    Some(match at {
        0 => "this is the gate itself: take it out of its own upstreams".to_owned(),
        _ => "this gate stands behind it: each would list the other without end".to_owned(),
    })
}

/// The gates that a server says one reaches through it, itself first.
fn reached(server: &Server) -> Vec<String> {
    let told = server.capabilities.member("experimental");
    let told = told.and_then(|told| told.member(KEY));
    let ids = told.and_then(|told: Json| told.member_as::<Vec<String>>("ids"));
    ids.unwrap_or_default().into_iter().take(MOST).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

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
