//! Runs side by side: the mean of each way, and its spread.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde_json::Value;

const COLUMNS: [&str; 7] =
    ["right", "calls", "errors", "definitions", "written", "read", "context"];

/// A table in Markdown, from the files of runs.
pub(crate) fn table(files: &[PathBuf]) -> Result<String> {
    let mut runs: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for file in files {
        let text = std::fs::read_to_string(file).with_context(|| file.display().to_string())?;
        let run: Value = serde_json::from_str(&text).with_context(|| file.display().to_string())?;
        runs.entry(run["way"].as_str().unwrap_or_default().to_owned()).or_default().push(run);
    }
    let mut lines = vec![
        format!("| way | runs | tasks | {} |", COLUMNS.join(" | ")),
        format!("|{}", "---|".repeat(COLUMNS.len() + 3)),
    ];
    for (way, runs) in &runs {
        let cells: Vec<String> = COLUMNS.iter().map(|column| cell(runs, column)).collect();
        lines.push(format!(
            "| {way} | {} | {} | {} |",
            runs.len(),
            runs[0]["tasks"],
            cells.join(" | ")
        ));
    }
    Ok(lines.join("\n"))
}

/// The mean of a column, and its least and most where they differ.
fn cell(runs: &[Value], column: &str) -> String {
    let values: Vec<u64> = runs.iter().filter_map(|run| run[column].as_u64()).collect();
    let (Some(least), Some(most)) = (values.iter().min(), values.iter().max()) else {
        return "–".to_owned();
    };
    let mean = values.iter().sum::<u64>() / values.len() as u64;
    if least == most { mean.to_string() } else { format!("{mean} ({least}–{most})") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_a_way_are_one_row_with_their_spread() {
        let directory = tempfile::tempdir().unwrap();
        let files: Vec<PathBuf> = [("direct", 10), ("direct", 20), ("gatelet", 7)]
            .iter()
            .enumerate()
            .map(|(n, (way, calls))| {
                let file = directory.path().join(n.to_string());
                let run = serde_json::json!({"way": way, "tasks": 2, "right": 2, "calls": calls});
                std::fs::write(&file, run.to_string()).unwrap();
                file
            })
            .collect();
        let table = table(&files).unwrap();
        assert!(table.contains("| direct | 2 | 2 | 2 | 15 (10–20) | – |"), "{table}");
        assert!(table.contains("| gatelet | 1 | 2 | 2 | 7 |"), "{table}");
    }
}
