//! Finds the parts of a text that every Markdown parser takes for code.
//!
//! Parsers differ about odd back-ticks, indented fences, tables and raw HTML. From the
//! first place where they could differ, nothing counts as code: a wrong "yes" would let a
//! script element through, a wrong "no" only removes text that mentions one.

use std::ops::Range;

/// Returns the byte ranges of code spans and fenced blocks, in order.
pub(super) fn code_ranges(text: &str) -> Vec<Range<usize>> {
    let mut scanner = Scanner { found: Vec::new(), fence: None, clear: true };
    // A lone carriage return ends a line for some parsers.
    if text.contains('\r') {
        return Vec::new();
    }
    let mut start = 0;
    for line in text.split('\n') {
        if scanner.line(start, line).is_err() {
            break;
        }
        start += line.len() + 1;
    }
    scanner.found
}

/// The error that from here on parsers may differ.
struct Doubtful;

/// Scans a text line by line.
struct Scanner {
    found: Vec<Range<usize>>,
    fence: Option<Fence>,
    /// Whether nothing in this paragraph leaves a span or a tag open.
    clear: bool,
}

/// The opening line of a fenced block.
struct Fence {
    start: usize,
    indent: usize,
    mark: char,
    length: usize,
}

impl Scanner {
    fn line(&mut self, start: usize, line: &str) -> Result<(), Doubtful> {
        let body = line.trim_start_matches(' ');
        let indent = line.len() - body.len();
        let blank = line.trim_matches([' ', '\t']).is_empty();
        if let Some(fence) = self.fence.take() {
            return self.fenced(fence, start + line.len(), indent, body, blank);
        }
        if blank {
            self.clear = true;
            return Ok(());
        }
        if !body.contains("```") && !body.contains("~~~") {
            return self.spans(start, line);
        }
        let fence = opening(start, indent, body).filter(|_| self.clear);
        self.fence = Some(fence.ok_or(Doubtful)?);
        Ok(())
    }

    /// Scans a line inside a fenced block.
    fn fenced(
        &mut self,
        fence: Fence,
        end: usize,
        indent: usize,
        body: &str,
        blank: bool,
    ) -> Result<(), Doubtful> {
        let bare = body.trim_start_matches(|c: char| c == '>' || c.is_whitespace()).trim_end();
        let run = bare.chars().take_while(|c| *c == fence.mark).count();
        let looks_closing = fence.length <= run && run == bare.chars().count();
        let closes = looks_closing && body.trim_end_matches([' ', '\t']) == bare;
        if closes && indent == fence.indent {
            self.found.push(fence.start..end);
            return Ok(());
        }
        // In a list, a line that is indented less ends the block.
        if looks_closing || (!blank && indent < fence.indent) {
            return Err(Doubtful);
        }
        self.fence = Some(fence);
        Ok(())
    }

    /// Finds the code spans in a line of prose.
    fn spans(&mut self, start: usize, line: &str) -> Result<(), Doubtful> {
        let bytes = line.as_bytes();
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            match byte {
                b'\\' => at += 2,
                b'`' => at = self.span(start, line, at),
                b'<' => at = self.tag(line, at)?,
                _ => at += 1,
            }
        }
        Ok(())
    }

    /// Scans a code span, and returns where it ends.
    fn span(&mut self, start: usize, line: &str, open: usize) -> usize {
        let ticks = run(line, open);
        let mut at = open + ticks;
        while let Some(found) = line[at..].find('`') {
            let close = at + found;
            at = close + run(line, close);
            if at - close == ticks {
                // In a table every pipe ends a cell, also in code.
                if self.clear && !line[open..at].contains('|') {
                    self.found.push(start + open..start + at);
                }
                return at;
            }
        }
        self.clear = false;
        open + ticks
    }

    /// Scans what may be raw HTML, in which back-ticks are not code; returns where to go on.
    fn tag(&mut self, line: &str, at: usize) -> Result<usize, Doubtful> {
        if let Some(end) = script(line, at) {
            return Ok(end);
        }
        let rest = &line[at + 1..];
        if rest.starts_with(|next: char| !next.is_whitespace()) {
            self.clear = false;
        }
        if let Some(comment) = rest.strip_prefix("!--") {
            return comment.find("-->").map(|end| at + 4 + end).ok_or(Doubtful);
        }
        let name = rest.split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or("");
        let is = |other: &&str| name.eq_ignore_ascii_case(other);
        let opens_line = line[..at].trim_matches([' ', '\t', '>', '-', '+', '*']).is_empty();
        // These elements do not end with their paragraph.
        let long = rest.starts_with(['!', '?'])
            || ["pre", "style", "textarea"].iter().any(is)
            || (opens_line && is(&"script"));
        if long { Err(Doubtful) } else { Ok(at + 1) }
    }
}

/// Returns where the script element ends that starts here, if it is plainly one. It is
/// removed from the text, so parsers never see its tag.
fn script(line: &str, at: usize) -> Option<usize> {
    let named = |at: usize, name: &str| {
        let start = line.get(at..at + name.len())?;
        let next = line[at + name.len()..].starts_with([' ', '>']);
        (next && start.eq_ignore_ascii_case(name)).then_some(at + name.len())
    };
    // The search ends at the next tag, so that a line is scanned once.
    let until = |at: usize, ends: &[char]| Some(at + line[at..].find(ends)?);
    let open = named(at, "<script")?;
    let body = until(open, &['>', '<', '`']).filter(|end| line[*end..].starts_with('>'))?;
    let close = named(until(body, &['<', '`'])?, "</script")?;
    let end = until(close, &['>', '<', '`']).filter(|end| line[*end..].starts_with('>'))?;
    Some(end + 1)
}

fn opening(start: usize, indent: usize, body: &str) -> Option<Fence> {
    let mark = body.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let length = body.chars().take_while(|c| *c == mark).count();
    let info = &body[length..];
    let plain = indent <= 3 && 3 <= length && !info.contains(['`', '~']);
    plain.then_some(Fence { start, indent, mark, length })
}

/// Returns the number of back-ticks from a position on.
fn run(line: &str, at: usize) -> usize {
    line[at..].bytes().take_while(|byte| *byte == b'`').count()
}
