//! The table of hosts against files: each host's own, by platform, and those
//! that nobody wishes for.

mod cases;
mod disk;
mod made_up;
