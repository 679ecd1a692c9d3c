//! The console in the browser: what a gatelet does, and what an operator decides.
//!
//! A [`Console`] is a function from an HTTP request to a response. It knows the
//! gateway by its public interface; what only the program can do (restart an
//! upstream, change the configuration) it asks of an [`Operator`]. Every page is
//! HTML that can be read without a script; a small module of ours renews what
//! changes. Nobody gets in without a [session](session), and every action is
//! written to the audit log.

pub mod calls;
pub mod console;
pub mod operator;
pub mod session;

mod assets;
mod backend;
mod diff;
mod form;
mod layout;
mod live;
mod page;
mod plot;
mod request;
mod response;
mod when;

pub use console::{Config, Console, Visitor};
pub use operator::{AuditEntry, ConfigCheck, ConfigText, KeyRow, Operator};
pub use response::Content;

/// The path under which the console stands.
pub const PATH: &str = "/console";
