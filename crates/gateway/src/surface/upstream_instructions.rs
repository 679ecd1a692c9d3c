//! What upstreams tell their users, on surfaces that show the upstreams' own tools.

use catalog::source::Role;
use policy::visibility::Visible;
use roster::Snapshot;
use tool::text::quoted;

/// How much of one upstream's instructions is told; servers send up to 2,000
/// characters.
const EACH: usize = 4_000;

/// How much of all of them together.
const TOGETHER: usize = 16_000;

/// The instructions of every upstream that the caller sees, each as a quotation
/// under its label; `None` where none has any.
pub(crate) fn joined(snapshot: &Snapshot, visible: &Visible<'_>) -> Option<String> {
    let (mut joined, mut left_out) = (String::new(), Vec::new());
    for (at, source) in snapshot.catalog.sources().iter().enumerate() {
        let told = source.listing.server.instructions.as_deref().unwrap_or_default().trim();
        if told.is_empty()
            || source.role == Role::Builtin
            || !visible.shows_source(&snapshot.catalog, at)
        {
            continue;
        }
        let part = format!("`{}` says:\n\n{}\n\n", source.label, quoted(told, EACH));
        match joined.len() + part.len() <= TOGETHER {
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
