//! Compiles long argument schemas on a thread of their own before a call is
//! validated, so that other calls do not wait.

use std::sync::Arc;

use catalog::{Catalog, Slot};
use offload::StopFlag;

use policy::call::{Request, TargetKind};
use roster::Snapshot;

/// Compiles the schema of the requested tool if it is long and not compiled yet.
/// If that takes too long, it is compiled when the arguments are checked.
pub(super) async fn compile_long_schema(snapshot: &Arc<Snapshot>, request: &Request) {
    if let Some(slot) = long_schema(&snapshot.catalog, request) {
        Box::pin(compile(snapshot, slot)).await;
    }
}

/// Returns the tool of a request if compiling its schema would block other calls.
fn long_schema(catalog: &Catalog, request: &Request) -> Option<Slot> {
    let TargetKind::Tool(slot) = request.target.kind else { return None };
    offload::is_long(catalog.tool(slot).input_schema.as_bytes().len()).then_some(slot)
}

async fn compile(snapshot: &Arc<Snapshot>, slot: Slot) {
    let snapshot = Arc::clone(snapshot);
    let compile = move |_: &StopFlag| snapshot.catalog.contract(slot).schema_error().is_some();
    let _ = offload::run(compile).await;
}
