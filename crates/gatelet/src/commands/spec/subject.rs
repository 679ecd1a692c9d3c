//! Finds the tools that `gatelet spec` is about: in a document, a listing, a live server, a
//! git revision, or the built-in tools.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;
use catalog::name;
use mcp::connect::{self, Endpoint, Inherit, Program, Target};
use serde_json::Value;
use tool::{Client, Json, Listing, Provider, Tool};
use toolspec::Definition;

use crate::config_loader;
use crate::exit::CliError;
use crate::paths::Paths;
use crate::wire;
use config::Reach;

/// The tools of a document or server, with its name and version.
pub(crate) struct Subject {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) tools: Vec<Definition>,
}

/// Reads a file as text.
pub(super) fn read(path: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(path).map_err(|error| {
        CliError::Usage(format!("cannot read `{}`: {error}", path.display())).into()
    })
}

/// Reads a document; turns a listing into one.
pub(super) fn as_document(path: &Path) -> anyhow::Result<String> {
    let text = read(path)?;
    if !is_listing(&text) {
        return Ok(text);
    }
    let found = parse(&path.to_string_lossy(), &text)?;
    let version = if found.version.is_empty() { "0.0.0".to_owned() } else { found.version };
    let options = toolspec::Options { module: found.name, version, updated: String::new() };
    Ok(toolspec::generate(&found.tools, &options))
}

fn is_listing(text: &str) -> bool {
    text.trim_start().starts_with(['{', '['])
}

/// The documents among these paths; directories are searched.
pub(super) fn documents(paths: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for path in paths {
        if path.is_dir() {
            search(path, &mut found, 0)?;
        } else {
            found.push(path.clone());
        }
    }
    found.sort();
    found.dedup();
    if found.is_empty() {
        return Err(
            CliError::Usage("no `MCP_TOOL_SPECIFICATION.md` was found there".to_owned()).into()
        );
    }
    Ok(found)
}

fn search(directory: &Path, found: &mut Vec<PathBuf>, depth: usize) -> anyhow::Result<()> {
    let entries = std::fs::read_dir(directory)
        .with_context(|| format!("cannot read `{}`", directory.display()))?;
    for entry in entries.filter_map(Result::ok) {
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().to_lowercase());
        let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_directory
            && depth < 32
            && !name.starts_with('.')
            && name != "node_modules"
            && name != "target"
        {
            search(&path, found, depth + 1)?;
        } else if name == "mcp_tool_specification.md" {
            found.push(path);
        }
    }
    Ok(())
}

/// A file as it was in a git revision; `None` when it was not there yet.
pub(super) fn revision(revision: &str, path: &Path) -> anyhow::Result<Option<String>> {
    let name = path.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
    let shown = show(&format!("{revision}:./{name}"), path.parent());
    if shown.is_err() && is_revision(revision, path.parent())? {
        return Ok(None);
    }
    shown.map(Some)
}

/// Whether git knows a revision where this directory is.
fn is_revision(revision: &str, directory: Option<&Path>) -> anyhow::Result<bool> {
    let commit = format!("{revision}^{{commit}}");
    let words = ["rev-parse", "--verify", "--quiet", &commit];
    let output = git(directory).args(words).output().context("cannot run `git`")?;
    Ok(output.status.success())
}

fn git(directory: Option<&Path>) -> Command {
    let mut git = Command::new("git");
    if let Some(directory) = directory.filter(|directory| !directory.as_os_str().is_empty()) {
        git.current_dir(directory);
    }
    git
}

fn show(object: &str, directory: Option<&Path>) -> anyhow::Result<String> {
    let output = git(directory).args(["show", object]).output().context("cannot run `git`")?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(CliError::Usage(format!("git has no `{object}`: {said}")).into());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Finds the tools of a subject: `builtin`, a file, an upstream, a URL, a command, or
/// `REVISION:PATH` of git.
pub(crate) fn find(subject: &str, paths: &Paths) -> anyhow::Result<Subject> {
    if subject == "builtin" {
        return built_in(paths);
    }
    let path = Path::new(subject);
    if path.is_file() && !is_program(path) {
        return parse(subject, &read(path)?);
    }
    // A path in a revision may have a blank; a command has one too.
    if let Some((revision, inside)) = subject.split_once(':')
        && subject.contains(' ')
        && !revision.contains(' ')
        && is_revision(revision, None).unwrap_or(false)
    {
        return parse(inside, &show(subject, None)?);
    }
    if let Some(server) = live(subject, paths)? {
        return Ok(from_listing(&server));
    }
    // `REVISION:PATH`, as git writes it.
    match subject.split_once(':') {
        Some((_, inside)) if !inside.is_empty() => parse(inside, &show(subject, None)?),
        Some(_) | None => Err(CliError::Usage(format!(
            "`{subject}` is no file, no upstream of the configuration, no address, no command and no git revision"
        ))
        .into()),
    }
}

/// Whether a file is a program: executable, and a script or binary. On some disks every file
/// is executable, so that alone does not count.
fn is_program(path: &Path) -> bool {
    let mut start = [0; 4096];
    let read = std::fs::File::open(path).and_then(|mut file| file.read(&mut start));
    let start = &start[..read.unwrap_or(0)];
    let binary = match std::str::from_utf8(start) {
        Ok(_) => start.contains(&0),
        // Text may be cut off within a character at the end.
        Err(error) => error.error_len().is_some(),
    };
    may_run(path) && (start.starts_with(b"#!") || binary)
}

#[cfg(unix)]
fn may_run(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|about| about.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn may_run(path: &Path) -> bool {
    path.extension().is_some_and(|kind| kind.eq_ignore_ascii_case("exe"))
}

/// The listing of a server: an upstream by its label, an address or a command.
fn live(subject: &str, paths: &Paths) -> anyhow::Result<Option<Listing>> {
    let target = match configured_target(subject, paths)? {
        Some(target) => target,
        None if subject.starts_with("http://") || subject.starts_with("https://") => {
            Target::Http(Endpoint { url: subject.to_owned(), ..Endpoint::default() })
        }
        None if Path::new(subject).is_file() => {
            // Without a directory it would be looked for in the path.
            let command = std::path::absolute(subject)?;
            Target::Stdio(Program { command, inherit: Inherit::All, ..Program::default() })
        }
        None if subject.contains(' ') => {
            let mut words = subject.split_whitespace().map(str::to_owned);
            let command = PathBuf::from(words.next().unwrap_or_default());
            let (args, inherit) = (words.collect(), Inherit::All);
            Target::Stdio(Program { command, args, inherit, ..Program::default() })
        }
        None => return Ok(None),
    };
    connected(subject, &target).map(Some)
}

/// The listing of a configured upstream, started for this; `None` if none has this label in
/// any spelling.
pub(crate) fn live_upstream(label: &str, paths: &Paths) -> anyhow::Result<Option<Listing>> {
    let target = configured_target(label, paths)?;
    target.map(|target| connected(label, &target)).transpose()
}

fn connected(subject: &str, target: &Target) -> anyhow::Result<Listing> {
    let options = connect::Options { label: subject.to_owned(), ..connect::Options::default() };
    let client = Client::named("gatelet", "2025-11-25");
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(async {
        let upstream = connect::connect(target, &options, &client)
            .await
            .map_err(|error| CliError::NoAnswer(format!("`{subject}`: {error}")))?;
        let listing = (*upstream.listing()).clone();
        upstream.close().await;
        Ok(listing)
    })
}

/// The connection target of a configured upstream.
fn configured_target(label: &str, paths: &Paths) -> anyhow::Result<Option<Target>> {
    let loaded = config_loader::load(paths)?;
    let upstream =
        loaded.config.upstreams.into_iter().find(|upstream| name::means(&upstream.label, label));
    let sandbox = upstream.as_ref().and_then(|upstream| upstream.sandbox.clone());
    Ok(match upstream.map(|upstream| upstream.reach) {
        None => None,
        Some(Reach::Program { command, args, env, inherit, cwd }) => {
            let program = Program { command: command.into(), args, env, inherit, cwd };
            let program =
                wire::confine_program(program, sandbox.as_ref()).map_err(CliError::NoAnswer)?;
            Some(Target::Stdio(program))
        }
        Some(Reach::Address { url, headers, wire, certificates }) => {
            let endpoint = Endpoint { url, headers, certificates, ..Endpoint::default() };
            Some(match wire {
                Some(config::HttpTransport::Sse) => Target::Sse(endpoint),
                Some(config::HttpTransport::Http) | None => Target::Http(endpoint),
            })
        }
        Some(Reach::Content { database, .. }) => {
            // Our own executable serves the site.
            let database = database.into_iter().flat_map(|url| ["--database".to_owned(), url]);
            let words = ["content", "serve", "--stdio"].map(str::to_owned);
            Some(Target::Stdio(Program {
                command: std::env::current_exe()?,
                args: words.into_iter().chain(database).collect(),
                inherit: Inherit::All,
                env: BTreeMap::new(),
                cwd: None,
            }))
        }
        Some(Reach::Nowhere { reason }) => return Err(CliError::NoAnswer(reason).into()),
    })
}

fn built_in(paths: &Paths) -> anyhow::Result<Subject> {
    let state = paths.state_directory()?;
    let mut tools = Vec::new();
    for group in builtin::groups(&state) {
        // Names are unique within a group only.
        for tool in Definition::all(&group.provider.listing()) {
            tools.push(Definition { name: format!("{}.{}", group.label, tool.name), ..tool });
        }
    }
    let (name, version) = ("gatelet".to_owned(), env!("CARGO_PKG_VERSION").to_owned());
    Ok(Subject { name, version, tools })
}

fn from_listing(listing: &Listing) -> Subject {
    Subject {
        name: listing.server.name.clone(),
        version: listing.server.version.clone(),
        tools: Definition::all(listing),
    }
}

/// The module in the title of a document: `Files` of `Files - MCP Tool Specification`.
fn module(title: &str) -> Option<String> {
    let at = title.to_ascii_lowercase().find("mcp tool")?;
    let name = title[..at].trim_end_matches([' ', '-', '–', '—', ':']);
    (!name.is_empty()).then(|| name.to_owned())
}

/// Parses a document or a listing (JSON).
fn parse(name: &str, text: &str) -> anyhow::Result<Subject> {
    let stem = Path::new(name)
        .file_stem()
        .map_or("tools".to_owned(), |stem| stem.to_string_lossy().into_owned());
    if !is_listing(text) {
        let (document, _) = toolspec::parse(text);
        let version = document
            .metadata_value("version")
            .map_or(String::new(), |version| version.value.clone());
        let tools = document.definitions();
        let title = document.title.as_ref().and_then(|title| module(&title.value));
        return Ok(Subject { name: title.unwrap_or(stem), version, tools });
    }
    let value: Value = serde_json::from_str(text)
        .map_err(|error| CliError::Usage(format!("`{name}` is no listing: {error}")))?;
    let list = [
        Some(&value),
        value.get("tools"),
        value.pointer("/result/tools"),
        value.pointer("/tools/tools"),
    ]
    .into_iter()
    .flatten()
    .find_map(Value::as_array);
    let Some(list) = list else {
        return Err(CliError::Usage(format!("`{name}` has no list called `tools`")).into());
    };
    let mut tools = Vec::new();
    for raw in list {
        let tool = Tool::parse(Json::from(raw.clone()))
            .map_err(|finding| CliError::Usage(finding.to_string()))?;
        tools.push(Definition::from_tool(&tool));
    }
    let server = |key: &str| {
        let text = value.pointer(&format!("/serverInfo/{key}")).and_then(Value::as_str);
        text.map(str::to_owned)
    };
    Ok(Subject {
        name: server("name").unwrap_or(stem),
        version: server("version").unwrap_or_default(),
        tools,
    })
}
