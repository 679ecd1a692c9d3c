//! The inside of every crate: modules in cycles, and its share of the code.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::run::root;

use super::cycles::{Graph, cycles};
use super::modules::Modules;

/// No crate holds more than this much of what ships, in percent.
const LARGEST_SHARE: usize = 20;

/// Used by tests only, so no part of what ships.
const NOT_SHIPPED: &[&str] = &["testkit"];

/// What is still allowed until it is mended: modules in cycles, at the top level
/// and file by file, and a share of the code. A figure here must be what is
/// found, so it can only shrink; a crate that is in order has no row.
const ALLOWED: &[Allowed] = &[allow("gatelet", 0, 2, 0), allow("mcp", 0, 9, 0)];

/// One row of what is still allowed.
struct Allowed {
    crate_name: &'static str,
    top_level: usize,
    files: usize,
    /// In percent; 0 means that the general limit holds.
    share: usize,
}

const fn allow(crate_name: &'static str, top_level: usize, files: usize, share: usize) -> Allowed {
    Allowed { crate_name, top_level, files, share }
}

/// One crate, measured.
struct Shape {
    name: String,
    modules: Modules,
    lines: usize,
}

/// Prints the shape of every crate; returns what is not allowed.
pub(super) fn check() -> Result<Vec<String>> {
    let shapes = read()?;
    let total: usize = shapes.iter().map(|shape| shape.lines).sum();
    println!("crates: lines that ship, their share, and modules in cycles (top level, files)");
    let mut problems = Vec::new();
    let mut knots = Vec::new();
    for shape in &shapes {
        let (tops, graph) = shape.modules.top_level();
        let top_level = cycles(&graph);
        let files = cycles(&shape.modules.uses);
        let found = Found {
            top_level: top_level.iter().map(Vec::len).sum(),
            files: files.iter().map(Vec::len).sum(),
            share: (shape.lines * 100).div_ceil(total.max(1)),
        };
        println!(
            "{:>7}  {:>3} %  {:<16} {:>3} of {:<3} {:>3} of {}",
            shape.lines,
            found.share,
            shape.name,
            found.top_level,
            tops.len(),
            found.files,
            shape.modules.files.len(),
        );
        problems.extend(judge(&shape.name, &found, ALLOWED));
        knots.extend(top_level.iter().map(|knot| told(&shape.name, knot, &tops, &graph)));
        let names = &shape.modules.files;
        knots.extend(files.iter().map(|knot| told(&shape.name, knot, names, &shape.modules.uses)));
    }
    println!("{total:>7}  100 %  all");
    for knot in knots {
        println!("{knot}");
    }
    Ok(problems)
}

/// What was found in one crate.
struct Found {
    top_level: usize,
    files: usize,
    share: usize,
}

/// Compares what was found with what is allowed, in both directions.
fn judge(name: &str, found: &Found, allowed: &[Allowed]) -> Vec<String> {
    let row = allowed.iter().find(|row| row.crate_name == name);
    let (top_level, files) = row.map_or((0, 0), |row| (row.top_level, row.files));
    let share = row.map_or(LARGEST_SHARE, |row| row.share.max(LARGEST_SHARE));
    let is_over = LARGEST_SHARE < share;
    let mut problems = Vec::new();
    let mut compare = |what: &str, found: usize, allowed: usize, may_be_less: bool| {
        if allowed < found {
            problems.push(format!("`{name}`: {what}: {found}, allowed {allowed}"));
        } else if found < allowed && !may_be_less {
            problems.push(format!(
                "`{name}`: {what}: {found}, better than the {allowed} that are allowed; \
                 lower the figure in xtask/src/tidy/shape.rs"
            ));
        }
    };
    compare("top-level modules in cycles", found.top_level, top_level, false);
    compare("files in cycles", found.files, files, false);
    compare("percent of the code", found.share, share, !is_over);
    problems
}

/// One cycle, with the edges inside of it.
fn told(name: &str, knot: &[usize], names: &[String], graph: &Graph) -> String {
    let mut text = format!("cycle of {} in `{name}`:", knot.len());
    for &from in knot {
        let inside = graph[from].iter().filter(|to| **to != from && knot.contains(to));
        let targets: Vec<&str> = inside.map(|&to| names[to].as_str()).collect();
        text += &format!("\n    {} uses {}", names[from], targets.join(", "));
    }
    text
}

/// Every crate, read.
fn read() -> Result<Vec<Shape>> {
    let place = root().join("crates");
    let mut roots: Vec<(String, PathBuf)> = Vec::new();
    for entry in fs::read_dir(&place).context("crates")? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        for file in ["src/lib.rs", "src/main.rs"] {
            if path.join(file).exists() {
                roots.push((name.clone(), path.join(file)));
            }
        }
    }
    roots.sort();
    let load = |path: &Path| fs::read_to_string(path).ok();
    let read = |(name, root): (String, PathBuf)| {
        let mut modules = Modules::read(&root, &load)?;
        let base = root.parent().unwrap_or(&root).to_owned();
        for file in &mut modules.files {
            let inner = Path::new(file).strip_prefix(&base).map(|path| path.display().to_string());
            *file = inner.unwrap_or_else(|_| file.clone());
        }
        let ships = !NOT_SHIPPED.contains(&name.as_str());
        let lines = if ships { modules.lines.iter().sum() } else { 0 };
        Ok(Shape { name, modules, lines })
    };
    roots.into_iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROWS: &[Allowed] = &[Allowed { crate_name: "a", top_level: 3, files: 5, share: 31 }];

    #[track_caller]
    fn check(name: &str, (top_level, files, share): (usize, usize, usize), expected: &[&str]) {
        let problems = judge(name, &Found { top_level, files, share }, ROWS);
        assert_eq!(problems.len(), expected.len(), "{problems:?}");
        for (problem, words) in problems.iter().zip(expected) {
            assert!(problem.contains(words), "{problem}");
        }
    }

    #[test]
    fn what_is_found_must_be_exactly_what_is_allowed() {
        check("a", (3, 5, 31), &[]);
        check("a", (4, 5, 32), &["top-level modules in cycles: 4, allowed 3", "code: 32, allowed"]);
        check("a", (3, 4, 30), &["files in cycles: 4, better than", "code: 30, better than"]);
    }

    #[test]
    fn a_crate_without_a_row_has_no_cycle_and_at_most_a_fifth_of_the_code() {
        check("b", (0, 0, 20), &[]);
        check("b", (0, 0, 3), &[]);
        check("b", (0, 2, 21), &["files in cycles: 2, allowed 0", "code: 21, allowed 20"]);
    }
}
