//! What can be wrong with a gatelet, what it means, and who mends it how.
//!
//! [`code`] is the table of everything that can be found. [`machine`], [`host`]
//! and [`upstream`] judge what was measured: functions from facts to
//! [`Finding`]s. Whoever asks gathers the facts; nothing here opens a file,
//! starts a program or knows the time.

pub mod code;
pub mod host;
pub mod machine;
pub mod upstream;

mod finding;

pub use code::{Area, Code, Severity, Who};
pub use finding::{Finding, Report};
