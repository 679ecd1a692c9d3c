//! One host: how it is recognised, what it reads, and how an entry looks there.

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
    /// What it is called on the command line.
    pub id: &'static str,
    /// What its makers call it.
    pub name: &'static str,
    /// Programs that show that it is installed.
    pub programs: &'static [&'static str],
    pub places: Places,
    pub choice: Choice,
    /// The file of a project, below its directory.
    pub project: Option<&'static str>,
    pub format: Format,
    /// The first that fits the file counts; the last fits every file.
    pub layouts: &'static [Layout],
    pub if_missing: IfMissing,
    /// The keys of a list that must name a server, where the list is there.
    pub allowed: Option<&'static [&'static str]>,
    /// Puts the name of an environment variable into an entry, whose value the host
    /// sends as a bearer token; `None` when the host's files have no way to say so.
    pub bearer: Option<fn(&mut Value, &str)>,
    /// How it takes up a change.
    pub reload: &'static str,
}

/// Where a host's files are, by platform.
#[derive(Clone, Copy, Debug)]
pub struct Places {
    pub linux: &'static [Place],
    pub macos: &'static [Place],
    pub windows: &'static [Place],
}

impl Places {
    pub const fn everywhere(places: &'static [Place]) -> Places {
        Places { linux: places, macos: places, windows: places }
    }

    pub fn on(&self, platform: Platform) -> &'static [Place] {
        match platform {
            Platform::Linux => self.linux,
            Platform::MacOs => self.macos,
            Platform::Windows => self.windows,
        }
    }
}

/// A file, and what shows that the host reads it. `*` stands for any name.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    pub sign: &'static str,
    pub file: &'static str,
}

/// Which of several files counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The first that is there, else the first whose sign is.
    First,
    /// All that are there, or whose signs are.
    Every,
}

/// What to do when a host has no file yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IfMissing {
    Create,
    /// Its form depends on what only the host knows; the text says what to do.
    Refuse(&'static str),
}

/// Where servers stand in a file, and how one looks.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// The keys that must be there for this layout; none for every file.
    pub when: &'static [&'static str],
    /// The keys that lead to the table of servers.
    pub table: &'static [&'static str],
    /// An entry; `None` when the host cannot reach a server so.
    pub entry: fn(&Reach) -> Option<Value>,
}

/// How a server is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    Program {
        command: String,
        args: Vec<String>,
    },
    Http {
        url: String,
        headers: BTreeMap<String, String>,
        /// The environment variable of the host that has the caller's key.
        key_variable: Option<String>,
    },
}

/// The keys of an entry that say how a server is reached, in every host.
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
    /// Returns how the server of an entry is reached, whichever host wrote it.
    pub fn of(entry: &Value) -> Option<Reach> {
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
    /// An entry of a layout of this host; `None` when the host cannot reach a server
    /// so.
    pub fn entry(&self, layout: &Layout, reach: &Reach) -> Option<Value> {
        let mut entry = (layout.entry)(reach)?;
        if let Reach::Http { key_variable: Some(name), .. } = reach {
            self.bearer?(&mut entry, name);
        }
        Some(entry)
    }

    /// Returns whether the host is on this machine.
    pub fn is_here(&self, environment: &Environment, machine: &dyn Machine) -> bool {
        self.programs.iter().any(|program| machine.has_program(program))
            || !self.found(environment, machine).is_empty()
    }

    /// The user's files that the host reads, there or not.
    pub fn files(&self, environment: &Environment, machine: &dyn Machine) -> Vec<PathBuf> {
        let found = self.found(environment, machine);
        let files: Vec<PathBuf> = match self.choice {
            Choice::Every => found,
            Choice::First => {
                let there = found.iter().find(|file| machine.exists(file)).cloned();
                there.or_else(|| found.first().cloned()).into_iter().collect()
            }
        };
        if !files.is_empty() {
            return files;
        }
        let usual = self.places.on(environment.platform).iter().map(|place| place.file);
        let usual = usual.filter(|file| !file.contains('*')).take(1);
        usual.map(|file| environment.expand(file)).collect()
    }

    /// The files that are there, or that the host would read.
    fn found(&self, environment: &Environment, machine: &dyn Machine) -> Vec<PathBuf> {
        let mut files: Vec<PathBuf> = Vec::new();
        for place in self.places.on(environment.platform) {
            let whole = expand(place.file, environment, machine);
            let signs = expand(place.sign, environment, machine);
            let has_sign = signs.iter().any(|sign| machine.exists(sign));
            let is_found = |file: &PathBuf| machine.exists(file) || has_sign;
            for file in whole.into_iter().filter(is_found) {
                if !files.contains(&file) {
                    files.push(file);
                }
            }
        }
        files
    }

    /// Returns what shows that the host is here, for a message.
    pub fn signs(&self, environment: &Environment) -> Vec<String> {
        let places = self.places.on(environment.platform).iter();
        let mut signs: Vec<String> =
            places.map(|place| environment.expand(place.sign).display().to_string()).collect();
        signs.dedup();
        signs.extend(self.programs.iter().map(|program| format!("the program `{program}`")));
        signs
    }

    /// The layout of a file.
    pub fn layout(&self, root: &Node) -> &'static Layout {
        let fits = |layout: &&Layout| {
            let found = document::edit::find(root, layout.when);
            layout.when.is_empty() || found.is_some_and(|node| !node.members().is_empty())
        };
        let last = self.layouts.last().expect("every host has a layout");
        self.layouts.iter().find(fits).unwrap_or(last)
    }
}

/// The paths that a template stands for, there or not; of one with `*` those
/// whose directory is there.
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

/// `{"command", "args"}` or `{KEY: url, "headers"}`, with what else belongs there.
pub(crate) fn entry(reach: &Reach, program: Value, address: &str, http: Value) -> Value {
    let mut members = Map::new();
    let extend = |members: &mut Map<String, Value>, more: Value| {
        if let Value::Object(more) = more {
            members.extend(more);
        }
    };
    match reach {
        Reach::Program { command, args } => {
            extend(&mut members, program);
            members.insert("command".to_owned(), json!(command));
            members.insert("args".to_owned(), json!(args));
        }
        Reach::Http { url, headers, .. } => {
            extend(&mut members, http);
            members.insert(address.to_owned(), json!(url));
            if !headers.is_empty() {
                members.insert("headers".to_owned(), json!(headers));
            }
        }
    }
    Value::Object(members)
}
