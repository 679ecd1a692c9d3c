//! `cargo xtask tidy`: the shape of the house.
//!
//! Dependency edges between our crates must be in the table of
//! `docs/architecture.md`. Sizes are only printed: they are a thermometer, not a
//! law.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::run::{cargo, output, root};

/// Where the crates are listed, with what each may use.
const TABLE: &str = "docs/architecture.md";

/// What our packages are called besides the names of their directories.
const PREFIX: &str = "gatelet-";

/// May use everything: the binary, this program, and the examples.
const FREE: &[&str] = &["gatelet", "xtask"];

pub(crate) fn run() -> Result<()> {
    let problems = edges()?;
    let files = sources()?;
    print_longest(
        "longest files (lines)",
        files.iter().map(|(name, text)| (text.lines().count(), name.clone())),
    );
    print_longest("longest functions (lines)", files.iter().flat_map(functions));
    if !problems.is_empty() {
        bail!("{}", problems.join("\n"));
    }
    Ok(())
}

/// Every edge that the table does not have.
fn edges() -> Result<Vec<String>> {
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

/// Every Rust file of ours, by its path in the repository.
fn sources() -> Result<Vec<(String, String)>> {
    let mut files = Vec::new();
    for place in ["crates", "xtask", "examples"] {
        walk(&root().join(place), &mut files)?;
    }
    Ok(files)
}

fn walk(place: &Path, files: &mut Vec<(String, String)>) -> Result<()> {
    let Ok(entries) = fs::read_dir(place) else { return Ok(()) };
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            if path.file_name().is_some_and(|name| name != "target") {
                walk(&path, files)?;
            }
        } else if path.extension().is_some_and(|kind| kind == "rs") {
            let name = path.strip_prefix(root()).unwrap_or(&path).display().to_string();
            files.push((name, fs::read_to_string(&path)?));
        }
    }
    Ok(())
}

/// The length of every function, by the indentation of its closing brace:
/// exact for code that rustfmt wrote.
fn functions((file, text): &(String, String)) -> Vec<(usize, String)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let code = line.trim_start();
        let Some(name) = function_name(code) else { continue };
        let indent = &line[..line.len() - code.len()];
        let beside = |later: &&str| {
            let rest = later.strip_prefix(indent)?;
            // A declaration without a body ends like a statement.
            (rest == "}" || (rest.starts_with(')') && rest.ends_with(';'))).then_some(rest == "}")
        };
        let end = lines[at..].iter().enumerate().find_map(|(n, later)| Some((n, beside(later)?)));
        if let Some((length, true)) = end {
            found.push((length + 1, format!("{file}:{} {name}", at + 1)));
        }
    }
    found
}

fn function_name(code: &str) -> Option<&str> {
    if code.ends_with([';', '}']) || code.starts_with("//") {
        return None;
    }
    let (before, after) = code.split_once("fn ")?;
    let words = ["pub", "pub(crate)", "pub(super)", "async", "const", "extern", "\"C\""];
    if !before.split_whitespace().all(|word| words.contains(&word)) {
        return None;
    }
    after.split(['(', '<']).next()
}

fn print_longest(title: &str, sizes: impl Iterator<Item = (usize, String)>) {
    let mut sizes: Vec<_> = sizes.collect();
    sizes.sort_by(|a, b| b.cmp(a));
    println!("{title}");
    for (size, name) in sizes.iter().take(10) {
        println!("{size:>6}  {name}");
    }
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

    #[test]
    fn a_function_ends_at_the_brace_under_its_first_letter() {
        let text = "impl A {\n    pub fn a() {\n        if b {\n        }\n    }\n}\n";
        let found = functions(&("x.rs".to_owned(), text.to_owned()));
        assert_eq!(found, [(4, "x.rs:2 a".to_owned())]);
    }

    #[test]
    fn what_has_no_body_of_its_own_has_no_length() {
        let text = "trait A {\n    fn a(\n        b: B,\n    ) -> C;\n    fn d() {}\n    fn e() {\n    }\n}\n";
        let found = functions(&("x.rs".to_owned(), text.to_owned()));
        assert_eq!(found, [(2, "x.rs:6 e".to_owned())]);
    }

    #[test]
    fn only_what_is_declared_counts_as_a_function() {
        assert_eq!(function_name("pub(crate) async fn go(x: u8) {"), Some("go"));
        assert_eq!(function_name("let run = |x| call(fn_name);"), None);
        assert_eq!(function_name("fn declared();"), None);
    }
}
