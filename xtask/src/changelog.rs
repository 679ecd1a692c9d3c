//! `cargo xtask changelog VERSION`: fragments become a section of `CHANGELOG.md`.
//!
//! A fragment is `changelog.d/TOPIC.PART.md`, where the part is one of [`PARTS`];
//! without one it goes under the last. Its bullets, or its paragraphs, are added to
//! the section of the version, which is made if it is not there, and the file goes.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use crate::run::root;

/// The parts of the program, as file names and as headings, in reading order.
const PARTS: &[(&str, &str)] = &[
    ("surfaces", "Surfaces"),
    ("finding", "Finding"),
    ("results", "Results"),
    ("upstreams", "Upstreams"),
    ("controls", "Controls"),
    ("trust", "Trust"),
    ("callers", "Callers"),
    ("skills", "Skills"),
    ("shell", "The shell"),
    ("documents", "Tool documents"),
    ("rust", "Tools in Rust"),
    ("content", "Content"),
    ("speed", "Speed"),
    ("other", "Other"),
];

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let Some(version) = arguments.first() else {
        bail!("of which version? for example `cargo xtask changelog 0.1.0`");
    };
    let place = root().join("CHANGELOG.md");
    let text = fs::read_to_string(&place).context("CHANGELOG.md")?;
    let fragments = fragments()?;
    let parts: Vec<(&str, &str)> =
        fragments.iter().map(|(_, part, text)| (part.as_str(), text.as_str())).collect();
    fs::write(&place, assemble(&text, version, &parts)?)?;
    for (path, _, _) in &fragments {
        fs::remove_file(path)?;
    }
    println!("{} fragments went into CHANGELOG.md", fragments.len());
    Ok(())
}

/// Every fragment: its file, its part and its text.
fn fragments() -> Result<Vec<(PathBuf, String, String)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root().join("changelog.d"))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name == "README.md" || !name.ends_with(".md") {
            continue;
        }
        let part = part_of(&name)?;
        let text = fs::read_to_string(&path)?;
        found.push((path, part, text));
    }
    found.sort();
    Ok(found)
}

/// The part that a file's name says, or the last.
fn part_of(name: &str) -> Result<String> {
    let words: Vec<&str> = name.trim_end_matches(".md").split('.').collect();
    match words.as_slice() {
        [_] => Ok("other".to_owned()),
        [_, part] if PARTS.iter().any(|(known, _)| known == part) => Ok((*part).to_owned()),
        _ => {
            let known: Vec<&str> = PARTS.iter().map(|(name, _)| *name).collect();
            bail!("`{name}`: the part is one of {}", known.join(", "))
        }
    }
}

/// The changelog with these fragments in the section of a version.
fn assemble(changelog: &str, version: &str, fragments: &[(&str, &str)]) -> Result<String> {
    let (before, section, after) = split(changelog, version);
    let (title, mut parts) = match section {
        Some(section) => read(section)?,
        None => (format!("## {version}\n"), BTreeMap::new()),
    };
    for (part, text) in fragments {
        let at = PARTS.iter().position(|(known, _)| known == part);
        let at = at.context("the part is known")?;
        parts.entry(at).or_default().extend(bullets(text));
    }
    let mut text = format!("{before}{title}");
    for (at, bullets) in parts {
        text += &format!("\n### {}\n\n{}\n", PARTS[at].1, bullets.join("\n"));
    }
    if !after.is_empty() {
        text += "\n";
    }
    Ok(text + after)
}

/// What stands before the section of a version, the section, and what follows.
fn split<'t>(changelog: &'t str, version: &str) -> (&'t str, Option<&'t str>, &'t str) {
    let starts = |from: usize| {
        let rest = &changelog[from..];
        rest.match_indices("## ")
            .map(move |(at, _)| from + at)
            .filter(|&at| at == 0 || changelog.as_bytes()[at - 1] == b'\n')
            .collect::<Vec<usize>>()
    };
    let all = starts(0);
    let is_it = |at: &usize| {
        let title = changelog[at + 3..].lines().next().unwrap_or_default();
        title.split_whitespace().next() == Some(version)
    };
    match all.iter().position(is_it) {
        Some(n) => {
            let end = all.get(n + 1).copied().unwrap_or(changelog.len());
            (&changelog[..all[n]], Some(&changelog[all[n]..end]), &changelog[end..])
        }
        // A new version stands before the others.
        None => {
            let at = all.first().copied().unwrap_or(changelog.len());
            (&changelog[..at], None, &changelog[at..])
        }
    }
}

/// A section: what stands before its first part, and the bullets of each part.
fn read(section: &str) -> Result<(String, BTreeMap<usize, Vec<String>>)> {
    let mut pieces = section.split("\n### ");
    let title = pieces.next().unwrap_or_default().trim_end().to_owned() + "\n";
    let mut parts = BTreeMap::new();
    for piece in pieces {
        let (heading, body) = piece.split_once('\n').unwrap_or((piece, ""));
        let at = PARTS.iter().position(|(_, known)| *known == heading.trim());
        let at = at.with_context(|| format!("no part has the heading `{heading}`"))?;
        parts.insert(at, bullets(body));
    }
    Ok((title, parts))
}

/// The bullets of a text, each on one line; a paragraph is one, too.
fn bullets(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut is_open = false;
    for line in text.lines() {
        let line = line.trim();
        match line.strip_prefix("- ") {
            Some(first) => found.push(format!("- {first}")),
            None if line.is_empty() => {}
            None if is_open => {
                if let Some(last) = found.last_mut() {
                    *last = format!("{last} {line}");
                }
            }
            None => found.push(format!("- {line}")),
        }
        is_open = !line.is_empty();
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "# Changelog\n\nHello.\n\n## 0.2.0\n\nNew.\n\n### Trust\n\n- a\n\n## 0.1.0\n\n### Skills\n\n- z\n";

    #[test]
    fn fragments_join_the_section_of_their_version_part_by_part() {
        let fragments = [("trust", "- b\n  goes on\n- c\n"), ("finding", "One.\n\nTwo\nlines.\n")];
        let text = assemble(OLD, "0.2.0", &fragments).unwrap();
        let expected = "# Changelog\n\nHello.\n\n## 0.2.0\n\nNew.\n\n### Finding\n\n- One.\n- Two lines.\n\n\
            ### Trust\n\n- a\n- b goes on\n- c\n\n## 0.1.0\n\n### Skills\n\n- z\n";
        assert_eq!(text, expected);
        assert_eq!(assemble(&text, "0.2.0", &[]).unwrap(), expected, "twice is once");
    }

    #[test]
    fn a_new_version_stands_first() {
        let text = assemble(OLD, "0.3.0", &[("other", "x")]).unwrap();
        assert!(
            text.starts_with("# Changelog\n\nHello.\n\n## 0.3.0\n\n### Other\n\n- x\n\n## 0.2.0")
        );
    }

    #[test]
    fn a_part_is_the_second_word_of_a_name_and_must_be_known() {
        assert_eq!(part_of("drift.trust.md").unwrap(), "trust");
        assert_eq!(part_of("drift.md").unwrap(), "other");
        assert!(part_of("drift.tryst.md").unwrap_err().to_string().contains("trust"));
    }
}
