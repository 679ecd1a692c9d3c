//! The table of hosts against files: each host's own, by platform, and those
//! that nobody wishes for.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod cases;
mod disk;
mod made_up;
