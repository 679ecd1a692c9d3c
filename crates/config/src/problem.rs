//! The problems of a configuration, each with its place, and how they are shown.

use std::fmt;
use std::sync::Arc;

use anstyle::{AnsiColor, Style};
use document::tree::{Node, Path, Span};
use redact::{MASK, Scrubber};

/// A document and where it came from.
#[derive(Clone, Debug)]
pub struct Source {
    /// How the file is called in messages.
    pub name: String,
    pub text: String,
}

impl Source {
    /// Returns whether this is to be read as JSON: by its name, else by how it
    /// starts.
    pub(crate) fn is_json(&self) -> bool {
        let name = self.name.to_ascii_lowercase();
        if name.ends_with(".toml") {
            return false;
        }
        let start = self.text.trim_start_matches('\u{feff}').trim_start();
        name.ends_with(".json") || name.ends_with(".jsonc") || start.starts_with(['{', '/'])
    }

    /// Returns whether this is to be read as YAML, which only its name tells.
    pub(crate) fn is_yaml(&self) -> bool {
        let name = self.name.to_ascii_lowercase();
        name.ends_with(".yaml") || name.ends_with(".yml")
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    Error,
    /// Something is not as it seems to be meant, but the rest can be used.
    Warning,
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    pub weight: Weight,
    pub span: Span,
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

/// Everything that was found wrong in one document.
#[derive(Clone, Debug, thiserror::Error)]
pub struct Problems {
    document: Arc<Source>,
    root: Arc<Node>,
    list: Vec<Problem>,
    /// The items of lists that were left out; what is found from then on is
    /// counted without them.
    gaps: Vec<Path>,
}

impl Problems {
    pub fn new(source: Source, root: Node) -> Problems {
        let (list, gaps) = (Vec::new(), Vec::new());
        Problems { document: Arc::new(source), root: Arc::new(root), list, gaps }
    }

    /// Leaves out these items of lists from now on.
    pub fn leave(&mut self, gaps: Vec<Path>) {
        self.gaps = gaps;
    }

    /// None of these, in the same document.
    pub fn empty(&self) -> Problems {
        Problems { list: Vec::new(), ..self.clone() }
    }

    pub fn into_errors(self) -> impl Iterator<Item = Problem> {
        self.list.into_iter().filter(|problem| problem.weight == Weight::Error)
    }

    pub fn push(&mut self, problem: Problem) {
        self.list.push(problem);
    }

    /// Notes that the value at `path` is wrong.
    pub fn error(&mut self, path: &Path, message: impl Into<String>, hint: Option<&str>) {
        self.add(Weight::Error, path, message.into(), hint);
    }

    /// Notes that `table` lacks `key`, unless it is there in a wrong shape,
    /// which is noted already.
    pub fn missing(&mut self, table: &Path, key: &str, message: &str, hint: &str) {
        if self.root.nearest(&table.across(&self.gaps)).get(key).is_none() {
            self.error(table, message, Some(hint).filter(|hint| !hint.is_empty()));
        }
    }

    /// Notes that the value at `path` is odd, though not in the way.
    pub fn warning(&mut self, path: &Path, message: impl Into<String>, hint: Option<&str>) {
        self.add(Weight::Warning, path, message.into(), hint);
    }

    fn add(&mut self, weight: Weight, path: &Path, message: String, hint: Option<&str>) {
        let path = path.across(&self.gaps);
        let span = self.root.nearest(&path).span.clone();
        let message = if path.is_root() { message } else { format!("`{path}`: {message}") };
        self.push(Problem { weight, span, message, hint: hint.map(str::to_owned) });
    }

    /// Notes something odd at a place.
    pub fn note(&mut self, span: Span, message: String) {
        self.push(Problem { weight: Weight::Warning, span, message, hint: None });
    }

    /// Reads the text at `path` with `read`, noting what `read` says against it.
    pub fn parse<T, E: fmt::Display>(
        &mut self,
        path: &Path,
        text: &str,
        read: impl FnOnce(&str) -> Result<T, E>,
    ) -> Option<T> {
        match read(text) {
            Ok(value) => Some(value),
            Err(error) => {
                self.error(path, error.to_string(), None);
                None
            }
        }
    }

    pub fn has_errors(&self) -> bool {
        self.list.iter().any(|problem| problem.weight == Weight::Error)
    }

    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// All problems, in the order in which they were found.
    pub fn iter(&self) -> impl Iterator<Item = &Problem> {
        self.list.iter()
    }

    /// Line and column of a byte, both counted from one, columns in characters.
    pub fn place(&self, at: usize) -> (usize, usize) {
        let before = self.document.text.get(..at).unwrap_or(&self.document.text);
        let line = before.matches('\n').count() + 1;
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        (line, before[start..].chars().count() + 1)
    }

    /// The errors on one line, for a log.
    pub fn summary(&self) -> String {
        let scrubber = Scrubber::default();
        let errors = self.list.iter().filter(|problem| problem.weight == Weight::Error);
        let line = |problem: &Problem| {
            let (line, column) = self.place(problem.span.start);
            let hint = problem.hint.as_ref();
            let hint =
                hint.map(|hint| format!(" ({})", masked(hint, &scrubber))).unwrap_or_default();
            let message = masked(&problem.message, &scrubber);
            format!("{}:{line}:{column} {message}{hint}", self.document.name)
        };
        let mut lines: Vec<String> = errors.clone().take(MOST_SHOWN).map(line).collect();
        lines.extend(unshown(errors.count()));
        lines.join("; ")
    }

    /// One problem as a compiler shows it: place, line, caret, hint.
    fn show(
        &self,
        problem: &Problem,
        scrubber: &Scrubber,
        f: &mut fmt::Formatter<'_>,
    ) -> fmt::Result {
        let (line, column) = self.place(problem.span.start);
        let (style, word) = match problem.weight {
            Weight::Error => (ERROR, "error"),
            Weight::Warning => (WARNING, "warning"),
        };
        writeln!(f, "{}: {}", paint(style, word), masked(&problem.message, scrubber))?;
        let place = format!("{}:{line}:{column}", self.document.name);
        writeln!(f, "  {} {}", paint(DIM, "-->"), paint(PLACE, place))?;
        let whole = self.document.text.lines().nth(line - 1).unwrap_or_default();
        let first = self.document.text.get(problem.span.clone()).unwrap_or_default();
        let wide = first.lines().next().unwrap_or_default().chars().count();
        let Window { text, before, wide } = window(&hidden(whole, scrubber), column - 1, wide);
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
        // What is in the way is shown before what is only odd.
        list.sort_by_key(|problem| (problem.weight, problem.span.start));
        let n_errors = list.iter().filter(|problem| problem.weight == Weight::Error).count();
        let counts = [count(n_errors, "error"), count(list.len() - n_errors, "warning")];
        let n_found = list.len();
        list.truncate(MOST_SHOWN);
        list.sort_by_key(|problem| problem.span.start);
        for problem in &list {
            self.show(problem, &scrubber, f)?;
            writeln!(f)?;
        }
        let counts: Vec<String> = counts.into_iter().flatten().chain(unshown(n_found)).collect();
        write!(f, "{}: {}", self.document.name, counts.join(", "))
    }
}

const ERROR: Style = AnsiColor::Red.on_default().bold();
const WARNING: Style = AnsiColor::Yellow.on_default().bold();
const PLACE: Style = AnsiColor::Cyan.on_default();
const DIM: Style = Style::new().dimmed();

/// `text` in `style`; who prints it takes the codes out where colours are off.
fn paint(style: Style, text: impl fmt::Display) -> String {
    format!("{style}{text}{style:#}")
}

/// How many problems are shown of one document.
const MOST_SHOWN: usize = 20;

/// How many characters are shown of a line, and of a message.
const WIDEST: usize = 100;
const LONGEST: usize = 1_000;

/// Returns what is said of problems that are not shown.
fn unshown(n_found: usize) -> Option<String> {
    let n_more = n_found.checked_sub(MOST_SHOWN).filter(|n_more| *n_more != 0)?;
    Some(format!("{n_more} of them not shown"))
}

/// A message as it may be read by anybody.
fn masked(message: &str, scrubber: &Scrubber) -> String {
    let message = scrubber.scrub(message);
    match message.char_indices().nth(LONGEST) {
        Some((at, _)) => format!("{}…", &message[..at]),
        None => message.into_owned(),
    }
}

/// The line with secrets made unreadable, every character in its column.
fn hidden(line: &str, scrubber: &Scrubber) -> String {
    let masked = scrubber.scrub(line);
    let (mut shown, mut rest) = (String::new(), line);
    let mut pieces = masked.split(MASK).peekable();
    while let Some(piece) = pieces.next() {
        // Only what the scrubber left is copied, wherever it is found.
        let at = if pieces.peek().is_some() { rest.find(piece) } else { rest.rfind(piece) };
        let (secret, after) = rest.split_at(at.unwrap_or(rest.len()));
        shown.extend(secret.chars().map(|_| '*'));
        let piece = after.get(..piece.len()).unwrap_or_default();
        shown += piece;
        rest = &after[piece.len()..];
    }
    shown
}

/// A part of a line.
struct Window {
    text: String,
    /// How many characters stand before what is pointed at.
    before: usize,
    /// How many are pointed at.
    wide: usize,
}

/// The part of a line around `wide` characters at `column`.
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
