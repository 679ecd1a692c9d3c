//! `gatelet install --adopt`: a host's own servers become upstreams, and only
//! gatelet stays in the host's file.
//!
//! A server that needs something only its host has ([`host_bound`]) stays there, and so do
//! all servers of a host that has gatelet switched off. What is switched off stays so.
//! Plain secrets become references in gatelet's configuration, and are stored once the
//! person has agreed.

use std::path::Path;

use hosts::change::{FileChange, Step};
use hosts::plan::{self, Scope};
use hosts::switched_off::{self, is_switched_off};
use hosts::{Host, Machine, Reach};
use serde_json::Value;

use super::super::host_files::{Gatelet, LocalHosts, NAME};
use super::super::init::TEMPLATE;
use super::super::plain_secrets;
use super::host_bound::{denial_beside, denial_in_file, needed_of_host};
use super::own_file::own_file;
use crate::exit::CliError;
use crate::secrets::Secrets;
use crate::terminal::{WARNING, foreign_line, paint, say};
use config::edit::{self, Edit, EditError};
use config::foreign::assign_unique_labels;
use config::{RawUpstream, SourceFile, UpstreamEntry};

/// The planned changes of an adoption, and the secrets to store before them.
pub(super) struct Adopted {
    /// The change of gatelet's own configuration, then those of the hosts' files.
    pub(super) changes: Vec<FileChange>,
    /// Names and values.
    pub(super) secrets: Vec<(String, String)>,
}

/// What happens to plain secrets of adopted servers.
pub(super) enum PlainSecrets<'a> {
    /// They are moved to this store.
    Move(&'a Secrets),
    /// They stay in the entries.
    Keep,
}

/// Adds to the changes of hosts' files that their servers move to gatelet's configuration.
pub(super) fn adopt_servers(
    changes: Vec<FileChange>,
    here: &LocalHosts,
    gatelet: &Gatelet,
    scope: &Scope,
    plain: &PlainSecrets<'_>,
) -> anyhow::Result<Adopted> {
    let file = &gatelet.file;
    let (before, text) = own_text(here, file)?;
    let name = file.display().to_string();
    let known = edit::upstreams(&name, &text).map_err(edit_error)?;
    let n_known = known.len();
    let all = known.into_iter().map(|raw| with_secrets(raw, plain)).collect();
    let mut adoption = Adoption { here, gatelet, scope, all, n_known };
    let mut moved = Vec::new();
    for change in changes {
        let names = adoption.add_servers(&change)?;
        moved.push(
            plan::with_removed(change, &names).map_err(|why| CliError::Usage(why.to_string()))?,
        );
    }
    let new = adoption.all.drain(n_known..);
    let mut new: Vec<RawUpstream> = new.map(|entry| entry.raw).collect();
    let secrets = match plain {
        PlainSecrets::Move(_) => {
            new.iter_mut().flat_map(plain_secrets::replace_by_references).collect()
        }
        PlainSecrets::Keep => Vec::new(),
    };
    let mut own = with_upstreams(before, &text, &new, file)?;
    own.notes.extend(renamed_builtin(&own, file));
    moved.insert(0, own);
    Ok(Adopted { changes: moved, secrets })
}

/// The bytes of the configuration `file`, if it exists, and its text or that of a new one.
fn own_text(here: &LocalHosts, file: &Path) -> anyhow::Result<(Option<Vec<u8>>, String)> {
    let before = here.disk.read(file)?;
    let not_text = |_| CliError::Usage(format!("`{}` is not UTF-8 text", file.display()));
    let text = match &before {
        Some(bytes) => String::from_utf8(bytes.clone()).map_err(not_text)?,
        None => TEMPLATE.to_owned(),
    };
    Ok((before, text))
}

/// An upstream of the configuration with its secrets in place of references, to compare it
/// with an entry whose secrets are plain.
fn with_secrets(mut raw: RawUpstream, plain: &PlainSecrets<'_>) -> UpstreamEntry {
    if let PlainSecrets::Move(store) = plain {
        for value in raw.env.values_mut().chain(raw.headers.values_mut()) {
            *value = with_secrets_of(value, &|name| store.get(name).ok());
        }
    }
    UpstreamEntry { path: document::tree::Path::default(), raw }
}

/// A value with the secrets in place of its `${keyring:NAME}`, as a file would have them as
/// plain text. One that is not known stays a reference.
fn with_secrets_of(value: &str, secret: &dyn Fn(&str) -> Option<String>) -> String {
    let (mut filled, mut rest) = (String::new(), value);
    while let Some(at) = rest.find("${keyring:") {
        let (before, reference) = rest.split_at(at);
        filled.push_str(before);
        let name = reference.find('}').map(|end| &reference["${keyring:".len()..end]);
        // `$${` is a text, and no reference.
        let found =
            name.filter(|_| !before.ends_with('$')).and_then(|name| Some((name, secret(name)?)));
        rest = match found {
            Some((name, secret)) => {
                filled.push_str(&secret.replace("${", "$${"));
                &reference["${keyring:".len() + name.len() + 1..]
            }
            None => {
                filled.push_str("${");
                &reference[2..]
            }
        };
    }
    filled + rest
}

/// The upstreams that there are, and those that are found in hosts' files.
struct Adoption<'a> {
    here: &'a LocalHosts,
    gatelet: &'a Gatelet,
    scope: &'a Scope,
    all: Vec<UpstreamEntry>,
    /// How many of them the configuration has already.
    n_known: usize,
}

impl Adoption<'_> {
    /// Adds the servers of a host's file that can be adopted. Returns their names there, which
    /// are to be removed.
    fn add_servers(&mut self, change: &FileChange) -> anyhow::Result<Vec<String>> {
        let (Some(before), Some(host)) = (&change.before, change.host.and_then(Host::named)) else {
            return Ok(Vec::new());
        };
        let off = switched_off::names(host, &self.here.environment, &self.here.disk);
        let is_off = |(name, entry): &(String, Value)| {
            is_switched_off(entry) || off.contains(&name.to_lowercase())
        };
        let after = plan::entries_after(change);
        let ours: Vec<_> = after.into_iter().filter(|entry| self.is_gatelet(entry)).collect();
        if !ours.is_empty() && ours.iter().all(is_off) {
            let why = format!(
                "{} has gatelet switched off, so its servers stay where they are: switch it on there first",
                host.name
            );
            say(&paint(WARNING, why));
            return Ok(Vec::new());
        }
        let text = String::from_utf8(before.clone()).unwrap_or_default();
        let root = document::parse(&text, change.format)?.to_json();
        let name = change.path.display().to_string();
        let base = change.path.parent().unwrap_or(Path::new("/"));
        let (found, mut problems) = match config::import(SourceFile { name, text }, base) {
            Ok(found) => found,
            // A file without servers has none to move.
            Err(config::LoadError::NoServers(_)) => return Ok(Vec::new()),
            Err(error) => return Err(error.into()),
        };
        let mut names = Vec::new();
        for mut entry in found {
            let keys = entry.path.keys();
            let Some(name) = keys.last().cloned() else { continue };
            let written = keys.iter().try_fold(&root, |value, key| value.get(key));
            let Some(written) = written.filter(|written| !self.reaches_gatelet(written)) else {
                continue;
            };
            let denial = denial_in_file(&root, &name)
                .map(|key| format!("`{key}` of that file"))
                .or_else(|| denial_beside(host, &name, self.scope, self.here));
            let denial =
                denial.map(|place| format!("the host to keep models from its tools ({place})"));
            if let Some(what) = denial.or_else(|| needed_of_host(written, &entry.raw, self.scope)) {
                let is_replaced = ours.iter().any(|(own, _)| *own == name);
                let name = foreign_line(&name);
                if is_replaced {
                    let file = change.path.display();
                    let why = format!(
                        "`{name}` in {file} is another server, which needs {what}: give it another name there first"
                    );
                    return Err(CliError::Usage(why).into());
                }
                say(&paint(WARNING, format!("`{name}` stays in the host's file: it needs {what}")));
                continue;
            }
            entry.raw.disabled |= off.contains(&name.to_lowercase());
            if let (Scope::Project(directory), Some(_)) = (self.scope, &entry.raw.command) {
                // Where the host would start it.
                entry.raw.cwd.get_or_insert_with(|| directory.clone());
            }
            // The place of a server that was called as ours is taken by our entry.
            if ours.iter().all(|(own, _)| *own != name) {
                names.push(name);
            }
            self.add(entry);
        }
        self.all = assign_unique_labels(std::mem::take(&mut self.all), &mut problems);
        if !problems.is_empty() {
            say(&problems.to_string());
        }
        Ok(names)
    }

    /// Adds a server unless it is there. One that any of the hosts uses is switched on; what the
    /// configuration says about one that it has stays.
    fn add(&mut self, entry: UpstreamEntry) {
        let known = self.all.iter_mut().enumerate();
        let same = known.into_iter().find(|(_, other)| is_same_server(other, &entry));
        match same {
            None => self.all.push(entry),
            Some((at, other)) if at < self.n_known => {
                if other.raw.disabled && !entry.raw.disabled {
                    let label = other.raw.label.as_deref().unwrap_or_default();
                    say(&paint(
                        WARNING,
                        format!(
                            "`{label}` is there and switched off; `gatelet enable {label}` switches it on"
                        ),
                    ));
                }
            }
            Some((_, other)) => other.raw.disabled &= entry.raw.disabled,
        }
    }

    fn is_gatelet(&self, (name, entry): &(String, Value)) -> bool {
        name == NAME || self.reaches_gatelet(entry)
    }

    fn reaches_gatelet(&self, entry: &Value) -> bool {
        Reach::from_entry(entry).is_some_and(|reach| self.gatelet.is_same(&reach))
    }
}

/// Whether two entries reach the same server in the same way, by any name.
fn is_same_server(one: &UpstreamEntry, other: &UpstreamEntry) -> bool {
    let nameless =
        |entry: &UpstreamEntry| RawUpstream { label: None, disabled: false, ..entry.raw.clone() };
    nameless(one) == nameless(other)
}

/// Remarks about built-in namespaces whose names are taken by upstreams now.
fn renamed_builtin(own: &FileChange, file: &Path) -> Vec<String> {
    let text = |bytes: &Option<Vec<u8>>| {
        bytes.as_ref().map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    };
    let labels = |text: Option<String>| {
        let source = SourceFile { name: file.display().to_string(), text: text? };
        let base = file.parent().unwrap_or(Path::new("/"));
        let (config, _) = config::parse(source, base, &config::ProcessEnvironment).ok()?;
        Some(config.builtin_labels())
    };
    let before = labels(text(&own.before).or_else(|| Some(TEMPLATE.to_owned())));
    let after = labels(text(&own.after)).unwrap_or_default();
    let pairs = before.unwrap_or_default().into_iter().zip(after);
    let changed = pairs.filter(|((before, _), (after, _))| before != after);
    changed
        .map(|((before, _), (after, _))| {
            format!("`{before}` is the upstream; the built-in namespace of that name is `{after}`")
        })
        .collect()
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
        whole = edit::apply(&name, &whole, &Edit::Add(raw)).map_err(edit_error)?;
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

fn edit_error(why: EditError) -> anyhow::Error {
    match why {
        EditError::Wrong(problems) => anyhow::Error::new(*problems),
        EditError::Foreign(_)
        | EditError::Taken(_)
        | EditError::Unknown { .. }
        | EditError::Unsafe { .. } => CliError::Usage(why.to_string()).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::with_secrets_of;

    #[test]
    fn every_reference_of_a_value_is_filled_in_wherever_it_stands() {
        let secret = |name: &str| match name {
            "user" => Some("ann".to_owned()),
            "odd" => Some("a${b}".to_owned()),
            _ => None,
        };
        for (value, expected) in [
            ("Bearer ${keyring:user}", "Bearer ann"),
            ("${keyring:user}:${keyring:user}@host", "ann:ann@host"),
            ("${keyring:odd}", "a$${b}"),
            ("x${keyring:none}y${keyring:user}", "x${keyring:none}yann"),
            ("$${keyring:user}", "$${keyring:user}"),
            ("${keyring:user", "${keyring:user"),
        ] {
            assert_eq!(with_secrets_of(value, &secret), expected);
        }
    }
}
