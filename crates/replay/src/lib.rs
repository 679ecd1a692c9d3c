//! Recorded agents, replayed through gateways.
//!
//! A [`Recording`] has tools with their real definitions, and tasks: what an agent
//! searched for, called, and got. [`Mocks`] serve the tools and give the recorded
//! answers. A [`Way`] is one of the surfaces of gatelet or another gateway; its
//! translation says which tool of the gateway does what the agent did. [`replay`]
//! takes the tasks through it and counts every token.
//!
//! Nothing here depends on time or luck: two replays give the same figures.

mod recording;

mod count;

mod mocks;
mod session;

mod way;

mod direct;
mod replay;
mod used_later;

pub mod page;

pub use direct::{capped, deferred, listed};
pub use mocks::{Mocks, bridge};
pub use recording::{Recording, Server, Step, Task, Tool};
pub use replay::{Refusal, Replay, Replayed, TaskReplay, replay};
pub use session::{Said, Session};
pub use way::{BRIDGE, Peer, Surface, Way};
