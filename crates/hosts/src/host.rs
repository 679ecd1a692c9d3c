//! The description of one host (a program that uses MCP servers): how it is detected,
//! which files it reads, and what an entry for a server looks like there.

use std::collections::BTreeMap;
use std::path::PathBuf;

use document::Format;
use document::tree::Node;
use serde_json::{Map, Value, json};

use crate::environment::{Environment, Platform};
use crate::machine::Machine;

/// A program that uses MCP servers.
#[derive(Clone, Copy, Debug)]
pub struct Host {
    /// Its name on gatelet's command line.
    pub id: &'static str,
    /// Its product name.
    pub name: &'static str,
    /// Programs that show that it is installed.
    pub programs: &'static [&'static str],
    pub locations: LocationsByPlatform,
    pub file_choice: FileChoice,
    /// The file for a single project, relative to the project's directory.
    pub project: Option<&'static str>,
    pub format: Format,
    /// The first layout that fits a file is used; the last fits every file.
    pub layouts: &'static [Layout],
    pub if_missing: IfMissing,
    /// The keys of an allow list; if the file has the list, it must name the server.
    pub allowed: Option<&'static [&'static str]>,
    /// The file in which the host itself notes which servers are switched off, as
    /// `{"NAME": {"enabled": false}}`.
    pub switches: Option<&'static str>,
    /// Puts the name of an environment variable into an entry, whose value the host
    /// sends as a bearer token; `None` when the host's files have no way to say so.
    pub bearer: Option<fn(&mut Value, &str)>,
    /// How the user makes it load a change, in words.
    pub reload: &'static str,
}

/// Where a host's files are, by platform.
#[derive(Clone, Copy, Debug)]
pub struct LocationsByPlatform {
    pub linux: &'static [ConfigLocation],
    pub macos: &'static [ConfigLocation],
    pub windows: &'static [ConfigLocation],
}

impl LocationsByPlatform {
    pub const fn everywhere(locations: &'static [ConfigLocation]) -> LocationsByPlatform {
        LocationsByPlatform { linux: locations, macos: locations, windows: locations }
    }

    pub fn on(&self, platform: Platform) -> &'static [ConfigLocation] {
        match platform {
            Platform::Linux => self.linux,
            Platform::MacOs => self.macos,
            Platform::Windows => self.windows,
        }
    }
}

/// A configuration file, and a path whose existence shows that the host reads that file.
/// `*` stands for any name.
#[derive(Clone, Copy, Debug)]
pub struct ConfigLocation {
    pub marker: &'static str,
    pub file: &'static str,
}

/// Which of several files are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileChoice {
    /// The first that exists, else the first whose marker exists.
    First,
    /// All that exist, or whose markers exist.
    Every,
}

/// What to do when a host has no file yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IfMissing {
    Create,
    /// Only the host can create the file; the text tells the user what to do.
    Refuse(&'static str),
}

/// Where a file lists servers, and what an entry looks like.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// The path that must exist for this layout; empty when it fits every file.
    pub when: &'static [&'static str],
    /// The path of the table of servers.
    pub table: &'static [&'static str],
    /// Builds an entry; `None` when the host does not support this way to reach a server.
    pub entry: fn(&Reach) -> Option<Value>,
}

/// How a server is reached: a program to start, or a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    Program {
        command: String,
        args: Vec<String>,
    },
    Http {
        url: String,
        headers: BTreeMap<String, String>,
        /// The environment variable of the host that holds the API key.
        key_variable: Option<String>,
    },
}

/// The keys of an entry that say how a server is reached, over all hosts.
pub(crate) const REACH_KEYS: &[&str] = &[
    "command",
    "args",
    "cmd",
    "url",
    "httpUrl",
    "serverUrl",
    "uri",
    "type",
    "transport",
    "transportType",
];

impl Reach {
    /// Parses an entry of any host.
    pub fn from_entry(entry: &Value) -> Option<Reach> {
        let text = |key: &str| entry.get(key).and_then(Value::as_str).map(str::to_owned);
        let texts = |value: &Value| -> Vec<String> {
            let items = value.as_array().into_iter().flatten();
            items.filter_map(Value::as_str).map(str::to_owned).collect()
        };
        if let Some(url) = ["httpUrl", "url", "serverUrl", "uri"].iter().find_map(|key| text(key)) {
            return Some(Reach::Http { url, headers: BTreeMap::new(), key_variable: None });
        }
        let written = entry.get("command").or_else(|| entry.get("cmd"))?;
        let mut args = entry.get("args").map(texts).unwrap_or_default();
        let command = match written {
            Value::String(command) => command.clone(),
            Value::Array(_) => {
                let mut words = texts(written).into_iter();
                let command = words.next()?;
                args.splice(0..0, words);
                command
            }
            Value::Object(inner) => {
                args.splice(0..0, inner.get("args").map(texts).unwrap_or_default());
                inner.get("path")?.as_str()?.to_owned()
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => return None,
        };
        Some(Reach::Program { command, args })
    }
}

impl Host {
    /// Builds an entry; `None` when the host does not support this way to reach a server.
    pub fn entry(&self, layout: &Layout, reach: &Reach) -> Option<Value> {
        let mut entry = (layout.entry)(reach)?;
        if let Reach::Http { key_variable: Some(name), .. } = reach {
            self.bearer?(&mut entry, name);
        }
        Some(entry)
    }

    /// Returns whether the host is installed on this machine.
    pub fn is_here(&self, environment: &Environment, machine: &dyn Machine) -> bool {
        self.programs.iter().any(|program| machine.has_program(program))
            || !self.found_files(environment, machine).is_empty()
    }

    /// Returns the user's files that the host reads, whether they exist or not.
    pub fn files(&self, environment: &Environment, machine: &dyn Machine) -> Vec<PathBuf> {
        let found = self.found_files(environment, machine);
        let files: Vec<PathBuf> = match self.file_choice {
            FileChoice::Every => found,
            FileChoice::First => {
                let there = found.iter().find(|file| machine.exists(file)).cloned();
                there.or_else(|| found.first().cloned()).into_iter().collect()
            }
        };
        if !files.is_empty() {
            return files;
        }
        let usual = self.locations.on(environment.platform).iter().map(|location| location.file);
        let usual = usual.filter(|file| !file.contains('*')).take(1);
        usual.map(|file| environment.expand(file)).collect()
    }

    /// Returns the files that exist or whose markers exist.
    fn found_files(&self, environment: &Environment, machine: &dyn Machine) -> Vec<PathBuf> {
        let mut files: Vec<PathBuf> = Vec::new();
        for location in self.locations.on(environment.platform) {
            let whole = expand(location.file, environment, machine);
            let markers = expand(location.marker, environment, machine);
            let has_marker = markers.iter().any(|marker| machine.exists(marker));
            let is_found = |file: &PathBuf| machine.exists(file) || has_marker;
            for file in whole.into_iter().filter(is_found) {
                if !files.contains(&file) {
                    files.push(file);
                }
            }
        }
        files
    }

    /// Returns the paths and programs by which the host is detected, for a message.
    pub fn detection_hints(&self, environment: &Environment) -> Vec<String> {
        let locations = self.locations.on(environment.platform).iter();
        let mut hints: Vec<String> = locations
            .map(|location| environment.expand(location.marker).display().to_string())
            .collect();
        hints.dedup();
        hints.extend(self.programs.iter().map(|program| format!("the program `{program}`")));
        hints
    }

    /// Returns the layout that fits a file.
    pub fn layout(&self, root: &Node) -> &'static Layout {
        let fits = |layout: &&Layout| {
            let found = document::edit::find(root, layout.when);
            layout.when.is_empty() || found.is_some_and(|node| !node.members().is_empty())
        };
        let last = self.layouts.last().expect("every host has a layout");
        self.layouts.iter().find(fits).unwrap_or(last)
    }
}

/// Expands a template to paths; one with `*` to every existing name that matches.
fn expand(template: &str, environment: &Environment, machine: &dyn Machine) -> Vec<PathBuf> {
    let Some((before, after)) = template.split_once('*') else {
        return vec![environment.expand(template)];
    };
    let (directory, start) = before.rsplit_once('/').unwrap_or(("", before));
    let (end, below) =
        after.split_once('/').map_or((after, None), |(end, below)| (end, Some(below)));
    let directory = environment.expand(directory);
    let fits = |name: &String| name.starts_with(start) && name.ends_with(end);
    let names = machine.names_in(&directory).into_iter().filter(fits);
    let shown = directory.display().to_string();
    let path = |name: String| match below {
        Some(below) => environment.join(&shown, &format!("{name}/{below}")),
        None => environment.join(&shown, &name),
    };
    names.map(path).collect()
}

/// Builds `{"command", "args"}` with the members of `program_extra`, or
/// `{url_key: url, "headers"}` with the members of `http_extra`.
pub(crate) fn entry(
    reach: &Reach,
    program_extra: Value,
    url_key: &str,
    http_extra: Value,
) -> Value {
    let mut members = Map::new();
    let extend = |members: &mut Map<String, Value>, more: Value| {
        if let Value::Object(more) = more {
            members.extend(more);
        }
    };
    match reach {
        Reach::Program { command, args } => {
            extend(&mut members, program_extra);
            members.insert("command".to_owned(), json!(command));
            members.insert("args".to_owned(), json!(args));
        }
        Reach::Http { url, headers, .. } => {
            extend(&mut members, http_extra);
            members.insert(url_key.to_owned(), json!(url));
            if !headers.is_empty() {
                members.insert("headers".to_owned(), json!(headers));
            }
        }
    }
    Value::Object(members)
}
