//! Every upstream tool, stripped, for hosts that search definitions
//! themselves but pay for each.
//!
//! An entry has a name that every host accepts, a short description and no
//! schema. `tool_hydrate` tells the rest and `tool_execute` runs it.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use catalog::directory::Place;
use catalog::{Slot, card};
use futures::stream::BoxStream;
use serde_json::json;
use sha2::{Digest, Sha256};
use tool::{
    Ask, Call, Context, Event, Failure, Identity, Json, Listing, Provider, Reply, Resource,
    RpcError, Tool, hex,
};

use super::Surface;
use super::gateway::tools;
use super::meta::{Meta, Named, listing, waited};
use super::rest::Rest;
use crate::dispatch::Mode;
use crate::gateway::Shared;
use crate::roster::{Hall, Snapshot};
use crate::trust::confirm::lift;

/// The meta-tools beside the stripped entries.
const OWN: [&str; 3] = ["tool_hydrate", "tool_execute", "tool_view"];
/// Tokens that a stripped description may have.
const DESCRIPTION: usize = 40;
/// Characters that a host accepts in a name.
const LONGEST: usize = 64;

/// The surface, for clients of one kind.
pub struct Proxy {
    shared: Arc<Shared>,
    hall: Arc<Hall>,
    /// Who came in.
    caller: Arc<Identity>,
    /// Answers everything that is no call.
    rest: Rest,
}

impl Proxy {
    pub(crate) fn new(shared: Arc<Shared>, hall: Arc<Hall>, caller: Arc<Identity>) -> Proxy {
        let rest = Rest::new(&shared, &hall, Surface::Proxy);
        Proxy { shared, hall, caller, rest }
    }
}

/// An id as a name of at most 64 letters, digits, `_` and `-`.
///
/// `-` introduces what a name cannot hold, so [`decode`] gives the id back. An
/// id that is too long keeps its beginning and gets a digest of the whole; such
/// a name is known only beside its id.
pub fn encode(id: &str) -> String {
    let mut name = String::with_capacity(id.len() + 4);
    for c in id.chars() {
        match c {
            '-' => name.push_str("--"),
            ':' => name.push_str("-_"),
            '.' => name.push_str("-d"),
            '#' => name.push_str("-h"),
            '@' => name.push_str("-v"),
            '~' => name.push_str("-t"),
            _ => name.push(c),
        }
    }
    if name.len() <= LONGEST {
        return name;
    }
    let digest = Sha256::digest(id.as_bytes());
    let digest = hex::encode(&digest[..8]);
    let head: String = name.chars().take(LONGEST - digest.len() - 2).collect();
    format!("{}-x{digest}", head.trim_end_matches('-'))
}

/// The id that a name encodes; nothing when the name was shortened or is none.
pub fn decode(name: &str) -> Option<String> {
    let mut id = String::with_capacity(name.len());
    let mut chars = name.chars();
    while let Some(c) = chars.next() {
        id.push(match c {
            '-' => match chars.next()? {
                '-' => '-',
                '_' => ':',
                'd' => '.',
                'h' => '#',
                'v' => '@',
                't' => '~',
                _ => return None,
            },
            _ => c,
        });
    }
    Some(id)
}

/// The stripped definitions, in the order of the directory, and the ids of the
/// names that were shortened.
pub(crate) struct Stripped {
    /// The meta-tools belong to nobody; the others to a function each.
    tools: Vec<(Option<Slot>, Tool)>,
    shortened: HashMap<String, String>,
}

impl Stripped {
    pub(crate) fn of(snapshot: &Snapshot) -> Stripped {
        let own = tools(&OWN, "").into_iter().map(|tool| (None, tool));
        let mut stripped = Stripped { tools: own.collect(), shortened: HashMap::new() };
        for entry in snapshot.directory().tools.entries() {
            let name = encode(&entry.id);
            if decode(&name).as_ref() != Some(&entry.id) {
                stripped.shortened.insert(name.clone(), entry.id.clone());
            }
            let raw = json!({
                "name": name,
                "description": card::truncate(entry.card.description(), DESCRIPTION),
                "inputSchema": {"type": "object"},
            });
            if let (Place::Tool(slot), Ok(tool)) = (entry.place, Tool::read(raw.into())) {
                stripped.tools.push((Some(slot), tool));
            }
        }
        stripped
    }

    pub(crate) fn definitions(&self) -> Vec<Json> {
        self.tools.iter().map(|(_, tool)| tool.raw.clone()).collect()
    }

    /// The id that a name stands for.
    pub(crate) fn id(&self, name: &str) -> Option<String> {
        self.shortened.get(name).cloned().or_else(|| decode(name))
    }
}

#[async_trait]
impl Provider for Proxy {
    fn listing(&self) -> Arc<Listing> {
        let snapshot = self.hall.snapshot();
        let trust = self.shared.dispatcher.trust();
        let sees = |slot| trust.sees(&self.caller, &snapshot.catalog, slot);
        snapshot.listing(Surface::Proxy, trust.sight(&self.caller), || {
            let seen = snapshot.stripped().tools.iter().filter(|(slot, _)| slot.is_none_or(sees));
            let tools = seen.map(|(_, tool)| tool.clone()).collect();
            listing(&self.shared, &snapshot, tools, &self.caller)
        })
    }

    fn events(&self) -> BoxStream<'static, Event> {
        self.rest.events()
    }

    async fn resources_for(&self, context: &Context) -> Vec<Resource> {
        self.rest.resources(context).await
    }

    async fn ask(&self, ask: Ask, context: &Context) -> Result<Reply, Failure> {
        match ask {
            Ask::Call(call) => Ok(self.call(call, context).await),
            Ask::Read(_) | Ask::Prompt(_) | Ask::Complete(_) | Ask::Other { .. } => {
                self.rest.ask(ask, context).await
            }
        }
    }
}

impl Proxy {
    async fn call(&self, call: Call, context: &Context) -> Reply {
        let Call { name, arguments, rest } = lift(call);
        let asked = self.asked(&name, arguments.as_ref(), context);
        let snapshot = Box::pin(asked).await;
        let meta = Meta {
            shared: &self.shared,
            snapshot: &snapshot,
            context,
            surface: Surface::Proxy,
            sightings: self.hall.sightings(),
            rest: &rest,
        };
        if OWN.contains(&name.as_str())
            && let Some(reply) = meta.answer(&name, arguments.as_ref()).await
        {
            return reply;
        }
        // A stripped entry that is called by its name is run all the same.
        let Some(id) = snapshot.stripped().id(&name) else {
            let name = catalog::summary::echo(&name);
            let message = format!("no tool `{name}`; names are those of tools/list");
            return Reply::Error(RpcError::new(-32602, message));
        };
        let ran = meta.run(&id, arguments, rest.clone(), Mode::Strict).await;
        meta.settled(ran)
    }

    /// The snapshot to answer from, with what the request names looked at.
    async fn asked(
        &self,
        name: &str,
        arguments: Option<&Json>,
        context: &Context,
    ) -> Arc<Snapshot> {
        let snapshot = self.hall.snapshot();
        let given = || arguments.and_then(|given| given.member_as::<String>("tool_id"));
        let given = if OWN.contains(&name) { given() } else { Some(name.to_owned()) };
        let Some(given) = given else { return snapshot };
        let id = snapshot.stripped().id(&given).unwrap_or(given);
        waited(&self.shared, &self.hall, snapshot, &Named::by_id(&id), context).await
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn accepted(name: &str) -> bool {
        (1..=64).contains(&name.len())
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
    }

    #[test]
    fn names_are_readable_and_lead_back() {
        let name = encode("github:create_issue#34afee88");
        assert_eq!(name, "github-_create_issue-h34afee88");
        assert_eq!(decode(&name).as_deref(), Some("github:create_issue#34afee88"));
        assert_eq!(decode("tool-xff"), None);
    }

    proptest! {
        #[test]
        fn every_id_has_a_name_that_hosts_accept(
            id in "[a-z][a-z0-9_-]{0,63}:[A-Za-z_][A-Za-z0-9_.-]{0,127}(@[A-Za-z0-9._-]{1,32}|#[0-9a-f]{8})(~[2-9])?"
        ) {
            let name = encode(&id);
            prop_assert!(accepted(&name), "{name}");
            match decode(&name) {
                Some(back) => prop_assert_eq!(back, id),
                None => prop_assert!(name.contains("-x")),
            }
        }
    }
}
