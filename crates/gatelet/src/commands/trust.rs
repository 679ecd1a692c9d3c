//! `gatelet trust`: lists, grants and revokes the trust in tools.

mod known;

use catalog::name;
use config::Upstream;
use policy::call;
use policy::trust::{Digest, Ledger, LedgerStore, TrustLevel, TrustState, drift};
use tool::Tool;

use super::output::Output;
use crate::config_loader;
use crate::exit::{CliError, Done};
use crate::ledger_file::LedgerFile;
use crate::paths::Paths;
use crate::terminal::{BAD, DIM, GOOD, HEADING, WARNING, foreign, foreign_line, out, paint, say};
use crate::time::unix_millis as now;
use crate::wire::bound_ledger::BoundLedger;
use crate::wire::identity::Identities;

/// See, grant and take back the trust in tools
///
/// Tools are named as `gatelet call` names them, `upstream.tool`, or as here `upstream/tool`;
/// `upstream/*` is all of an upstream.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Action {
    /// List what is known of every tool
    List {
        #[command(flatten)]
        output: Output,
    },
    /// Show one tool: what was vouched for, and what changed since
    Show { tool: String },
    /// Vouch for a tool as it is now; it may destroy without asking unless `--verified`
    Grant {
        tool: String,
        /// Only verified: what destroys still asks
        #[arg(long)]
        verified: bool,
    },
    /// Take trust away: the tool cannot be called, also where nobody called it yet
    Revoke { tool: String },
    /// Forget one tool, or everything, with a new key
    Reset { tool: Option<String> },
}

pub(crate) fn run(action: &Action, paths: &Paths) -> anyhow::Result<Done> {
    let state = paths.state_directory()?;
    if let Action::Reset { tool: None } = action {
        LedgerFile::reset(&state)?;
        say(&format!("{} the ledger is empty and has a new key", paint(GOOD, "reset")));
        return Ok(Done::Fine);
    }
    let upstreams = known::upstreams(&state, config_loader::load(paths)?.config);
    let current = |pattern: &str| current_tools(pattern, &upstreams, paths);
    let file = BoundLedger::new(LedgerFile::at(&state), Identities::new(upstreams.iter()));
    let ledger = file.read()?;
    match action {
        Action::List { output } => {
            list(&ledger, *output)?;
            let n_foreign = file.n_foreign()?;
            if n_foreign != 0 {
                say(&paint(
                    DIM,
                    format!(
                        "({n_foreign} more are of other upstreams, or were granted before trust was \
                         bound to what an upstream is: grant those anew)"
                    ),
                ));
            }
        }
        Action::Show { tool } => show(&ledger, current(tool)?),
        Action::Grant { tool, verified } => {
            let state = if *verified { TrustLevel::Verified } else { TrustLevel::Trusted };
            grant(&file, current(tool)?, state)?;
        }
        Action::Revoke { tool } => revoke(&file, &ledger, tool, &current)?,
        Action::Reset { tool: Some(tool) } => {
            let names = matching_names(&ledger, tool);
            if names.is_empty() {
                return Err(unknown(tool).into());
            }
            file.change(&mut |ledger| {
                for name in &names {
                    ledger.forget(name);
                }
            })?;
            for name in names {
                say(&format!("{} `{}`", paint(GOOD, "forgot"), foreign_line(&name)));
            }
        }
        Action::Reset { tool: None } => {}
    }
    Ok(Done::Fine)
}

/// The names in the ledger that match a pattern.
fn matching_names(ledger: &Ledger, pattern: &str) -> Vec<String> {
    let names = ledger.iter().map(|(name, _)| name.to_owned());
    names.filter(|name| matches(pattern, name)).collect()
}

/// Whether a name of the ledger matches a pattern (`upstream/tool`, `upstream.tool`, a whole
/// name, or with `*` at the end), in any spelling.
fn matches(pattern: &str, name: &str) -> bool {
    if let (Some((upstream, tool)), Some((listed, name))) = (parts(pattern), name.split_once('/')) {
        return name::means(upstream, listed) && tool_matches(tool, name);
    }
    tool_matches(pattern, name)
}

/// Splits a pattern into upstream and tool. No label has any of these characters in it.
fn parts(pattern: &str) -> Option<(&str, &str)> {
    pattern.split_once(['/', '.', ':'])
}

fn tool_matches(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some("") => true,
        Some(start) => {
            let folded = name::folded_name(start);
            name.starts_with(start) || name::folded_name(name).starts_with(&folded)
        }
        None => name::means(pattern, name),
    }
}

fn unknown(pattern: &str) -> CliError {
    CliError::Usage(format!("nothing is known of `{pattern}`; `gatelet trust list` shows what is"))
}

fn list(ledger: &Ledger, output: Output) -> anyhow::Result<()> {
    if output.is_json() {
        let all: serde_json::Map<String, serde_json::Value> = ledger
            .iter()
            .map(|(name, entry)| {
                (name.to_owned(), serde_json::json!({"state": entry.state, "digest": entry.digest, "since": entry.since}))
            })
            .collect();
        out(&crate::terminal::json_text(&all)?);
        return Ok(());
    }
    for (name, entry) in ledger.iter() {
        let style = match entry.state {
            TrustLevel::Untrusted => BAD,
            TrustLevel::Verified => HEADING,
            TrustLevel::Trusted => GOOD,
        };
        let state = paint(style, format!("{:<9}", entry.state.to_string()));
        out(&format!("{state} {} {}", foreign_line(name), paint(DIM, entry.digest.short())));
    }
    if ledger.iter().next().is_none() {
        say(&paint(DIM, "nothing yet: tools are noted when they are first seen or granted"));
    }
    Ok(())
}

/// Tools with their names in the ledger.
type Named = Vec<(String, Tool)>;

/// The tools of an upstream that match a pattern, as it lists them now, with their names in
/// the ledger.
fn current_tools(pattern: &str, known: &[Upstream], paths: &Paths) -> anyhow::Result<Named> {
    let Some((upstream, tool)) = parts(pattern) else {
        return Err(
            CliError::Usage("tools are named `upstream.tool`, or `upstream.*`".to_owned()).into()
        );
    };
    let (label, listing) = known::listing(upstream, known, paths)?;
    let upstream = label.as_str();
    let listing = roster::readable::published_form(upstream, &listing);
    let fits = |found: &Tool| tool_matches(tool, &found.name);
    let tools: Named = listing
        .tools
        .into_iter()
        .filter(fits)
        .map(|found| (call::path(upstream, &found.name), found))
        .collect();
    if tools.is_empty() {
        return Err(CliError::Usage(format!("`{upstream}` has no tool `{tool}`")).into());
    }
    Ok(tools)
}

fn show(ledger: &Ledger, tools: Named) {
    for (name, tool) in tools {
        let digest = Digest::of(&tool);
        let trust = match ledger.state(&name, &tool, &digest) {
            TrustState::New => paint(DIM, "never seen"),
            TrustState::Known(state) => paint(GOOD, state),
            TrustState::Drifted { was, .. } => {
                paint(WARNING, format!("changed since it was {was}"))
            }
        };
        out(&format!("{} {trust}", paint(HEADING, foreign_line(&name))));
        out(&format!("  digest {digest}"));
        let Some(entry) = ledger.get(&name).filter(|entry| entry.digest != digest) else {
            continue;
        };
        let now = policy::trust::SeenTool::of(&tool);
        for change in drift(&entry.seen, &now) {
            out(&format!("  {} {}", paint(WARNING, "~"), foreign_line(&change.to_string())));
        }
        if entry.seen.description != now.description {
            let show = |mark: String, text: &str| {
                foreign(text).lines().for_each(|line| out(&format!("  {mark} {line}")));
            };
            show(paint(BAD, "-"), &entry.seen.description);
            show(paint(GOOD, "+"), &now.description);
        }
        let word = tool::shell::word(&name);
        let word = word.as_deref().unwrap_or("NAME");
        out(&paint(DIM, format!("  accept it with `gatelet trust grant {word}`")));
    }
}

fn grant(file: &BoundLedger<LedgerFile>, tools: Named, state: TrustLevel) -> anyhow::Result<()> {
    file.change(&mut |ledger| {
        tools.iter().for_each(|(name, tool)| ledger.set(name, tool, state, now()));
    })?;
    for (name, tool) in tools {
        let digest = Digest::of(&tool);
        let name = foreign_line(&name);
        say(&format!("{} `{name}` as it is now ({})", paint(GOOD, state), digest.short()));
    }
    Ok(())
}

/// Revokes trust in the matching tools of the ledger, and in those that the upstream lists
/// but that are not in the ledger yet.
fn revoke(
    file: &BoundLedger<LedgerFile>,
    ledger: &Ledger,
    pattern: &str,
    current_tools: &dyn Fn(&str) -> anyhow::Result<Named>,
) -> anyhow::Result<()> {
    let mut names = matching_names(ledger, pattern);
    let unseen = match names.is_empty() || pattern.ends_with('*') {
        true => current_tools(pattern),
        false => Ok(Vec::new()),
    };
    let unseen = match unseen {
        Ok(tools) => tools,
        Err(_) if !names.is_empty() => Vec::new(),
        Err(error) => return Err(error.context(unknown(pattern))),
    };
    file.change(&mut |ledger| {
        for (name, tool) in &unseen {
            if ledger.get(name).is_none() {
                ledger.set(name, tool, TrustLevel::Untrusted, now());
            }
        }
        for name in names.iter().chain(unseen.iter().map(|(name, _)| name)) {
            ledger.revoke(name, now());
        }
    })?;
    names.extend(unseen.into_iter().map(|(name, _)| name));
    names.sort();
    names.dedup();
    for name in names {
        say(&format!("{} `{}`", paint(GOOD, "revoked"), foreign_line(&name)));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_is_meant_in_every_spelling_that_calls_it() {
        for pattern in
            ["my-files/read_text", "my_files.read-text", "MyFiles:readText", "my-files.*"]
        {
            assert!(matches(pattern, "my_files/read_text"), "{pattern}");
        }
        for pattern in ["my-files/read_tex", "files/read_text", "my-files2/*", "my-files/write*"] {
            assert!(!matches(pattern, "my_files/read_text"), "{pattern}");
        }
        assert!(matches("files.fs.read", "files/fs.read") && matches("files/a/b", "files/a/b"));
    }
}
