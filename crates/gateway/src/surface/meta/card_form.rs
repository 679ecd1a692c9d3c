//! How the cards of a browse are written.

/// The form in which cards are returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Form {
    Text,
    Json,
}
