//! Every record of a decision stands in their table of contents.

use std::fs;

use anyhow::{Context, Result};

use crate::run::root;

const PLACE: &str = "docs/decisions";

/// Records that the table does not link to.
pub(super) fn unlisted() -> Result<Vec<String>> {
    let place = root().join(PLACE);
    let contents = fs::read_to_string(place.join("README.md")).context(PLACE)?;
    let mut names = Vec::new();
    for entry in fs::read_dir(&place)? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(missing(&contents, &names))
}

fn missing(contents: &str, names: &[String]) -> Vec<String> {
    let records = names.iter().filter(|name| *name != "README.md");
    let missing = records.filter(|name| !contents.contains(&format!("]({name})")));
    missing.map(|name| format!("{PLACE}/{name} is not in {PLACE}/README.md")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_that_is_not_linked_is_named() {
        let names = ["001-a.md", "002-b.md", "README.md"].map(str::to_owned);
        let missing = missing("| 001 | [a](001-a.md) |", &names);
        assert_eq!(missing, ["docs/decisions/002-b.md is not in docs/decisions/README.md"]);
    }
}
