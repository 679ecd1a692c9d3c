//! Collects the facts for `gatelet doctor` about every upstream: asks the running gatelet, or
//! connects.

use std::time::Duration;

use doctor::upstream::{Facts, Outcome, Up};
use futures::StreamExt;
use futures::stream;
use serde_json::{Value, json};
use tool::Failure;

use crate::commands::servers::{review, update};
use crate::paths::{self, Paths};
use crate::terminal::{BAD, GOOD, cell, foreign_line, progress};
use crate::wire::{self, Probed};
use config::{Reach, Upstream};

/// How many upstreams are started at once.
const AT_ONCE: usize = 8;
/// How long programs may take to end.
const END_TIMEOUT: Duration = Duration::from_secs(3);

/// The facts about one upstream.
pub(super) struct Examined {
    pub(super) facts: Facts,
}

/// Examines upstreams: takes the row of the running gatelet (`rows`), or connects.
pub(super) fn examine(
    all: &[Upstream],
    rows: Option<&Value>,
    paths: &Paths,
) -> anyhow::Result<Vec<Examined>> {
    let state = paths.state_directory()?;
    let bar = progress("looking at upstreams");
    let runtime = tokio::runtime::Runtime::new()?;
    let outcomes: Vec<Outcome> = runtime.block_on(async {
        let tries = all.iter().map(|upstream| {
            let state = &state;
            async move {
                let row = rows.and_then(|rows| row(rows, &upstream.label));
                match row {
                    Some(row) => outcome_of_row(upstream, row),
                    None => try_upstream(upstream, state, paths).await,
                }
            }
        });
        let outcomes = stream::iter(tries).buffered(AT_ONCE).collect().await;
        wire::children_have_ended(END_TIMEOUT).await;
        outcomes
    });
    bar.finish_and_clear();
    let examined = all.iter().zip(outcomes).map(|(upstream, outcome)| {
        let unpinned = match &upstream.reach {
            Reach::Program { command, args, .. } => update::unpinned(command, args),
            Reach::Address { .. } | Reach::Content { .. } | Reach::Nowhere { .. } => None,
        };
        let (label, is_quarantined) = (upstream.label.clone(), upstream.quarantine);
        Examined { facts: Facts { label, is_quarantined, unpinned, outcome } }
    });
    Ok(examined.collect())
}

/// The row of an upstream among those of the running gatelet.
fn row<'a>(rows: &'a Value, label: &str) -> Option<&'a Value> {
    rows.as_array()?.iter().find(|row| row["label"] == label)
}

fn outcome_of_row(upstream: &Upstream, row: &Value) -> Outcome {
    let text = |key: &str| row[key].as_str().unwrap_or_default().to_owned();
    let count = |key: &str| usize::try_from(row[key].as_u64().unwrap_or(0)).unwrap_or(0);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "milliseconds of a ping or a start"
    )]
    let millis = |key: &str| row[key].as_f64().map(|millis| millis as u64);
    if row["credentials"]["state"] == "needs a human" {
        return Outcome::Unauthorized(
            row["credentials"]["todo"].as_str().unwrap_or_default().to_owned(),
        );
    }
    if row["state"] == "down" {
        return failed(upstream, &Failure::Unavailable { reason: text("reason") });
    }
    let findings = row["findings"].as_array().into_iter().flatten();
    Outcome::Up(Up {
        server: format!("{} {}", text("server"), text("version")),
        protocol: text("protocol"),
        n_tools: count("tools"),
        n_others: count("resources") + count("prompts"),
        findings: findings
            .map(|finding| finding["message"].as_str().unwrap_or_default().to_owned())
            .collect(),
        ping_millis: millis("latency_ms"),
        start_millis: millis("start_ms").unwrap_or(0),
        ..Up::default()
    })
}

async fn try_upstream(upstream: &Upstream, state: &std::path::Path, paths: &Paths) -> Outcome {
    match &upstream.reach {
        _ if upstream.quarantine => return Outcome::Untried,
        Reach::Nowhere { reason } => return Outcome::Unset(reason.clone()),
        Reach::Content { .. } => return Outcome::Untried,
        Reach::Program { command, .. } if paths::program(command).is_none() => {
            return Outcome::NoProgram(command.clone());
        }
        Reach::Program { .. } | Reach::Address { .. } => {}
    }
    match wire::probe(upstream, state).await {
        Ok(probed) => Outcome::Up(up(upstream, &probed, paths)),
        Err(failure) => failed(upstream, &failure),
    }
}

/// Name and version of a server, short and on one line.
fn server_name(server: &tool::Server) -> String {
    let whole = format!("{} {}", server.name, server.version);
    tool::text::cut(&whole.split_whitespace().collect::<Vec<_>>().join(" "), 80)
}

fn up(upstream: &Upstream, probed: &Probed, paths: &Paths) -> Up {
    let listing = &probed.listing;
    let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let changes = review::changes(upstream, listing, paths).ok();
    let drifted = changes.map(|changes| changes.changed).unwrap_or_default();
    let length = |text: &Option<String>| text.as_deref().map_or(0, |text| text.chars().count());
    Up {
        server: server_name(&listing.server),
        protocol: listing.server.protocol.clone(),
        start_millis: millis(probed.took),
        ping_millis: probed.ping.map(millis),
        n_tools: listing.tools.len(),
        n_others: listing.resources.len() + listing.templates.len() + listing.prompts.len(),
        findings: listing.findings.iter().map(ToString::to_string).collect(),
        drifted: drifted.into_iter().map(|(name, _)| name).collect(),
        tools: listing
            .tools
            .iter()
            .map(|tool| (tool.name.clone(), length(&tool.description)))
            .collect(),
    }
}

fn failed(upstream: &Upstream, failure: &Failure) -> Outcome {
    let why = failure.to_string();
    if upstream.sandbox.is_some() && wire::looks_like_refusal(&why) {
        return Outcome::Sandboxed(why);
    }
    match failure {
        Failure::Unauthorized { .. } => Outcome::Unauthorized(why),
        Failure::Forbidden { .. } => Outcome::Forbidden(why),
        Failure::Unavailable { .. }
        | Failure::Timeout { .. }
        | Failure::Lost { .. }
        | Failure::RateLimited { .. }
        | Failure::Unusable { .. }
        | Failure::Cancelled
        | Failure::Unsupported { .. } => match &upstream.reach {
            Reach::Address { .. } => Outcome::Unreachable(why),
            Reach::Program { .. } | Reach::Content { .. } | Reach::Nowhere { .. } => {
                Outcome::Failed(why)
            }
        },
    }
}

impl Examined {
    /// The state in one word, and whether it is fine.
    fn state(&self) -> (&'static str, bool) {
        match &self.facts.outcome {
            _ if self.facts.is_quarantined => ("quarantine", true),
            Outcome::Untried => ("not tried", true),
            Outcome::Up(_) => ("up", true),
            Outcome::Unset(_)
            | Outcome::NoProgram(_)
            | Outcome::Failed(_)
            | Outcome::Unreachable(_)
            | Outcome::Unauthorized(_)
            | Outcome::Forbidden(_)
            | Outcome::Sandboxed(_) => ("down", false),
        }
    }

    pub(super) fn cells(&self) -> Vec<comfy_table::Cell> {
        let (state, is_fine) = self.state();
        let none = Up::default();
        let up = self.facts.outcome.up().unwrap_or(&none);
        let plain = |text: &str| comfy_table::Cell::new(foreign_line(text.trim()));
        let start =
            if up.start_millis == 0 { String::new() } else { format!("{} ms", up.start_millis) };
        let ping = up.ping_millis.map(|ping| format!("{ping} ms")).unwrap_or_default();
        vec![
            plain(&self.facts.label),
            cell(if is_fine { GOOD } else { BAD }, state),
            plain(&up.server),
            plain(&up.protocol),
            plain(&up.n_tools.to_string()),
            plain(&start),
            plain(&ping),
        ]
    }

    pub(super) fn to_json(&self) -> Value {
        let (state, _) = self.state();
        let up = self.facts.outcome.up();
        json!({
            "label": self.facts.label,
            "state": state,
            "server": up.map(|up| up.server.trim()),
            "protocol": up.map(|up| &up.protocol),
            "tools": up.map(|up| up.n_tools),
            "ready_after_ms": up.map(|up| up.start_millis).filter(|millis| *millis != 0),
            "ping_ms": up.and_then(|up| up.ping_millis),
        })
    }
}
