//! How a call travels: surfaces, dispatch, gate, artifacts, roster, trust, records.

pub mod error;
pub mod redact;
pub mod view;
