//! Queries as text: the only place where SQL is written.
//!
//! Every function here renders one [`Statement`](crate::statement::Statement):
//! text, and the values that are bound to it. Nothing that a caller wrote ever
//! stands in the text.

mod documents;
mod facts;
mod operators;
mod paging;
mod records;
mod tree_scope;
mod variables;
mod visibility;
mod writer;

pub(crate) use documents::documents;
pub(crate) use facts::{
    below_roots, candidates, closure_gap, closure_repeated, closure_selfless, closure_stale,
    columns, create_index, explain, has_permission, indexes, owner, setting, some_documents,
};
pub(crate) use records::records;
pub(crate) use visibility::Visibility;

#[cfg(test)]
mod tests;
