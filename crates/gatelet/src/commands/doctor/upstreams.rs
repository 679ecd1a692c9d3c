//! Collects the facts for `gatelet doctor` about every upstream: asks the running gatelet, or
//! connects.

use std::sync::Arc;
use std::time::Duration;

use doctor::upstream::{Facts, Outcome, Up};
use futures::StreamExt;
use futures::stream;
use roster::listing_check::{self, ListingChecker};
use serde_json::{Value, json};
use tool::{Failure, Json, Listing, Tool};

use crate::commands::servers::{review, update};
use crate::commands::{running, service};
use crate::local_socket::LocalRequest;
use crate::paths::{self, Paths};
use crate::search_paths;
use crate::terminal::{BAD, GOOD, WARNING, cell, foreign_line, paint, progress, say};
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

/// What the running gatelet says of its upstreams.
pub(super) struct Running {
    rows: Value,
    /// The definitions of tools, by label; `None` if another version runs, which cannot tell.
    definitions: Option<Value>,
}

impl Running {
    /// Adds to its `rows` what the tools look like.
    pub(super) fn with_rows(rows: Value, paths: &Paths) -> Running {
        let definitions = running::ask(paths, &LocalRequest::Definitions).ok().flatten();
        if definitions.is_none() {
            let why = "the gate that runs is another version, so nobody knows whether definitions \
                       changed or are too long: restart it, or look with `--fresh`";
            say(&paint(WARNING, why));
        }
        Running { rows, definitions }
    }

    /// What it knows about an upstream; `None` if that is not enough.
    fn outcome(&self, upstream: &Upstream, paths: &Paths) -> Option<Outcome> {
        let row = self.rows.as_array()?.iter().find(|row| row["label"] == *upstream.label)?;
        let was_listed = row["protocol"].as_str().is_some_and(|protocol| !protocol.is_empty());
        // It never started here, for nobody needed it so far.
        if !was_listed && matches!(row["state"].as_str(), Some("ready" | "starting")) {
            return None;
        }
        let definitions = self.definitions.as_ref().map(|all| &all[&upstream.label]);
        Some(outcome_of_row(upstream, row, definitions.unwrap_or(&Value::Null), paths))
    }
}

/// Examines upstreams: takes what the `running` gatelet knows, or connects.
pub(super) fn examine(
    all: &[Upstream],
    running: Option<&Running>,
    checks: &listing_check::Config,
    paths: &Paths,
) -> anyhow::Result<Vec<Examined>> {
    let state = paths.state_directory()?;
    let bar = progress("looking at upstreams");
    let runtime = tokio::runtime::Runtime::new()?;
    let outcomes: Vec<Outcome> = runtime.block_on(async {
        let tries = all.iter().map(|upstream| {
            let state = &state;
            async move {
                match running.and_then(|running| running.outcome(upstream, paths)) {
                    Some(outcome) => outcome,
                    None => try_upstream(upstream, checks, state, paths).await,
                }
            }
        });
        let outcomes = stream::iter(tries).buffered(AT_ONCE).collect().await;
        wire::children_have_ended(END_TIMEOUT).await;
        outcomes
    });
    bar.finish_and_clear();
    let mut starters: Vec<(String, String)> = search_paths::known(&state).into_iter().collect();
    starters.extend(service::search_path(paths).map(|path| ("the service".to_owned(), path)));
    let examined = all.iter().zip(outcomes).map(|(upstream, outcome)| {
        let (label, is_quarantined) = (upstream.label.clone(), upstream.quarantine);
        let mut facts = Facts { label, is_quarantined, outcome, ..Facts::default() };
        if let Reach::Program { command, args, env, .. } = &upstream.reach {
            facts.unpinned = update::unpinned(command, args);
            // It may have a PATH of its own.
            let is_searched = !env.contains_key("PATH") && paths::program(command).is_some();
            facts.program = is_searched.then(|| command.clone());
            let is_lost =
                |(_, path): &&(String, String)| paths::program_in(command, path).is_none();
            let lost = starters.iter().filter(is_lost).map(|(who, _)| who.clone());
            facts.not_found_by = lost.collect();
        }
        Examined { facts }
    });
    Ok(examined.collect())
}

/// What the row of the running gatelet and the definitions there (an array of texts) say.
fn outcome_of_row(upstream: &Upstream, row: &Value, definitions: &Value, paths: &Paths) -> Outcome {
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
        return hindrance(upstream)
            .unwrap_or_else(|| failed(upstream, &Failure::Unavailable { reason: text("reason") }));
    }
    let raw = definitions.as_array().into_iter().flatten().filter_map(Value::as_str);
    let tool = |raw: &str| Tool::parse(Json::parse(raw.to_owned()).ok()?).ok();
    let listing = Listing { tools: raw.filter_map(tool).collect(), ..Listing::default() };
    let findings: Vec<tool::Finding> =
        serde_json::from_value(row["findings"].clone()).unwrap_or_default();
    Outcome::Up(Up {
        server: one_line(&text("server"), &text("version")),
        protocol: text("protocol"),
        n_tools: count("tools"),
        n_others: count("resources") + count("prompts"),
        findings: told(&findings),
        ping_millis: millis("latency_ms"),
        start_millis: millis("start_ms").unwrap_or(0),
        drifted: drifted(upstream, &listing, paths),
        tools: lengths(&listing),
    })
}

/// Findings in words. Drift is judged by itself.
fn told(findings: &[tool::Finding]) -> Vec<String> {
    let findings = findings.iter().filter(|finding| finding.code != "drift");
    findings.map(ToString::to_string).collect()
}

/// The tools that changed since somebody vouched for them.
fn drifted(upstream: &Upstream, listing: &Listing, paths: &Paths) -> Vec<String> {
    let changes = review::changes(upstream, listing, paths).ok();
    let changed = changes.map(|changes| changes.changed).unwrap_or_default();
    changed.into_iter().map(|(name, _)| name).collect()
}

/// Tools and the length of their descriptions.
fn lengths(listing: &Listing) -> Vec<(String, usize)> {
    let length = |tool: &Tool| tool.description.as_deref().map_or(0, |text| text.chars().count());
    listing.tools.iter().map(|tool| (tool.name.clone(), length(tool))).collect()
}

/// Why it is not worth to try an upstream.
fn hindrance(upstream: &Upstream) -> Option<Outcome> {
    match &upstream.reach {
        _ if upstream.quarantine => Some(Outcome::Untried),
        Reach::Nowhere { reason } => Some(Outcome::Unset(reason.clone())),
        Reach::Content { .. } => Some(Outcome::Untried),
        Reach::Program { command, .. } if paths::program(command).is_none() => {
            Some(Outcome::NoProgram(command.clone()))
        }
        Reach::Program { .. } | Reach::Address { .. } => None,
    }
}

async fn try_upstream(
    upstream: &Upstream,
    checks: &listing_check::Config,
    state: &std::path::Path,
    paths: &Paths,
) -> Outcome {
    if let Some(outcome) = hindrance(upstream) {
        return outcome;
    }
    let probed = match wire::probe(upstream, state).await {
        Ok(probed) => probed,
        Err(failure) => return failed(upstream, &failure),
    };
    let policy::Stages { scrubber, listings, .. } = policy::Stages::default();
    let config = Arc::new(checks.clone()).into();
    let checker = ListingChecker { config, scrubber, check: listings };
    match checker.check(&upstream.label, &probed.listing) {
        Ok(listing) => Outcome::Up(up(upstream, &Probed { listing, ..probed }, paths)),
        Err(reason) => failed(upstream, &Failure::Unavailable { reason }),
    }
}

/// Name and version of a server, short and on one line.
fn one_line(name: &str, version: &str) -> String {
    let whole = format!("{name} {version}");
    tool::text::cut(&whole.split_whitespace().collect::<Vec<_>>().join(" "), 80)
}

fn up(upstream: &Upstream, probed: &Probed, paths: &Paths) -> Up {
    let listing = &probed.listing;
    let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    Up {
        server: one_line(&listing.server.name, &listing.server.version),
        protocol: listing.server.protocol.clone(),
        start_millis: millis(probed.took),
        ping_millis: probed.ping.map(millis),
        n_tools: listing.tools.len(),
        n_others: listing.resources.len() + listing.templates.len() + listing.prompts.len(),
        findings: told(&listing.findings),
        drifted: drifted(upstream, listing, paths),
        tools: lengths(listing),
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
