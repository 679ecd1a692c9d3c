//! What the ranking sees, for `scripts/fit_ranking.py`: `features DIR`.
//!
//! One JSON line per query: set, number of words is left to the weights' own
//! formula, so the query's length share is printed with it.

#![expect(clippy::disallowed_methods, reason = "a program of its own, with files and a clock")]
#![expect(clippy::print_stdout, reason = "printing is what this is for")]

use std::collections::HashMap;
use std::path::Path;

use catalog::eval;
use catalog::index::{Config, Index, Meaning, Query};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = std::env::args().nth(1).ok_or("usage: features DIR")?;
    let mut folders: Vec<_> = std::fs::read_dir(directory)?.collect::<Result<_, _>>()?;
    folders.sort_by_key(|folder| folder.path());
    for folder in folders.iter().map(std::fs::DirEntry::path) {
        if folder.join("corpus.jsonl").is_file() {
            set(&folder)?;
        }
    }
    Ok(())
}

fn set(folder: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let corpus = std::fs::read_to_string(folder.join("corpus.jsonl"))?;
    let documents = eval::documents("corpus.jsonl", &corpus)?;
    let index = Index::build(&documents, &Config { meaning: Meaning::Compared });
    let places: HashMap<&str, usize> =
        documents.iter().enumerate().map(|(at, document)| (&*document.id, at)).collect();
    let mut files: Vec<_> = std::fs::read_dir(folder)?.collect::<Result<_, _>>()?;
    files.sort_by_key(|file| file.path());
    for file in files {
        let name = file.file_name().to_string_lossy().into_owned();
        if !name.starts_with("queries") || !name.ends_with(".jsonl") {
            continue;
        }
        let middle = name.trim_start_matches("queries").trim_end_matches(".jsonl");
        let label = format!("{}{middle}", folder.file_name().unwrap_or_default().display());
        for gold in eval::queries(&name, &std::fs::read_to_string(file.path())?)? {
            let query = Query::new(&gold.query);
            let relevant: Vec<usize> =
                gold.relevant.iter().filter_map(|id| places.get(&**id).copied()).collect();
            let line = serde_json::json!({
                "set": label,
                "length": index.length(&query),
                "n_relevant": gold.relevant.len(),
                "relevant": relevant,
                "seen": index.explain(&query),
            });
            println!("{line}");
        }
    }
    Ok(())
}
