//! OAuth for servers that require it: obtains a grant with a user in a browser
//! ([`login`]), or with client credentials, and keeps its token fresh
//! ([`OAuthCredential`]).
//!
//! A [`Grant`] holds all that renewing a token needs, so a new process need not repeat the
//! discovery. Where grants are stored is up to the caller ([`GrantStore`]).

pub mod credential;
pub mod grant;
pub mod login;
pub mod reach;
pub mod revoke;

mod client_credentials;
mod state;
mod web;

pub use credential::OAuthCredential;
pub use grant::{ClientAuth, Grant, GrantKind, GrantStore, InMemoryGrant, normalized_server_url};

use grant::covers;
pub use login::{Login, LoginError, LoginRequest};
pub use reach::LoginReach;
pub use revoke::{Revoked, revoke};
