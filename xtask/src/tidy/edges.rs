//! Which of our crates may use which: the table of `docs/architecture.md`.

use std::fs;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::run::{cargo, output, root};

/// Where the crates are listed, with what each may use.
const TABLE: &str = "docs/architecture.md";

/// What our packages are called besides the names of their directories.
const PREFIX: &str = "gatelet-";

/// May use everything: the binary, this program, what fuzzes, and the examples.
const FREE: &[&str] = &["gatelet", "gatelet-fuzz", "xtask"];

/// Every edge that the table does not have.
pub(super) fn undeclared() -> Result<Vec<String>> {
    let text = output(&mut cargo(&["metadata", "--no-deps", "--format-version", "1"]))?;
    let metadata: Value = serde_json::from_str(&text).context("cargo metadata is not JSON")?;
    let document = fs::read_to_string(root().join(TABLE)).context(TABLE)?;
    Ok(strangers(&metadata, &table(&document)))
}

/// Which crates each crate may use, as the table of crates in a document says.
fn table(document: &str) -> Vec<(String, Vec<String>)> {
    let rows = document.lines().skip_while(|line| !line.starts_with("| crate |")).skip(2);
    let row = |line: &str| {
        let cells: Vec<&str> = line.split('|').collect();
        let uses: Vec<String> = quoted(cells.get(3)?).map(str::to_owned).collect();
        Some(quoted(cells.get(1)?).map(|name| (name.to_owned(), uses.clone())).collect::<Vec<_>>())
    };
    rows.take_while(|line| line.starts_with('|')).filter_map(row).flatten().collect()
}

/// What stands between backticks.
fn quoted(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

/// What the packages use and the table does not allow. Only tests may use what
/// they like.
fn strangers(metadata: &Value, table: &[(String, Vec<String>)]) -> Vec<String> {
    let mut problems = Vec::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let name = package["name"].as_str().unwrap_or_default();
        let is_example =
            package["manifest_path"].as_str().is_some_and(|p| p.contains("/examples/"));
        if FREE.contains(&name) || is_example {
            continue;
        }
        let bare = name.trim_start_matches(PREFIX);
        let Some((_, allowed)) = table.iter().find(|(known, _)| known == bare) else {
            problems.push(format!("`{bare}` is not in the table of {TABLE}"));
            continue;
        };
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let ours = dependency["path"].is_string() && dependency["kind"] != "dev";
            let target = dependency["name"].as_str().unwrap_or_default().trim_start_matches(PREFIX);
            if ours && !allowed.iter().any(|known| known == target) {
                problems.push(format!("`{bare}` must not know `{target}` ({TABLE})"));
            }
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_crate_uses_what_the_document_allows_at_build_time_too() {
        let document = "| crate | what | may use | not |\n|---|---|---|---|\n\
            | `tool` | `x` | serde | |\n| `a`, `b` | y | `tool`, `a`'s traits | `c` |\n\nMore.";
        let table = table(document);
        assert_eq!(table[1], ("a".to_owned(), vec!["tool".to_owned(), "a".to_owned()]));
        let uses = |kind: Value, name: &str| json!({"name": name, "path": "/p", "kind": kind});
        let package = |name: &str, dependencies: Value| json!({"name": name, "manifest_path": "/crates/x", "dependencies": dependencies});
        let metadata = json!({"packages": [
            package("gatelet-tool", json!([{"name": "serde", "path": null, "kind": null}])),
            package("gatelet-b", json!([
                uses(Value::Null, "gatelet-tool"),
                uses("dev".into(), "gatelet-c"),
                uses("build".into(), "gatelet-c"),
                uses(Value::Null, "gatelet"),
            ])),
            package("gatelet-c", json!([])),
        ]});
        let problems = strangers(&metadata, &table);
        let expected = [
            "`b` must not know `c` (docs/architecture.md)",
            "`b` must not know `gatelet` (docs/architecture.md)",
            "`c` is not in the table of docs/architecture.md",
        ];
        assert_eq!(problems, expected);
    }
}
