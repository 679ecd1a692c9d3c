//! The project's own gold queries must not get worse.

use std::time::Duration;

use catalog::eval;
use catalog::index::{Config, Meaning};

fn report(meaning: Meaning) -> eval::Report {
    let queries = eval::queries("queries", include_str!("gold/queries.jsonl")).expect("ours");
    assert!(150 <= queries.len(), "{} queries", queries.len());
    run(&queries, meaning)
}

fn run(queries: &[eval::GoldQuery], meaning: Meaning) -> eval::Report {
    let documents = eval::documents("corpus", include_str!("gold/corpus.jsonl")).expect("ours");
    for gold in queries {
        for id in &gold.relevant {
            assert!(documents.iter().any(|document| document.id == *id), "no document {id}");
        }
    }
    eval::run("gold", &documents, queries, &Config { meaning }, &|| Duration::ZERO)
}

#[track_caller]
fn check(report: &eval::Report, recall_1: f64, recall_5: f64, silence: f64) {
    let missed: Vec<&str> = report
        .per_query
        .iter()
        .filter(|one| one.recall(5) < 1.0 && !one.ranks.is_empty())
        .map(|one| one.query.as_str())
        .collect();
    assert!(
        recall_1 <= report.recall_1
            && recall_5 <= report.recall_5
            && report.silence.is_some_and(|share| silence <= share),
        "recall@1 {:.3}, recall@5 {:.3}, silence {:?}, missed {missed:#?}",
        report.recall_1,
        report.recall_5,
        report.silence,
    );
}

#[test]
fn the_right_tool_is_among_the_first_five() {
    check(&report(Meaning::Compared), 0.80, 0.94, 1.0);
}

#[test]
fn words_alone_still_find_most() {
    check(&report(Meaning::Ignored), 0.70, 0.85, 1.0);
}

#[test]
fn a_wish_in_another_language_finds_the_tool_too() {
    let queries = include_str!("gold/queries_languages.jsonl");
    let queries = eval::queries("languages", queries).expect("ours");
    let report = run(&queries, Meaning::Compared);
    let missed: Vec<&str> = report
        .per_query
        .iter()
        .filter(|one| one.recall(5) == 0.0)
        .map(|one| one.query.as_str())
        .collect();
    assert!(
        0.80 <= report.recall_1 && 0.93 <= report.recall_5,
        "recall@1 {:.3}, recall@5 {:.3}, missed {missed:#?}",
        report.recall_1,
        report.recall_5,
    );
}
