//! The results of an evaluation, as figures, as rows and as JSON.

use std::time::Duration;

use serde::Serialize;

/// The result of one query.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    pub qid: String,
    pub query: String,
    /// The rank of each relevant document, one being first; none when it was
    /// not among the first fifty.
    pub ranks: Vec<Option<usize>>,
    pub n_hits: usize,
    /// How many of the relevant documents the reply to the query names.
    pub n_named: usize,
    /// The tokens of that reply.
    pub reply_tokens: usize,
    #[serde(skip)]
    pub took: Duration,
}

/// The result of one set.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    pub set: String,
    pub documents: usize,
    pub queries: usize,
    #[serde(rename = "recall@1")]
    pub recall_1: f64,
    #[serde(rename = "recall@3")]
    pub recall_3: f64,
    #[serde(rename = "recall@5")]
    pub recall_5: f64,
    #[serde(rename = "recall@10")]
    pub recall_10: f64,
    /// The share of the relevant documents that one reply names.
    pub reach: f64,
    pub reply_tokens_p50: f64,
    pub reply_tokens_max: usize,
    #[serde(rename = "mrr@10")]
    pub mrr_10: f64,
    #[serde(rename = "ndcg@10")]
    pub ndcg_10: f64,
    /// Of the queries that nothing should match, how many found nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub silence: Option<f64>,
    pub p50_micros: f64,
    pub p99_micros: f64,
    pub build_seconds: f64,
    pub index_bytes: usize,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub per_query: Vec<Outcome>,
}

impl Report {
    pub(crate) fn new(set: &str, n_documents: usize, outcomes: &[Outcome]) -> Report {
        let gold: Vec<&Outcome> = outcomes.iter().filter(|one| !one.ranks.is_empty()).collect();
        let silent: Vec<&Outcome> = outcomes.iter().filter(|one| one.ranks.is_empty()).collect();
        let average = |figure: &dyn Fn(&Outcome) -> f64| {
            sum(gold.iter().map(|outcome| figure(outcome))) / gold.len().max(1) as f64
        };
        let mut times: Vec<Duration> = outcomes.iter().map(|outcome| outcome.took).collect();
        times.sort_unstable();
        let mut sizes: Vec<usize> = outcomes.iter().map(|outcome| outcome.reply_tokens).collect();
        sizes.sort_unstable();
        Report {
            set: set.to_owned(),
            documents: n_documents,
            queries: outcomes.len(),
            recall_1: average(&|one| one.recall(1)),
            recall_3: average(&|one| one.recall(3)),
            recall_5: average(&|one| one.recall(5)),
            recall_10: average(&|one| one.recall(10)),
            reach: average(&Outcome::reach),
            reply_tokens_p50: sizes.get(sizes.len() / 2).copied().unwrap_or(0) as f64,
            reply_tokens_max: sizes.last().copied().unwrap_or(0),
            mrr_10: average(&Outcome::reciprocal_rank),
            ndcg_10: average(&Outcome::discounted_gain),
            silence: (!silent.is_empty()).then(|| {
                let quiet = silent.iter().filter(|one| one.n_hits == 0).count();
                quiet as f64 / silent.len() as f64
            }),
            p50_micros: percentile(&times, 0.50),
            p99_micros: percentile(&times, 0.99),
            per_query: outcomes.to_vec(),
            ..Report::default()
        }
    }

    /// The columns of [`table`], for one row.
    fn cells(&self) -> [String; 15] {
        let share = |value: f64| format!("{value:.3}");
        [
            self.set.clone(),
            self.documents.to_string(),
            self.queries.to_string(),
            share(self.recall_1),
            share(self.recall_3),
            share(self.recall_5),
            share(self.recall_10),
            share(self.reach),
            format!("{:.0}", self.reply_tokens_p50),
            self.reply_tokens_max.to_string(),
            share(self.mrr_10),
            share(self.ndcg_10),
            format!("{:.0}", self.p50_micros),
            format!("{:.0}", self.p99_micros),
            format!("{:.1}", self.index_bytes as f64 / 1e6),
        ]
    }
}

impl Outcome {
    /// The share of the relevant documents among the first `depth`.
    pub fn recall(&self, depth: usize) -> f64 {
        let found = self.ranks.iter().flatten().filter(|rank| **rank <= depth).count();
        found as f64 / self.ranks.len().max(1) as f64
    }

    /// The share of the relevant documents that the reply names.
    pub fn reach(&self) -> f64 {
        self.n_named as f64 / self.ranks.len().max(1) as f64
    }

    fn reciprocal_rank(&self) -> f64 {
        let first = self.ranks.iter().flatten().min().copied();
        first.filter(|rank| *rank <= 10).map_or(0.0, |rank| 1.0 / rank as f64)
    }

    fn discounted_gain(&self) -> f64 {
        let gain = |rank: usize| 1.0 / (rank as f64 + 1.0).log2();
        let found: f64 =
            self.ranks.iter().flatten().filter(|rank| **rank <= 10).map(|rank| gain(*rank)).sum();
        let best: f64 = (1..=self.ranks.len().min(10)).map(gain).sum();
        if best == 0.0 { 0.0 } else { found / best }
    }
}

/// The mean of several sets with equal weights.
pub fn mean(reports: &[Report]) -> Report {
    let average = |figure: &dyn Fn(&Report) -> f64| {
        sum(reports.iter().map(figure)) / reports.len().max(1) as f64
    };
    Report {
        set: "mean".to_owned(),
        documents: reports.iter().map(|report| report.documents).sum(),
        queries: reports.iter().map(|report| report.queries).sum(),
        recall_1: average(&|report| report.recall_1),
        recall_3: average(&|report| report.recall_3),
        recall_5: average(&|report| report.recall_5),
        recall_10: average(&|report| report.recall_10),
        reach: average(&|report| report.reach),
        reply_tokens_p50: average(&|report| report.reply_tokens_p50),
        reply_tokens_max: reports.iter().map(|report| report.reply_tokens_max).max().unwrap_or(0),
        mrr_10: average(&|report| report.mrr_10),
        ndcg_10: average(&|report| report.ndcg_10),
        p50_micros: average(&|report| report.p50_micros),
        p99_micros: average(&|report| report.p99_micros),
        build_seconds: average(&|report| report.build_seconds),
        index_bytes: reports.iter().map(|report| report.index_bytes).sum::<usize>()
            / reports.len().max(1),
        ..Report::default()
    }
}

/// Reports as rows under a header, columns aligned by spaces.
pub fn table(reports: &[Report]) -> String {
    let header = [
        "set",
        "docs",
        "queries",
        "recall@1",
        "recall@3",
        "recall@5",
        "recall@10",
        "reach",
        "tokens",
        "most",
        "mrr@10",
        "ndcg@10",
        "p50 µs",
        "p99 µs",
        "MB",
    ];
    let mut rows = vec![header.map(str::to_owned)];
    rows.extend(reports.iter().map(Report::cells));
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: Vec<usize> = (0..header.len()).filter_map(width).collect();
    let mut text = String::new();
    for row in &rows {
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let fill = " ".repeat(width - cell.chars().count());
            match column {
                0 => text.extend([cell.as_str(), &fill]),
                _ => text.extend(["  ", &fill, cell]),
            }
        }
        text.push('\n');
    }
    text
}

/// The sum; the standard library's is -0.0 where there is nothing to add up.
fn sum(figures: impl Iterator<Item = f64>) -> f64 {
    figures.fold(0.0, |sum, figure| sum + figure)
}

fn percentile(sorted: &[Duration], share: f64) -> f64 {
    let at = ((sorted.len() as f64 * share).ceil() as usize).clamp(1, sorted.len().max(1));
    sorted.get(at - 1).map_or(0.0, |time| time.as_secs_f64() * 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(ranks: &[Option<usize>]) -> Outcome {
        let took = Duration::from_micros(10);
        let n_named = ranks.iter().flatten().count();
        let (qid, query, ranks) = ("q".into(), "x".into(), ranks.to_vec());
        Outcome { qid, query, ranks, n_hits: 50, n_named, reply_tokens: 200, took }
    }

    #[test]
    fn figures_are_those_of_the_definitions() {
        let report =
            Report::new("s", 9, &[outcome(&[Some(1), Some(7)]), outcome(&[None]), outcome(&[])]);
        assert_eq!((report.recall_1, report.recall_5, report.recall_10), (0.25, 0.25, 0.5));
        assert_eq!((report.mrr_10, report.silence), (0.5, Some(0.0)));
        assert_eq!((report.reach, report.reply_tokens_max), (0.5, 200));
        let ideal = 1.0 + 1.0 / 3.0_f64.log2();
        let expected = (1.0 + 1.0 / 8.0_f64.log2()) / ideal / 2.0;
        assert!((report.ndcg_10 - expected).abs() < 1e-12);
    }

    #[test]
    fn the_mean_of_several_sets_has_a_size() {
        let sized = |index_bytes| Report { index_bytes, ..Report::default() };
        assert_eq!(mean(&[sized(10), sized(30)]).index_bytes, 20);
        assert_eq!(mean(&[]).index_bytes, 0);
    }

    #[test]
    fn nothing_to_average_is_zero_without_a_sign() {
        let report = Report::new("s", 1, &[outcome(&[])]);
        let shown = table(&[report.clone(), mean(&[report]), mean(&[])]);
        assert!(shown.contains(" 0.000") && !shown.contains('-'), "{shown}");
    }

    #[test]
    fn json_names_the_figures_as_everyone_does() {
        let text = serde_json::to_string(&Report::new("s", 1, &[outcome(&[Some(2)])])).unwrap();
        assert!(text.contains(r#""recall@5":1.0"#) && text.contains(r#""mrr@10":0.5"#), "{text}");
    }
}
