//! Collects for `gatelet doctor` whether the hosts on this machine use this gatelet.

use doctor::host::{Facts, Outcome};
use hosts::plan::{self, Scope};
use hosts::switched_off::{self, is_switched_off};
use hosts::{HOSTS, Host, Reach};
use serde_json::Value;

use crate::commands::host_files::{Gatelet, LocalHosts, NAME};
use crate::commands::own_program::OwnProgram;
use crate::paths::{self, Paths};

/// The facts about every host on this machine; none without a home directory.
pub(super) fn facts(paths: &Paths) -> Vec<Facts> {
    let (Ok(here), Ok(gatelet)) = (LocalHosts::new(paths), Gatelet::even_damaged(paths)) else {
        return Vec::new();
    };
    let is_here = |host: &&'static Host| host.is_here(&here.environment, &here.disk);
    let fact = |host: &'static Host| Facts {
        id: host.id.to_owned(),
        outcome: outcome(host, &here, &gatelet),
    };
    HOSTS.iter().filter(is_here).map(fact).collect()
}

fn outcome(host: &'static Host, here: &LocalHosts, gatelet: &Gatelet) -> Outcome {
    let files = plan::files(host, &Scope::User, &here.environment, &here.disk);
    let mut all = Vec::new();
    for file in files.unwrap_or_default() {
        match plan::entries(host, &file, &here.disk) {
            Ok(entries) => all.extend(entries),
            Err(refusal) => return Outcome::Unreadable(refusal.to_string()),
        }
    }
    let is_ours = |(name, entry): &&(String, Value)| {
        name == NAME || Reach::from_entry(entry).is_some_and(|reach| gatelet.is_same(&reach))
    };
    let off = switched_off::names(host, &here.environment, &here.disk);
    let is_on = |(name, entry): &&&(String, Value)| {
        !is_switched_off(entry) && !off.contains(&name.to_lowercase())
    };
    let ours: Vec<&(String, Value)> = all.iter().filter(is_ours).collect();
    let Some((_, entry)) = ours.iter().find(is_on) else {
        return if ours.is_empty() { Outcome::Absent } else { Outcome::SwitchedOff };
    };
    match Reach::from_entry(entry) {
        Some(Reach::Program { command, .. }) => program(command),
        Some(Reach::Http { .. }) | None => Outcome::Here,
    }
}

/// Whether `command` of a host's entry is the program that runs now.
fn program(command: String) -> Outcome {
    let real = |path| std::fs::canonicalize(path).ok();
    let own = OwnProgram::find().ok().map(|own| own.path).and_then(real);
    match paths::program(&command).and_then(real) {
        None => Outcome::MissingProgram(command),
        Some(started) if Some(&started) == own.as_ref() => Outcome::Here,
        Some(_) => Outcome::OtherProgram(command),
    }
}
