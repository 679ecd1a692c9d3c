//! Renders queries as SQL; no other module writes SQL for the content database.
//!
//! Every function here renders one [`Statement`](crate::statement::Statement):
//! text, and the values that are bound to it. The text never contains anything that a
//! caller wrote.

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
    closure_gap, closure_missing_self, closure_repeated, closure_stale, columns, count_below_roots,
    count_documents, create_index, document_tables, explain, has_permission, indexes, setting,
    user_status,
};
pub(crate) use records::records;
pub(crate) use visibility::Visibility;

#[cfg(test)]
mod tests;
