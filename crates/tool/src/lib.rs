//! The types that every other crate shares: providers, their tools, and the
//! requests to them.
//!
//! Anything that offers tools and answers calls is a [`Provider`]: a server
//! somewhere else, a toolset in this process, and each surface that gatelet shows
//! its clients. A provider lists what it has from memory ([`Listing`]) and
//! answers a request ([`Ask`]) with a [`Reply`], or with a [`Failure`] when no
//! answer came. A [`Context`] says who asks, and travels with the request.
//!
//! Payloads stay raw JSON text ([`Json`]) inside these small types, so that
//! nothing is serialised again unless somebody changes it. This crate does not
//! know I/O, runtimes, policies or the wire format.

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
pub use provider::{Event, FixedProvider, Kind, Provider, ProviderSource, RequestObserver};
pub use reply::{Failure, Reply, RpcError, Sent, is_own_meta_key};
