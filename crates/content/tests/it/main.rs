//! The toolset on real databases.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod ask;
mod servers;
mod vectors;

mod hostile;
mod numbers;
mod privacy;
mod records;

mod remote;
mod sqlite;
