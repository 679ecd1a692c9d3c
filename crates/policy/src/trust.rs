//! Trust: which tools may run, and under which conditions.
//!
//! A tool is identified by a digest of everything that a model sees of it. A tool that
//! changes loses its trust, and the operator sees how it changed ([`drift`]). Grants are
//! kept in a signed [`ledger`]. A destructive call needs trust, or a person who
//! [confirms](crate::confirm) it.
//!
//! A call never grants trust. This module does not know files: the ledger comes in and
//! goes out as text.

mod check;
mod decide;
mod digest;
pub mod drift;
pub mod ledger;

pub use check::TrustCheck;
pub use decide::{Config, Danger, Policy, Verdict};
pub use digest::{Digest, SeenTool, TrustLevel};
pub use drift::{Drift, drift};
pub use ledger::{Entry, InMemoryLedger, Ledger, LedgerError, LedgerStore, TrustState};
