//! Finds the package that a command line runs with `npx`, `uvx` and the like, its version,
//! and its newest version in the package index.

use serde_json::Value;
use url::Url;

use crate::package::{InvalidName, PackageKind, check_version};
use crate::version::Version;

/// The default index of npm packages.
pub const NPM: &str = "https://registry.npmjs.org/";
/// The default index of PyPI packages.
pub const PYPI: &str = "https://pypi.org/simple/";

/// A package that is named in the arguments of its runner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunPackage {
    kind: PackageKind,
    /// Its name in the index, without extras and version.
    name: String,
    /// The extras between name and version, such as `[cli]`.
    extras: String,
    /// The exact version that is run; `None` for ranges, tags and no version at all.
    version: Option<String>,
    /// Its position among the arguments.
    position: usize,
    /// The URL of the index that the command line names.
    index: Option<String>,
}

/// The kind of a package index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Index {
    Npm,
    Pypi,
}

impl RunPackage {
    /// Returns the package that a command runs; `None` for other programs, and for paths,
    /// URLs and repositories.
    pub fn find(command: &str, args: &[String]) -> Option<RunPackage> {
        let runner = command.rsplit(['/', '\\']).next()?;
        let kind =
            match runner.strip_suffix(".cmd").or(runner.strip_suffix(".exe")).unwrap_or(runner) {
                "npx" | "bunx" | "pnpx" => PackageKind::Npm,
                "uvx" | "pipx" => PackageKind::Pypi,
                _ => return None,
            };
        let RunnerArguments { position, index } = parse_runner_arguments(kind, args);
        let position = position?;
        let word =
            args[position].split_once("--from=").map_or(args[position].as_str(), |(_, word)| word);
        let (name, extras, version) = split_package(kind, word);
        let exact = version.filter(|text| text.starts_with(|c: char| c.is_ascii_digit()));
        Some(RunPackage {
            kind,
            name: kind.check_name(name).ok()?.to_owned(),
            extras: extras.to_owned(),
            version: exact.and_then(|text| check_version(text).ok()).map(str::to_owned),
            position,
            index,
        })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the exact version that is run, if one is named.
    pub fn version(&self) -> Option<&str> {
        self.version.as_deref()
    }

    pub fn index(&self) -> Index {
        match self.kind {
            PackageKind::Pypi => Index::Pypi,
            PackageKind::Npm | PackageKind::Nuget | PackageKind::Oci => Index::Npm,
        }
    }

    /// Returns the URL of the index that the command line names instead of the default one.
    pub fn custom_index(&self) -> Option<&str> {
        self.index.as_deref()
    }

    /// Returns the arguments with another version.
    pub fn at_version(&self, args: &[String], version: &str) -> Result<Vec<String>, InvalidName> {
        let version = check_version(version)?;
        let before = if args[self.position].starts_with("--from=") { "--from=" } else { "" };
        let mut changed = args.to_vec();
        let sign = if self.extras.is_empty() { "@" } else { "==" };
        let sign = if args[self.position].contains("==") { "==" } else { sign };
        changed[self.position] = format!("{before}{}{}{sign}{version}", self.name, self.extras);
        Ok(changed)
    }

    /// Returns the URL that lists the versions of the package, and the media type to accept.
    pub fn index_request(&self, index: &Url) -> (Url, &'static str) {
        let mut url = index.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            // A slash in a name is escaped.
            segments.pop_if_empty();
            match self.index() {
                Index::Npm => segments.extend([self.name.as_str(), "latest"]),
                Index::Pypi => segments.extend([normalize_pypi_name(&self.name).as_str(), ""]),
            };
        }
        match self.index() {
            Index::Npm => (url, "application/json"),
            Index::Pypi => (url, "application/vnd.pypi.simple.v1+json"),
        }
    }

    /// Returns the newest version in the response to [`RunPackage::index_request`], without
    /// prereleases and yanked versions.
    pub fn newest(&self, answer: &str) -> Option<String> {
        let answer: Value = serde_json::from_str(answer).ok()?;
        let found = match self.index() {
            Index::Npm => answer["version"].as_str()?.to_owned(),
            Index::Pypi => {
                let texts = answer["versions"].as_array()?.iter().filter_map(Value::as_str);
                let usable = texts.filter(|text| !is_withdrawn(&answer["files"], text));
                let read = usable.filter_map(|text| Some((Version::parse(text)?, text)));
                read.filter(|(version, _)| !version.is_prerelease()).max()?.1.to_owned()
            }
        };
        check_version(&found).ok()?;
        Some(found)
    }

    /// Returns whether `newest` is newer than the version that is run.
    pub fn is_behind(&self, newest: &str) -> bool {
        let read = |text: &str| Version::parse(text);
        match (self.version.as_deref().and_then(read), read(newest)) {
            (Some(now), Some(newest)) => now < newest,
            (Some(_) | None, _) => false,
        }
    }
}

/// What is found in the arguments of a runner: the position of the package, and the URL of
/// the index.
struct RunnerArguments {
    position: Option<usize>,
    index: Option<String>,
}

fn parse_runner_arguments(kind: PackageKind, args: &[String]) -> RunnerArguments {
    // Options that take the next word as their value.
    let (package, index, other): (&[&str], &[&str], &[&str]) = match kind {
        PackageKind::Pypi => (
            &["--from", "--spec"],
            &["--index-url", "-i", "--default-index"],
            &["--python", "-p", "--with", "--index", "--extra-index-url", "--cache-dir"],
        ),
        PackageKind::Npm | PackageKind::Nuget | PackageKind::Oci => {
            (&["--package", "-p"], &["--registry"], &["--cache", "--prefix", "-w", "--userconfig"])
        }
    };
    let mut found = RunnerArguments { position: None, index: None };
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
        } else if word.starts_with('-') || (kind == PackageKind::Pypi && word == "run") {
            at += 1;
        } else {
            // Everything after the first word that is not an option belongs to the program.
            found.position = found.position.or(Some(at));
            break;
        }
    }
    found
}

/// Splits `name[extras]@version` or `name==version` into name, extras and version.
fn split_package(kind: PackageKind, word: &str) -> (&str, &str, Option<&str>) {
    let (named, version) = match word.split_once("==").filter(|_| kind == PackageKind::Pypi) {
        Some((named, version)) => (named, Some(version)),
        None => match word.rfind('@').filter(|at| *at != 0) {
            Some(at) => (&word[..at], Some(&word[at + 1..])),
            None => (word, None),
        },
    };
    match named.find('[').filter(|_| kind == PackageKind::Pypi) {
        Some(at) => (&named[..at], &named[at..], version),
        None => (named, "", version),
    }
}

/// Returns a PyPI name in its normalized spelling.
fn normalize_pypi_name(name: &str) -> String {
    let words = name.split(['-', '_', '.']).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("-").to_lowercase()
}

/// Returns whether every file of a version was yanked.
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
