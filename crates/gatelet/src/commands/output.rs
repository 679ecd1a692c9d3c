//! The flags of all commands that choose the format of the answer.

use crate::terminal;

/// The flags that say how an answer is written.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub(crate) struct Output {
    /// How to write the answer [default: text on a terminal, json into a pipe]
    #[arg(long, value_name = "FORMAT")]
    format: Option<Format>,

    /// Short for `--format json`
    #[arg(long, conflicts_with_all = ["format", "text"])]
    json: bool,

    /// Short for `--format text`
    #[arg(long, hide = true, conflicts_with = "format")]
    text: bool,
}

/// How an answer is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Text,
    Json,
}

impl Output {
    /// Whether the answer is JSON, for a program.
    pub(crate) fn is_json(self) -> bool {
        match self.format {
            Some(format) => format == Format::Json,
            None => self.json || !self.text && !terminal::is_read_by_a_person(),
        }
    }
}
