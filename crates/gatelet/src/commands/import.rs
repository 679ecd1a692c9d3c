//! `gatelet import`: turns the server lists of other MCP clients into a configuration.

use std::path::{Path, PathBuf};

use super::relative_path::relative_path;
use super::{person, plain_secrets};
use crate::exit::{CliError, Done};
use crate::paths::Paths;
use crate::secrets::{SecretLocation, Secrets};
use crate::terminal::{DIM, GOOD, WARNING, foreign, foreign_line, out, paint, say};
use crate::trusted_directories;
use config::foreign::assign_unique_labels;
use config::{SourceFile, UpstreamEntry};

/// Turn the server lists of other clients into a gatelet configuration
///
/// Reads the `mcpServers`, `servers`, `mcp`, `context_servers` or `mcp_servers`
/// of Claude Desktop, Claude Code, Cursor, VS Code, Windsurf, Cline, Zed,
/// opencode, Gemini CLI, Codex and others as they are, and says what it could
/// not carry over.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The files to read
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Write the configuration to this file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Replace the file if it is there already
    #[arg(long, requires = "output")]
    force: bool,

    /// Move plain secrets to the keyring or the encrypted store, without asking
    #[arg(long, conflicts_with = "keep_secrets")]
    move_secrets: bool,

    /// Leave plain secrets where they are, without asking
    #[arg(long)]
    keep_secrets: bool,
}

pub(crate) fn run(args: &Args, paths: &Paths) -> anyhow::Result<Done> {
    let mut found = read_entries(&args.files)?;
    move_secrets(args, &mut found, paths)?;
    for entry in found.iter().filter(|entry| entry.raw.cwd.is_none()) {
        let Some(path) = relative_path(&entry.raw) else { continue };
        let label = entry.raw.label.as_deref().unwrap_or_default();
        let note = format!(
            "`{label}`: `{path}` is looked for where gatelet starts; set `cwd` in its entry to the directory that is meant"
        );
        say(&paint(WARNING, foreign(&note)));
    }
    let n_found = found.len();
    let has_programs = found.iter().any(|found| found.raw.command.is_some());
    let text = config::upstreams_to_toml(found.into_iter().map(|found| found.raw).collect());
    match &args.output {
        None => out(&text),
        Some(file) => {
            super::init::create(file, &text, args.force)?;
            trusted_directories::trust_written(paths, file)?;
            say(&format!("{} {n_found} upstreams in {}", paint(GOOD, "wrote"), file.display()));
        }
    }
    if has_programs {
        say(&paint(
            DIM,
            "Programs get PATH, HOME and the like, and what stands in `env`. Name there what a server \
             needs beside, or set `inherit_env = true` to pass everything on.",
        ));
    }
    Ok(Done::Fine)
}

/// Moves plain secrets out of the entries into the secret store, if the person agrees.
fn move_secrets(args: &Args, found: &mut [UpstreamEntry], paths: &Paths) -> anyhow::Result<()> {
    let n_plain: usize = found.iter().map(|found| plain_secrets::count(&found.raw)).sum();
    if n_plain == 0 || args.keep_secrets {
        return Ok(());
    }
    let store = Secrets::at(&paths.state_directory()?);
    let place = match store.default_location() {
        SecretLocation::Keyring => "the system's keyring",
        SecretLocation::File => "gatelet's encrypted store",
    };
    let question = format!("{n_plain} secrets stand there as plain text. Move them to {place}?");
    if !args.move_secrets && !person::agrees(&question) {
        let note =
            format!("{n_plain} secrets stay as plain text; --move-secrets moves them to {place}");
        say(&paint(WARNING, note));
        return Ok(());
    }
    for entry in found {
        for name in plain_secrets::move_to_store(&store, &mut entry.raw)? {
            let name = foreign_line(&name);
            say(&format!("{} `{name}` to {place}", paint(GOOD, "moved")));
        }
    }
    Ok(())
}

/// The servers of all files, each once.
fn read_entries(files: &[PathBuf]) -> anyhow::Result<Vec<UpstreamEntry>> {
    let mut all: Vec<UpstreamEntry> = Vec::new();
    for file in files {
        let shown = file.display().to_string();
        let text = std::fs::read_to_string(file)
            .map_err(|error| CliError::Usage(format!("cannot read `{shown}`: {error}")))?;
        let base = std::path::absolute(file)?;
        let base = base.parent().unwrap_or(Path::new("/"));
        let (found, mut problems) = config::import(SourceFile { name: shown, text }, base)?;
        for one in found {
            if all.iter().all(|other| other.raw != one.raw) {
                all.push(one);
            }
        }
        all = assign_unique_labels(all, &mut problems);
        if !problems.is_empty() {
            say(&problems.to_string());
        }
    }
    Ok(all)
}
