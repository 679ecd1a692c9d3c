//! Measures answers against the size limit: short ones at once, long ones on a
//! thread of their own, so that other calls do not wait.

use tool::{Failure, Json, Reply};

use artifacts::gate::{self, Gated};

/// An answer that passed the gate.
pub(super) struct Measured {
    pub(super) gated: Gated,
    reports_error: Option<bool>,
}

impl Measured {
    /// Wraps an answer that is short enough to be searched for errors on any thread.
    pub(super) fn short(gated: Gated) -> Measured {
        Measured { gated, reports_error: None }
    }

    /// Returns whether the result says `isError`.
    pub(super) fn reports_error(&self) -> bool {
        self.reports_error.unwrap_or_else(|| reports_error(&self.gated))
    }
}

/// Returns whether an answer is so long that parsing it would block other calls.
pub(super) fn is_long(reply: &Reply) -> bool {
    offload::is_long(match reply {
        Reply::Result(json) => json.as_bytes().len(),
        Reply::Error(error) => error.raw.as_bytes().len(),
    })
}

/// Converts an answer with `convert` and measures the result against `limit`
/// characters.
pub(super) async fn measure(
    reply: Reply,
    limit: usize,
    convert: impl FnOnce(Reply) -> Reply + Send + 'static,
) -> Result<Measured, Failure> {
    if !is_long(&reply) {
        return Ok(Measured::short(gate::decide(convert(reply), limit)));
    }
    let work = move |_: &offload::StopFlag| {
        let gated = gate::decide(convert(reply), limit);
        let reports_error = Some(reports_error(&gated));
        Measured { gated, reports_error }
    };
    Box::pin(offload::run(work)).await.map_err(too_slow)
}

/// Parses the result only if the key occurs in its text.
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
