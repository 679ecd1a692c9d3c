//! Every host on this machine: whether its files lead here.

use doctor::host::{Facts, Outcome};
use hosts::plan::{self, Scope};
use hosts::{HOSTS, Host, Reach};
use serde_json::Value;

use crate::commands::host_files::{Gatelet, Here, NAME};
use crate::commands::own_program::OwnProgram;
use crate::paths::{self, Paths};

/// What the files of every host say. None where there is no home.
pub(super) fn facts(paths: &Paths) -> Vec<Facts> {
    let (Ok(here), Ok(gatelet)) = (Here::new(paths), Gatelet::even_damaged(paths)) else {
        return Vec::new();
    };
    let is_here = |host: &&'static Host| host.is_here(&here.environment, &here.disk);
    let fact = |host: &'static Host| Facts {
        id: host.id.to_owned(),
        outcome: outcome(host, &here, &gatelet),
    };
    HOSTS.iter().filter(is_here).map(fact).collect()
}

fn outcome(host: &'static Host, here: &Here, gatelet: &Gatelet) -> Outcome {
    let files = plan::files(host, &Scope::User, &here.environment, &here.disk);
    let mut all = Vec::new();
    for file in files.unwrap_or_default() {
        match plan::entries(host, &file, &here.disk) {
            Ok(entries) => all.extend(entries),
            Err(refusal) => return Outcome::Unreadable(refusal.to_string()),
        }
    }
    let is_ours = |(name, entry): &&(String, Value)| {
        name == NAME || Reach::of(entry).is_some_and(|reach| gatelet.is_same(&reach))
    };
    match all.iter().find(is_ours).map(|(_, entry)| Reach::of(entry)) {
        None => Outcome::Absent,
        Some(Some(Reach::Program { command, .. })) => program(command),
        Some(_) => Outcome::Here,
    }
}

/// Whether a host that starts this would start the program that runs now.
fn program(command: String) -> Outcome {
    let real = |path| std::fs::canonicalize(path).ok();
    let own = OwnProgram::find().ok().map(|own| own.path).and_then(real);
    match paths::program(&command).and_then(real) {
        None => Outcome::MissingProgram(command),
        Some(started) if Some(&started) == own.as_ref() => Outcome::Here,
        Some(_) => Outcome::OtherProgram(command),
    }
}
