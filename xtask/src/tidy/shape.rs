//! The inside of every crate: modules in cycles, and its share of the code.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::run::root;

use super::cycles::{Graph, cycles};
use super::modules::Modules;

/// No crate holds more than this much of what ships, in percent.
const LARGEST_SHARE: usize = 20;

/// Used by tests and benchmarks only, so no part of what ships.
const NOT_SHIPPED: &[&str] = &["testkit", "replay"];

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
        problems.extend(judge(&shape.name, &found));
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

/// What is wrong with a crate: any cycle, and too large a share of the code.
fn judge(name: &str, found: &Found) -> Vec<String> {
    let rules = [
        ("top-level modules in cycles", found.top_level, 0),
        ("files in cycles", found.files, 0),
        ("percent of the code", found.share, LARGEST_SHARE),
    ];
    let broken = rules.into_iter().filter(|(_, found, most)| most < found);
    broken.map(|(what, found, most)| format!("`{name}`: {what}: {found}, at most {most}")).collect()
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

    #[track_caller]
    fn check((top_level, files, share): (usize, usize, usize), expected: &[&str]) {
        let problems = judge("a", &Found { top_level, files, share });
        assert_eq!(problems, expected);
    }

    #[test]
    fn a_crate_has_no_cycle_and_at_most_a_fifth_of_the_code() {
        check((0, 0, 20), &[]);
        check((0, 0, 3), &[]);
        check((0, 2, 0), &["`a`: files in cycles: 2, at most 0"]);
        check(
            (3, 0, 21),
            &[
                "`a`: top-level modules in cycles: 3, at most 0",
                "`a`: percent of the code: 21, at most 20",
            ],
        );
    }

    #[test]
    fn no_crate_is_exempt_from_the_rule_about_cycles() {
        let crates = fs::read_dir(root().join("crates")).unwrap();
        let names = crates.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let names: Vec<String> = names.collect();
        assert!(names.iter().any(|name| name == "gatelet"), "{names:?}");
        for name in names {
            let problems = judge(&name, &Found { top_level: 0, files: 2, share: 0 });
            assert_eq!(problems, [format!("`{name}`: files in cycles: 2, at most 0")]);
        }
    }
}
