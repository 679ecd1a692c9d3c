//! What a surface does for several calls in one request.

use async_trait::async_trait;
use tool::{Context, Json, Reply};

/// Makes the calls of one request, in the form of its surface.
#[async_trait]
pub(crate) trait MakeCall: Send + Sync {
    /// Whether a call is of a function that says that it only reads. Believing that
    /// costs nothing but order.
    fn only_reads(&self, call: &Json) -> bool;

    /// Makes one call, whose answer may have `share` characters.
    async fn make(&self, call: &Json, share: usize) -> Reply;

    /// What is called, as the caller wrote it.
    fn name(&self, call: &Json) -> String;

    /// The key of `_meta` under which the answers' own `_meta` stand.
    fn meta_key(&self) -> &'static str;

    fn artifacts(&self) -> &dyn artifacts::Store;

    fn context(&self) -> &Context;
}
