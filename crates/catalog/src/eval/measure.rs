//! Runs the queries of one evaluation set and computes the figures.

use std::collections::HashMap;
use std::time::Duration;

use super::reach::Replies;
use super::{GoldQuery, Outcome, Report, Stopwatch};
use crate::index::{Config, Document, Index, Query};

/// The rank up to which relevant documents are looked for.
const DEPTH: usize = 50;

/// Builds an index over `documents` and runs every query.
pub fn run(
    set: &str,
    documents: &[Document],
    queries: &[GoldQuery],
    config: &Config,
    stopwatch: Stopwatch<'_>,
) -> Report {
    let started = stopwatch();
    let index = Index::build(documents, config);
    let build = stopwatch() - started;
    let replies = Replies::new(documents, config.meaning);
    let places: HashMap<&str, usize> =
        documents.iter().enumerate().map(|(at, document)| (&*document.id, at)).collect();
    let outcomes: Vec<Outcome> =
        queries.iter().map(|gold| run_query(&index, &replies, gold, &places, stopwatch)).collect();
    let mut report = Report::new(set, documents.len(), &outcomes);
    report.build_seconds = build.as_secs_f64();
    report.index_bytes = index.bytes();
    report
}

fn run_query(
    index: &Index,
    replies: &Replies<'_>,
    gold: &GoldQuery,
    places: &HashMap<&str, usize>,
    stopwatch: Stopwatch<'_>,
) -> Outcome {
    let query = Query::new(&gold.query).limit(DEPTH);
    let started = stopwatch();
    let hits = index.search(&query, |_| true).hits;
    let took: Duration = stopwatch() - started;
    let rank = |id: &String| {
        let place = places.get(&**id)?;
        hits.iter().position(|hit| hit.document == *place).map(|at| at + 1)
    };
    let reply = replies.search(&gold.query);
    let is_named = |id: &&String| reply.ids.contains(&id.as_str());
    Outcome {
        n_named: gold.relevant.iter().filter(is_named).count(),
        reply_tokens: reply.tokens,
        qid: gold.qid.clone(),
        query: gold.query.clone(),
        ranks: gold.relevant.iter().map(rank).collect(),
        n_hits: hits.len(),
        took,
    }
}
