//! What clients see.
//!
//! Each surface is a provider over the same catalog and the same dispatch; they
//! differ in how much they show and how it is asked for.

pub mod cash;
pub mod direct;
pub mod gateway;
pub mod proxy;

pub mod auto;
pub mod meta;
pub mod offers;

mod about;
pub(crate) mod artifacts;
pub(crate) mod rest;

pub(crate) mod tasks;

use catalog::reply;
use tool::{Client, Json, Tool};

use crate::roster::Snapshot;

/// The surfaces there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Surface {
    /// `call`, `help`, `skill`.
    Cash,
    /// `tool_browse`, `tool_execute`, `tool_view`, and more for resources and
    /// prompts.
    Gateway,
    /// Every upstream tool, stripped, with `tool_hydrate` and the like.
    Proxy,
    /// Every upstream tool, whole.
    Direct,
    /// One of the others, by what the client says of itself.
    Auto,
}

impl Surface {
    pub const ALL: [Surface; 5] =
        [Surface::Cash, Surface::Gateway, Surface::Proxy, Surface::Direct, Surface::Auto];

    pub fn name(self) -> &'static str {
        match self {
            Surface::Cash => "cash",
            Surface::Gateway => "gateway",
            Surface::Proxy => "proxy",
            Surface::Direct => "direct",
            Surface::Auto => "auto",
        }
    }

    /// The surface that a client gets.
    pub fn for_client(self, client: &Client) -> Surface {
        match self {
            Surface::Auto => auto::choose(client),
            Surface::Cash | Surface::Gateway | Surface::Proxy | Surface::Direct => self,
        }
    }
}

/// The definitions that a client sees from whom nothing is hidden.
pub(crate) fn exposed(surface: Surface, snapshot: &Snapshot) -> Vec<Json> {
    let raw = |tools: Vec<Tool>| tools.into_iter().map(|tool| tool.raw).collect();
    let map = |room| reply::map(&snapshot.catalog, room, &|_| true);
    match surface {
        // Whoever says nothing of itself gets the first.
        Surface::Cash | Surface::Auto => raw(cash::tools(&map(cash::MAP))),
        Surface::Gateway => {
            let names = gateway::names(snapshot.directory(), &|_| true);
            raw(gateway::tools(&names, &map(meta::MAP)))
        }
        Surface::Proxy => snapshot.stripped().definitions(),
        Surface::Direct => snapshot.names().definitions(),
    }
}

/// The text names no surface.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no surface; use cash, gateway, proxy, direct or auto")]
pub struct UnknownSurface(pub String);

impl std::str::FromStr for Surface {
    type Err = UnknownSurface;

    fn from_str(text: &str) -> Result<Surface, UnknownSurface> {
        let known = Surface::ALL.into_iter().find(|surface| surface.name() == text);
        known.ok_or_else(|| UnknownSurface(text.to_owned()))
    }
}

#[cfg(test)]
mod tests;
