//! Finds the package that a command line runs by `npx` or `uvx`, its version, and
//! the newest version in its index.

use serde_json::Value;
use url::Url;

use crate::package::{BadName, Kind, version as legal_version};
use crate::version::Version;

/// Where npm packages are looked up when nobody says otherwise.
pub const NPM: &str = "https://registry.npmjs.org/";
/// Where PyPI packages are looked up when nobody says otherwise.
pub const PYPI: &str = "https://pypi.org/simple/";

/// A package among the arguments of its runner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunPackage {
    kind: Kind,
    /// Its name in the index, without extras and version.
    name: String,
    /// What stands between name and version, such as `[cli]`.
    extras: String,
    /// The exact version that is run; `None` for ranges, tags and no version at all.
    version: Option<String>,
    /// Where it stands among the arguments.
    position: usize,
    /// The index that the command line names.
    index: Option<String>,
}

/// The index that has a package.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Index {
    Npm,
    Pypi,
}

impl RunPackage {
    /// The package that a command runs. `None` for other programs, and for what is
    /// no name in an index: paths, addresses, repositories.
    pub fn find(command: &str, args: &[String]) -> Option<RunPackage> {
        let runner = command.rsplit(['/', '\\']).next()?;
        let kind =
            match runner.strip_suffix(".cmd").or(runner.strip_suffix(".exe")).unwrap_or(runner) {
                "npx" | "bunx" | "pnpx" => Kind::Npm,
                "uvx" | "pipx" => Kind::Pypi,
                _ => return None,
            };
        let Words { position, index } = words(kind, args);
        let position = position?;
        let word =
            args[position].split_once("--from=").map_or(args[position].as_str(), |(_, word)| word);
        let (name, extras, version) = split(kind, word);
        let exact = version.filter(|text| text.starts_with(|c: char| c.is_ascii_digit()));
        Some(RunPackage {
            kind,
            name: kind.name(name).ok()?.to_owned(),
            extras: extras.to_owned(),
            version: exact.and_then(|text| legal_version(text).ok()).map(str::to_owned),
            position,
            index,
        })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// The exact version that is run, if there is one.
    pub fn version(&self) -> Option<&str> {
        self.version.as_deref()
    }

    pub fn index(&self) -> Index {
        match self.kind {
            Kind::Pypi => Index::Pypi,
            Kind::Npm | Kind::Nuget | Kind::Oci => Index::Npm,
        }
    }

    /// The index that the command line names, instead of the usual one.
    pub fn own_index(&self) -> Option<&str> {
        self.index.as_deref()
    }

    /// The arguments with this version instead.
    pub fn at_version(&self, args: &[String], version: &str) -> Result<Vec<String>, BadName> {
        let version = legal_version(version)?;
        let before = if args[self.position].starts_with("--from=") { "--from=" } else { "" };
        let mut changed = args.to_vec();
        let sign = if self.extras.is_empty() { "@" } else { "==" };
        let sign = if args[self.position].contains("==") { "==" } else { sign };
        changed[self.position] = format!("{before}{}{}{sign}{version}", self.name, self.extras);
        Ok(changed)
    }

    /// Returns where the index says which versions there are, and the type of its
    /// answer.
    pub fn question(&self, index: &Url) -> (Url, &'static str) {
        let mut url = index.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            // A slash in a name is escaped.
            segments.pop_if_empty();
            match self.index() {
                Index::Npm => segments.extend([self.name.as_str(), "latest"]),
                Index::Pypi => segments.extend([normal(&self.name).as_str(), ""]),
            };
        }
        match self.index() {
            Index::Npm => (url, "application/json"),
            Index::Pypi => (url, "application/vnd.pypi.simple.v1+json"),
        }
    }

    /// The newest version in the answer to that; none that is only a trial, and none
    /// that was withdrawn.
    pub fn newest(&self, answer: &str) -> Option<String> {
        let answer: Value = serde_json::from_str(answer).ok()?;
        let found = match self.index() {
            Index::Npm => answer["version"].as_str()?.to_owned(),
            Index::Pypi => {
                let texts = answer["versions"].as_array()?.iter().filter_map(Value::as_str);
                let usable = texts.filter(|text| !is_withdrawn(&answer["files"], text));
                let read = usable.filter_map(|text| Some((Version::read(text)?, text)));
                read.filter(|(version, _)| !version.is_trial()).max()?.1.to_owned()
            }
        };
        legal_version(&found).ok()?;
        Some(found)
    }

    /// Returns whether a version is newer than the one that is run.
    pub fn is_behind(&self, newest: &str) -> bool {
        let read = |text: &str| Version::read(text);
        match (self.version.as_deref().and_then(read), read(newest)) {
            (Some(now), Some(newest)) => now < newest,
            (Some(_) | None, _) => false,
        }
    }
}

/// Where the package stands among the words, and the index that they name.
struct Words {
    position: Option<usize>,
    index: Option<String>,
}

fn words(kind: Kind, args: &[String]) -> Words {
    // What takes the next word for its value.
    let (package, index, other): (&[&str], &[&str], &[&str]) = match kind {
        Kind::Pypi => (
            &["--from", "--spec"],
            &["--index-url", "-i", "--default-index"],
            &["--python", "-p", "--with", "--index", "--extra-index-url", "--cache-dir"],
        ),
        Kind::Npm | Kind::Nuget | Kind::Oci => {
            (&["--package", "-p"], &["--registry"], &["--cache", "--prefix", "-w", "--userconfig"])
        }
    };
    let mut found = Words { position: None, index: None };
    let mut at = 0;
    while at < args.len() {
        let word = args[at].as_str();
        if let Some((flag, value)) = word.split_once('=').filter(|_| word.starts_with("--")) {
            match flag {
                _ if index.contains(&flag) => found.index = Some(value.to_owned()),
                "--from" => found.position = found.position.or(Some(at)),
                _ => {}
            }
            at += 1;
        } else if index.contains(&word) {
            found.index = args.get(at + 1).cloned();
            at += 2;
        } else if package.contains(&word) {
            let next = Some(at + 1).filter(|next| *next < args.len());
            found.position = found.position.or(next);
            at += 2;
        } else if other.contains(&word) {
            at += 2;
        } else if word.starts_with('-') || (kind == Kind::Pypi && word == "run") {
            at += 1;
        } else {
            // Behind the first word of its own everything is the program's.
            found.position = found.position.or(Some(at));
            break;
        }
    }
    found
}

/// Name, extras and version of `name[extras]@version` or `name==version`.
fn split(kind: Kind, word: &str) -> (&str, &str, Option<&str>) {
    let (named, version) = match word.split_once("==").filter(|_| kind == Kind::Pypi) {
        Some((named, version)) => (named, Some(version)),
        None => match word.rfind('@').filter(|at| *at != 0) {
            Some(at) => (&word[..at], Some(&word[at + 1..])),
            None => (word, None),
        },
    };
    match named.find('[').filter(|_| kind == Kind::Pypi) {
        Some(at) => (&named[..at], &named[at..], version),
        None => (named, "", version),
    }
}

/// A PyPI name as indexes spell it.
fn normal(name: &str) -> String {
    let words = name.split(['-', '_', '.']).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("-").to_lowercase()
}

/// Returns whether every file of a version was withdrawn.
fn is_withdrawn(files: &Value, version: &str) -> bool {
    let is_own = |file: &&Value| {
        let name = file["filename"].as_str().unwrap_or_default();
        let rest = name.split_once(&format!("-{version}")).map(|(_, rest)| rest);
        rest.is_some_and(|rest| {
            rest.starts_with('-') || rest.starts_with(".tar") || rest.starts_with(".zip")
        })
    };
    let mut own = files.as_array().into_iter().flatten().filter(is_own).peekable();
    let is_yanked = |file: &Value| file["yanked"] == true || file["yanked"].is_string();
    own.peek().is_some() && own.all(is_yanked)
}

#[cfg(test)]
mod tests;
