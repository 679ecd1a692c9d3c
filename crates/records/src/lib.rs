//! Writes the records of calls to files.
//!
//! [`events`] takes the records and events of a gateway and writes them as lines of
//! JSON. It knows what a record contains, and not how calls are carried out.

pub mod events;
