//! Plans which files change when a server is added to a host or removed from it.
//!
//! Everything here reads through a [`Machine`] and returns values; nothing is written.
//! A server that is listed already, under its name or another, is updated and never
//! added twice.

use std::path::{Path, PathBuf};

use document::edit::{self, EditError};
use document::tree::Node;
use serde_json::{Map, Value};

use crate::HOSTS;
use crate::change::{FileChange, Step, borrowed};
use crate::environment::Environment;
use crate::host::{Host, IfMissing, Layout, REACH_KEYS, Reach};
use crate::machine::Machine;
use crate::switched_off::{self, is_switched_off};

/// The server to add or remove.
pub struct Server<'a> {
    pub name: &'a str,
    /// The ways to reach it, the preferred one first.
    pub reach: &'a [Reach],
    /// Returns whether an existing entry reaches this server, whatever its name.
    pub is_same: &'a dyn Fn(&Reach) -> bool,
}

/// Which files of a host are changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The files of the user.
    User,
    /// The files of the project in this directory.
    Project(PathBuf),
}

/// Why a host's files cannot be changed. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    #[error("{name} is not on this machine (looked for {looked_for})")]
    NotHere { name: &'static str, looked_for: String },
    #[error("{name} has no configuration at `{file}` yet; {remedy}")]
    NoFile { name: &'static str, file: String, remedy: &'static str },
    #[error("{0} has no configuration for single projects; leave out --project")]
    NoProjects(&'static str),
    #[error("cannot read `{file}`: {source}")]
    Unreadable { file: String, source: std::io::Error },
    #[error("`{file}` is not UTF-8 text; mend it first")]
    NotText { file: String },
    #[error("cannot change `{file}`: {source}; nothing was changed, mend the file and try again")]
    Uneditable { file: String, source: EditError },
    #[error("`{file}` is left as it is: {why}")]
    Protected { file: String, why: &'static str },
    #[error("{0} cannot reach a server so")]
    Unreachable(&'static str),
}

impl Refusal {
    /// Returns whether this is an error. It is not when the host is not installed or
    /// does not support the request.
    pub fn is_failure(&self) -> bool {
        match self {
            Refusal::NoFile { .. }
            | Refusal::Unreadable { .. }
            | Refusal::NotText { .. }
            | Refusal::Uneditable { .. }
            | Refusal::Protected { .. } => true,
            Refusal::NotHere { .. } | Refusal::NoProjects(_) | Refusal::Unreachable(_) => false,
        }
    }
}

/// Returns the files of a host in a scope.
pub fn files(
    host: &Host,
    scope: &Scope,
    environment: &Environment,
    machine: &dyn Machine,
) -> Result<Vec<PathBuf>, Refusal> {
    match scope {
        Scope::Project(directory) => {
            let file = host.project.ok_or(Refusal::NoProjects(host.name))?;
            Ok(vec![environment.join(&directory.display().to_string(), file)])
        }
        Scope::User if !host.is_here(environment, machine) => {
            let looked_for = host.detection_hints(environment).join(", ");
            Err(Refusal::NotHere { name: host.name, looked_for })
        }
        Scope::User => Ok(host.files(environment, machine)),
    }
}

/// Plans the changes that add a server to a host.
pub fn install(
    host: &'static Host,
    server: &Server<'_>,
    scope: &Scope,
    environment: &Environment,
    machine: &dyn Machine,
) -> Result<Vec<FileChange>, Refusal> {
    let files = files(host, scope, environment, machine)?;
    let off = switched_off::names(host, environment, machine);
    let changes = files.into_iter().map(|file| install_in(host, server, &file, &off, machine));
    changes.map(|change| check_protection(change?, machine)).collect()
}

/// Refuses a change to a write-protected file.
fn check_protection(change: FileChange, machine: &dyn Machine) -> Result<FileChange, Refusal> {
    match machine.protection(&change.path).filter(|_| !change.is_empty()) {
        Some(why) => Err(Refusal::Protected { file: change.path.display().to_string(), why }),
        None => Ok(change),
    }
}

/// Plans the changes that remove a server from all files of a host.
pub fn uninstall(
    host: &'static Host,
    server: &Server<'_>,
    scope: &Scope,
    environment: &Environment,
    machine: &dyn Machine,
) -> Result<Vec<FileChange>, Refusal> {
    let mut changes = Vec::new();
    for path in files(host, scope, environment, machine)? {
        let Some(file) = File::read(host, &path, machine)? else { continue };
        let change = without_server(file.change(Vec::new(), Vec::new())?, server)?;
        changes.push(check_protection(change, machine)?);
    }
    Ok(changes)
}

/// Extends a change to remove every entry that has the server's name or reaches it.
pub fn without_server(change: FileChange, server: &Server<'_>) -> Result<FileChange, Refusal> {
    let is_it = |name: &str, entry: &Value| {
        name == server.name
            || Reach::from_entry(entry).is_some_and(|reach| (server.is_same)(&reach))
    };
    remove_entries(change, is_it)
}

/// Returns the name and the entry of every server in a file.
pub fn entries(
    host: &'static Host,
    path: &Path,
    machine: &dyn Machine,
) -> Result<Vec<(String, Value)>, Refusal> {
    Ok(File::read(host, path, machine)?.map(|file| file.entries()).unwrap_or_default())
}

/// Returns the name and the entry of every server in a file as a change leaves it.
pub fn entries_after(change: &FileChange) -> Vec<(String, Value)> {
    let host = HOSTS.iter().find(|host| Some(host.id) == change.host);
    let text = change.after.clone().and_then(|bytes| String::from_utf8(bytes).ok());
    let (Some(host), Some(text)) = (host, text) else { return Vec::new() };
    let Ok(root) = document::parse(&text, change.format) else { return Vec::new() };
    let table = edit::find(&root, host.layout(&root).table);
    let members = table.map(Node::members).unwrap_or_default().iter();
    members.map(|member| (member.key.clone(), member.node.to_json())).collect()
}

/// Extends a change to remove other servers from the same file.
pub fn with_removed(change: FileChange, names: &[String]) -> Result<FileChange, Refusal> {
    remove_entries(change, |name, _| names.iter().any(|other| other == name))
}

fn remove_entries(
    change: FileChange,
    is_selected: impl Fn(&str, &Value) -> bool,
) -> Result<FileChange, Refusal> {
    let shown = change.path.display().to_string();
    let host = HOSTS.iter().find(|host| Some(host.id) == change.host);
    let (Some(host), Some(bytes)) = (host, &change.after) else { return Ok(change) };
    let text =
        String::from_utf8(bytes.clone()).map_err(|_| Refusal::NotText { file: shown.clone() })?;
    let refused = |source: EditError| Refusal::Uneditable { file: shown.clone(), source };
    let root = document::parse(&text, change.format).map_err(|error| refused(error.into()))?;
    let table = host.layout(&root).table;
    let members = edit::find(&root, table).map(Node::members).unwrap_or_default();
    let (mut text, mut steps) = (text, change.steps.clone());
    for (at, member) in members.iter().enumerate() {
        let was = member.node.to_json();
        if !is_selected(&member.key, &was) {
            continue;
        }
        let keys = table.iter().copied().chain([member.key.as_str()]).map(str::to_owned).collect();
        let preceding = Some(members[..at].iter().map(|before| before.key.clone()).collect());
        let step = Step::Removed { keys, was, preceding, source: None };
        let (step, changed) = step.applied(&text, change.format).map_err(refused)?;
        text = changed;
        steps.push(step);
    }
    if steps.len() == change.steps.len() {
        return Ok(change);
    }
    Ok(FileChange { after: Some(text.into_bytes()), steps, ..change })
}

fn install_in(
    host: &'static Host,
    server: &Server<'_>,
    path: &Path,
    off: &[String],
    machine: &dyn Machine,
) -> Result<FileChange, Refusal> {
    let found = File::read(host, path, machine)?;
    if let (None, IfMissing::Refuse(remedy)) = (&found, host.if_missing) {
        let file = path.display().to_string();
        return Err(Refusal::NoFile { name: host.name, file, remedy });
    }
    let file = found.unwrap_or_else(|| File::missing(host, path));
    let entry = server.reach.iter().find_map(|reach| host.entry(file.layout, reach));
    let entry = entry.ok_or(Refusal::Unreachable(host.name))?;
    let mut notes = Vec::new();
    if let Some(first) = server.reach.first() {
        notes.extend(connection_note(host, file.layout, first));
    }
    notes.extend(file.allow_list_note(server.name));
    let same = file.entries_of(server);
    let named = file.entries().into_iter().find(|(name, _)| name == server.name);
    let place = named.or_else(|| same.first().cloned());
    for (name, _) in
        same.iter().filter(|(name, _)| Some(name) != place.as_ref().map(|(name, _)| name))
    {
        notes
            .push(format!("`{name}` leads to the same place; without it the tools are there once"));
    }
    let name = place.as_ref().map_or(server.name, |(name, _)| name);
    let is_off = place.as_ref().is_some_and(|(_, was)| is_switched_off(was));
    if is_off || off.contains(&name.to_lowercase()) {
        let host = host.name;
        notes.push(format!("`{name}` is switched off there and stays so: switch it on in {host}"));
    }
    let step = match place {
        None => {
            let keys = file.keys(server.name);
            let n_made = file.n_tables_to_create(&keys, &entry)?;
            Step::Added { keys, value: entry, n_made }
        }
        Some((name, was)) => {
            let value = merge_entry(&was, entry);
            Step::Replaced { keys: file.keys(&name), value, was, source: None }
        }
    };
    let is_new = !matches!(&step, Step::Replaced { was, value, .. } if was == value);
    file.change(is_new.then_some(step).into_iter().collect(), notes)
}

/// Returns a remark when the preferred way to reach the server needs an environment
/// variable, or is not supported so that another one was used.
fn connection_note(host: &Host, layout: &Layout, first: &Reach) -> Option<String> {
    let name = host.name;
    let key = match first {
        Reach::Http { key_variable, .. } => key_variable.as_deref(),
        Reach::Program { .. } => None,
    };
    let is_possible = host.entry(layout, first).is_some();
    match (is_possible, key) {
        (true, None) => None,
        (true, Some(variable)) => {
            Some(format!("{name} sends the key in its environment variable `{variable}`"))
        }
        (false, Some(variable)) if (layout.entry)(first).is_some() => Some(format!(
            "{name} cannot take a key from the variable `{variable}`, so it gets the command"
        )),
        (false, _) => Some(format!("{name} starts programs only, so it gets the command")),
    }
}

/// Returns the new entry with the settings that the user added to the old one, `was`.
fn merge_entry(was: &Value, entry: Value) -> Value {
    let (Value::Object(was), Value::Object(mut entry)) = (was, entry.clone()) else { return entry };
    let is_kept = |key: &&String| !REACH_KEYS.contains(&key.as_str());
    let mut all: Map<String, Value> = Map::new();
    for (key, value) in was {
        match entry.shift_remove(key) {
            // Settings that the user has changed stay.
            Some(_) if is_kept(&key) => drop(all.insert(key.clone(), value.clone())),
            Some(new) => drop(all.insert(key.clone(), new)),
            None if is_kept(&key) => drop(all.insert(key.clone(), value.clone())),
            None => {}
        }
    }
    all.extend(entry);
    Value::Object(all)
}

/// A host's file with its contents.
struct File {
    host: &'static Host,
    path: PathBuf,
    before: Option<Vec<u8>>,
    text: String,
    root: Node,
    layout: &'static Layout,
}

impl File {
    fn read(
        host: &'static Host,
        path: &Path,
        machine: &dyn Machine,
    ) -> Result<Option<File>, Refusal> {
        let shown = || path.display().to_string();
        let bytes = machine.read(path);
        let bytes = bytes.map_err(|source| Refusal::Unreadable { file: shown(), source })?;
        let Some(bytes) = bytes else { return Ok(None) };
        let text =
            String::from_utf8(bytes.clone()).map_err(|_| Refusal::NotText { file: shown() })?;
        let root = document::parse(&text, host.format)
            .map_err(|error| Refusal::Uneditable { file: shown(), source: error.into() })?;
        let layout = host.layout(&root);
        Ok(Some(File { host, path: path.to_owned(), before: Some(bytes), text, root, layout }))
    }

    fn missing(host: &'static Host, path: &Path) -> File {
        let root = Node { span: 0..0, value: document::tree::Value::Table(Vec::new()) };
        let layout = host.layout(&root);
        File { host, path: path.to_owned(), before: None, text: String::new(), root, layout }
    }

    /// Returns the path of a server's entry.
    fn keys(&self, name: &str) -> Vec<String> {
        self.layout.table.iter().copied().chain([name]).map(str::to_owned).collect()
    }

    fn entries(&self) -> Vec<(String, Value)> {
        let table = edit::find(&self.root, self.layout.table);
        let members = table.map(Node::members).unwrap_or_default().iter();
        members.map(|member| (member.key.clone(), member.node.to_json())).collect()
    }

    /// Returns the entries that reach the server.
    fn entries_of(&self, server: &Server<'_>) -> Vec<(String, Value)> {
        let is_same =
            |entry: &Value| Reach::from_entry(entry).is_some_and(|reach| (server.is_same)(&reach));
        self.entries().into_iter().filter(|(_, entry)| is_same(entry)).collect()
    }

    /// Returns a remark when the host's allow list does not name the server.
    fn allow_list_note(&self, name: &str) -> Option<String> {
        let keys = self.host.allowed?;
        let list = edit::find(&self.root, keys)?;
        let is_named = list.items().iter().any(|item| item.text() == Some(name));
        let keys = keys.join(".");
        (!is_named)
            .then(|| format!("add `{name}` to `{keys}`, or {} leaves it out", self.host.name))
    }

    /// Returns how many tables have to be created for an entry.
    fn n_tables_to_create(&self, keys: &[String], entry: &Value) -> Result<usize, Refusal> {
        let edited = edit::set(&self.text, self.host.format, &borrowed(keys), entry);
        edited.map(|edited| edited.n_created).map_err(|source| self.refused(source))
    }

    fn change(self, steps: Vec<Step>, notes: Vec<String>) -> Result<FileChange, Refusal> {
        let mut text = self.text.clone();
        let mut done = Vec::new();
        for step in steps {
            let applied = step.applied(&text, self.host.format);
            let (step, changed) = applied.map_err(|source| self.refused(source))?;
            text = changed;
            done.push(step);
        }
        let steps = done;
        let after = if steps.is_empty() { self.before.clone() } else { Some(text.into_bytes()) };
        let File { host, path, before, .. } = self;
        Ok(FileChange {
            host: Some(host.id),
            path,
            format: host.format,
            before,
            after,
            steps,
            private: false,
            notes,
        })
    }

    fn refused(&self, source: EditError) -> Refusal {
        Refusal::Uneditable { file: self.path.display().to_string(), source }
    }
}
