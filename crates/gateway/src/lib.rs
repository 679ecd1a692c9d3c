//! How a call travels: surfaces, dispatch, gate, artifacts, roster, trust, records.

pub mod view;
