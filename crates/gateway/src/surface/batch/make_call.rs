//! What a batch needs of the surface that it came by.

use async_trait::async_trait;
use tool::{Context, Json, Reply};

/// Makes the calls of a batch, which are written in the form of a surface.
#[async_trait]
pub(crate) trait MakeCall: Send + Sync {
    /// Returns whether a call is of a function that declares to only read. If that is
    /// wrong, only the order of calls suffers.
    fn only_reads(&self, call: &Json) -> bool;

    /// Makes one call, whose answer may have at most `share` characters.
    async fn make(&self, call: &Json, share: usize) -> Reply;

    /// Returns the name of the called function, as the caller wrote it.
    fn name(&self, call: &Json) -> String;

    /// Returns the key of the batch's `_meta` that has the `_meta` of the answers.
    fn meta_key(&self) -> &'static str;

    fn artifacts(&self) -> &dyn artifacts::Store;

    fn context(&self) -> &Context;
}
