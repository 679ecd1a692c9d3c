//! Parses the source of a server, as the operator writes it on the command line.

use std::collections::BTreeMap;
use std::path::PathBuf;

pub use crate::package::InvalidName;
use crate::package::{self, PackageKind};
use crate::recipe::{Recipe, Run};

/// Where a server comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// The URL of a running server.
    Address(String),
    /// A package that a runner fetches and starts.
    Package(Package),
    /// A `server.json` document.
    Document(PathBuf),
    /// An MCPB bundle on this machine.
    Bundle(PathBuf),
    /// The URL of an MCPB bundle.
    RemoteBundle(String),
    /// A server of the registry.
    Registry { name: String, version: Option<String> },
}

/// A package and its version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Package {
    kind: PackageKind,
    name: String,
    version: Option<String>,
}

/// Why a source cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SourceError {
    #[error(transparent)]
    Bad(#[from] InvalidName),
    #[error(
        "`{0}` may be many things: write `npm:{0}`, `pypi:{0}`, `docker:{0}`, `registry:{0}`, a URL, a \
         path to a `server.json` or `.mcpb` file, or a command after `--`"
    )]
    Ambiguous(String),
}

/// Parses a source.
pub fn parse(text: &str) -> Result<Source, SourceError> {
    let is_bundle = |path: &str| path.ends_with(".mcpb") || path.ends_with(".dxt");
    if text.starts_with("http://") || text.starts_with("https://") {
        let path = text.split(['?', '#']).next().unwrap_or_default();
        return Ok(match is_bundle(path) {
            true => Source::RemoteBundle(text.to_owned()),
            false => Source::Address(text.to_owned()),
        });
    }
    let package = |kind, name| Ok(Source::Package(Package::parse(kind, name)?));
    match text.split_once(':') {
        Some(("npm", name)) => return package(PackageKind::Npm, name),
        Some(("pypi", name)) => return package(PackageKind::Pypi, name),
        Some(("docker" | "oci", name)) => return package(PackageKind::Oci, name),
        Some(("registry", name)) => return Ok(registry_source(name)?),
        Some(_) | None => {}
    }
    if is_bundle(text) {
        return Ok(Source::Bundle(PathBuf::from(text)));
    }
    if text.ends_with(".json") {
        return Ok(Source::Document(PathBuf::from(text)));
    }
    let is_path = text.starts_with(['.', '/', '~']);
    match text.split_once('/') {
        Some(_) if text.starts_with('@') => package(PackageKind::Npm, text),
        // Names in the registry begin with a reversed domain.
        Some((domain, _)) if !is_path && domain.contains('.') => Ok(registry_source(text)?),
        Some(_) | None => Err(SourceError::Ambiguous(text.to_owned())),
    }
}

fn registry_source(text: &str) -> Result<Source, InvalidName> {
    let (name, version) = split_version(text);
    let legal = |c: char| c.is_ascii_alphanumeric() || "-._/".contains(c);
    if name.is_empty() || name.len() > 200 || !name.chars().all(legal) {
        return Err(InvalidName {
            name: name.chars().take(80).collect(),
            what: "name in the registry",
        });
    }
    let version = version.map(package::check_version).transpose()?;
    Ok(Source::Registry { name: name.to_owned(), version: version.map(str::to_owned) })
}

/// Splits `name@version`; the `@` of a scope at the beginning is part of the name.
fn split_version(text: &str) -> (&str, Option<&str>) {
    match text.rfind('@').filter(|at| *at != 0) {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    }
}

impl Package {
    fn parse(kind: PackageKind, text: &str) -> Result<Package, InvalidName> {
        let (name, version) = match (kind, text.split_once("==")) {
            (PackageKind::Pypi, Some((name, version))) => (name, Some(version)),
            (PackageKind::Oci, _) => (text, None),
            (PackageKind::Npm | PackageKind::Pypi | PackageKind::Nuget, _) => split_version(text),
        };
        let version = version.map(package::check_version).transpose()?.map(str::to_owned);
        Ok(Package { kind, name: kind.check_name(name)?.to_owned(), version })
    }

    /// Returns the program that runs it, such as `npx`.
    pub fn runner(&self) -> &'static str {
        self.kind.runner()
    }

    /// Builds the recipe that runs it.
    pub fn recipe(&self) -> Result<Recipe, InvalidName> {
        let args = self.kind.runner_arguments(
            &self.name,
            self.version.as_deref(),
            Vec::new(),
            std::iter::empty(),
        )?;
        let is_pinned = self.version.is_some() || self.name.contains("@sha256:");
        let note =
            "no version is named: what runs may be another every time; pin it with `@VERSION`";
        Ok(Recipe {
            name: self.name.clone(),
            description: None,
            version: self.version.clone(),
            run: Run::Program { command: self.runner().to_owned(), args, env: BTreeMap::new() },
            inputs: Vec::new(),
            notes: (!is_pinned).then(|| note.to_owned()).into_iter().collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recipe::Filled;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let read = match parse(text) {
            Ok(Source::Package(package)) => {
                match package.recipe().unwrap().fill(&BTreeMap::new()) {
                    Ok(Filled::Program { command, args, .. }) => {
                        format!("{command} {}", args.join(" "))
                    }
                    other => format!("{other:?}"),
                }
            }
            Ok(other) => format!("{other:?}"),
            Err(error) => format!("error: {error}"),
        };
        assert!(read.starts_with(expected), "{text}: {read}");
    }

    #[test]
    fn packages_addresses_documents_and_bundles_are_told_apart() {
        check("@modelcontextprotocol/server-memory", "npx -y @modelcontextprotocol/server-memory");
        check("npm:some-server@1.2.3", "npx -y some-server@1.2.3");
        check("pypi:mcp-server-git==0.6", "uvx mcp-server-git@0.6");
        check("docker:mcp/time:1", "docker run -i --rm mcp/time:1");
        check("https://example.org/mcp", "Address");
        check("https://example.org/x.mcpb?raw=1", "RemoteBundle");
        check("./server.json", "Document");
        check("x.mcpb", "Bundle");
        check("io.github.some/server@1.0.0", "Registry");
        check("registry:some", "Registry");
    }

    #[test]
    fn what_is_not_clear_or_no_name_is_refused_with_what_to_write() {
        check("some-server", "error: `some-server` may be many things: write `npm:some-server`");
        check("./run.sh", "error: `./run.sh` may be many things");
        check("npm:--registry=http://evil", "error: `--registry=http://evil` is no name");
        check("npm:x@1;rm", "error: `1;rm` is no version");
        check("registry:a b", "error: `a b` is no name in the registry");
    }
}
