//! What is written about calls.
//!
//! [`events`] takes the records and events of a gateway and writes them as lines
//! of JSON. It knows what a record is, and nothing of how calls travel.

pub mod events;
