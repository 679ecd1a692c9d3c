//! Prints for people: answers to stdout, everything else to stderr, with colours and width as
//! the terminal allows. Text of others is escaped, so that it cannot control the terminal.
//!
//! Nothing here is used while stdout carries MCP.

use std::borrow::Cow;
use std::io::{ErrorKind, IsTerminal, Write};
use std::sync::OnceLock;

use anstyle::{AnsiColor, Style};
pub(crate) use artifacts::gate::thousands;
use tool::text::{self, is_control_or_invisible};

pub(crate) const HEADING: Style = Style::new().bold();
pub(crate) const DIM: Style = Style::new().dimmed();
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
pub(crate) const WARNING: Style = AnsiColor::Yellow.on_default().bold();
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();
pub(crate) const PLACE: Style = AnsiColor::Cyan.on_default();

/// When colours are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ColorMode {
    Auto,
    Always,
    Never,
}

impl ColorMode {
    /// Sets this for everything that is printed from now on.
    pub(crate) fn write_global(self) {
        let choice = match self {
            ColorMode::Auto => anstream::ColorChoice::Auto,
            ColorMode::Always => anstream::ColorChoice::Always,
            ColorMode::Never => anstream::ColorChoice::Never,
        };
        choice.write_global();
    }
}

/// The first error of writing to stdout. It is checked once, when the command ends.
static WRITE_ERROR: OnceLock<std::io::Error> = OnceLock::new();

/// Escapes text from outside: control characters, invisible ones and those that change the
/// direction of writing are shown as `\u{1b}`. Line ends and tabs stay.
///
/// All text of upstreams goes through this before it is painted.
pub(crate) fn foreign(text: &str) -> Cow<'_, str> {
    text::escape_invisible(text)
}

/// Escapes a name from outside, line ends too, so that it cannot forge a line of ours.
pub(crate) fn foreign_line(text: &str) -> Cow<'_, str> {
    text::escape_invisible_line(text)
}

/// Renders JSON for programs. Invisible characters are escaped as JSON escapes them, so that
/// they do nothing to a terminal.
pub(crate) fn json_text(value: &(impl serde::Serialize + ?Sized)) -> serde_json::Result<String> {
    let document = serde_json::to_string_pretty(value)?;
    if !document.contains(is_control_or_invisible) {
        return Ok(document);
    }
    let mut escaped = String::with_capacity(document.len() + 16);
    // JSON has such characters only inside of strings.
    for c in document.chars() {
        if !is_control_or_invisible(c) {
            escaped.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            escaped.push_str(&format!("\\u{unit:04x}"));
        }
    }
    Ok(escaped)
}

/// Escapes every control character except colour codes in text of our own, in case that
/// foreign text got into it unescaped.
pub(crate) fn colours_only(text: &str) -> Cow<'_, str> {
    if !text.contains(is_control_or_invisible) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(is_control_or_invisible) {
        shown.push_str(&rest[..at]);
        rest = &rest[at..];
        let length = colour_code_length(rest).unwrap_or(0);
        shown.push_str(&rest[..length]);
        rest = &rest[length..];
        if length == 0
            && let Some(character) = rest.chars().next()
        {
            shown.push_str(&foreign(&rest[..character.len_utf8()]));
            rest = &rest[character.len_utf8()..];
        }
    }
    shown.push_str(rest);
    Cow::Owned(shown)
}

/// The length of the colour code with which a text begins, if it does.
fn colour_code_length(text: &str) -> Option<usize> {
    let rest = text.strip_prefix("\u{1b}[")?;
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != ';')?;
    rest[end..].starts_with('m').then_some("\u{1b}[".len() + end + 1)
}

/// Prints an answer to stdout. A closed pipe is ignored; other errors are kept for
/// [`write_error`].
pub(crate) fn out(text: &str) {
    let mut stdout = anstream::stdout().lock();
    let text = colours_only(text);
    let end: &[u8] = if text.ends_with('\n') { b"" } else { b"\n" };
    let written = stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.write_all(end))
        .and_then(|()| stdout.flush());
    match written {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            let _ = WRITE_ERROR.set(error);
        }
        Ok(()) | Err(_) => {}
    }
}

/// Replaces everything on the terminal by a page.
pub(crate) fn fill_screen(page: &str) {
    let mut stdout = anstream::stdout().lock();
    // Cursor home, the page, and clear the rest of the screen.
    let page = colours_only(page).replace('\n', "\u{1b}[K\n");
    let _ = write!(stdout, "\u{1b}[H{page}\u{1b}[K\n\u{1b}[J").and_then(|()| stdout.flush());
}

/// The first error of printing an answer, if there was one.
pub(crate) fn write_error() -> Option<&'static std::io::Error> {
    WRITE_ERROR.get()
}

/// Prints a message for the person at the terminal to stderr.
pub(crate) fn say(text: &str) {
    let mut stderr = anstream::stderr().lock();
    let text = colours_only(text);
    let _ = stderr.write_all(text.as_bytes());
    if !text.ends_with('\n') {
        let _ = stderr.write_all(b"\n");
    }
}

/// Whether stdout is a terminal.
pub(crate) fn is_read_by_a_person() -> bool {
    std::io::stdout().is_terminal()
}

/// `text` in `style`; the colour codes are removed when it is printed where colours are off.
pub(crate) fn paint(style: Style, text: impl std::fmt::Display) -> String {
    format!("{style}{text}{style:#}")
}

/// The width of the terminal in columns.
pub(crate) fn width() -> u16 {
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok();
    size.map(|size| size.ws_col).filter(|columns| *columns != 0).unwrap_or(80)
}

/// An empty table with these column headings, as wide as the terminal allows.
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

/// A cell of a table in a style. The table measures texts, so they must not contain colour
/// codes.
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

/// Renders Markdown with a little colour, and wraps lines on a terminal; fenced code stays as
/// it is. The text may come from outside.
pub(crate) fn markdown(text: &str) -> String {
    let columns = if is_read_by_a_person() { usize::from(width()) } else { usize::MAX };
    markdown_within(text, columns)
}

fn markdown_within(text: &str, columns: usize) -> String {
    let text = foreign(text);
    let mut fenced = false;
    let line = |line: &str| {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
            return paint(DIM, line);
        }
        // Lines of a table are not wrapped.
        if fenced || line.trim_start().starts_with('|') {
            return line.to_owned();
        }
        if line.starts_with('#') {
            return paint(HEADING, line.trim_start_matches('#').trim_start());
        }
        style_between(&style_between(&wrapped(line, columns), "`", PLACE), "**", HEADING)
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// Wraps a line between words. Further lines are indented under the first word of their
/// list item.
pub(crate) fn wrapped(line: &str, columns: usize) -> String {
    if line.chars().count() <= columns {
        return line.to_owned();
    }
    let blanks = line.len() - line.trim_start().len();
    let mark = line.trim_start().chars().take_while(|c| matches!(c, '-' | '*' | '>' | ' ')).count();
    let indent = " ".repeat((blanks + mark).min(columns / 2));
    let (mut lines, mut current) = (Vec::new(), line[..blanks].to_owned());
    let mut room = columns;
    for word in line[blanks..].split(' ') {
        let joined = current.chars().count() + 1 + word.chars().count();
        if !current.trim().is_empty() && room < joined {
            lines.push(std::mem::replace(&mut current, format!("{indent}{word}")));
            room = columns;
            continue;
        }
        if !current.is_empty() && current.len() != blanks {
            current.push(' ');
        }
        current.push_str(word);
    }
    lines.push(current);
    lines.join("\n")
}

/// Applies a style to the text between two marks, and removes the marks.
fn style_between(line: &str, mark: &str, style: Style) -> String {
    if !line.matches(mark).count().is_multiple_of(2) {
        return line.to_owned();
    }
    let parts = line.split(mark).enumerate();
    parts.map(|(at, part)| if at % 2 == 1 { paint(style, part) } else { part.to_owned() }).collect()
}

/// A spinner with a message, shown while a command works.
pub(crate) fn progress(message: &'static str) -> indicatif::ProgressBar {
    // Draws on stderr, and only when that is a terminal.
    let bar = indicatif::ProgressBar::new_spinner().with_message(message);
    bar.enable_steady_tick(std::time::Duration::from_millis(120));
    bar
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn plain(text: &str) -> String {
        anstream::adapter::strip_str(&markdown_within(text, usize::MAX)).to_string()
    }

    #[test]
    fn markdown_loses_no_text() {
        assert_eq!(plain("# Title\n- `a`: **b**"), "Title\n- a: b");
        assert_eq!(plain("a ` b"), "a ` b");
        assert_eq!(plain("```\n# x\n```"), "```\n# x\n```");
    }

    #[test]
    fn lines_are_broken_between_words_under_their_item() {
        assert_eq!(wrapped("- one two three four", 12), "- one two\n  three four");
        assert_eq!(wrapped("short", 12), "short");
        assert_eq!(wrapped("averylongwordindeed next", 8), "averylongwordindeed\nnext");
    }

    #[test]
    fn what_a_terminal_obeys_is_shown_instead() {
        let hostile = "a\u{1b}]0;title\u{7}b\u{0}c\u{202e}d\r\ne\rf";
        let shown = "a\\u{1b}]0;title\\u{7}b\\u{0}c\\u{202e}d\ne\\u{d}f";
        assert_eq!(foreign(hostile), shown);
        assert_eq!(foreign("plain\ttext\n"), "plain\ttext\n");
    }

    #[test]
    fn a_document_stays_json_whatever_names_hold() {
        let name = "\u{7f}\u{80}\u{9b}\u{200b}\u{202e}\u{2066}\u{2028}\u{feff}\u{e0041}\u{1b}é\n";
        let value = serde_json::json!({name: [name]});
        let written = json_text(&value).unwrap();
        assert_eq!(colours_only(&written), written);
        assert_eq!(serde_json::from_str::<serde_json::Value>(&written).unwrap(), value);
    }

    #[test]
    fn colours_of_ours_pass_and_nothing_else() {
        let ours = format!("{} and {}", paint(BAD, "bad"), paint(PLACE, "there"));
        assert_eq!(colours_only(&ours), ours);
        assert_eq!(colours_only("\u{1b}[2J"), "\\u{1b}[2J");
        assert_eq!(colours_only("\u{1b}[31"), "\\u{1b}[31");
    }

    /// Text with much in it that a terminal might obey.
    fn hostile() -> impl Strategy<Value = String> {
        let odd =
            "[\u{0}-\u{1f}\u{7f}-\u{9f}\u{200b}-\u{202e}\u{2066}-\u{2069}\\[m;0-9\\]a ]{0,40}";
        prop_oneof![odd.prop_map(String::from), any::<String>()]
    }

    proptest! {
        #[test]
        fn nothing_from_outside_moves_a_terminal(text in hostile()) {
            let obeyed = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
            prop_assert!(!foreign(&text).contains(obeyed));
            prop_assert!(!foreign(&text).contains(is_control_or_invisible));
            prop_assert!(!foreign_line(&text).contains(|c: char| c == '\n' || is_control_or_invisible(c)));
            // Painted or not, what is written holds colours and nothing else.
            for written in [markdown_within(&text, 20), paint(GOOD, &text), text.clone()] {
                let mut rest = &*colours_only(&written);
                while let Some(at) = rest.find(obeyed) {
                    rest = &rest[at..];
                    let length = colour_code_length(rest);
                    prop_assert!(length.is_some(), "{written:?}");
                    rest = &rest[length.unwrap_or(1)..];
                }
            }
        }
    }
}
