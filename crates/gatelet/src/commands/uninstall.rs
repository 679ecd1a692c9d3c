//! `gatelet uninstall`: removes gatelet from the MCP servers of hosts.

use hosts::change::FileChange;
use hosts::history::{RecordedFile, State};
use hosts::plan::{self, Refusal};
use hosts::{Reach, undo};

use super::host_files::{
    Gatelet, HostChoice, LocalHosts, carry_out, choose_hosts, plan_each, scope, server,
};
use super::{own_program, service};
use crate::exit::Done;
use crate::paths::Paths;
use crate::secrets::Secrets;

/// Take gatelet out of hosts, wherever it stands in their files
///
/// A file that is as `gatelet install` left it is put back as it was before, to the byte. In one
/// that has changed since only the entry goes, and the servers that were moved behind gatelet
/// come back. gatelet's own configuration stays.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    choice: HostChoice,
}

pub(crate) fn run(args: &Args, paths: &Paths) -> anyhow::Result<Done> {
    let (here, gatelet) = (LocalHosts::new(paths)?, Gatelet::even_damaged(paths)?);
    let hosts = choose_hosts(&args.choice, &here)?;
    let scope = scope(&args.choice)?;
    let is_same = |reach: &Reach| gatelet.is_same(reach);
    let planned = plan_each(&args.choice, &hosts, |host| {
        let server = server(&[], &is_same);
        let changes = plan::uninstall(host, &server, &scope, &here.environment, &here.disk)?;
        let back = |change: FileChange| {
            before_install(change, &here).and_then(|change| plan::without_server(change, &server))
        };
        changes.into_iter().map(back).collect()
    })?;
    let store = Secrets::at(&paths.state_directory()?);
    let (done, written) = carry_out("uninstall", &planned, args.choice.consent, &here, &store)?;
    if written.is_some() {
        own_program::remove_unused_copy(&here.environment, &here.disk, &service::unit_texts());
    }
    Ok(done)
}

/// Replaces a change that removes our entry by one that restores the file as it was before
/// the installation, if that is recorded.
fn before_install(change: FileChange, here: &LocalHosts) -> Result<FileChange, Refusal> {
    if change.is_empty() {
        return Ok(change);
    }
    let records = here.history.records();
    let is_it = |file: &RecordedFile| file.path == change.path;
    let installed = records.iter().rev().find(|record| {
        record.command == "install"
            && record.state != State::Undone
            && record.files.iter().any(is_it)
    });
    let Some(record) = installed else { return Ok(change) };
    let back = undo::plan(record, &here.history, &here.disk, is_it)?.into_iter().next();
    Ok(back.filter(|back| !back.is_empty()).unwrap_or(change))
}
