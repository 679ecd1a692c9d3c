//! Trust: which tools may run, and under which conditions.
//!
//! A tool is known by a digest of everything a model sees of it, so a tool
//! that changes behind our back is not the tool that was trusted: it falls
//! back, and the operator sees what [`drift`]ed. What was granted stands in a
//! signed [`ledger`]; a call that destroys needs trust, or somebody who
//! [confirms](crate::confirm) it.
//!
//! Trust is never granted by a call. This module decides and knows no files:
//! the ledger comes in and goes out as text.

mod check;
mod decide;
mod digest;
pub mod drift;
pub mod ledger;

pub use check::TrustCheck;
pub use decide::{Config, Danger, Policy, Verdict};
pub use digest::{Digest, Seen, TrustLevel};
pub use drift::{Drift, drift};
pub use ledger::{Entry, Ledger, LedgerStore, Memory, Tampered, TrustState};
