//! `gatelet up` and `gatelet down`: runs gatelet as a systemd or launchd service of the user.

mod manager;
mod unit;

use std::path::PathBuf;

use anyhow::Context;

use super::own_program::{self, OwnProgram};
use super::person;
use crate::config_loader;
use crate::exit::{CliError, Done};
use crate::paths::Paths;
use crate::terminal::{DIM, GOOD, WARNING, foreign, out, paint, say};
use manager::Manager;
use unit::Unit;

/// Run one gatelet for all hosts, as a service of yours that stays
///
/// Writes a systemd user unit, or a launchd agent on macOS, and starts it. Hosts
/// reach it by HTTP, or by `gatelet connect` over pipes, so that every server
/// runs once. The service gets the PATH of this shell.
#[derive(Debug, clap::Args)]
pub(crate) struct UpArgs {
    /// Only print the file that would be written
    #[arg(long)]
    dry_run: bool,
    /// Write the file and do not start it
    #[arg(long)]
    no_start: bool,
    /// Replace a file that gatelet did not write
    #[arg(long)]
    force: bool,
}

/// Stop the service that `gatelet up` made, and take its file away
#[derive(Debug, clap::Args)]
pub(crate) struct DownArgs {
    /// Stop it and leave its file
    #[arg(long)]
    keep: bool,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
}

/// The service of a configuration: its service manager, its unit, and the unit's file.
struct Service {
    manager: Manager,
    unit: Unit,
    file: PathBuf,
    program: OwnProgram,
}

impl Service {
    fn new(paths: &Paths) -> anyhow::Result<Service> {
        let manager = Manager::of_this_system();
        let config = paths.config_file().map(std::path::absolute).transpose()?;
        let state = paths.state.as_ref().map(std::path::absolute).transpose()?;
        let program = OwnProgram::find()?;
        let unit = Unit {
            // Another configuration is another service.
            name: manager::name(paths.config.is_some().then_some(config.as_deref()).flatten()),
            program: program.path.clone(),
            config,
            state,
            path: crate::paths::search_path(),
        };
        let file = manager.file(&unit.name).context("no home directory")?;
        Ok(Service { manager, unit, file, program })
    }

    fn text(&self) -> String {
        match self.manager {
            Manager::Systemd => self.unit.systemd(),
            Manager::Launchd => self.unit.launchd(),
        }
    }

    /// The text of the unit's file, if it exists.
    fn installed_text(&self) -> Option<String> {
        std::fs::read_to_string(&self.file).ok()
    }
}

/// Whether this machine has a service manager.
pub(super) fn is_possible() -> bool {
    Manager::of_this_system().check().is_ok()
}

/// The `PATH` in the unit of this configuration, if it has one.
pub(super) fn search_path(paths: &Paths) -> Option<String> {
    let service = Service::new(paths).ok()?;
    unit::search_path(&service.installed_text()?)
}

/// The texts of all unit files that gatelet wrote.
pub(super) fn unit_texts() -> Vec<String> {
    let directory = Manager::of_this_system().file("gatelet");
    let directory = directory.as_deref().and_then(std::path::Path::parent);
    let entries = directory.map(std::fs::read_dir).into_iter().flatten().flatten().flatten();
    let is_named =
        |entry: &std::fs::DirEntry| entry.file_name().to_string_lossy().starts_with("gatelet");
    let texts =
        entries.filter(is_named).filter_map(|entry| std::fs::read_to_string(entry.path()).ok());
    texts.filter(|text| unit::is_ours(text)).collect()
}

pub(crate) fn up(args: &UpArgs, paths: &Paths) -> anyhow::Result<Done> {
    // One that cannot start is not made a service.
    let loaded = config_loader::load(paths)?;
    if let Some(why) = loaded.config.exposure_problem(false) {
        return Err(CliError::Usage(format!("the service would refuse to start: {why}")).into());
    }
    let service = Service::new(paths)?;
    let text = service.text();
    if args.dry_run {
        out(&text);
        return Ok(Done::Fine);
    }
    let shown = service.file.display();
    if service.installed_text().is_some_and(|text| !unit::is_ours(&text)) && !args.force {
        let why = format!("`{shown}` was not written by gatelet; --force replaces it");
        return Err(CliError::Usage(why).into());
    }
    if !args.no_start {
        // A file that nobody starts would only be in the way.
        service.manager.check()?;
    }
    service.program.copy_if_needed()?;
    let parent = service.file.parent().context("a unit has a directory")?;
    std::fs::create_dir_all(parent)
        .with_context(|| format!("cannot create `{}`", parent.display()))?;
    store::file::replace(&service.file, text.as_bytes(), store::file::Safety::Synced)
        .with_context(|| format!("cannot write `{shown}`"))?;
    say(&format!("{} {shown}", paint(GOOD, "wrote")));
    if args.no_start {
        return Ok(Done::Fine);
    }
    service.manager.start(&service.unit.name, &service.file)?;
    let listen = loaded.config.serve.listen;
    say(&format!("{} {} at http://{listen}/mcp", paint(GOOD, "started"), service.unit.name));
    say(&paint(
        DIM,
        "hosts on pipes: `gatelet connect`; `gatelet status`, `logs`, `restart` and `down` look after it",
    ));
    Ok(Done::Fine)
}

pub(crate) fn down(args: &DownArgs, paths: &Paths) -> anyhow::Result<Done> {
    let service = Service::new(paths)?;
    let shown = service.file.display();
    match service.installed_text() {
        None => {
            let why =
                format!("there is no service: `{shown}` is not there; `gatelet up` makes one");
            return Err(CliError::Usage(why).into());
        }
        Some(text) if !unit::is_ours(&text) => {
            let why = format!("`{shown}` was not written by gatelet and is left alone");
            return Err(CliError::Refused(why).into());
        }
        Some(_) => {}
    }
    if !args.keep
        && !args.yes
        && !person::agrees(&format!("Stop {} and take {shown} away?", service.unit.name))
    {
        let why =
            "nobody agreed: nothing was done; --yes agrees beforehand, --keep leaves the file";
        return Err(CliError::Refused(why.to_owned()).into());
    }
    if let Err(error) = service.manager.stop(&service.unit.name, &service.file) {
        // Where there is no manager nothing runs, and the file can go.
        if args.keep || service.manager.check().is_ok() {
            return Err(error);
        }
        say(&format!("{} {}", paint(WARNING, "note:"), foreign(&format!("{error:#}"))));
    }
    if !args.keep {
        std::fs::remove_file(&service.file).with_context(|| format!("cannot remove `{shown}`"))?;
        service.manager.reload();
    }
    say(&format!("{} {}", paint(GOOD, "stopped"), service.unit.name));
    if let Ok(environment) = crate::paths::host_environment() {
        let disk = hosts::Disk::new(&environment);
        own_program::remove_unused_copy(&environment, &disk, &unit_texts());
    }
    Ok(Done::Fine)
}

/// Restarts the service, where there is one.
pub(crate) fn restart(paths: &Paths) -> anyhow::Result<Done> {
    let service = Service::new(paths)?;
    if service.installed_text().is_none() {
        let why = "there is no service to restart; `gatelet up` makes one, and `gatelet restart LABEL` restarts an upstream";
        return Err(CliError::Usage(why.to_owned()).into());
    }
    service.manager.restart(&service.unit.name)?;
    say(&format!("{} {}", paint(GOOD, "restarted"), service.unit.name));
    Ok(Done::Fine)
}
