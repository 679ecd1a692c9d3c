//! The longest files and functions. No function has more than a hundred lines; below
//! that, sizes are a thermometer and are only printed.

use std::fs;
use std::path::Path;

use anyhow::Result;

use crate::run::root;

/// No function has more lines than this.
const MOST_LINES: usize = 100;

/// Prints the longest files and functions of the repository; returns the functions that
/// are too long.
pub(super) fn check(files: &[(String, String)]) -> Vec<String> {
    print_longest(
        "longest files (lines)",
        files.iter().map(|(name, text)| (text.lines().count(), name.clone())),
    );
    let functions: Vec<(usize, String)> = files.iter().flat_map(functions).collect();
    let problems = too_long(&functions);
    print_longest("longest functions (lines)", functions.into_iter());
    problems
}

fn too_long(functions: &[(usize, String)]) -> Vec<String> {
    let long = functions.iter().filter(|(lines, _)| MOST_LINES < *lines);
    long.map(|(lines, name)| format!("{name}: {lines} lines, at most {MOST_LINES}")).collect()
}

/// Every Rust file of ours, by its path in the repository.
pub(super) fn sources() -> Result<Vec<(String, String)>> {
    let mut files = Vec::new();
    for place in ["crates", "xtask", "examples", "fuzz"] {
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
    use super::*;

    #[test]
    fn a_function_ends_at_the_brace_under_its_first_letter() {
        let text = "impl A {\n    pub fn a() {\n        if b {\n        }\n    }\n}\n";
        let found = functions(&("x.rs".to_owned(), text.to_owned()));
        assert_eq!(found, [(4, "x.rs:2 a".to_owned())]);
    }

    #[test]
    fn a_function_has_at_most_a_hundred_lines() {
        let of = |lines: usize| {
            let text = format!("fn a() {{\n{}}}\n", "    b();\n".repeat(lines - 2));
            too_long(&functions(&("x.rs".to_owned(), text)))
        };
        assert_eq!(of(100), Vec::<String>::new());
        assert_eq!(of(101), ["x.rs:1 a: 101 lines, at most 100"]);
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
