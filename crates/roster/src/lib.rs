//! The upstreams: their sessions, their health and their listings.
//!
//! An upstream session is opened with the capabilities of the client, because
//! servers offer other tools to a client that supports sampling or elicitation.
//! So there is one [`UpstreamPool`] per distinct set of capabilities
//! ([`Profile`]), with its own sessions and its own [`Snapshot`]. It is opened
//! for the first such client and shared by all clients with that profile. Each
//! upstream of a pool is a [`SupervisedUpstream`]: started in parallel with the
//! others, within a time limit, restarted when it dies, stopped when it is idle.
//! Listings are stored in a [`ListingStore`], so that everything can be listed
//! before anything has started.

mod config;
mod roster;
mod upstream;

pub mod pool;
pub mod profile;
pub mod snapshot;
pub mod supervised;

mod supervisor;

pub mod listing_check;
pub mod listing_store;
pub mod loop_guard;
pub mod per_caller;
pub mod primitives;
pub mod schema;

mod bounds;
mod foreign_error;
pub mod readable;
mod redacting_client;
mod restarts;
mod subscriptions;
mod uri_template;

pub mod derived;

pub use config::{Config, Indexing};
pub use listing_store::ListingStore;
pub use pool::{Observer, UpstreamPool};
pub use profile::Profile;
pub use roster::{Collaborators, Roster};
pub use snapshot::{BUILTIN, Builtin, Snapshot};
pub use supervised::{Phase, Status, SupervisedUpstream};
pub use upstream::{Connector, Start, Upstream};
