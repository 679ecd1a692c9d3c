//! Skills: instructions for tasks, from `SKILL.md` files and from upstreams.
//!
//! A skill is text for a model, and nothing but text: code in it is replaced by a note,
//! and files beside it are never served. The parser is lenient: problems become findings,
//! and the skill is listed all the same; [`export`] is strict. A skill may have
//! placeholders ([`template`]), versions, and functions that it refers to ([`Reference`]).
//! Readers are warned when such a function is missing, or has another signature than when
//! the skill was last checked ([`SkillLock`]).

pub mod export;
pub mod library;
pub mod lock;
pub mod reference;
pub mod served;
pub mod template;
pub mod upstream;
pub mod version;

pub mod skill_index;

mod frontmatter;
mod parse;
mod route;
mod skill;
mod strip;

pub use library::{Library, Lookup};
pub use lock::SkillLock;
pub use reference::Reference;
pub use skill::{Content, File, Flag, Form, Reader, Skill, address};
pub use template::TemplateError;

#[cfg(test)]
mod tests;
