//! `gatelet habits`: shows and erases the usage history, from which searches learn.

use catalog::usage::UsageHistory;

use super::output::Output;
use crate::config_loader;
use crate::exit::{CliError, Done};
use crate::paths::Paths;
use crate::terminal::{DIM, GOOD, HEADING, foreign_line, out, paint, say};
use crate::usage_file::UsageFile;
use config::Learning;

/// See and erase what searches learnt from use
///
/// Nothing is learnt unless `[learning] enabled = true` is in the
/// configuration; what is learnt stays in the state directory.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Action {
    /// Show every word with the tools that were called after it
    Show {
        #[command(flatten)]
        output: Output,
    },
    /// Forget one tool (`upstream/tool`), or everything
    Forget {
        #[arg(required_unless_present = "all")]
        tool: Option<String>,
        /// Forget everything
        #[arg(long, conflicts_with = "tool")]
        all: bool,
    },
}

pub(crate) fn run(action: &Action, paths: &Paths) -> anyhow::Result<Done> {
    let file = UsageFile::at(&paths.state_directory()?);
    match action {
        Action::Show { output } if output.is_json() => {
            out(&crate::terminal::json_text(&*file.load()?)?);
        }
        Action::Show { .. } => show(&*file.load()?, &file, learning(paths)),
        Action::Forget { tool: Some(tool), .. } => {
            let habits = file.load()?;
            if !habits.iter().any(|(_, all)| all.contains_key(tool)) {
                let text = format!("nothing is known of `{tool}`; `gatelet habits show` tells");
                return Err(CliError::Usage(text).into());
            }
            file.change(|habits| habits.forget(tool))?;
            say(&format!("{} `{tool}`", paint(GOOD, "forgot")));
        }
        Action::Forget { tool: None, .. } => {
            file.erase()?;
            say(&format!("{} everything", paint(GOOD, "forgot")));
        }
    }
    Ok(Done::Fine)
}

/// Whether anything is learnt. A configuration that is wrong switches nothing on.
fn learning(paths: &Paths) -> Learning {
    config_loader::load(paths).map_or(Learning::Off, |loaded| loaded.config.learning)
}

fn show(habits: &UsageHistory, file: &UsageFile, learning: Learning) {
    if habits.is_empty() {
        say(match learning {
            Learning::On => "nothing is learnt yet",
            Learning::Off => "nothing is learnt; `[learning] enabled = true` switches it on",
        });
        return;
    }
    for (word, choices) in habits.iter() {
        out(&paint(HEADING, foreign_line(word)));
        for (tool, choice) in choices {
            let tool = foreign_line(tool);
            out(&format!("  {tool} {}", paint(DIM, format!("{:.1} times", choice.times))));
        }
    }
    say(&paint(DIM, file.path().display().to_string()));
}
