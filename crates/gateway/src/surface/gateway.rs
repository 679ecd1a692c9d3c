//! Three tools to browse, execute and view; four more for resources and
//! prompts where upstreams have them.

use std::sync::Arc;

use async_trait::async_trait;
use catalog::directory::{Entry, Section};
use catalog::{Directory, reply};
use futures::stream::BoxStream;
use tool::{
    Ask, Call, Context, Event, Failure, Identity, Listing, Provider, Reply, Resource, RpcError,
    Tool,
};

use super::Surface;
use super::meta::{self, MAP, Meta, definition, listing};
use super::rest::Rest;
use crate::gateway::Shared;
use crate::roster::Hall;
use crate::trust::confirm::lift;

/// The surface, for clients of one kind.
pub struct Gateway {
    shared: Arc<Shared>,
    hall: Arc<Hall>,
    /// Who came in.
    caller: Arc<Identity>,
    /// Answers everything that is no call.
    rest: Rest,
}

impl Gateway {
    pub(crate) fn new(shared: Arc<Shared>, hall: Arc<Hall>, caller: Arc<Identity>) -> Gateway {
        let rest = Rest::new(&shared, &hall, Surface::Gateway);
        Gateway { shared, hall, caller, rest }
    }
}

/// The names of the meta-tools over what a caller sees of a catalog.
pub(crate) fn names(directory: &Directory, seen: &dyn Fn(&Entry) -> bool) -> Vec<&'static str> {
    let mut names = vec!["tool_browse", "tool_execute", "tool_view"];
    let any = |section: &Section| section.entries().iter().any(seen);
    if any(&directory.resources) {
        names.extend(["resource_browse", "resource_read"]);
    }
    if any(&directory.prompts) {
        names.extend(["prompt_browse", "prompt_get"]);
    }
    names
}

/// Our own tools, by name; `map` names the namespaces that there are.
pub(crate) fn tools(names: &[&str], map: &str) -> Vec<Tool> {
    let read =
        |name: &&str| Tool::read(definition(name, map).into()).expect("our own tools have names");
    names.iter().map(read).collect()
}

#[async_trait]
impl Provider for Gateway {
    fn listing(&self) -> Arc<Listing> {
        let snapshot = self.hall.snapshot();
        let trust = self.shared.dispatcher.trust();
        let sees = |slot| trust.sees(&self.caller, &snapshot.catalog, slot);
        let map = || reply::map(&snapshot.catalog, MAP, &sees);
        let sight = trust.sight(&self.caller);
        snapshot.listing(Surface::Gateway, sight, || {
            let seen =
                |entry: &Entry| meta::sees(trust, &snapshot.catalog, &self.caller, entry.place);
            let names = names(snapshot.directory(), &seen);
            listing(&self.shared, &snapshot, tools(&names, &map()), &self.caller)
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
            Ask::Call(call) => {
                let Call { name, arguments, rest } = lift(call);
                let asked = meta::snapshot(&self.shared, &self.hall, arguments.as_ref(), context);
                let snapshot = Box::pin(asked).await;
                let meta = Meta {
                    shared: &self.shared,
                    snapshot: &snapshot,
                    context,
                    surface: Surface::Gateway,
                    sightings: self.hall.sightings(),
                    rest: &rest,
                };
                let unknown = || {
                    let known = names(snapshot.directory(), &|entry| meta.shows(entry)).join(", ");
                    let name = catalog::summary::echo(&name);
                    let message = format!(
                        "no tool `{name}`: there are {known}; run others with tool_execute"
                    );
                    Reply::Error(RpcError::new(-32602, message))
                };
                Ok(meta.answer(&name, arguments.as_ref()).await.unwrap_or_else(unknown))
            }
            Ask::Read(_) | Ask::Prompt(_) | Ask::Complete(_) | Ask::Other { .. } => {
                self.rest.ask(ask, context).await
            }
        }
    }
}

#[cfg(test)]
mod tests;
