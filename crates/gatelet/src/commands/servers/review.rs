//! Probes a server and shows its tools to the operator before a model sees them.

use std::time::Duration;

use catalog::tokens;
use policy::call;
use policy::trust::{Digest, Drift, Ledger, LedgerStore, SeenTool, TrustLevel, drift};
use serde_json::{Value, json};
use tool::{Failure, Listing, Tool};

use crate::exit::CliError;
use crate::ledger_file::LedgerFile;
use crate::paths::Paths;
use crate::terminal::{
    BAD, DIM, GOOD, HEADING, WARNING, foreign, foreign_line, paint, say, thousands,
};
use crate::time::unix_millis as now;
use crate::wire::bound_ledger::BoundLedger;
use crate::wire::identity::Identities;
use crate::wire::{self, Probed};
use config::Upstream;

/// How long the server process may take to exit after the probe.
const GRACE: Duration = Duration::from_secs(3);

/// Starts or connects to a server and requests its listing.
pub(super) fn probe(upstream: &Upstream, paths: &Paths) -> anyhow::Result<Result<Probed, Failure>> {
    let state = paths.state_directory()?;
    let progress = crate::terminal::progress("starting the server");
    let runtime = tokio::runtime::Runtime::new()?;
    let probed = runtime.block_on(async {
        let probed = wire::probe(upstream, &state).await;
        wire::children_have_ended(GRACE).await;
        probed
    });
    progress.finish_and_clear();
    Ok(probed)
}

/// The error for a server that returned no listing; it says what to do next.
pub(super) fn probe_error(label: &str, failure: &Failure) -> CliError {
    let next = match failure {
        Failure::Unauthorized { .. } => {
            format!(
                ". Add it with --no-start, log in with `gatelet login {label}`, then `gatelet enable {label}`; \
                 with a key or token of your own, add it with --header 'Authorization: Bearer …'"
            )
        }
        Failure::Forbidden { .. } => {
            ". The server accepts the credentials but denies access: use others".to_owned()
        }
        Failure::Unavailable { .. }
        | Failure::Timeout { .. }
        | Failure::Lost { .. }
        | Failure::RateLimited { .. }
        | Failure::Unusable { .. }
        | Failure::Cancelled
        | Failure::Unsupported { .. } => String::new(),
    };
    CliError::NoAnswer(format!("`{label}` gave no listing: {failure}{next}. Nothing was written"))
}

/// A number and what it counts, such as `1 tool` and `2 tools`.
fn counted(n: usize, what: &str) -> String {
    if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") }
}

/// Prints a server and all its tools.
pub(super) fn show(label: &str, probed: &Probed) {
    let Listing { server, tools, resources, templates, prompts, findings, .. } = &*probed.listing;
    let named = foreign_line(&format!("{} {}", server.name, server.version)).trim().to_owned();
    let protocol = foreign_line(&server.protocol).into_owned();
    let seconds = probed.took.as_secs_f64();
    say(&format!(
        "{} is {named}, MCP {protocol}, ready after {seconds:.1} s",
        paint(HEADING, label)
    ));
    let cost = thousands(total(&probed.listing));
    let n_resources = resources.len() + templates.len();
    say(&format!(
        "{} ({cost} tokens where a host lists them whole), {}, {}",
        counted(tools.len(), "tool"),
        counted(n_resources, "resource"),
        counted(prompts.len(), "prompt"),
    ));
    for tool in tools {
        let (hint, style) = hint(tool);
        let about = tool.description.as_deref().unwrap_or_default();
        let about = foreign(about.lines().find(|line| !line.trim().is_empty()).unwrap_or_default());
        let about: String = about.chars().take(90).collect();
        let name = foreign_line(&tool.name);
        say(&format!("  {name} {} {}", paint(style, hint), paint(DIM, about)));
    }
    for finding in findings {
        say(&format!("  {}", paint(WARNING, foreign_line(&finding.to_string()))));
    }
}

/// What the annotations of a tool say about its effects.
fn hint(tool: &Tool) -> (&'static str, anstyle::Style) {
    match (tool.annotations.read_only, tool.annotations.destructive) {
        (Some(true), _) => ("reads", GOOD),
        (_, Some(true)) => ("may destroy", BAD),
        (_, Some(false)) => ("writes", WARNING),
        (Some(false) | None, None) => ("does not say what it may do", DIM),
    }
}

fn total(listing: &Listing) -> usize {
    listing.tools.iter().map(|tool| tokens::count(tool.raw.as_str())).sum()
}

/// The same information as JSON.
pub(super) fn as_json(probed: &Probed) -> Value {
    let listing = &probed.listing;
    let tool = |tool: &Tool| {
        json!({
            "name": tool.name,
            "description": tool.description,
            "tokens": tokens::count(tool.raw.as_str()),
            "read_only": tool.annotations.read_only,
            "destructive": tool.annotations.destructive,
        })
    };
    json!({
        "server": listing.server.name,
        "version": listing.server.version,
        "protocol": listing.server.protocol,
        "ready_after_ms": probed.took.as_millis(),
        "tokens": total(listing),
        "tools": listing.tools.iter().map(tool).collect::<Vec<_>>(),
        "resources": listing.resources.len() + listing.templates.len(),
        "prompts": listing.prompts.len(),
        "findings": listing.findings,
    })
}

fn ledger(upstream: &Upstream, paths: &Paths) -> anyhow::Result<BoundLedger<LedgerFile>> {
    let identities = Identities::new(std::iter::once(upstream));
    Ok(BoundLedger::new(LedgerFile::at(&paths.state_directory()?), identities))
}

/// Records in the trust ledger that the operator approved these tool
/// definitions. A tool whose trust was revoked stays revoked.
pub(super) fn pin_tools(
    upstream: &Upstream,
    listing: &Listing,
    paths: &Paths,
) -> anyhow::Result<()> {
    ledger(upstream, paths)?.change(&mut |ledger| {
        for tool in &listing.tools {
            let name = call::path(&upstream.label, &tool.name);
            let state = ledger.get(&name).map(|entry| entry.state);
            if state != Some(TrustLevel::Untrusted) {
                ledger.set(&name, tool, state.unwrap_or(TrustLevel::Verified), now());
            }
        }
    })?;
    Ok(())
}

/// Removes all tools of an upstream from the trust ledger. Returns their number.
pub(super) fn forget_trust(upstream: &Upstream, paths: &Paths) -> anyhow::Result<usize> {
    let ledger = ledger(upstream, paths)?;
    let start = format!("{}/", upstream.label);
    let known = ledger.read()?;
    let names: Vec<String> = known.iter().map(|(name, _)| name.to_owned()).collect();
    let names: Vec<String> = names.into_iter().filter(|name| name.starts_with(&start)).collect();
    ledger.change(&mut |ledger| {
        for name in &names {
            ledger.forget(name);
        }
    })?;
    Ok(names.len())
}

/// Removes the tools from the trust ledger that the server no longer lists.
pub(super) fn forget_removed_tools(
    upstream: &Upstream,
    changes: &Changes,
    paths: &Paths,
) -> anyhow::Result<()> {
    if changes.removed.is_empty() {
        return Ok(());
    }
    ledger(upstream, paths)?.change(&mut |ledger| {
        for name in &changes.removed {
            ledger.forget(&call::path(&upstream.label, name));
        }
    })?;
    Ok(())
}

/// How an upstream's tools differ from those in the trust ledger.
#[derive(Debug, PartialEq)]
pub(crate) struct Changes {
    pub(super) added: Vec<String>,
    pub(super) removed: Vec<String>,
    pub(crate) changed: Vec<(String, Vec<Drift>)>,
    /// The trust ledger has no tools of this upstream.
    pub(super) no_previous_record: bool,
}

impl Changes {
    pub(super) fn is_unchanged(&self) -> bool {
        self.added.is_empty()
            && self.removed.is_empty()
            && self.changed.is_empty()
            && !self.no_previous_record
    }

    /// The names of the tools that are new or changed.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        let changed = self.changed.iter().map(|(name, _)| name);
        self.added.iter().chain(changed).map(String::as_str)
    }

    /// Describes each change in one line.
    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        lines.extend(
            self.added
                .iter()
                .map(|name| format!("{} {} is new", paint(GOOD, "+"), foreign_line(name))),
        );
        lines.extend(
            self.removed
                .iter()
                .map(|name| format!("{} {} was removed", paint(BAD, "-"), foreign_line(name))),
        );
        for (name, drift) in &self.changed {
            let what: Vec<String> = drift.iter().map(ToString::to_string).collect();
            let what = foreign_line(&what.join("; ")).into_owned();
            lines.push(format!("{} {}: {what}", paint(WARNING, "~"), foreign_line(name)));
        }
        lines
    }

    pub(super) fn as_json(&self) -> Value {
        let changed = self.changed.iter().map(|(name, drift)| {
            let what: Vec<String> = drift.iter().map(ToString::to_string).collect();
            json!({"tool": name, "changes": what})
        });
        json!({
            "added": self.added,
            "gone": self.removed,
            "changed": changed.collect::<Vec<_>>(),
            "known_before": !self.no_previous_record,
        })
    }
}

/// Compares a new listing with the tools that the trust ledger has of `before`.
pub(crate) fn changes(
    before: &Upstream,
    listing: &Listing,
    paths: &Paths,
) -> anyhow::Result<Changes> {
    Ok(compare(&*ledger(before, paths)?.read()?, &before.label, listing))
}

fn compare(known: &Ledger, label: &str, listing: &Listing) -> Changes {
    let start = format!("{label}/");
    let is_own = |name: &&str| name.starts_with(&start);
    let before: Vec<&str> = known.iter().map(|(name, _)| name).filter(is_own).collect();
    let (mut added, mut changed) = (Vec::new(), Vec::new());
    for tool in &listing.tools {
        match known.get(&call::path(label, &tool.name)) {
            None => added.push(tool.name.clone()),
            Some(entry) if entry.digest != Digest::of(tool) => {
                changed.push((tool.name.clone(), drift(&entry.seen, &SeenTool::of(tool))));
            }
            Some(_) => {}
        }
    }
    let is_there =
        |name: &&&str| listing.tools.iter().any(|tool| call::path(label, &tool.name) == ***name);
    let removed = before.iter().filter(|name| !is_there(name));
    let removed =
        removed.map(|name| name.strip_prefix(&start).unwrap_or(name).to_owned()).collect();
    Changes { added, removed, changed, no_previous_record: before.is_empty() }
}

#[cfg(test)]
mod tests {
    use tool::Json;

    use super::*;

    fn tool(text: &str) -> Tool {
        Tool::parse(Json::parse(text.to_owned()).unwrap()).unwrap()
    }

    #[test]
    fn added_removed_and_changed_tools_are_described() {
        let mut ledger = Ledger::default();
        for text in [r#"{"name":"a","description":"x"}"#, r#"{"name":"b"}"#, r#"{"name":"c"}"#] {
            let tool = tool(text);
            ledger.set(&call::path("up", &tool.name), &tool, TrustLevel::Verified, 1);
        }
        ledger.set("other/z", &tool(r#"{"name":"z"}"#), TrustLevel::Verified, 1);
        let now = [
            r#"{"name":"a","description":"y","annotations":{"destructiveHint":true}}"#,
            r#"{"name":"b"}"#,
            r#"{"name":"d"}"#,
        ];
        let listing = Listing { tools: now.map(tool).to_vec(), ..Listing::default() };
        let changes = compare(&ledger, "up", &listing);
        assert_eq!(
            (changes.added.as_slice(), changes.removed.as_slice()),
            (&["d".to_owned()][..], &["c".to_owned()][..])
        );
        let told = changes.as_json().to_string();
        assert!(told.contains("destructiveHint") && told.contains("wording"), "{told}");
        assert!(!changes.is_unchanged() && !changes.no_previous_record);
        assert!(compare(&Ledger::default(), "up", &listing).no_previous_record);
    }
}
