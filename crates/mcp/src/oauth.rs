//! Tokens for servers that want OAuth: got once with a human's help
//! ([`login`]), or by the client alone, then kept fresh without
//! ([`OAuthCredential`]).
//!
//! The two meet in a [`Grant`], which holds all that renewing a token needs, so
//! nothing is discovered anew when a process starts. Where grants are kept is
//! somebody else's business ([`GrantStore`]).

pub mod credential;
pub mod grant;
pub mod login;
pub mod reach;
pub mod revoke;

mod machine;
mod state;
mod web;

pub use credential::OAuthCredential;
pub use grant::{Grant, GrantKind, GrantStore, InMemory, Method, server_of};

use grant::covers;
pub use login::{Login, LoginError, LoginRequest};
pub use reach::Reach;
pub use revoke::{Revoked, revoke};
