//! `gatelet import`: the servers of other clients, as our own configuration.

use std::path::{Path, PathBuf};

use super::{person, plain_secrets};
use crate::exit::{CliError, Done};
use crate::paths::Paths;
use crate::secrets::{Place, Secrets};
use crate::terminal::{DIM, GOOD, WARNING, out, paint, say};
use crate::trusted_directories;
use config::foreign::relabel;
use config::{Entry, Source};

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
    let mut found = read(&args.files)?;
    secure(args, &mut found, paths)?;
    let n_found = found.len();
    let has_programs = found.iter().any(|found| found.raw.command.is_some());
    let text = config::write(found.into_iter().map(|found| found.raw).collect());
    match &args.output {
        None => out(&text),
        Some(file) => {
            super::init::create(file, &text, args.force)?;
            trusted_directories::wrote(paths, file)?;
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

/// Moves plain secrets out of what is written, when somebody agrees.
fn secure(args: &Args, found: &mut [Entry], paths: &Paths) -> anyhow::Result<()> {
    let n_plain: usize = found.iter().map(|found| plain_secrets::count(&found.raw)).sum();
    if n_plain == 0 || args.keep_secrets {
        return Ok(());
    }
    let store = Secrets::at(&paths.state_directory()?);
    let place = match store.usual() {
        Place::Keyring => "the system's keyring",
        Place::File => "gatelet's encrypted store",
    };
    let question = format!("{n_plain} secrets stand there as plain text. Move them to {place}?");
    if !args.move_secrets && !person::agrees(&question) {
        let note =
            format!("{n_plain} secrets stay as plain text; --move-secrets moves them to {place}");
        say(&paint(WARNING, note));
        return Ok(());
    }
    for entry in found {
        for name in plain_secrets::take_from(&store, &mut entry.raw)? {
            say(&format!("{} `{name}` to {place}", paint(GOOD, "moved")));
        }
    }
    Ok(())
}

/// The upstreams of all files; what stands in two of them is taken once.
fn read(files: &[PathBuf]) -> anyhow::Result<Vec<Entry>> {
    let mut all: Vec<Entry> = Vec::new();
    for file in files {
        let shown = file.display().to_string();
        let text = std::fs::read_to_string(file)
            .map_err(|error| CliError::Usage(format!("cannot read `{shown}`: {error}")))?;
        let base = std::path::absolute(file)?;
        let base = base.parent().unwrap_or(Path::new("/"));
        let (found, mut problems) = config::import(Source { name: shown, text }, base)?;
        for one in found {
            if all.iter().all(|other| other.raw != one.raw) {
                all.push(one);
            }
        }
        all = relabel(all, &mut problems);
        if !problems.is_empty() {
            say(&problems.to_string());
        }
    }
    Ok(all)
}
