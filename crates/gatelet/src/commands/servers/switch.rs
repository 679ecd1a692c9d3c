//! `gatelet enable` and `gatelet disable`: switch an upstream on or off, or let it out of
//! quarantine.

use serde_json::json;

use super::config_file::ConfigFile;
use super::review;
use crate::commands::output::Output;
use crate::commands::person;
use crate::exit::{CliError, Done};
use crate::paths::Paths;
use crate::terminal::{DIM, GOOD, out, paint, say};
use config::edit::Edit;

/// Use a server again, or let one out of quarantine once you have seen its tools
#[derive(Debug, clap::Args)]
pub(crate) struct EnableArgs {
    /// The label of the upstream
    label: String,
    /// Let it out of quarantine without asking
    #[arg(long, short)]
    yes: bool,
    #[command(flatten)]
    output: Output,
}

/// Keep a server in the configuration without using it
#[derive(Debug, clap::Args)]
pub(crate) struct DisableArgs {
    /// The label of the upstream
    label: String,
}

pub(crate) fn enable(args: &EnableArgs, paths: &Paths) -> anyhow::Result<Done> {
    let file = ConfigFile::open(paths)?;
    let raw = file.upstream(&args.label)?;
    let label = raw.label.clone().unwrap_or_default();
    let off = |key| Edit::Set { label: &label, key, value: None };
    let mut edits = Vec::new();
    edits.extend(raw.disabled.then(|| off("disabled")));
    edits.extend(raw.quarantine.then(|| off("quarantine")));
    if edits.is_empty() {
        say(&format!("`{label}` is in use already"));
        return Ok(Done::Fine);
    }
    let text = file.edited(&edits)?;
    if raw.quarantine {
        let upstream = file.parse(&raw, paths)?;
        let probed = review::probe(&upstream, paths)?;
        let probed = probed.map_err(|failure| review::probe_error(&label, &failure))?;
        review::show(&label, &probed);
        if args.output.is_json() {
            out(&crate::terminal::json_text(
                &json!({"label": label, "listed": review::as_json(&probed)}),
            )?);
        }
        let n_tools = probed.listing.tools.len();
        if !args.yes && !person::agrees(&format!("Let models use these {n_tools} tools?")) {
            let why = format!(
                "nobody agreed, so `{label}` stays in quarantine; `gatelet enable {label} --yes` agrees beforehand"
            );
            return Err(CliError::Refused(why).into());
        }
        review::pin_tools(&upstream, &probed.listing, paths)?;
    }
    file.write(&text)?;
    say(&format!("{} `{label}` in {}", paint(GOOD, "enabled"), file.path().display()));
    Ok(Done::Fine)
}

pub(crate) fn disable(args: &DisableArgs, paths: &Paths) -> anyhow::Result<Done> {
    let file = ConfigFile::open(paths)?;
    let raw = file.upstream(&args.label)?;
    let label = raw.label.clone().unwrap_or_default();
    if raw.disabled {
        say(&format!("`{label}` is not in use as it is"));
        return Ok(Done::Fine);
    }
    let value = Some(serde_json::Value::Bool(true));
    file.write(&file.edited(&[Edit::Set { label: &label, key: "disabled", value }])?)?;
    say(&format!("{} `{label}` in {}", paint(GOOD, "disabled"), file.path().display()));
    say(&paint(
        DIM,
        format!(
            "a gatelet that runs takes it up by itself; `gatelet enable {label}` brings it back"
        ),
    ));
    Ok(Done::Fine)
}
