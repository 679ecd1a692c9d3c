//! Replays recorded agents through gateways and counts tokens, for benchmarks.
//!
//! A [`Recording`] has tools with their real definitions, and tasks: the searches, calls
//! and results of an agent. [`Mocks`] serve the tools with the recorded results. A
//! [`Gateway`] is a surface of gatelet or another product; it translates the steps of the
//! agent into calls of the gateway's own tools. [`replay`] runs all tasks through it.
//!
//! Nothing here depends on time or randomness: two replays give the same figures.

mod recording;

mod invented;
mod sized;

mod count;

mod mocks;
mod session;

mod gateway;

mod direct;
mod replay;
mod used_later;

pub mod page;

pub use direct::{replay_capped, replay_deferred, replay_listed};
pub use gateway::{BRIDGE, FASTMCP, Gateway, OtherGateway, Surface};
pub use mocks::{Mocks, bridge};
pub use recording::{Recording, Server, Step, Task, Tool};
pub use replay::{Refusal, Replay, ReplayCounts, TaskReplay, replay, replay_within};
pub use session::{Session, ToolOutput};
