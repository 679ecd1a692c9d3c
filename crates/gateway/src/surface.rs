//! What clients see.
//!
//! Each surface is a provider over the same catalog and the same dispatch; they
//! differ in how much they show and how it is asked for.

pub mod cash;
pub mod offers;

pub(crate) mod tasks;

/// The surfaces there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Surface {
    /// `call`, `help`, `skill`.
    Cash,
}

impl Surface {
    pub fn name(self) -> &'static str {
        match self {
            Surface::Cash => "cash",
        }
    }
}
