//! Collects the errors and warnings of one configuration file and renders them like a
//! compiler: file, line, column, the source line and a hint, with secrets masked.

use std::fmt;
use std::sync::Arc;

use anstyle::{AnsiColor, Style};
use document::tree::{Node, Path, Span};
use redact::{MASK, Scrubber};
use tool::text::escape_invisible_line;

/// The text of a configuration file and the name of the file.
#[derive(Clone, Debug)]
pub struct SourceFile {
    /// The name of the file in messages.
    pub name: String,
    pub text: String,
}

impl SourceFile {
    /// Returns whether the text is JSON, judged by the file name, else by its first character.
    pub(crate) fn is_json(&self) -> bool {
        let name = self.name.to_ascii_lowercase();
        if name.ends_with(".toml") {
            return false;
        }
        let start = self.text.trim_start_matches('\u{feff}').trim_start();
        name.ends_with(".json") || name.ends_with(".jsonc") || start.starts_with(['{', '/'])
    }

    /// Returns whether the text is YAML, judged by the file name only.
    pub(crate) fn is_yaml(&self) -> bool {
        let name = self.name.to_ascii_lowercase();
        name.ends_with(".yaml") || name.ends_with(".yml")
    }
}

/// Whether a problem prevents the use of the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    Error,
    /// Something probably does not mean what its author intended; the rest can be used.
    Warning,
}

/// One error or warning.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    pub severity: Severity,
    /// The bytes of the file that are wrong.
    pub span: Span,
    pub message: String,
    /// How to fix it.
    pub hint: Option<String>,
}

/// All problems of one file.
#[derive(Clone, Debug, thiserror::Error)]
pub struct Problems {
    document: Arc<SourceFile>,
    root: Arc<Node>,
    list: Vec<Problem>,
    /// List items that were dropped because they do not fit the schema. Paths that are
    /// reported later count list items without them.
    dropped: Vec<Path>,
}

impl Problems {
    pub fn new(source: SourceFile, root: Node) -> Problems {
        let (list, dropped) = (Vec::new(), Vec::new());
        Problems { document: Arc::new(source), root: Arc::new(root), list, dropped }
    }

    /// Declares that paths reported from now on count list items without these.
    pub fn drop_items(&mut self, dropped: Vec<Path>) {
        self.dropped = dropped;
    }

    /// Returns an empty list of problems for the same file.
    pub fn new_empty(&self) -> Problems {
        Problems { list: Vec::new(), ..self.clone() }
    }

    pub fn into_errors(self) -> impl Iterator<Item = Problem> {
        self.list.into_iter().filter(|problem| problem.severity == Severity::Error)
    }

    /// Adds a problem. Its message may hold names of the file, which must not forge a line.
    pub fn push(&mut self, problem: Problem) {
        let message = escape_invisible_line(&problem.message).into_owned();
        self.list.push(Problem { message, ..problem });
    }

    /// Adds an error about the value at `path`.
    pub fn error(&mut self, path: &Path, message: impl Into<String>, hint: Option<&str>) {
        self.add(Severity::Error, path, message.into(), hint);
    }

    /// Adds an error that `table` lacks `key`, unless the key is present with a value of
    /// the wrong type, which is reported already.
    pub fn missing(&mut self, table: &Path, key: &str, message: &str, hint: &str) {
        if self.root.nearest(&table.in_whole_document(&self.dropped)).get(key).is_none() {
            self.error(table, message, Some(hint).filter(|hint| !hint.is_empty()));
        }
    }

    /// Adds a warning about the value at `path`.
    pub fn warning(&mut self, path: &Path, message: impl Into<String>, hint: Option<&str>) {
        self.add(Severity::Warning, path, message.into(), hint);
    }

    fn add(&mut self, severity: Severity, path: &Path, message: String, hint: Option<&str>) {
        let path = path.in_whole_document(&self.dropped);
        let span = self.root.nearest(&path).span.clone();
        let message = if path.is_root() { message } else { format!("`{path}`: {message}") };
        self.push(Problem { severity, span, message, hint: hint.map(str::to_owned) });
    }

    /// Adds a warning about a span of the file.
    pub fn warning_at(&mut self, span: Span, message: String) {
        self.push(Problem { severity: Severity::Warning, span, message, hint: None });
    }

    /// Parses the text at `path` with `parser`; the error of `parser` becomes a problem.
    pub fn parse<T, E: fmt::Display>(
        &mut self,
        path: &Path,
        text: &str,
        parser: impl FnOnce(&str) -> Result<T, E>,
    ) -> Option<T> {
        match parser(text) {
            Ok(value) => Some(value),
            Err(error) => {
                self.error(path, error.to_string(), None);
                None
            }
        }
    }

    pub fn has_errors(&self) -> bool {
        self.list.iter().any(|problem| problem.severity == Severity::Error)
    }

    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Returns all problems, in the order in which they were found.
    pub fn iter(&self) -> impl Iterator<Item = &Problem> {
        self.list.iter()
    }

    /// Returns line and column of a byte offset, both counted from 1, columns in characters.
    pub fn line_and_column(&self, offset: usize) -> (usize, usize) {
        let before = self.document.text.get(..offset).unwrap_or(&self.document.text);
        let line = before.matches('\n').count() + 1;
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        (line, before[start..].chars().count() + 1)
    }

    /// Renders the errors on one line, for a log.
    pub fn summary(&self) -> String {
        let scrubber = Scrubber::default();
        let errors = self.list.iter().filter(|problem| problem.severity == Severity::Error);
        let line = |problem: &Problem| {
            let (line, column) = self.line_and_column(problem.span.start);
            let hint = problem.hint.as_ref();
            let hint =
                hint.map(|hint| format!(" ({})", masked(hint, &scrubber))).unwrap_or_default();
            let message = masked(&problem.message, &scrubber);
            format!("{}:{line}:{column} {message}{hint}", self.document.name)
        };
        let mut lines: Vec<String> = errors.clone().take(MOST_SHOWN).map(line).collect();
        lines.extend(not_shown(errors.count()));
        lines.join("; ")
    }

    /// Renders one problem as a compiler does: position, source line, caret, hint.
    fn render(
        &self,
        problem: &Problem,
        scrubber: &Scrubber,
        f: &mut fmt::Formatter<'_>,
    ) -> fmt::Result {
        let (line, column) = self.line_and_column(problem.span.start);
        let (style, word) = match problem.severity {
            Severity::Error => (ERROR, "error"),
            Severity::Warning => (WARNING, "warning"),
        };
        writeln!(f, "{}: {}", paint(style, word), masked(&problem.message, scrubber))?;
        let place = format!("{}:{line}:{column}", self.document.name);
        writeln!(f, "  {} {}", paint(DIM, "-->"), paint(PLACE, place))?;
        let whole = self.document.text.lines().nth(line - 1).unwrap_or_default();
        let first = self.document.text.get(problem.span.clone()).unwrap_or_default();
        let wide = first.lines().next().unwrap_or_default().chars().count();
        let Window { text, before, wide } =
            window(&mask_in_place(whole, scrubber), column - 1, wide);
        let gutter = " ".repeat(line.to_string().len());
        let bar = paint(DIM, "|");
        let indent: String =
            text.chars().take(before).map(|c| if c == '\t' { c } else { ' ' }).collect();
        writeln!(f, "  {} {bar} {text}", paint(DIM, line))?;
        writeln!(f, "  {gutter} {bar} {indent}{}", paint(style, "^".repeat(wide)))?;
        if let Some(hint) = &problem.hint {
            writeln!(f, "  {gutter} {} {}", paint(DIM, "= hint:"), masked(hint, scrubber))?;
        }
        Ok(())
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scrubber = Scrubber::default();
        let mut list: Vec<&Problem> = self.list.iter().collect();
        // When not all can be shown, errors come before warnings.
        list.sort_by_key(|problem| (problem.severity, problem.span.start));
        let n_errors = list.iter().filter(|problem| problem.severity == Severity::Error).count();
        let counts = [count(n_errors, "error"), count(list.len() - n_errors, "warning")];
        let n_found = list.len();
        list.truncate(MOST_SHOWN);
        list.sort_by_key(|problem| problem.span.start);
        for problem in &list {
            self.render(problem, &scrubber, f)?;
            writeln!(f)?;
        }
        let counts: Vec<String> = counts.into_iter().flatten().chain(not_shown(n_found)).collect();
        write!(f, "{}: {}", self.document.name, counts.join(", "))
    }
}

const ERROR: Style = AnsiColor::Red.on_default().bold();
const WARNING: Style = AnsiColor::Yellow.on_default().bold();
const PLACE: Style = AnsiColor::Cyan.on_default();
const DIM: Style = Style::new().dimmed();

/// Wraps `text` in the codes of `style`; whoever prints it strips them when colours are off.
fn paint(style: Style, text: impl fmt::Display) -> String {
    format!("{style}{text}{style:#}")
}

/// How many problems of one file are rendered.
const MOST_SHOWN: usize = 20;

/// The most characters of a source line that are rendered.
const WIDEST: usize = 100;
/// The most characters of a message that are rendered.
const LONGEST: usize = 1_000;

/// Says how many problems are not rendered, if there are any.
fn not_shown(n_found: usize) -> Option<String> {
    let n_more = n_found.checked_sub(MOST_SHOWN).filter(|n_more| *n_more != 0)?;
    Some(format!("{n_more} of them not shown"))
}

/// Returns a message with secrets masked, cut to [`LONGEST`].
fn masked(message: &str, scrubber: &Scrubber) -> String {
    let message = scrubber.scrub(message);
    match message.char_indices().nth(LONGEST) {
        Some((at, _)) => format!("{}…", &message[..at]),
        None => message.into_owned(),
    }
}

/// Replaces secrets in a line with asterisks, so that every other character keeps its column.
fn mask_in_place(line: &str, scrubber: &Scrubber) -> String {
    let masked = scrubber.scrub(line);
    let (mut shown, mut rest) = (String::new(), line);
    let mut pieces = masked.split(MASK).peekable();
    while let Some(piece) = pieces.next() {
        // Only what the scrubber left unmasked is copied.
        let at = if pieces.peek().is_some() { rest.find(piece) } else { rest.rfind(piece) };
        let (secret, after) = rest.split_at(at.unwrap_or(rest.len()));
        shown.extend(secret.chars().map(|_| '*'));
        let piece = after.get(..piece.len()).unwrap_or_default();
        shown += piece;
        rest = &after[piece.len()..];
    }
    shown
}

/// The part of a source line that is rendered.
struct Window {
    text: String,
    /// How many characters stand before the caret.
    before: usize,
    /// How many characters the caret underlines.
    wide: usize,
}

/// Cuts a line to the part around the `wide` characters that start at `column`.
fn window(line: &str, column: usize, wide: usize) -> Window {
    let n_chars = line.chars().count();
    if n_chars <= WIDEST {
        return Window { text: line.to_owned(), before: column, wide: wide.max(1) };
    }
    let start = column.saturating_sub(WIDEST / 3).min(n_chars - WIDEST);
    let mut text: String = line.chars().skip(start).take(WIDEST).collect();
    let mut before = column - start;
    let wide = wide.min(WIDEST.saturating_sub(before)).max(1);
    if start + WIDEST < n_chars {
        text.push('…');
    }
    if start != 0 {
        text.insert(0, '…');
        before += 1;
    }
    Window { text, before, wide }
}

fn count(n: usize, word: &str) -> Option<String> {
    match n {
        0 => None,
        1 => Some(format!("1 {word}")),
        _ => Some(format!("{n} {word}s")),
    }
}
