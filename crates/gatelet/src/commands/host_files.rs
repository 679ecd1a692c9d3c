//! Changes the files of hosts (programs that use MCP servers) for `install`, `uninstall`
//! and `undo`: chooses the hosts, shows the changes, asks, writes, and reports.

use std::path::{Path, PathBuf};

use hosts::apply::apply;
use hosts::change::FileChange;
use hosts::history::{History, Record};
use hosts::plan::{Refusal, Scope, Server};
use hosts::preview::{self, Mark};
use hosts::{Disk, Environment, HOSTS, Host, Reach};
use serde_json::{Value, json};

use super::output::Output;
use super::own_program::OwnProgram;
use super::{person, plain_secrets};
use crate::config_loader;
use crate::exit::{CliError, Done};
use crate::paths::{self, Paths};
use crate::secrets::{SecretLocation, Secrets};
use crate::terminal::{
    BAD, DIM, GOOD, HEADING, PLACE, WARNING, foreign, foreign_line, out, paint, say,
};
use config::Config;

/// The name of our entry in every host.
pub(super) const NAME: &str = "gatelet";

/// The flags that choose the hosts, and say whether to ask.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct HostChoice {
    /// The hosts, such as `claude-code` or `cursor` [default: all that are on this machine]
    #[arg(value_name = "HOST")]
    pub(super) hosts: Vec<String>,

    /// All hosts that are on this machine
    #[arg(long, conflicts_with = "hosts")]
    pub(super) all: bool,

    /// The files of the project in the working directory, not those of the user
    #[arg(long)]
    pub(super) project: bool,

    #[command(flatten)]
    pub(super) consent: Consent,
}

/// The flags that say whether to ask before writing, and how to print the answer.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct Consent {
    /// Agree beforehand
    #[arg(long, short)]
    pub(super) yes: bool,

    /// Show what would change, and change nothing
    #[arg(long, conflicts_with = "yes")]
    pub(super) dry_run: bool,

    #[command(flatten)]
    pub(super) output: Output,
}

/// This machine, with the history of earlier changes to host files.
pub(super) struct LocalHosts {
    pub(super) environment: Environment,
    pub(super) disk: Disk,
    pub(super) history: History,
}

impl LocalHosts {
    pub(super) fn new(paths: &Paths) -> anyhow::Result<LocalHosts> {
        let environment = paths::host_environment()?;
        let disk = Disk::new(&environment);
        let history = History::at(paths.state_directory()?.join("hosts"));
        Ok(LocalHosts { environment, disk, history })
    }
}

/// The gatelet that hosts are to use.
pub(super) struct Gatelet {
    pub(super) config: Config,
    /// The configuration file, whether it exists or not.
    pub(super) file: PathBuf,
}

impl Gatelet {
    pub(super) fn new(paths: &Paths) -> anyhow::Result<Gatelet> {
        let config = match &paths.config {
            // A named file that does not exist will be created.
            Some(file) if !file.exists() => config::default_config()?,
            Some(_) | None => config_loader::load(paths)?.config,
        };
        Ok(Gatelet { config, file: Gatelet::file(paths)? })
    }

    /// Like [`Gatelet::new`], but takes the default for a configuration that is wrong: its
    /// gatelet can still be uninstalled.
    pub(super) fn even_damaged(paths: &Paths) -> anyhow::Result<Gatelet> {
        match Gatelet::new(paths) {
            Ok(gatelet) => Ok(gatelet),
            Err(_) => {
                Ok(Gatelet { config: config::default_config()?, file: Gatelet::file(paths)? })
            }
        }
    }

    fn file(paths: &Paths) -> anyhow::Result<PathBuf> {
        let no_home = || anyhow::anyhow!("no home directory: name a configuration with --config");
        let file = paths.config_file().or_else(paths::user_file).ok_or_else(no_home)?;
        Ok(std::path::absolute(file)?)
    }

    /// Whether an entry in a host's file is for this gatelet.
    pub(super) fn is_same(&self, reach: &Reach) -> bool {
        config::is_self_reference(reach, &self.config, &self.file)
    }
}

/// The hosts that were named, or all that are found on this machine.
pub(super) fn choose_hosts(
    choice: &HostChoice,
    here: &LocalHosts,
) -> anyhow::Result<Vec<&'static Host>> {
    if !choice.hosts.is_empty() {
        return choice.hosts.iter().map(|name| host_named(name)).collect();
    }
    let is_meant = |host: &&Host| match choice.project {
        true => host.project.is_some_and(|file| Path::new(file).exists()),
        false => host.is_here(&here.environment, &here.disk),
    };
    let found: Vec<&Host> = HOSTS.iter().filter(is_meant).collect();
    if choice.consent.yes && !choice.all {
        let names: Vec<&str> = found.iter().map(|host| host.id).collect();
        let why = "name the hosts that --yes agrees to, or say --all";
        return Err(CliError::Usage(format!("{why}; found here: {}", names.join(", "))).into());
    }
    if found.is_empty() {
        let where_to = if choice.project { "in this directory" } else { "on this machine" };
        let known: Vec<&str> = HOSTS.iter().map(|host| host.id).collect();
        let why = format!(
            "no host was found {where_to}; known are {}. `gatelet serve` prints how to connect \
             any other client",
            known.join(", ")
        );
        return Err(CliError::Usage(why).into());
    }
    Ok(found)
}

fn host_named(name: &str) -> anyhow::Result<&'static Host> {
    Host::named(name).ok_or_else(|| {
        let known: Vec<&str> = HOSTS.iter().map(|host| host.id).collect();
        CliError::Usage(format!("no host is called `{name}`; known are {}", known.join(", ")))
            .into()
    })
}

pub(super) fn scope(choice: &HostChoice) -> anyhow::Result<Scope> {
    match choice.project {
        true => Ok(Scope::Project(std::env::current_dir()?)),
        false => Ok(Scope::User),
    }
}

/// What is to be changed, if the person agrees.
#[derive(Default)]
pub(super) struct PlannedChanges {
    pub(super) changes: Vec<FileChange>,
    /// The hosts that cannot be changed, and why.
    pub(super) left_out: Vec<(&'static Host, Refusal)>,
    /// Secrets to store first: names and values.
    pub(super) secrets: Vec<(String, String)>,
    /// The program that the entries start; copied first if it runs from a cache.
    pub(super) program: Option<OwnProgram>,
}

impl PlannedChanges {
    /// The program that is to be copied, with a description of the copy.
    fn copy(&self) -> Option<(&OwnProgram, String)> {
        let program = self.program.as_ref()?;
        program.needed_copy().map(|description| (program, description))
    }
}

/// Plans the changes of every host. Where that is not possible, a named host is an error,
/// and one that was only found is left out.
pub(super) fn plan_each(
    choice: &HostChoice,
    hosts: &[&'static Host],
    plan: impl Fn(&'static Host) -> Result<Vec<FileChange>, Refusal>,
) -> Result<PlannedChanges, CliError> {
    let mut planned = PlannedChanges::default();
    for &host in hosts {
        match plan(host) {
            Ok(changes) => planned.changes.extend(changes),
            Err(refusal) if choice.hosts.is_empty() => planned.left_out.push((host, refusal)),
            Err(refusal) => return Err(CliError::Usage(refusal.to_string())),
        }
    }
    // Two hosts may share a file, also by links.
    let mut seen: Vec<PathBuf> = Vec::new();
    planned.changes.retain(|change| {
        let path = std::fs::canonicalize(&change.path).unwrap_or_else(|_| change.path.clone());
        let is_new = !seen.contains(&path);
        seen.push(path);
        is_new
    });
    Ok(planned)
}

/// Our entry: how hosts reach gatelet (`reach`, preferred way first), and which existing
/// entries are for it already.
pub(super) fn server<'a>(reach: &'a [Reach], is_same: &'a dyn Fn(&Reach) -> bool) -> Server<'a> {
    Server { name: NAME, reach, is_same }
}

/// Shows the changes, asks, writes them, and reports. The record of what was written is
/// `None` when nothing was.
pub(super) fn carry_out(
    command: &str,
    planned: &PlannedChanges,
    consent: Consent,
    here: &LocalHosts,
    store: &Secrets,
) -> anyhow::Result<(Done, Option<Record>)> {
    let is_json = consent.output.is_json();
    let changes: Vec<&FileChange> =
        planned.changes.iter().filter(|change| !change.is_empty()).collect();
    if !is_json {
        show(planned, here, store);
    }
    let record = if changes.is_empty() && planned.copy().is_none() || consent.dry_run {
        None
    } else if consent.yes || !is_json && ask_to_write(&changes) {
        write(command, planned, here, store)?
    } else {
        if is_json {
            out(&crate::terminal::json_text(&as_json(command, planned, None))?);
        }
        let why = "nobody agreed, so nothing was written; --yes agrees, --dry-run only shows";
        return Err(CliError::Refused(why.to_owned()).into());
    };
    if is_json {
        out(&crate::terminal::json_text(&as_json(command, planned, record.as_ref()))?);
    } else if consent.dry_run {
        say(&paint(DIM, "nothing was written (--dry-run)"));
    } else if let Some(record) = &record {
        print_written(command, record, &changes);
    }
    let none_worked = planned.changes.is_empty() && !planned.left_out.is_empty();
    let is_short = none_worked || planned.left_out.iter().any(|(_, why)| why.is_failure());
    Ok((if is_short { Done::AnswerIsError } else { Done::Fine }, record))
}

/// Says what was written, and how hosts take it up.
fn print_written(command: &str, record: &Record, changes: &[&FileChange]) {
    let n_files = changes.len();
    let files = if n_files == 1 { "1 file".to_owned() } else { format!("{n_files} files") };
    say(&format!("{} {files}", paint(GOOD, "wrote")));
    for host in changes.iter().filter_map(|change| Host::named(change.host?)) {
        say(&paint(DIM, format!("  {}: {}", host.name, host.reload)));
    }
    if command != "undo" {
        say(&paint(
            DIM,
            format!("  `gatelet undo` takes it back (it is number {})", record.number),
        ));
    }
}

/// Stores the secrets, then writes the files. If that fails, removes new secrets again.
fn write(
    command: &str,
    planned: &PlannedChanges,
    here: &LocalHosts,
    store: &Secrets,
) -> anyhow::Result<Option<Record>> {
    if let Some(program) = &planned.program {
        program.copy_if_needed()?;
    }
    let before = store.list()?;
    plain_secrets::store_all(store, &planned.secrets)?;
    let written = apply(&planned.changes, command, &here.history, &here.disk);
    if written.is_err() {
        for (name, _) in planned.secrets.iter().filter(|(name, _)| !before.contains_key(name)) {
            let _ = store.remove(name);
        }
    }
    Ok(written?)
}

fn ask_to_write(changes: &[&FileChange]) -> bool {
    let n_files = changes.len();
    let what = if n_files == 1 { "this file".to_owned() } else { format!("these {n_files} files") };
    person::agrees(&format!("Write {what}?"))
}

fn show(planned: &PlannedChanges, here: &LocalHosts, store: &Secrets) {
    for change in &planned.changes {
        let name = change.host.and_then(Host::named).map_or("gatelet", |host| host.name);
        let file = shortened(&change.path, &here.environment);
        out(&format!("{} {}{}", paint(HEADING, name), paint(PLACE, foreign(&file)), state(change)));
        for line in preview::lines(change) {
            let style = if line.mark == Mark::Added { GOOD } else { BAD };
            out(&format!("  {} {}", paint(style, line.mark.sign()), foreign(&line.text)));
        }
        for note in &change.notes {
            out(&format!("  {}", paint(DIM, foreign_line(note))));
        }
    }
    if !planned.secrets.is_empty() {
        let names: Vec<&str> = planned.secrets.iter().map(|(name, _)| name.as_str()).collect();
        let place = match store.default_location() {
            SecretLocation::Keyring => "the system's keyring",
            SecretLocation::File => "gatelet's encrypted store",
        };
        out(&format!(
            "{} {} to {place}",
            paint(HEADING, "secrets"),
            foreign_line(&names.join(", "))
        ));
    }
    if let Some((program, words)) = planned.copy() {
        let path = shortened(&program.path, &here.environment);
        out(&format!("{} {}: new", paint(HEADING, "gatelet"), paint(PLACE, foreign(&path))));
        out(&format!("  {}", paint(DIM, foreign(&words))));
    }
    for (host, why) in &planned.left_out {
        let why = foreign_line(&why.to_string()).into_owned();
        out(&format!("{} {} {why}", paint(HEADING, host.name), paint(WARNING, "left out:")));
    }
}

fn state(change: &FileChange) -> &'static str {
    match (change.is_empty(), &change.before, &change.after) {
        (true, _, _) => ": nothing to do",
        (false, None, _) => ": new",
        (false, Some(_), None) => ": is removed",
        (false, Some(_), Some(_)) => "",
    }
}

/// A path with `~` for the home directory.
fn shortened(path: &Path, environment: &Environment) -> String {
    match path.strip_prefix(&environment.home) {
        Ok(below) => format!("~/{}", below.display()),
        Err(_) => path.display().to_string(),
    }
}

/// The answer as JSON.
fn as_json(command: &str, planned: &PlannedChanges, record: Option<&Record>) -> Value {
    let change = |change: &FileChange| {
        let lines: Vec<String> = preview::lines(change)
            .into_iter()
            .map(|line| format!("{} {}", line.mark.sign(), line.text))
            .collect();
        json!({
            "host": change.host,
            "file": change.path,
            "changes": !change.is_empty(),
            "is_new": change.before.is_none(),
            "lines": lines,
            "notes": change.notes,
        })
    };
    let left_out =
        |(host, why): &(&Host, Refusal)| json!({"host": host.id, "why": why.to_string()});
    json!({
        "command": command,
        "written": record.is_some(),
        "record": record.map(|record| record.number),
        "files": planned.changes.iter().map(change).collect::<Vec<_>>(),
        "program": planned.copy().map(|(program, _)| &program.path),
        "secrets": planned.secrets.iter().map(|(name, _)| name).collect::<Vec<_>>(),
        "left_out": planned.left_out.iter().map(left_out).collect::<Vec<_>>(),
    })
}
