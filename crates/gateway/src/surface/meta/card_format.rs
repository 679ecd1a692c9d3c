//! The output format of cards.

/// The output format of the cards of a browse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum CardFormat {
    Text,
    Json,
}
