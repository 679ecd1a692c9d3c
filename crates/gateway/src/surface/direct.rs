//! Every upstream tool, whole, under a name that every host accepts.
//!
//! Definitions, arguments and answers pass as they are; only the name is ours.
//! A tool is called by its upstream's label and its own name, so what it is
//! called does not depend on which other upstreams there are.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use catalog::Slot;
use catalog::summary::echo;
use futures::stream::BoxStream;
use sha2::{Digest, Sha256};
use tool::{
    Ask, Call, Context, Event, Failure, Identity, Json, Listing, Object, Provider, QuickMap, Reply,
    Resource, RpcError, Tool, hex,
};

use super::Surface;
use super::cash::Cash;
use super::rest::Rest;
use crate::dispatch::{CallError, Mode, Outcome, Request};
use crate::gateway::Shared;
use crate::roster::{Hall, Snapshot};
use crate::trust::confirm::lift;

/// Characters that a host accepts in a name.
const LONGEST: usize = 64;

/// The surface, for clients of one kind.
pub struct Direct {
    shared: Arc<Shared>,
    hall: Arc<Hall>,
    /// Who came in.
    caller: Arc<Identity>,
    /// Lists everything that is no tool.
    cash: Cash,
    /// Answers everything that is no call.
    rest: Rest,
}

impl Direct {
    pub(crate) fn new(shared: Arc<Shared>, hall: Arc<Hall>, caller: Arc<Identity>) -> Direct {
        let rest = Rest::new(&shared, &hall, Surface::Direct);
        let cash = Cash::new(Arc::clone(&shared), Arc::clone(&hall), Arc::clone(&caller));
        Direct { shared, hall, caller, cash, rest }
    }
}

/// The names of all tools, and the way back from each.
pub(crate) struct Names {
    tools: Vec<(Slot, Tool)>,
    slots: QuickMap<String, Slot>,
}

impl Names {
    pub(crate) fn definitions(&self) -> Vec<Json> {
        self.tools.iter().map(|(_, tool)| tool.raw.clone()).collect()
    }

    pub(crate) fn of(snapshot: &Snapshot) -> Names {
        let catalog = &snapshot.catalog;
        let (mut tools, mut slots) = (Vec::new(), QuickMap::default());
        let mut plain: HashMap<&str, Option<Slot>> = HashMap::new();
        for slot in catalog.slots().filter(|slot| !catalog.is_own(*slot)) {
            let (tool, label) = (catalog.tool(slot), catalog.source(slot).label.as_str());
            let mut name = legal(label, &tool.name);
            if slots.contains_key(&name) {
                name = tagged(&name, label, &tool.name);
            }
            tools.push((slot, renamed(tool, &name)));
            slots.insert(name, slot);
            plain.entry(&tool.name).and_modify(|only| *only = None).or_insert(Some(slot));
        }
        // An upstream's own name works too while only one tool has it.
        for (name, slot) in plain {
            if let Some(slot) = slot {
                slots.entry(name.to_owned()).or_insert(slot);
            }
        }
        Names { tools, slots }
    }
}

/// The name of a tool here: `label_name` with what hosts reject replaced.
fn legal(label: &str, name: &str) -> String {
    let keep = |c: char| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' };
    let joined: String = format!("{label}_{name}").chars().map(keep).collect();
    match joined.len() <= LONGEST {
        true => joined,
        false => tagged(&joined, label, name),
    }
}

/// A name with a tag of what it stands for, short enough.
fn tagged(joined: &str, label: &str, name: &str) -> String {
    let digest = Sha256::digest(format!("{label}\n{name}").as_bytes());
    let tag = hex::encode(&digest[..4]);
    let head: String = joined.chars().take(LONGEST - 9).collect();
    format!("{head}_{tag}")
}

/// The definition, whole but for its name. Official clients refuse a whole list
/// for one schema in it that is none, so such a schema is left out.
fn renamed(tool: &Tool, name: &str) -> Tool {
    let Ok(mut raw) = Object::parse(&tool.raw) else { return tool.clone() };
    raw.set("name", Json::of(name));
    if raw.get("inputSchema").is_none_or(|schema| !schema.is_object()) {
        raw.set("inputSchema", Json::of(&serde_json::json!({"type": "object"})));
    }
    if raw.get("outputSchema").is_some_and(|schema| !schema.is_object()) {
        raw.remove("outputSchema");
    }
    Tool { name: name.to_owned(), raw: raw.to_json(), ..tool.clone() }
}

#[async_trait]
impl Provider for Direct {
    fn listing(&self) -> Arc<Listing> {
        let snapshot = self.hall.snapshot();
        let trust = &self.shared.dispatcher.trust;
        snapshot.listing(Surface::Direct, trust.sight(&self.caller), || {
            let seen =
                |(slot, _): &&(Slot, Tool)| trust.sees(&self.caller, &snapshot.catalog, *slot);
            let tools = snapshot.names().tools.iter().filter(seen);
            let tools = tools.map(|(_, tool)| tool.clone()).collect();
            Listing { tools, ..(*self.cash.listing()).clone() }
        })
    }

    fn events(&self) -> BoxStream<'static, Event> {
        self.rest.events()
    }

    async fn resources_of(&self, context: &Context) -> Vec<Resource> {
        self.rest.resources(context).await
    }

    async fn ask(&self, ask: Ask, context: &Context) -> Result<Reply, Failure> {
        match ask {
            Ask::Call(call) => self.call(call, context).await,
            Ask::Read(_) | Ask::Prompt(_) | Ask::Complete(_) | Ask::Other { .. } => {
                Box::pin(self.rest.ask(ask, context)).await
            }
        }
    }
}

impl Direct {
    async fn call(&self, call: Call, context: &Context) -> Result<Reply, Failure> {
        let call = lift(call);
        let snapshot = self.hall.snapshot();
        let trust = &self.shared.dispatcher.trust;
        let slot = snapshot.names().slots.get(&call.name).copied();
        let seen = slot.filter(|slot| trust.sees(&context.caller, &snapshot.catalog, *slot));
        let Some(slot) = seen else {
            return Ok(Reply::Error(RpcError::new(
                -32602,
                format!("no tool `{}`", echo(&call.name)),
            )));
        };
        let request = Request {
            target: snapshot.target(slot),
            arguments: call.arguments,
            rest: call.rest,
            wanted: None,
            mode: Mode::Pass,
        };
        let mut failure = None;
        let say = |outcome| match outcome {
            Ok(Outcome::Reply(reply)) => {
                snapshot.notice_task(&self.shared.tasks, slot, context, &reply);
                reply
            }
            // Nothing is kept or planned in this mode.
            Ok(Outcome::Kept { artifact, .. } | Outcome::Unkept { artifact, .. }) => {
                Reply::Result(artifact.result.clone())
            }
            Ok(Outcome::Plan(_)) => Reply::Result(Json::empty_object()),
            Err(CallError::Failed { cause, .. }) => {
                let reply = Reply::error_text(&cause.to_string());
                failure = Some(cause);
                reply
            }
            Err(error @ (CallError::BadArguments { .. } | CallError::Refused(_))) => {
                Reply::error_text(&error.to_string())
            }
        };
        let dispatcher = &self.shared.dispatcher;
        let reply = dispatcher.dispatch(&snapshot, request, Surface::Direct, context, say).await;
        // A client that talks to the upstream itself would see the failure too.
        failure.map_or(Ok(reply), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_legal_and_do_not_depend_on_other_upstreams() {
        assert_eq!(legal("github", "create_issue"), "github_create_issue");
        assert_eq!(legal("fs", "read.file x"), "fs_read_file_x");
        let long = legal("label", &"n".repeat(100));
        assert_eq!(long.len(), 64);
        assert_ne!(long, legal("label", &"n".repeat(101)));
    }
    #[test]
    fn a_definition_whose_schema_is_none_is_one_that_clients_take() {
        for (odd, expected) in [
            (r#"{"name":"t"}"#, r#"{"name":"n","inputSchema":{"type":"object"}}"#),
            (
                r#"{"name":"t","inputSchema":null,"outputSchema":5,"x":1}"#,
                r#"{"name":"n","inputSchema":{"type":"object"},"x":1}"#,
            ),
            (
                r#"{"name":"t","inputSchema":{"a":1},"outputSchema":{}}"#,
                r#"{"name":"n","inputSchema":{"a":1},"outputSchema":{}}"#,
            ),
        ] {
            let tool = Tool::read(Json::parse(odd.to_owned()).unwrap()).unwrap();
            assert_eq!(renamed(&tool, "n").raw.as_str(), expected);
        }
    }
}
