//! Joins the `instructions` of all upstreams, for surfaces that list the upstreams' own
//! tools.

use catalog::source::Role;
use policy::visibility::CallerView;
use roster::Snapshot;
use tool::text::quoted;

/// The most characters of one upstream's instructions; servers send up to 2,000.
const MAX_EACH: usize = 4_000;

/// The most bytes of all instructions together.
const MAX_TOGETHER: usize = 16_000;

/// Joins the instructions of every upstream that the caller sees, each as a quotation
/// under its label; `None` if there are none.
pub(crate) fn joined(snapshot: &Snapshot, visible: &CallerView<'_>) -> Option<String> {
    let (mut joined, mut left_out) = (String::new(), Vec::new());
    for (at, source) in snapshot.catalog.sources().iter().enumerate() {
        let instructions = source.listing.server.instructions.as_deref().unwrap_or_default().trim();
        if instructions.is_empty()
            || source.role == Role::Builtin
            || !visible.shows_source(&snapshot.catalog, at)
        {
            continue;
        }
        let part = format!("`{}` says:\n\n{}\n\n", source.label, quoted(instructions, MAX_EACH));
        match joined.len() + part.len() <= MAX_TOGETHER {
            true => joined.push_str(&part),
            false => left_out.push(source.label.as_str()),
        }
    }
    if !left_out.is_empty() {
        joined.push_str(&format!("Left out for their length: {}.", left_out.join(", ")));
    }
    let joined = joined.trim_end();
    (!joined.is_empty()).then(|| joined.to_owned())
}
