//! Writing for people: stdout for what was asked for, stderr for everything
//! else, colours and width as the terminal allows.
//!
//! Nothing here is used while stdout is the wire.

use std::io::{ErrorKind, IsTerminal, Write};
use std::sync::OnceLock;

use anstyle::{AnsiColor, Style};
pub(crate) use gateway::gate::thousands;

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

/// Why the first answer that could not be written was not. Commands end with
/// what they found out; whether it arrived is asked once, at the end.
static UNWRITTEN: OnceLock<std::io::Error> = OnceLock::new();

/// Writes an answer to stdout. A reader that went away is not an error; what
/// else goes wrong is told by [`unwritten`].
pub(crate) fn out(text: &str) {
    let mut stdout = anstream::stdout().lock();
    let end: &[u8] = if text.ends_with('\n') { b"" } else { b"\n" };
    let written = stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.write_all(end))
        .and_then(|()| stdout.flush());
    match written {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            let _ = UNWRITTEN.set(error);
        }
        Ok(()) | Err(_) => {}
    }
}

/// Why an answer could not be written, if so.
pub(crate) fn unwritten() -> Option<&'static std::io::Error> {
    UNWRITTEN.get()
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

/// How many columns a reader has.
pub(crate) fn width() -> u16 {
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok();
    size.map(|size| size.ws_col).filter(|columns| *columns != 0).unwrap_or(80)
}

/// A table with this head, as wide as the terminal allows.
pub(crate) fn table(head: &[&str]) -> comfy_table::Table {
    let mut table = comfy_table::Table::new();
    table
        .load_preset(comfy_table::presets::NOTHING)
        .set_content_arrangement(comfy_table::ContentArrangement::Dynamic)
        .set_header(head.iter().map(|name| cell(DIM, name)));
    table.set_width(if is_read_by_a_person() { width() } else { u16::MAX });
    match anstream::ColorChoice::global() {
        anstream::ColorChoice::Always | anstream::ColorChoice::AlwaysAnsi => {
            table.enforce_styling();
        }
        anstream::ColorChoice::Never => {
            table.force_no_tty();
        }
        anstream::ColorChoice::Auto => {}
    }
    table
}

/// A cell in a style. The table measures text, so it must set the style itself.
pub(crate) fn cell(style: Style, text: &str) -> comfy_table::Cell {
    let cell = comfy_table::Cell::new(text);
    let cell = match style.get_fg_color() {
        Some(anstyle::Color::Ansi(AnsiColor::Green)) => cell.fg(comfy_table::Color::Green),
        Some(anstyle::Color::Ansi(AnsiColor::Red)) => cell.fg(comfy_table::Color::Red),
        Some(anstyle::Color::Ansi(_) | anstyle::Color::Ansi256(_) | anstyle::Color::Rgb(_))
        | None => cell,
    };
    let effects = style.get_effects();
    if effects.contains(anstyle::Effects::DIMMED) {
        cell.add_attribute(comfy_table::Attribute::Dim)
    } else if effects.contains(anstyle::Effects::BOLD) {
        cell.add_attribute(comfy_table::Attribute::Bold)
    } else {
        cell
    }
}

/// Markdown with a little colour: headings, code and list marks.
pub(crate) fn markdown(text: &str) -> String {
    let mut fenced = false;
    let line = |line: &str| {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
            return paint(DIM, line);
        }
        if fenced {
            return line.to_owned();
        }
        if line.starts_with('#') {
            return paint(HEADING, line.trim_start_matches('#').trim_start());
        }
        between(&between(line, "`", PLACE), "**", HEADING)
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// What stands between two marks, in a style and without the marks.
fn between(line: &str, mark: &str, style: Style) -> String {
    if !line.matches(mark).count().is_multiple_of(2) {
        return line.to_owned();
    }
    let parts = line.split(mark).enumerate();
    parts.map(|(at, part)| if at % 2 == 1 { paint(style, part) } else { part.to_owned() }).collect()
}

/// Something that shows on a terminal that we are at work.
pub(crate) fn progress(message: &'static str) -> indicatif::ProgressBar {
    // Draws on stderr, and only when that is a terminal.
    let bar = indicatif::ProgressBar::new_spinner().with_message(message);
    bar.enable_steady_tick(std::time::Duration::from_millis(120));
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markdown_loses_no_text() {
        let plain = |text: &str| anstream::adapter::strip_str(&markdown(text)).to_string();
        assert_eq!(plain("# Title\n- `a`: **b**"), "Title\n- a: b");
        assert_eq!(plain("a ` b"), "a ` b");
        assert_eq!(plain("```\n# x\n```"), "```\n# x\n```");
    }
}
