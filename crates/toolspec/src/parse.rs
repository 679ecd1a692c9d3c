//! Parses a specification document. This never fails: damaged parts are reported.

pub(crate) mod body;
pub(crate) mod fields;
mod json;
pub(crate) mod names;

use crate::block::{Block, BlockKind, scan};
use crate::document::{Document, DocumentedTool, Heading, Located, Topic};
use crate::finding::{Finding, Position};
use crate::markdown::{label, pairs};
use names::{bare_bullet_tool, inventory_tools, says_no_tools, tool_names};

/// Parses a document, and returns the findings about damaged parts.
pub fn parse(text: &str) -> (Document, Vec<Finding>) {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let (blocks, mut findings) = scan(text);
    let mut document = Document::default();
    parse_front(&blocks, &mut document);
    let starts = tool_starts(&blocks);
    let first = starts.first().map_or(blocks.len(), |start| start.block);
    document.says_no_tools = blocks[..first].iter().find_map(says_no_tools);
    for start in &starts {
        let end = tool_end(&blocks, start, &starts);
        let body = &blocks[start.block + 1..end];
        let last_line = blocks.get(end).map_or_else(|| text.lines().count(), |b| b.lines.start);
        let tools = body::parse(start.heading.clone(), body, last_line + 1, &mut findings);
        document.tools.extend(tools);
    }
    if document.tools.is_empty() && document.says_no_tools.is_none() {
        document.tools = loose_tools(&blocks);
    }
    findings.sort_by_key(|finding| finding.place);
    (document, findings)
}

/// Parses the title, and metadata such as `**Version**: … | **Status**: …` below it.
fn parse_front(blocks: &[Block], document: &mut Document) {
    for block in blocks {
        match &block.kind {
            BlockKind::Heading { level: 1, text } if document.title.is_none() => {
                document.title = Some(located(text, block));
            }
            BlockKind::Heading { level, .. } if 1 < *level => break,
            BlockKind::Text(text) => {
                for (offset, line) in text.lines().enumerate() {
                    let place = Position::line(block.lines.start + 1 + offset);
                    for (name, value) in pairs(line) {
                        document.metadata.push((name, Located { value, place }));
                    }
                }
            }
            BlockKind::Bullet { text, .. } => {
                if let Some((name, value)) = label(text) {
                    document.metadata.push((name.to_owned(), located(value, block)));
                }
            }
            BlockKind::Heading { .. }
            | BlockKind::Fence { .. }
            | BlockKind::Table(_)
            | BlockKind::Rule
            | BlockKind::Comment => {}
        }
    }
}

fn located(text: &str, block: &Block) -> Located<String> {
    Located { value: text.to_owned(), place: Position::line(block.lines.start + 1) }
}

/// The heading of a tool, and the index of its block.
struct ToolStart {
    block: usize,
    heading: Heading,
}

/// Finds the headings that introduce tools. Inside a tool, a deeper heading is a section,
/// never another tool.
fn tool_starts(blocks: &[Block]) -> Vec<ToolStart> {
    let mut starts: Vec<ToolStart> = Vec::new();
    let mut inside: Option<usize> = None;
    let mut in_group = false;
    let marked = blocks.iter().any(|block| match &block.kind {
        BlockKind::Heading { text, .. } => names::marked(text).is_some(),
        BlockKind::Fence { .. }
        | BlockKind::Table(_)
        | BlockKind::Bullet { .. }
        | BlockKind::Text(_)
        | BlockKind::Rule
        | BlockKind::Comment => false,
    });
    for (at, block) in blocks.iter().enumerate() {
        let BlockKind::Heading { level, text } = &block.kind else { continue };
        if inside.is_some_and(|tool_level| tool_level < *level) {
            continue;
        }
        inside = None;
        let context = names::HeadingContext {
            in_group,
            marked,
            has_sections: has_sections(&blocks[at + 1..], *level),
        };
        let names = match level {
            2..=4 => tool_names(text, context),
            _ => None,
        };
        match names {
            Some(names) => {
                inside = Some(*level);
                let place = Position {
                    line: block.lines.start + 1,
                    column: 1,
                    length: level + 1 + text.chars().count(),
                };
                let heading = Heading { place, level: *level, text: text.clone(), names };
                starts.push(ToolStart { block: at, heading });
            }
            None => in_group = names::is_group(text) || (in_group && 2 < *level),
        }
    }
    starts
}

/// Returns whether a heading of this level is followed by what a tool has: what it
/// is called, what goes in or what comes out.
fn has_sections(after: &[Block], level: usize) -> bool {
    for block in after {
        let title = match &block.kind {
            BlockKind::Heading { level: other, .. } if *other <= level => return false,
            BlockKind::Heading { text, .. } => text.as_str(),
            BlockKind::Text(text) => label(text).map_or("", |(name, _)| name),
            BlockKind::Fence { .. }
            | BlockKind::Table(_)
            | BlockKind::Bullet { .. }
            | BlockKind::Rule
            | BlockKind::Comment => continue,
        };
        let topic = Topic::from_title(title);
        if matches!(topic, Some(Topic::Invocation | Topic::Input | Topic::Output)) {
            return true;
        }
    }
    false
}

/// Returns the index of the block after the last one of a tool.
fn tool_end(blocks: &[Block], start: &ToolStart, starts: &[ToolStart]) -> usize {
    let next = starts.iter().map(|other| other.block).find(|&other| start.block < other);
    let limit = next.unwrap_or(blocks.len());
    let outer = blocks[start.block + 1..limit].iter().position(|block| match block.kind {
        BlockKind::Heading { level, .. } => level <= start.heading.level,
        BlockKind::Fence { .. }
        | BlockKind::Table(_)
        | BlockKind::Bullet { .. }
        | BlockKind::Text(_)
        | BlockKind::Rule
        | BlockKind::Comment => false,
    });
    outer.map_or(limit, |offset| start.block + 1 + offset)
}

/// Finds tools in a document without headings for them: in a table of tools, or in bullets.
fn loose_tools(blocks: &[Block]) -> Vec<DocumentedTool> {
    for block in blocks {
        if let BlockKind::Table(table) = &block.kind
            && let Some(rows) = inventory_tools(table)
        {
            return rows.into_iter().map(|row| body::tool_from_row(&row)).collect();
        }
    }
    let mut in_group = false;
    let mut tools = Vec::new();
    for block in blocks {
        match &block.kind {
            BlockKind::Heading { text, .. } => in_group = names::is_group(text),
            BlockKind::Bullet { indent: 0 | 1, text } if in_group => {
                if let Some((name, rest)) = bare_bullet_tool(text) {
                    let place = Position::line(block.lines.start + 1);
                    tools.push(body::tool_from_bullet(name, rest, place));
                }
            }
            BlockKind::Bullet { .. }
            | BlockKind::Fence { .. }
            | BlockKind::Table(_)
            | BlockKind::Text(_)
            | BlockKind::Rule
            | BlockKind::Comment => {}
        }
    }
    tools
}
