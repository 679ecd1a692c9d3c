//! Two sets of entries that were one before.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// Entries by name.
pub(crate) type Entries = BTreeMap<String, Value>;

/// What becomes of two sets of changes. An entry that only one side changed is as
/// that side has it; of an entry that both changed, `stricter` says which stays.
pub(super) fn merge(
    base: &Entries,
    ours: &Entries,
    theirs: &Entries,
    stricter: impl for<'a> Fn(Option<&'a Value>, Option<&'a Value>) -> Option<&'a Value>,
) -> Entries {
    let names: BTreeSet<&String> = ours.keys().chain(theirs.keys()).collect();
    let settle = |name: &String| {
        let (base, ours, theirs) = (base.get(name), ours.get(name), theirs.get(name));
        let stays = if ours == base {
            theirs
        } else if theirs == base || ours == theirs {
            ours
        } else {
            stricter(ours, theirs)
        };
        stays.map(|entry| (name.clone(), entry.clone()))
    };
    names.into_iter().filter_map(settle).collect()
}
