//! `gatelet eval`: measures how well the search for tools works, over queries with known
//! answers.

use std::path::{Path, PathBuf};
use std::time::Instant;

use catalog::eval::{self, Report};
use catalog::index::{Config, Meaning};
use clap::ValueEnum;

use crate::exit::{CliError, Done};
use crate::terminal::{out, say};

/// Measure search: recall, rank, latency and size over gold queries
///
/// A set is `corpus.jsonl` (one document per line: id, server, name,
/// description, `input_schema`) and `queries.jsonl` (qid, query, relevant).
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The documents of one set
    #[arg(long, value_name = "FILE", requires = "queries", required_unless_present = "dir")]
    corpus: Option<PathBuf>,

    /// The queries of that set
    #[arg(long, value_name = "FILE", requires = "corpus")]
    queries: Option<PathBuf>,

    /// A directory of sets: every folder with `corpus.jsonl` and `queries*.jsonl`
    #[arg(long, value_name = "DIR", conflicts_with = "corpus")]
    dir: Option<PathBuf>,

    /// A table, or JSON with `recall@5`, `mrr@10` and the rest
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    format: Format,

    /// Also show where each relevant document ranked
    #[arg(long)]
    per_query: bool,

    /// Rank by words alone, without the token table
    #[arg(long)]
    words_only: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    #[value(alias = "table")]
    Text,
    Json,
}

/// The files of one set of documents and queries, with its name in the report.
struct QuerySet {
    name: String,
    corpus: PathBuf,
    queries: PathBuf,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Done> {
    let meaning = if args.words_only { Meaning::Ignored } else { Meaning::Compared };
    let mut reports = Vec::new();
    for set in sets(args)? {
        reports.push(measure(&set, &Config { meaning })?);
    }
    match args.format {
        Format::Json => out(&as_json(reports, args.per_query)?),
        Format::Text => out(&as_table(reports, args.per_query)),
    }
    Ok(Done::Fine)
}

fn measure(set: &QuerySet, config: &Config) -> anyhow::Result<Report> {
    let name = |path: &Path| path.display().to_string();
    let documents =
        eval::documents(&name(&set.corpus), &read(&set.corpus)?).map_err(usage_error)?;
    let queries = eval::queries(&name(&set.queries), &read(&set.queries)?).map_err(usage_error)?;
    eval::check_relevant_ids(&name(&set.queries), &documents, &queries).map_err(usage_error)?;
    let started = Instant::now();
    Ok(eval::run(&set.name, &documents, &queries, config, &|| started.elapsed()))
}

/// The files are named on the command line, so their errors are usage errors.
fn usage_error(error: impl std::fmt::Display) -> CliError {
    CliError::Usage(error.to_string())
}

fn read(path: &Path) -> Result<String, CliError> {
    std::fs::read_to_string(path)
        .map_err(|error| usage_error(format!("cannot read `{}`: {error}", path.display())))
}

fn sets(args: &Args) -> anyhow::Result<Vec<QuerySet>> {
    if let (Some(corpus), Some(queries)) = (&args.corpus, &args.queries) {
        let name = corpus
            .parent()
            .and_then(Path::file_name)
            .map_or("set".into(), |folder| folder.to_string_lossy().into_owned());
        return Ok(vec![QuerySet { name, corpus: corpus.clone(), queries: queries.clone() }]);
    }
    let Some(directory) = &args.dir else {
        return Err(CliError::Usage("give --corpus and --queries, or --dir".to_owned()).into());
    };
    let mut found = Vec::new();
    for folder in entries(directory)? {
        found.extend(sets_of(&folder)?);
    }
    found.extend(sets_of(directory)?);
    if found.is_empty() {
        let text = format!(
            "no set in `{}`: a set is a folder with `corpus.jsonl` and `queries.jsonl`",
            directory.display()
        );
        return Err(CliError::Usage(text).into());
    }
    Ok(found)
}

fn sets_of(folder: &Path) -> Result<Vec<QuerySet>, CliError> {
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let corpus = folder.join("corpus.jsonl");
    let label = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let set = |path: PathBuf| {
        let file = path.file_name()?.to_str()?;
        let middle = file.strip_prefix("queries")?.strip_suffix(".jsonl")?;
        Some(QuerySet {
            name: format!("{label}{middle}"),
            corpus: corpus.clone(),
            queries: path.clone(),
        })
    };
    let sets: Vec<QuerySet> = entries(folder)?.into_iter().filter_map(set).collect();
    let missing = match (corpus.is_file(), sets.is_empty()) {
        (true, false) => return Ok(sets),
        (false, true) => return Ok(Vec::new()),
        (true, true) => "queries.jsonl",
        (false, false) => "corpus.jsonl",
    };
    say(&format!("left out: `{}` has no `{missing}`", folder.display()));
    Ok(Vec::new())
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, CliError> {
    let unread =
        |error| usage_error(format!("cannot read the directory `{}`: {error}", folder.display()));
    let listed = std::fs::read_dir(folder).map_err(unread)?;
    let mut paths: Vec<PathBuf> = listed
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()
        .map_err(unread)?;
    paths.sort();
    Ok(paths)
}

fn as_json(mut reports: Vec<Report>, per_query: bool) -> anyhow::Result<String> {
    let mean = eval::mean(&reports);
    if !per_query {
        reports.iter_mut().for_each(|report| report.per_query.clear());
    }
    Ok(crate::terminal::json_text(&serde_json::json!({"sets": reports, "mean": mean}))?)
}

fn as_table(mut reports: Vec<Report>, per_query: bool) -> String {
    let mut text = String::new();
    if per_query {
        for report in &reports {
            for outcome in &report.per_query {
                let rank = |rank: &Option<usize>| rank.map_or("-".to_owned(), |at| at.to_string());
                let ranks: Vec<String> = outcome.ranks.iter().map(rank).collect();
                let query: String = outcome.query.chars().take(100).collect();
                text += &format!("{}\t{}\t{}\t{query}\n", report.set, outcome.qid, ranks.join(","));
            }
        }
    }
    if 1 < reports.len() {
        reports.push(eval::mean(&reports));
    }
    text + eval::table(&reports).trim_end()
}
