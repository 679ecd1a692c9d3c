//! Recall over a directory of sets: `recall DIR [--words-only]`.
//!
//! Each folder with `corpus.jsonl` and `queries*.jsonl` is one set or more.

#![expect(clippy::disallowed_methods, reason = "a program of its own, with files and a clock")]
#![expect(clippy::print_stdout, reason = "printing is what this is for")]

use std::path::Path;
use std::time::Instant;

use catalog::eval;
use catalog::index::{Config, Meaning};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let directory = arguments.first().ok_or("usage: recall DIR [--words-only]")?;
    let meaning = match arguments.iter().any(|one| one == "--words-only") {
        true => Meaning::Ignored,
        false => Meaning::Compared,
    };
    let mut reports = Vec::new();
    let mut folders: Vec<_> = std::fs::read_dir(directory)?.collect::<Result<_, _>>()?;
    folders.sort_by_key(|folder| folder.path());
    for folder in folders {
        let corpus = folder.path().join("corpus.jsonl");
        if corpus.is_file() {
            reports.extend(set(&folder.path(), &corpus, &Config { meaning })?);
        }
    }
    let mean = eval::mean(&reports);
    reports.push(mean);
    print!("{}", eval::table(&reports));
    Ok(())
}

fn set(
    folder: &Path,
    corpus: &Path,
    config: &Config,
) -> Result<Vec<eval::Report>, Box<dyn std::error::Error>> {
    let started = Instant::now();
    let documents =
        eval::documents(&corpus.display().to_string(), &std::fs::read_to_string(corpus)?)?;
    let mut files: Vec<_> = std::fs::read_dir(folder)?.collect::<Result<_, _>>()?;
    files.sort_by_key(|file| file.path());
    let mut reports = Vec::new();
    for file in files {
        let name = file.file_name().to_string_lossy().into_owned();
        if name.starts_with("queries") && name.ends_with(".jsonl") {
            let queries = eval::queries(&name, &std::fs::read_to_string(file.path())?)?;
            let middle = name.trim_start_matches("queries").trim_end_matches(".jsonl");
            let label = format!("{}{middle}", folder.file_name().unwrap_or_default().display());
            reports.push(eval::run(&label, &documents, &queries, config, &|| started.elapsed()));
        }
    }
    Ok(reports)
}
