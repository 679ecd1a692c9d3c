//! Checks the promises of `generate`, `parse`, `lint` and `fix` on real
//! listings: every file of a directory with `{"tools": […]}` in it.
//!
//! `cargo run -p gatelet-toolspec --example corpus -- DIRECTORY`

#![expect(clippy::disallowed_methods, reason = "a program of its own, with files and a clock")]
#![expect(clippy::print_stdout, reason = "this is what it is for")]

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::Value;
use tool::{Json, Severity, Tool};
use toolspec::{Definition, LintContext, Options};

#[derive(Default)]
struct Tally {
    files: usize,
    tools: usize,
    unreadable: usize,
    unequal: usize,
    not_idempotent: usize,
    without_example: usize,
    errors: BTreeMap<&'static str, usize>,
    warnings: BTreeMap<&'static str, usize>,
    bytes: usize,
    generating: Duration,
    parsing: Duration,
    linting: Duration,
}

fn main() -> std::io::Result<()> {
    let Some(directory) = std::env::args().nth(1) else {
        println!("usage: corpus DIRECTORY");
        return Ok(());
    };
    let mut paths: Vec<_> =
        std::fs::read_dir(directory)?.filter_map(Result::ok).map(|entry| entry.path()).collect();
    paths.sort();
    let mut tally = Tally::default();
    for path in paths.iter().filter(|path| path.extension().is_some_and(|e| e == "json")) {
        let text = std::fs::read_to_string(path)?;
        let name =
            path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
        one(&name, &text, &mut tally);
    }
    print(&tally);
    Ok(())
}

fn tools(text: &str) -> Option<Vec<Definition>> {
    let value: Value = serde_json::from_str(text).ok()?;
    let listed = value.get("tools")?;
    let list = listed.as_array().or_else(|| listed.get("tools")?.as_array())?.clone();
    let read =
        |raw: Value| Tool::parse(Json::from(raw)).ok().map(|tool| Definition::from_tool(&tool));
    Some(list.into_iter().filter_map(read).collect())
}

fn one(name: &str, text: &str, tally: &mut Tally) {
    let Some(mut tools) = tools(text) else {
        tally.unreadable += 1;
        return;
    };
    let options = Options {
        module: name.to_owned(),
        version: "1.0.0".into(),
        updated: "November 2026".into(),
    };
    for tool in &mut tools {
        tool.version.get_or_insert_with(|| "1.0.0".to_owned());
    }
    let start = Instant::now();
    let document = toolspec::generate(&tools, &options);
    tally.generating += start.elapsed();
    let start = Instant::now();
    let (parsed, _) = toolspec::parse(&document);
    tally.parsing += start.elapsed();
    let start = Instant::now();
    let (_, findings) = toolspec::lint(&document, &LintContext::default());
    tally.linting += start.elapsed();
    tally.files += 1;
    tally.tools += tools.len();
    tally.bytes += document.len();
    let back = parsed.definitions();
    for (at, tool) in tools.iter().enumerate() {
        if back.get(at) != Some(tool) {
            tally.unequal += 1;
            println!("unequal: {name} {}", tool.name);
            if std::env::args().nth(2).is_some() {
                println!("  {tool:?}\n  {:?}", back.get(at));
            }
        }
    }
    if back.len() != tools.len() {
        println!("unequal count: {name} {} {}", back.len(), tools.len());
    }
    tally.without_example += parsed.tools.iter().filter(|tool| tool.examples.is_empty()).count();
    for finding in &findings {
        match finding.severity {
            Severity::Error => {
                println!(
                    "{} {name} {}",
                    finding.code,
                    finding.message.chars().take(160).collect::<String>()
                );
                *tally.errors.entry(finding.code).or_default() += 1;
            }
            Severity::Warning => *tally.warnings.entry(finding.code).or_default() += 1,
            Severity::Info => {}
        }
    }
    let (fixed, _) = toolspec::fix(&document);
    if toolspec::fix(&fixed).0 != fixed {
        tally.not_idempotent += 1;
        println!("fix is not idempotent: {name}");
    }
}

fn print(tally: &Tally) {
    println!("files {}  tools {}  unreadable {}", tally.files, tally.tools, tally.unreadable);
    println!("parse(generate(x)) != x: {}", tally.unequal);
    println!("fix not idempotent: {}", tally.not_idempotent);
    println!("tools without a made-up example: {}", tally.without_example);
    println!("errors {:?}", tally.errors);
    println!("warnings {:?}", tally.warnings);
    let megabytes = tally.bytes as f64 / 1e6;
    println!(
        "{megabytes:.1} MB of documents: generate {:.0?}, parse {:.0?} ({:.0} MB/s), lint {:.0?}",
        tally.generating,
        tally.parsing,
        megabytes / tally.parsing.as_secs_f64(),
        tally.linting,
    );
}
