//! Measuring an answer: at once when it is short, and on a thread of its own when
//! that would keep others waiting.

use tool::{Failure, Json, Reply};

use artifacts::gate::{self, Gated};

/// A measured answer, and whether it reports an error where that is known already.
pub(super) struct Measured {
    pub(super) gated: Gated,
    reports_error: Option<bool>,
}

impl Measured {
    /// One that is short enough to be looked at anywhere.
    pub(super) fn short(gated: Gated) -> Measured {
        Measured { gated, reports_error: None }
    }

    /// Whether the result says that it is an error.
    pub(super) fn reports_error(&self) -> bool {
        self.reports_error.unwrap_or_else(|| reports_error(&self.gated))
    }
}

/// Whether an answer is so long that looking at it would keep others waiting.
pub(super) fn is_long(reply: &Reply) -> bool {
    offload::is_long(match reply {
        Reply::Result(json) => json.as_bytes().len(),
        Reply::Error(error) => error.raw.as_bytes().len(),
    })
}

/// An answer measured against a limit, after `shape` made of it what is read.
pub(super) async fn measured(
    reply: Reply,
    limit: usize,
    shape: impl FnOnce(Reply) -> Reply + Send + 'static,
) -> Result<Measured, Failure> {
    if !is_long(&reply) {
        return Ok(Measured::short(gate::decide(shape(reply), limit)));
    }
    let work = move |_: &offload::Stop| {
        let gated = gate::decide(shape(reply), limit);
        let reports_error = Some(reports_error(&gated));
        Measured { gated, reports_error }
    };
    Box::pin(offload::run(work)).await.map_err(too_slow)
}

/// Read only if it can say so.
fn reports_error(gated: &Gated) -> bool {
    let says =
        |json: &Json| json.mentions("\"isError\"") && json.member_as("isError").unwrap_or(false);
    match gated.raw() {
        Reply::Result(json) => says(json),
        Reply::Error(_) => true,
    }
}

pub(super) fn too_slow(slow: offload::TooSlow) -> Failure {
    Failure::Unusable { reason: format!("the answer cannot be looked through: {slow}") }
}
