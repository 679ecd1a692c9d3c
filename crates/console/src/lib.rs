//! The web console, in which an operator watches a gatelet and decides about approvals.
//!
//! A [`Console`] is a function from an HTTP request to a response. It uses the gateway
//! by its public interface, and a [`ProgramControl`] for what only the program can do
//! (restart an upstream, change the configuration). Every page works without
//! JavaScript; a small script refreshes the parts that change. Nobody gets in without
//! a [session](session), and every action is written to the audit log.

pub mod calls;
pub mod console;
pub mod control;
pub mod session;

mod assets;
mod backend;
mod diff;
mod form;
mod layout;
mod live;
mod page;
mod plot;
mod readable;
mod request;
mod response;

pub use console::{Config, Console, Visitor};
pub use control::{
    AuditEntry, ConfigCheck, ConfigText, KeyRow, ProgramControl, SettingRow, SettingSource,
};
pub use response::Content;

/// The URL path of the console.
pub const PATH: &str = "/console";
