//! Splits a document into blocks: headings, fences, tables, bullets and paragraphs.
//!
//! This is not a Markdown parser: it knows only the blocks that these documents consist
//! of, and it must notice damage (an unclosed fence, a torn table row) that a Markdown
//! parser would accept.

use std::ops::Range;

use crate::finding::{Finding, Position};
use crate::markdown::{is_delimiter_row, split_row};

/// One block, with the lines it covers (zero-based).
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Block {
    pub(crate) lines: Range<usize>,
    pub(crate) kind: BlockKind,
}

/// The kind of a block, and its content.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum BlockKind {
    Heading {
        level: usize,
        text: String,
    },
    Fence {
        language: String,
        body: String,
    },
    Table(Table),
    /// One bullet, and how many blanks are before it.
    Bullet {
        indent: usize,
        text: String,
    },
    /// A paragraph, its lines joined by line breaks.
    Text(String),
    /// A horizontal rule.
    Rule,
    Comment,
}

/// A table as it is written.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Table {
    pub(crate) header: Vec<String>,
    /// Each row with its line (zero-based).
    pub(crate) rows: Vec<(usize, Vec<String>)>,
}

/// Splits a text into blocks, and reports damage. Every line that is not blank is in
/// exactly one block.
pub(crate) fn scan(text: &str) -> (Vec<Block>, Vec<Finding>) {
    let lines: Vec<&str> = text.lines().collect();
    let mut scan = BlockScanner { lines: &lines, at: 0, blocks: Vec::new(), findings: Vec::new() };
    while scan.at < lines.len() {
        scan.step();
    }
    (scan.blocks, scan.findings)
}

struct BlockScanner<'a> {
    lines: &'a [&'a str],
    at: usize,
    blocks: Vec<Block>,
    findings: Vec<Finding>,
}

impl BlockScanner<'_> {
    fn step(&mut self) {
        let line = self.lines[self.at];
        let start = self.at;
        if line.trim().is_empty() {
            self.at += 1;
        } else if let Some(fence) = FenceStart::parse(line) {
            self.fence(&fence);
        } else if let Some((level, text)) = heading(line) {
            self.push_line(BlockKind::Heading { level, text });
        } else if line.trim_start().starts_with("<!--") {
            self.comment();
        } else if self.starts_table() {
            self.table();
        } else if is_rule(line) {
            self.push_line(BlockKind::Rule);
        } else if let Some((indent, text)) = bullet(line) {
            self.bullet(indent, text);
        } else {
            self.paragraph();
        }
        debug_assert!(start < self.at, "every step moves on");
    }

    fn push_line(&mut self, kind: BlockKind) {
        self.blocks.push(Block { lines: self.at..self.at + 1, kind });
        self.at += 1;
    }

    fn fence(&mut self, fence: &FenceStart) {
        let start = self.at;
        let mut end = start + 1;
        while end < self.lines.len() && !fence.closed_by(self.lines[end]) {
            end += 1;
        }
        let body: Vec<&str> =
            self.lines[start + 1..end].iter().map(|line| unindent(line, fence.indent)).collect();
        if end == self.lines.len() {
            let place = Position { line: start + 1, column: fence.indent + 1, length: fence.ticks };
            let finding = Finding::new("E01", place, "this fence is never closed");
            self.findings.push(finding.hint("close it with the same marks on a line of their own"));
        }
        self.at = (end + 1).min(self.lines.len());
        let kind = BlockKind::Fence { language: fence.language.clone(), body: body.join("\n") };
        self.blocks.push(Block { lines: start..self.at, kind });
    }

    fn comment(&mut self) {
        let start = self.at;
        while self.at < self.lines.len() && !self.lines[self.at].contains("-->") {
            self.at += 1;
        }
        self.at = (self.at + 1).min(self.lines.len());
        self.blocks.push(Block { lines: start..self.at, kind: BlockKind::Comment });
    }

    fn starts_table(&self) -> bool {
        self.lines[self.at].contains('|')
            && self.lines.get(self.at + 1).is_some_and(|next| is_delimiter_row(next))
    }

    fn table(&mut self) {
        let start = self.at;
        let header = split_row(self.lines[start]).cells;
        let mut rows = Vec::new();
        self.at += 2;
        while self.at < self.lines.len() && self.continues_table() {
            self.row(header.len(), &mut rows);
            self.at += 1;
        }
        let table = Table { header, rows };
        self.blocks.push(Block { lines: start..self.at, kind: BlockKind::Table(table) });
    }

    /// Returns whether the current line belongs to the table: it has a pipe, or a row
    /// follows, so that it is part of a cell that was torn by a line break.
    fn continues_table(&self) -> bool {
        let line = self.lines[self.at];
        if line.trim().is_empty() || heading(line).is_some() || FenceStart::parse(line).is_some() {
            return false;
        }
        if line.trim_start().starts_with('|') || line.contains(" | ") {
            return true;
        }
        let ends_row = line.trim_end().ends_with('|');
        let row_follows =
            self.lines.get(self.at + 1).is_some_and(|next| next.trim_start().starts_with('|'));
        ends_row || row_follows
    }

    fn row(&mut self, n_columns: usize, rows: &mut Vec<(usize, Vec<String>)>) {
        let line = self.lines[self.at];
        let row = split_row(line);
        let place = Position { line: self.at + 1, column: 1, length: line.chars().count() };
        let mut damage = |message: &str, hint: &str| {
            self.findings.push(Finding::new("E06", place, message).hint(hint));
        };
        if !line.trim_start().starts_with('|') && row.cells.len() != n_columns {
            return damage("a line break tore this row", "write the whole row on one line");
        }
        if !row.balanced {
            return damage(
                "this row has an odd number of back-ticks",
                "close the code span, or write a literal back-tick in a code span of two",
            );
        }
        if line.contains("\\ |") {
            return damage(
                "a pipe is half escaped: a blank stands between `\\` and `|`",
                "write `\\|` without the blank",
            );
        }
        if n_columns < row.cells.len() {
            let message = format!("this row has {} cells, the header {n_columns}", row.cells.len());
            return damage(&message, "escape a pipe that belongs to a cell: `\\|`");
        }
        if row.cells.len() < n_columns && row.cells.len() == 1 {
            let message = format!("this row has one cell, the header {n_columns}");
            return damage(&message, "a line break may have torn it: write it on one line");
        }
        rows.push((self.at, row.cells));
    }

    fn bullet(&mut self, indent: usize, text: String) {
        let start = self.at;
        let mut text = text;
        self.at += 1;
        while let Some(line) = self.lines.get(self.at).filter(|line| self.continues_text(line)) {
            text.push('\n');
            text.push_str(line.trim());
            self.at += 1;
        }
        self.blocks.push(Block { lines: start..self.at, kind: BlockKind::Bullet { indent, text } });
    }

    fn paragraph(&mut self) {
        let start = self.at;
        self.at += 1;
        while self.lines.get(self.at).is_some_and(|line| self.continues_text(line)) {
            self.at += 1;
        }
        let text: Vec<&str> = self.lines[start..self.at].iter().map(|line| line.trim()).collect();
        self.blocks.push(Block { lines: start..self.at, kind: BlockKind::Text(text.join("\n")) });
    }

    fn continues_text(&self, line: &str) -> bool {
        !line.trim().is_empty()
            && FenceStart::parse(line).is_none()
            && heading(line).is_none()
            && bullet(line).is_none()
            && !is_rule(line)
            && !self.starts_table()
            && crate::markdown::label(line).is_none()
    }
}

/// The first line of a fence.
struct FenceStart {
    mark: char,
    ticks: usize,
    indent: usize,
    language: String,
}

impl FenceStart {
    /// Parses a line; `None` if it does not start a fence.
    fn parse(line: &str) -> Option<FenceStart> {
        let body = line.trim_start();
        let mark = body.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
        let ticks = body.chars().take_while(|&letter| letter == mark).count();
        let rest = body[ticks..].trim();
        if ticks < 3 || (mark == '`' && rest.contains('`')) {
            return None;
        }
        let language = rest.split_whitespace().next().unwrap_or("").to_ascii_lowercase();
        Some(FenceStart { mark, ticks, indent: line.len() - body.len(), language })
    }

    /// Returns whether a line closes the fence.
    fn closed_by(&self, line: &str) -> bool {
        let body = line.trim();
        self.ticks <= body.len() && body.chars().all(|letter| letter == self.mark)
    }
}

fn unindent(line: &str, indent: usize) -> &str {
    let blanks = line.bytes().take(indent).take_while(|&byte| byte == b' ').count();
    &line[blanks..]
}

/// Parses a heading into its level and text.
fn heading(line: &str) -> Option<(usize, String)> {
    let body = line.trim_start();
    let level = body.bytes().take_while(|&byte| byte == b'#').count();
    if !(1..=6).contains(&level) || 3 < line.len() - body.len() {
        return None;
    }
    let text = &body[level..];
    if !text.is_empty() && !text.starts_with([' ', '\t']) {
        return None;
    }
    Some((level, text.trim().trim_end_matches('#').trim().to_owned()))
}

fn is_rule(line: &str) -> bool {
    let line = line.trim();
    3 <= line.len()
        && ["-", "*", "_"]
            .iter()
            .any(|mark| line.replace([' ', '\t'], "").replace(mark, "").is_empty())
}

/// Parses `- text`, `* text`, `+ text` or `1. text` into indentation and text.
fn bullet(line: &str) -> Option<(usize, String)> {
    let body = line.trim_start();
    let indent = line.len() - body.len();
    let digits = body.bytes().take_while(u8::is_ascii_digit).count();
    let rest = if digits == 0 {
        body.strip_prefix(['-', '*', '+'])?
    } else {
        body[digits..].strip_prefix(['.', ')'])?
    };
    rest.starts_with([' ', '\t']).then(|| (indent, rest.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<&'static str> {
        let name = |block: &Block| match block.kind {
            BlockKind::Heading { .. } => "heading",
            BlockKind::Fence { .. } => "fence",
            BlockKind::Table(_) => "table",
            BlockKind::Bullet { .. } => "bullet",
            BlockKind::Text(_) => "text",
            BlockKind::Rule => "rule",
            BlockKind::Comment => "comment",
        };
        scan(text).0.iter().map(name).collect()
    }

    fn codes(text: &str) -> Vec<&'static str> {
        scan(text).1.iter().map(|finding| finding.code).collect()
    }

    #[test]
    fn blocks_are_told_apart() {
        let text = "# t\ntext\nmore\n- a\n  b\n\n| a | b |\n|--|--|\n| 1 | 2 |\n---\n<!-- x\n-->\n```json\n# no\n```\n";
        assert_eq!(kinds(text), ["heading", "text", "bullet", "table", "rule", "comment", "fence"]);
        assert!(codes(text).is_empty());
    }

    #[test]
    fn an_open_fence_takes_the_rest_and_is_reported() {
        let (blocks, findings) = scan("a\n\n```json\n{}\n# x\n");
        assert_eq!(blocks.len(), 2);
        assert_eq!((findings[0].code, findings[0].place.line), ("E01", 3));
    }

    #[test]
    fn damaged_rows_are_reported_and_left_out() {
        let table = |row: &str| format!("| a | b |\n|---|---|\n{row}\n| 1 | 2 |\n");
        for row in ["| `x | y |", "| a | b | c |", "| x \\ | y |", "torn | ", "| only |"] {
            assert_eq!(codes(&table(row)), ["E06"], "{row}");
        }
        assert!(codes(&table("| `a|b` | c \\| d |")).is_empty());
    }
}
