//! Collects for `gatelet doctor` whether the hosts on this machine use this gatelet.

use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::time::Duration;

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
        outcome: outcome(host, &here, &gatelet, paths),
    };
    HOSTS.iter().filter(is_here).map(fact).collect()
}

fn outcome(host: &'static Host, here: &LocalHosts, gatelet: &Gatelet, paths: &Paths) -> Outcome {
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
    let mut outcomes =
        ours.iter().filter(is_on).map(|(_, entry)| outcome_of(entry, gatelet, paths));
    // One that leads here is enough.
    let Some(first) = outcomes.next() else {
        return if ours.is_empty() { Outcome::Absent } else { Outcome::SwitchedOff };
    };
    let is_here = |outcome: &Outcome| *outcome == Outcome::Here;
    if is_here(&first) { first } else { outcomes.find(is_here).unwrap_or(first) }
}

/// How long gatelet may take to let a connection in, on this machine.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// Where an entry for gatelet leads.
fn outcome_of(entry: &Value, gatelet: &Gatelet, paths: &Paths) -> Outcome {
    let Some(reach) = Reach::from_entry(entry) else { return Outcome::Here };
    let leads_here = gatelet.is_same(&reach);
    match &reach {
        Reach::Http { url, .. } if !leads_here => Outcome::Elsewhere(shown(url)),
        Reach::Http { url, .. } => at_address(url, entry, gatelet),
        Reach::Program { command, args } => {
            // A bridge to our address, such as `mcp-remote`.
            let url = args.iter().find(|word| word.starts_with("http"));
            if let Some(url) = url.filter(|_| leads_here && paths::program(command).is_some()) {
                return at_address(url, entry, gatelet);
            }
            let found = program(command);
            let is_ours = leads_here && has_our_files(entry, args, gatelet, paths);
            if found != Outcome::Here || is_ours {
                return found;
            }
            let words = std::iter::once(command).chain(args);
            Outcome::Elsewhere(words.cloned().collect::<Vec<_>>().join(" "))
        }
    }
}

/// Whether somebody answers at our address, and the entry has the key that is asked for.
fn at_address(url: &str, entry: &Value, gatelet: &Gatelet) -> Outcome {
    let listen = gatelet.config.serve.listen;
    let address = match listen.ip() {
        ip if ip.is_unspecified() => SocketAddr::new(Ipv4Addr::LOCALHOST.into(), listen.port()),
        ip => SocketAddr::new(ip, listen.port()),
    };
    if TcpStream::connect_timeout(&address, CONNECT_TIMEOUT).is_err() {
        return Outcome::DeadAddress(shown(url));
    }
    match gatelet.config.auth.required && !has_key(entry) {
        true => Outcome::NoKey,
        false => Outcome::Here,
    }
}

/// An address without what may be secret in it.
fn shown(url: &str) -> String {
    let Ok(mut url) = reqwest::Url::parse(url) else { return "an address".to_owned() };
    url.set_query(None);
    url.set_fragment(None);
    // Only an address that can have none refuses.
    let _ = (url.set_username(""), url.set_password(None));
    url.to_string()
}

/// Whether an entry says anywhere how its key is sent.
fn has_key(entry: &Value) -> bool {
    let text = entry.to_string().to_lowercase();
    ["authorization", "bearer", "x-api-key", "oauth"].iter().any(|word| text.contains(word))
}

/// Whether the files that an entry names for gatelet are ours; it need not name any.
fn has_our_files(entry: &Value, args: &[String], gatelet: &Gatelet, paths: &Paths) -> bool {
    let environment = ["env", "environment", "envs"].iter().find_map(|key| entry.get(*key));
    let named = |flags: [&str; 2], variable: &str| {
        let mut words = args.iter();
        let mut found = None;
        while let Some(word) = words.next() {
            match word.split_once('=') {
                Some((flag, value)) if flags.contains(&flag) => found = Some(value.to_owned()),
                Some(_) | None if flags.contains(&word.as_str()) => found = words.next().cloned(),
                Some(_) | None => {}
            }
        }
        let value = environment.and_then(|all| all[variable].as_str()).map(str::to_owned);
        found.or(value).map(PathBuf::from)
    };
    let real = |path: PathBuf| std::fs::canonicalize(&path).unwrap_or(path);
    // What a relative path means, only the host knows.
    let is = |named: Option<PathBuf>, own: Option<PathBuf>| {
        named.filter(|path| path.is_absolute()).is_none_or(|named| Some(real(named)) == own)
    };
    let state = paths.state_directory().and_then(|state| Ok(std::path::absolute(state)?)).ok();
    is(named(["--config", "-c"], "GATELET_CONFIG"), Some(real(gatelet.file.clone())))
        && is(named(["--state", "--state"], "GATELET_STATE"), state.map(real))
}

/// Whether `command` of a host's entry is the program that runs now.
fn program(command: &str) -> Outcome {
    let real = |path| std::fs::canonicalize(path).ok();
    let own = OwnProgram::find().ok().map(|own| own.path).and_then(real);
    match paths::program(command).and_then(real) {
        None => Outcome::MissingProgram(command.to_owned()),
        Some(started) if Some(&started) == own.as_ref() => Outcome::Here,
        Some(_) => Outcome::OtherProgram(command.to_owned()),
    }
}
