//! The `grep` view: lines that match a pattern.

use std::fmt::Write;
use std::ops::Range;

use offload::StopFlag;
use regex_automata::Input;
use regex_automata::meta::{BuildError, Regex};
use regex_automata::util::syntax;
use serde_json::json;

use crate::view::error::ViewError;
use crate::view::lines::split_lines;
use crate::view::piece::{Budget, View, clip};

/// The parameters of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grep {
    pub pattern: String,
    /// The number of lines to show before and after each match.
    pub context: usize,
    pub ignore_case: bool,
    /// The line to start at.
    pub start: usize,
    /// Whether to show only the number of matching lines.
    pub count: bool,
}

/// The number of bytes of a long line that are searched at once.
const WINDOW_BYTES: usize = 16 << 10;

/// The number of characters to show around a match in a very long line.
const EXCERPT_CHARS: usize = 200;

/// Shows the matching lines with their numbers. Where the text is of several files (a diff,
/// or what `head` prints of several), the file stands before its first line that is shown.
///
/// The engine is linear in the text and the compiled pattern is bounded. Some
/// patterns take long all the same, so `stop` is checked at every line, and at
/// every [`WINDOW_BYTES`] of a long one.
pub(super) fn grep(
    text: &str,
    grep: &Grep,
    budget: &Budget,
    stop: &StopFlag,
) -> Result<View, ViewError> {
    let regex = Regex::builder()
        .syntax(syntax::Config::new().case_insensitive(grep.ignore_case))
        .configure(Regex::config().nfa_size_limit(Some(1 << 20)))
        .build(&grep.pattern)
        .map_err(|error| ViewError::Pattern(reason(&error)))?;
    let lines = split_lines(text);
    let (mut out, mut n_matches, mut shown_end, mut next) = (String::new(), 0_usize, 0, None);
    let (mut shown_chars, mut file, mut shown_file) = (0, None, None);
    for (at, line) in lines.iter().enumerate() {
        file = file_header(&lines, at).or(file);
        if at < grep.start {
            continue;
        }
        let Some(found) = find(&regex, line, stop)? else { continue };
        n_matches += 1;
        if grep.count || next.is_some() {
            continue;
        }
        let from = at.saturating_sub(grep.context).max(shown_end);
        let to = grep.context.saturating_add(at + 1).min(lines.len());
        let mut block = String::new();
        // A header that is shown names its file itself.
        let is_told = file == shown_file || (from..to).any(|at| file_header(&lines, at) == file);
        if let Some(file) = file.filter(|_| !is_told) {
            let _ = writeln!(block, "[in {}]", clip(file, EXCERPT_CHARS).0);
        }
        for (number, other) in lines.iter().enumerate().take(to).skip(from) {
            let shown = match number == at {
                true => excerpt(line, found.start, found.end),
                false => clip(other, 2 * EXCERPT_CHARS).0.into_owned(),
            };
            let mark = if number == at { ':' } else { '-' };
            let _ = writeln!(block, "{}{mark}{shown}", number + budget.first_line);
        }
        let length = block.chars().count();
        if budget.chars < shown_chars + length && !out.is_empty() {
            next = Some(at);
            continue;
        }
        out.push_str(&block);
        shown_chars += length;
        (shown_end, shown_file) = (to, file);
    }
    let from = grep.start.saturating_add(budget.first_line);
    let note = format!("{n_matches} matching lines from line {from} of {}", lines.len());
    if grep.count {
        return Ok(View::text(n_matches.to_string(), note, None));
    }
    let next = next.map(|at| {
        let mut next = json!({"type": "grep", "pattern": grep.pattern, "start": at});
        if grep.context != 0 {
            next["context"] = json!(grep.context);
        }
        if grep.ignore_case {
            next["ignore_case"] = json!(true);
        }
        next
    });
    out.truncate(out.trim_end_matches('\n').len());
    let (shown, whole) = clip(&out, budget.chars);
    let (mark, cut) = match whole {
        true => ("", String::new()),
        false => ("…", format!("; cut after {} chars: ask for less context", budget.chars)),
    };
    Ok(View::text(format!("{shown}{mark}"), format!("{note}{cut}"), next))
}

/// The file that begins at a line: of a diff (`+++ b/file`, and the lines before it), or
/// after `==> file <==`.
fn file_header<'a>(lines: &[&'a str], at: usize) -> Option<&'a str> {
    let line = lines[at];
    if let Some(name) = line.strip_prefix("==> ") {
        return name.strip_suffix(" <==");
    }
    if let Some(names) = line.strip_prefix("diff --git ") {
        return names.rsplit_once(" b/").map(|(_, name)| name);
    }
    // Within a diff, a changed line may begin with these signs, too.
    let begins = |at: usize, sign: &str| lines.get(at).and_then(|line| line.strip_prefix(sign));
    let old = match line.strip_prefix("--- ") {
        Some(old) => old,
        None => begins(at.checked_sub(1)?, "--- ").filter(|_| line.starts_with("+++ "))?,
    };
    let at = if line.starts_with("--- ") { at + 1 } else { at };
    let (new, _) = (begins(at, "+++ ")?, begins(at + 1, "@@ ")?);
    let plain = |name: &'a str, side: &str| {
        let name = name.split('\t').next().unwrap_or_default();
        name.strip_prefix(side).unwrap_or(name)
    };
    Some(match plain(new, "b/") {
        "/dev/null" => plain(old, "a/"),
        new => new,
    })
}

/// Finds the first match in a line. In a very long line, a match of more than half
/// of [`WINDOW_BYTES`] may be found in part.
fn find(regex: &Regex, line: &str, stop: &StopFlag) -> Result<Option<Range<usize>>, ViewError> {
    let mut start = 0;
    loop {
        if stop.is_set() {
            return Err(ViewError::Stopped);
        }
        let end = line.len().min(start + WINDOW_BYTES);
        if let Some(found) = regex.find(Input::new(line).range(start..end)) {
            return Ok(Some(found.range()));
        }
        if end == line.len() {
            return Ok(None);
        }
        start += WINDOW_BYTES / 2;
    }
}

/// Returns the line, or the part of it around the match if it is very long.
fn excerpt(line: &str, start: usize, end: usize) -> String {
    if line.chars().count() <= 2 * EXCERPT_CHARS {
        return line.to_owned();
    }
    let before: String = line[..start].chars().rev().take(EXCERPT_CHARS).collect();
    let before: String = before.chars().rev().collect();
    let matched: String = line[start..end].chars().take(EXCERPT_CHARS).collect();
    let after: String = line[end..].chars().take(EXCERPT_CHARS).collect();
    let cut = |cut: bool| if cut { "…" } else { "" };
    let (left, right) = (before.len() < start, after.len() < line.len() - end);
    format!("{}{before}{matched}{after}{}", cut(left), cut(right))
}

/// Renders the error of a pattern as one line.
fn reason(error: &BuildError) -> String {
    let text = match (error.syntax_error(), error.size_limit()) {
        (Some(error), _) => error.to_string(),
        (None, Some(_)) => "it is too large when compiled".to_owned(),
        (None, None) => error.to_string(),
    };
    text.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned()
}
