//! Lines that match.

use std::fmt::Write;

use regex::RegexBuilder;
use serde_json::json;

use crate::view::error::ViewError;
use crate::view::lines::split;
use crate::view::piece::{Budget, View, clip};

/// What to look for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grep {
    pub pattern: String,
    /// Lines to show around each match.
    pub context: usize,
    pub ignore_case: bool,
    /// The line to start at.
    pub start: usize,
}

/// Characters to show around a match in a line that is very long.
const AROUND: usize = 200;

/// The matching lines with their numbers, which `lines` understands.
///
/// The engine is linear in the text and the compiled pattern is bounded, so no
/// pattern can make this slow.
pub(super) fn grep(text: &str, grep: &Grep, budget: &Budget) -> Result<View, ViewError> {
    let regex = RegexBuilder::new(&grep.pattern)
        .case_insensitive(grep.ignore_case)
        .size_limit(1 << 20)
        .build()
        .map_err(|error| ViewError::Pattern(last_line(&error.to_string())))?;
    let lines = split(text);
    let (mut out, mut n_matches, mut shown_to, mut next) = (String::new(), 0_usize, 0, None);
    let mut shown_chars = 0;
    for (at, line) in lines.iter().enumerate().skip(grep.start) {
        let Some(found) = regex.find(line) else { continue };
        n_matches += 1;
        if next.is_some() {
            continue;
        }
        let from = at.saturating_sub(grep.context).max(shown_to);
        let to = grep.context.saturating_add(at + 1).min(lines.len());
        let mut block = String::new();
        for (number, other) in lines.iter().enumerate().take(to).skip(from) {
            let shown = match number == at {
                true => window(line, found.start(), found.end()),
                false => clip(other, 2 * AROUND).0.into_owned(),
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
        shown_to = to;
    }
    let from = grep.start.saturating_add(budget.first_line);
    let note = format!("{n_matches} matching lines from line {from} of {}", lines.len());
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

/// A line, or the part of it around the match when it is very long.
fn window(line: &str, start: usize, end: usize) -> String {
    if line.chars().count() <= 2 * AROUND {
        return line.to_owned();
    }
    let before: String = line[..start].chars().rev().take(AROUND).collect();
    let before: String = before.chars().rev().collect();
    let matched: String = line[start..end].chars().take(AROUND).collect();
    let after: String = line[end..].chars().take(AROUND).collect();
    let cut = |cut: bool| if cut { "…" } else { "" };
    let (left, right) = (before.len() < start, after.len() < line.len() - end);
    format!("{}{before}{matched}{after}{}", cut(left), cut(right))
}

fn last_line(text: &str) -> String {
    text.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned()
}
