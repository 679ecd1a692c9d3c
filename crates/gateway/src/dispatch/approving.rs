//! Asks somebody to approve a call.

use catalog::Catalog;
use tool::Context;

use policy::approval::ApprovalRequest;
use policy::question::Question;
use policy::refusal::Refusal;
use policy::stages::Stages;
use policy::trust::Digest;
use policy::validate::ValidCall;

/// Asks somebody to approve a call, and refunds the quota if nobody does.
///
/// Runs only after the quota was spent: otherwise a single-use approval would be
/// used up by a call that the quota refuses.
pub(super) async fn approve(
    stages: &Stages,
    question: &Question,
    call: &ValidCall,
    request: &ApprovalRequest<'_>,
    context: &Context,
) -> Result<(), Refusal> {
    let approved = stages.approval.agree(question, request, context).await;
    if approved.is_err() {
        stages.quota.refund(call, context).await;
    }
    approved
}

/// Returns the short digest of the called tool's definition; `None` for anything
/// that is not a tool.
pub(super) fn digest(catalog: &Catalog, call: &ValidCall) -> Option<String> {
    call.slot().map(|slot| Digest::of(catalog.tool(slot)).short().to_owned())
}
