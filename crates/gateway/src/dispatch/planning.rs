//! Ends a dry run with its plan.

use tool::Context;

use crate::dispatch::outcome::{Outcome, Plan};
use crate::record::{Ending, OpenRecord};
use policy::stages::Stages;
use policy::validate::ValidCall;

/// Returns what the call would do, and whether the quota would allow it now.
pub(super) async fn plan(
    call: ValidCall,
    stages: &Stages,
    context: &Context,
    record: &mut OpenRecord<'_>,
) -> Outcome {
    let is_within_limits = stages.quota.check(&call, context).await.is_ok();
    record.update(|record| record.ending = Ending::Planned);
    Outcome::Plan(Box::new(Plan { call, is_within_limits }))
}
