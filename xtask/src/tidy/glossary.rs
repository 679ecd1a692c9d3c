//! Every type that the glossary names is there, and the glossary stays short.

use std::fs;

use anyhow::{Context, Result};

use crate::run::root;

const PLACE: &str = "docs/glossary.md";

/// More words than this nobody learns.
const MOST: usize = 40;

/// What is wrong with the glossary, given the text of every source file.
pub(super) fn problems(sources: &[(String, String)]) -> Result<Vec<String>> {
    let text = fs::read_to_string(root().join(PLACE)).context(PLACE)?;
    Ok(judge(&text, sources))
}

fn judge(glossary: &str, sources: &[(String, String)]) -> Vec<String> {
    let rows = glossary.lines().skip_while(|line| !line.starts_with("|---")).skip(1);
    let types: Vec<&str> = rows.filter_map(|row| row.rsplit('`').nth(1)).collect();
    let mut problems = Vec::new();
    if MOST < types.len() {
        problems.push(format!("{PLACE} has {} words; at most {MOST}", types.len()));
    }
    for name in types {
        let is_declared = |text: &str| {
            let after = |kind: &str| {
                let start = format!("pub {kind} {name}");
                text.match_indices(&start).any(|(at, _)| {
                    let next = text[at + start.len()..].chars().next();
                    next.is_some_and(|next| !next.is_alphanumeric() && next != '_')
                })
            };
            ["struct", "enum", "trait", "type"].iter().any(|kind| after(kind))
        };
        if !sources.iter().any(|(_, text)| is_declared(text)) {
            problems.push(format!("{PLACE} names `{name}`, which no crate declares"));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_that_was_renamed_is_named() {
        let glossary = "| word | meaning | type |\n|---|---|---|\n| a | `x` b | `Alpha` |\n| c | d | `Beta` |\n";
        let sources = [("a.rs".to_owned(), "pub struct Alpha;\npub enum Betas {}".to_owned())];
        let problems = judge(glossary, &sources);
        assert_eq!(problems, ["docs/glossary.md names `Beta`, which no crate declares"]);
    }
}
