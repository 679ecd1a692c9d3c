//! What a tool is.
//!
//! Anything that offers tools and answers calls is a [`Provider`]: a server
//! somewhere else, a toolset in this process, and each surface gatelet shows
//! its clients. A provider lists what it has from memory ([`Listing`]) and
//! answers what it is asked ([`Ask`]) with a [`Reply`], or with a [`Failure`]
//! when no answer came. What travels beside the question is one [`Context`].
//!
//! Payloads stay raw JSON text ([`Json`]) inside these small types, so what
//! nobody needs to change is never re-serialised. This crate knows no I/O, no
//! runtime, no policy and no wire format.

pub mod backoff;
pub mod clock;
pub mod hex;
pub mod json;
pub mod map;
pub mod scan;
pub mod shell;
pub mod text;

pub mod listing;

pub mod ask;
pub mod reply;

pub mod context;
pub mod provider;
pub mod trace;

pub mod credential;
pub mod finding;

pub use ask::{Ask, Call, GetPrompt, ReadResource};
pub use backoff::Backoff;
pub use context::{CallerKey, Client, ClientHandle, Context, Identity, NoClient, Notification};
pub use credential::CredentialHealth;
pub use finding::{Finding, Severity};
pub use json::{Json, Object};
pub use listing::{
    Annotations, Lifetime, Lifetimes, Listing, Prompt, Resource, Server, Template, Tool,
};
pub use map::{FastMap, FastSet};
pub use provider::{Event, FixedProvider, Kind, Provider, ProviderSource};
pub use reply::{Failure, Reply, RpcError, Sent};
