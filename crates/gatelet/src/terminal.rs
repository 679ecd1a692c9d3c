//! Writing for people: stdout for what was asked for, stderr for everything
//! else, colours and width as the terminal allows.
//!
//! Nothing here is used while stdout is the wire.

use std::io::{IsTerminal, Write};

use anstyle::{AnsiColor, Style};

pub(crate) const HEADING: Style = Style::new().bold();
pub(crate) const DIM: Style = Style::new().dimmed();
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
pub(crate) const WARNING: Style = AnsiColor::Yellow.on_default().bold();
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();
pub(crate) const PLACE: Style = AnsiColor::Cyan.on_default();

/// When to colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Color {
    Auto,
    Always,
    Never,
}

impl Color {
    /// Makes this the choice for everything that is written from now on.
    pub(crate) fn write_global(self) {
        let choice = match self {
            Color::Auto => anstream::ColorChoice::Auto,
            Color::Always => anstream::ColorChoice::Always,
            Color::Never => anstream::ColorChoice::Never,
        };
        choice.write_global();
    }
}

/// Writes an answer to stdout. A reader that went away is not an error.
pub(crate) fn out(text: &str) {
    let mut stdout = anstream::stdout().lock();
    let _ = stdout.write_all(text.as_bytes());
    if !text.ends_with('\n') {
        let _ = stdout.write_all(b"\n");
    }
    let _ = stdout.flush();
}

/// Writes a message for the person at the terminal to stderr.
pub(crate) fn say(text: &str) {
    let mut stderr = anstream::stderr().lock();
    let _ = stderr.write_all(text.as_bytes());
    if !text.ends_with('\n') {
        let _ = stderr.write_all(b"\n");
    }
}

/// Whether a person reads stdout.
pub(crate) fn is_read_by_a_person() -> bool {
    std::io::stdout().is_terminal()
}

/// `text` in `style`; the codes are taken out again where colours are off.
pub(crate) fn paint(style: Style, text: impl std::fmt::Display) -> String {
    format!("{style}{text}{style:#}")
}
