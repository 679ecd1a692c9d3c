//! `gatelet undo`: takes back the last change that `install` or `uninstall` made to the files
//! of hosts.

use hosts::history::{Record, State};
use hosts::undo;
use serde_json::json;

use super::host_files::{Consent, LocalHosts, PlannedChanges, carry_out};
use super::{own_program, service};
use crate::exit::{CliError, Done};
use crate::paths::Paths;
use crate::secrets::Secrets;
use crate::terminal::{DIM, HEADING, foreign, out, paint, say};

/// Take back what `gatelet install` or `gatelet uninstall` wrote last
///
/// A file that nobody touched since is put back as it was, to the byte. In one that has changed,
/// what was added goes and what was taken out comes back; everything else stays.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Which time, by its number [default: the last]
    number: Option<u32>,

    /// List what can be taken back
    #[arg(long, conflicts_with = "number")]
    list: bool,

    #[command(flatten)]
    consent: Consent,
}

pub(crate) fn run(args: &Args, paths: &Paths) -> anyhow::Result<Done> {
    let here = LocalHosts::new(paths)?;
    let records = here.history.records();
    if args.list {
        list(&records, args.consent)?;
        return Ok(Done::Fine);
    }
    let record = match args.number {
        None => undo::latest(&records),
        Some(number) => records.iter().find(|record| record.number == number),
    };
    let nothing =
        || CliError::Usage("there is nothing to take back; `gatelet undo --list` shows".to_owned());
    let record = record.ok_or_else(nothing)?;
    if record.state == State::Undone {
        return Err(
            CliError::Usage(format!("number {} was taken back already", record.number)).into()
        );
    }
    let changes = undo::plan(record, &here.history, &here.disk, |_| true);
    let changes = changes.map_err(|why| CliError::Usage(why.to_string()))?;
    let planned = PlannedChanges { changes, ..PlannedChanges::default() };
    let store = Secrets::at(&paths.state_directory()?);
    let (done, written) = carry_out("undo", &planned, args.consent, &here, &store)?;
    if !args.consent.dry_run {
        // The next time goes further back.
        for record in written.iter().chain([record]) {
            here.history.mark(record, State::Undone)?;
        }
        own_program::remove_unused_copy(&here.environment, &here.disk, &service::unit_texts());
    }
    Ok(done)
}

fn list(records: &[Record], consent: Consent) -> anyhow::Result<()> {
    let open: Vec<&Record> =
        records.iter().filter(|record| record.state != State::Undone).collect();
    if consent.output.is_json() {
        let shown = |record: &&Record| {
            let files: Vec<_> = record.files.iter().map(|file| &file.path).collect();
            json!({"number": record.number, "command": record.command, "files": files})
        };
        let all: Vec<_> = open.iter().map(shown).collect();
        out(&crate::terminal::json_text(&all)?);
        return Ok(());
    }
    for record in &open {
        out(&format!("{} {}", paint(HEADING, record.number), record.command));
        for file in &record.files {
            out(&paint(DIM, format!("  {}", foreign(&file.path.display().to_string()))));
        }
    }
    if open.is_empty() {
        say(&paint(DIM, "there is nothing to take back"));
    }
    Ok(())
}
