//! Three-way merge of two sets of entries that were the same before.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// Entries by name.
pub(crate) type Entries = BTreeMap<String, Value>;

/// Merges the changes from `base` to `ours` and from `base` to `theirs`. Where only one
/// side changed an entry, its version wins; where both did, `stricter` chooses.
pub(super) fn merge(
    base: &Entries,
    ours: &Entries,
    theirs: &Entries,
    stricter: impl for<'a> Fn(Option<&'a Value>, Option<&'a Value>) -> Option<&'a Value>,
) -> Entries {
    let names: BTreeSet<&String> = ours.keys().chain(theirs.keys()).collect();
    let merge_entry = |name: &String| {
        let (base, ours, theirs) = (base.get(name), ours.get(name), theirs.get(name));
        let winner = if ours == base {
            theirs
        } else if theirs == base || ours == theirs {
            ours
        } else {
            stricter(ours, theirs)
        };
        winner.map(|entry| (name.clone(), entry.clone()))
    };
    names.into_iter().filter_map(merge_entry).collect()
}
