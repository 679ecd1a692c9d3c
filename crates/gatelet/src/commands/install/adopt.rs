//! `gatelet install --adopt`: a host's own servers become upstreams, and only
//! gatelet stays in the host's file.
//!
//! A server that works only with what its host knows (an input that the host asks
//! for, a secret in its keyring) stays where it is. Plain secrets are named in our
//! own file and kept in the secret store once somebody has agreed.

use std::path::Path;

use hosts::Machine;
use hosts::change::{FileChange, Step};
use hosts::plan;
use serde_json::Value;

use super::super::host_files::Here;
use super::super::init::START;
use super::super::plain_secrets;
use super::own_file::own_file;
use crate::exit::CliError;
use crate::secrets::Secrets;
use crate::terminal::{WARNING, paint, say};
use config::edit::{self, Edit, Unedited};
use config::foreign::relabel;
use config::{Entry, RawUpstream, Source};

/// What is to be done, and the secrets to keep before it is.
pub(super) struct Adopted {
    /// The change to our own file comes first.
    pub(super) changes: Vec<FileChange>,
    pub(super) secrets: Vec<(String, String)>,
}

/// What becomes of plain secrets.
pub(super) enum PlainSecrets<'a> {
    Move(&'a Secrets),
    Keep,
}

/// The changes with the hosts' servers moved behind gatelet.
pub(super) fn behind(
    changes: Vec<FileChange>,
    here: &Here,
    file: &Path,
    plain: &PlainSecrets<'_>,
) -> anyhow::Result<Adopted> {
    let (before, text) = own_text(here, file)?;
    let name = file.display().to_string();
    let known = edit::all(&name, &text).map_err(refused)?;
    let n_known = known.len();
    let mut all: Vec<Entry> = known.into_iter().map(|raw| revealed(raw, plain)).collect();
    let mut moved = Vec::new();
    for change in changes {
        let names = take(&change, &mut all)?;
        moved.push(
            plan::with_removed(change, &names).map_err(|why| CliError::Usage(why.to_string()))?,
        );
    }
    let mut new: Vec<RawUpstream> = all.drain(n_known..).map(|entry| entry.raw).collect();
    let secrets = match plain {
        PlainSecrets::Move(_) => new.iter_mut().flat_map(plain_secrets::name_in).collect(),
        PlainSecrets::Keep => Vec::new(),
    };
    moved.insert(0, with_upstreams(before, &text, &new, file)?);
    Ok(Adopted { changes: moved, secrets })
}

/// What is in our own file; what a new one begins with when there is none.
fn own_text(here: &Here, file: &Path) -> anyhow::Result<(Option<Vec<u8>>, String)> {
    let before = here.disk.read(file)?;
    let not_text = |_| CliError::Usage(format!("`{}` is not UTF-8 text", file.display()));
    let text = match &before {
        Some(bytes) => String::from_utf8(bytes.clone()).map_err(not_text)?,
        None => START.to_owned(),
    };
    Ok((before, text))
}

/// An upstream of ours with the secrets that stand for names in it, so that it
/// can be compared with one whose secrets are plain.
fn revealed(mut raw: RawUpstream, plain: &PlainSecrets<'_>) -> Entry {
    if let PlainSecrets::Move(store) = plain {
        for value in raw.env.values_mut().chain(raw.headers.values_mut()) {
            let Some((before, rest)) = value.split_once("${keyring:") else { continue };
            let secret = rest.strip_suffix('}').and_then(|name| store.get(name).ok());
            if let Some(secret) = secret {
                *value = format!("{before}{}", secret.replace("${", "$${"));
            }
        }
    }
    Entry { path: document::tree::Path::default(), raw }
}

/// Adds the servers of a host's file that can stand behind gatelet to the others;
/// their names in that file.
fn take(change: &FileChange, all: &mut Vec<Entry>) -> anyhow::Result<Vec<String>> {
    let Some(before) = &change.before else { return Ok(Vec::new()) };
    let text = String::from_utf8(before.clone()).unwrap_or_default();
    let root = document::read(&text, change.format)?.to_json();
    let name = change.path.display().to_string();
    let base = change.path.parent().unwrap_or(Path::new("/"));
    let (found, mut problems) = match config::import(Source { name, text }, base) {
        Ok(found) => found,
        // A file without servers has none to move.
        Err(config::LoadError::NoServers(_)) => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    };
    let mut names = Vec::new();
    for entry in found {
        let keys = entry.path.keys();
        let Some(name) = keys.last().cloned() else { continue };
        let written = keys.iter().try_fold(&root, |value, key| value.get(key));
        if let Some(what) = written.and_then(needed_of_host) {
            say(&paint(WARNING, format!("`{name}` stays in the host's file: it needs {what}")));
            continue;
        }
        names.push(name);
        if !all.iter().any(|other| is_same_server(other, &entry)) {
            all.push(entry);
        }
    }
    *all = relabel(std::mem::take(all), &mut problems);
    if !problems.is_empty() {
        say(&problems.to_string());
    }
    Ok(names)
}

/// What only the host can give to a server.
fn needed_of_host(entry: &Value) -> Option<&'static str> {
    let has_keys = entry["env_keys"].as_array().is_some_and(|keys| !keys.is_empty());
    match entry.to_string().contains("${input:") {
        true => Some("an input that the host asks for"),
        false => has_keys.then_some("a secret that the host keeps"),
    }
}

/// Whether two entries reach the same server in the same way, by any name.
fn is_same_server(one: &Entry, other: &Entry) -> bool {
    let nameless = |entry: &Entry| RawUpstream { label: None, ..entry.raw.clone() };
    nameless(one) == nameless(other)
}

/// Our own file with more upstreams at its end.
fn with_upstreams(
    before: Option<Vec<u8>>,
    text: &str,
    new: &[RawUpstream],
    file: &Path,
) -> anyhow::Result<FileChange> {
    let name = file.display().to_string();
    let mut whole = text.to_owned();
    for raw in new {
        whole = edit::apply(&name, &whole, &Edit::Add(raw)).map_err(refused)?;
    }
    let labels: Vec<&str> = new.iter().filter_map(|raw| raw.label.as_deref()).collect();
    let about = format!("upstreams {}", labels.join(", "));
    let added = whole.strip_prefix(text).filter(|added| !added.is_empty());
    let steps = added.map(|text| Step::Appended { text: text.to_owned(), about });
    let mut notes = if before.is_none() { own_file(file, String::new()).notes } else { Vec::new() };
    if new.iter().any(|raw| raw.command.is_some()) {
        notes.push(
            "programs get PATH, HOME and the like and what stands in `env`; `inherit_env = true` \
             passes everything on"
                .to_owned(),
        );
    }
    let steps = steps.into_iter().collect();
    Ok(FileChange { before, steps, notes, ..own_file(file, whole) })
}

fn refused(why: Unedited) -> anyhow::Error {
    match why {
        Unedited::Wrong(problems) => anyhow::Error::new(*problems),
        Unedited::Foreign(_)
        | Unedited::Taken(_)
        | Unedited::Unknown { .. }
        | Unedited::Unsafe { .. } => CliError::Usage(why.to_string()).into(),
    }
}
