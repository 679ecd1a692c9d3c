//! `gatelet init`: writes a commented configuration to start from.

use std::path::{Path, PathBuf};

use anyhow::Context;
use store::file::{self, Safety};

use crate::exit::{CliError, Done};
use crate::paths::Paths;
use crate::terminal::{DIM, GOOD, paint, say};
use crate::trusted_directories;

/// Write a commented configuration to start from
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Replace the file if it is there already
    #[arg(long)]
    force: bool,
}

/// The configuration that is written.
pub(super) const TEMPLATE: &str = include_str!("init/gatelet.toml");

pub(crate) fn run(args: &Args, paths: &Paths) -> anyhow::Result<Done> {
    let file = paths.config.clone().unwrap_or_else(|| PathBuf::from("gatelet.toml"));
    create(&file, TEMPLATE, args.force)?;
    trusted_directories::trust_written(paths, &file)?;
    say(&format!("{} {}", paint(GOOD, "wrote"), file.display()));
    say(&paint(
        DIM,
        "next: add your servers to it, then `gatelet config check` and `gatelet serve`",
    ));
    Ok(Done::Fine)
}

/// Writes a file atomically. It may hold secrets, so only its owner can read it.
pub(super) fn create(file: &Path, text: &str, replace: bool) -> anyhow::Result<()> {
    let shown = file.display();
    let is_new = match replace {
        // The target of a link is replaced, not the link.
        true => {
            let place = std::fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
            file::replace(&place, text.as_bytes(), Safety::Synced).map(|()| true)
        }
        false => file::create(file, text.as_bytes()),
    };
    match is_new.with_context(|| format!("cannot write `{shown}`"))? {
        true => Ok(()),
        false => {
            Err(CliError::Usage(format!("`{shown}` is there already; --force replaces it")).into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use config::{ProcessEnvironment, SourceFile, parse};

    #[test]
    fn what_init_writes_is_a_sound_configuration() {
        let source = SourceFile { name: "gatelet.toml".to_owned(), text: TEMPLATE.to_owned() };
        let (_, problems) = parse(source, Path::new(""), &ProcessEnvironment).unwrap();
        assert!(problems.is_empty(), "{problems}");
    }

    #[test]
    fn every_line_that_init_comments_out_would_be_sound_too() {
        let setting = |line: &str| line.starts_with("# [") || line.contains(" = ");
        let text: Vec<&str> = TEMPLATE
            .lines()
            .filter(|line| !line.starts_with('#') || setting(line))
            .map(|line| line.strip_prefix("# ").unwrap_or(line))
            .collect();
        let source = SourceFile { name: "gatelet.toml".to_owned(), text: text.join("\n") };
        let (config, problems) = parse(source, Path::new(""), &ProcessEnvironment).unwrap();
        let only_unset = problems.iter().all(|problem| problem.message.contains("is not set"));
        assert!(only_unset && config.upstreams.len() == 2, "{problems}");
    }
}
