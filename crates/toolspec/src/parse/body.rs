//! Parses the body of one tool: splits it into sections and parses each of them.

use serde_json::Value;

use super::fields;
use super::json::{self, Role, ToolParts};
use super::names::InventoryRow;
use crate::block::{Block, BlockKind};
use crate::document::{
    Call, DocumentedTool, Example, Heading, IoSpec, Located, Section, SectionMark, Topic,
};
use crate::finding::{Finding, Position};
use crate::markdown::{code_spans, label, pairs, plain};

/// The blocks of one section; `topic` is `None` for those before the first section.
struct RawSection {
    topic: Option<Topic>,
    form: SectionMark,
    title: String,
    place: Position,
    blocks: Vec<Block>,
}

/// Parses the body of a tool; returns several tools if they share a heading.
pub(super) fn parse(
    heading: Heading,
    blocks: &[Block],
    end: usize,
    findings: &mut Vec<Finding>,
) -> Vec<DocumentedTool> {
    let parts = split(&heading, blocks);
    let mut tool = empty(heading, end);
    for (at, part) in parts.iter().enumerate() {
        let next = parts.get(at + 1).map_or(end, |next| next.place.line);
        parse_part(part, next, &mut tool, findings);
    }
    complete(&mut tool);
    let names = tool.heading.names.clone();
    match names.as_slice() {
        [_, _, ..] => {
            names.into_iter().map(|name| DocumentedTool { name, ..tool.clone() }).collect()
        }
        [_] | [] => vec![tool],
    }
}

/// Makes a tool from a row of a table of tools.
pub(super) fn tool_from_row(row: &InventoryRow) -> DocumentedTool {
    let mut tool = tool_from_bullet(row.name.clone(), row.description.clone(), row.place);
    tool.input.fields = fields::fields_from_inline_code(&row.parameters, row.place);
    tool.input.nothing = fields::says_no_parameters(&row.parameters);
    if !tool.input.fields.is_empty() || tool.input.nothing {
        tool.sections.push(implied(Topic::Input, row.place, row.place.line + 1));
    }
    tool
}

/// Makes a tool from a bullet.
pub(super) fn tool_from_bullet(name: String, text: String, place: Position) -> DocumentedTool {
    let heading = Heading { place, level: 0, text: name.clone(), names: vec![name] };
    let mut tool = empty(heading, place.line + 1);
    tool.description = (!text.is_empty()).then_some(Located { value: text, place });
    tool
}

fn empty(heading: Heading, end: usize) -> DocumentedTool {
    DocumentedTool {
        name: heading.names.first().cloned().unwrap_or_default(),
        heading,
        end,
        invocation: None,
        version: None,
        title: None,
        annotations: None,
        description: None,
        sections: Vec::new(),
        input: IoSpec::default(),
        output: IoSpec::default(),
        idempotency: None,
        error_samples: Vec::new(),
        examples: Vec::new(),
    }
}

fn implied(topic: Topic, place: Position, end: usize) -> Section {
    Section {
        topic,
        form: SectionMark::Implied,
        title: String::new(),
        place,
        end,
        text: String::new(),
    }
}

fn split(heading: &Heading, blocks: &[Block]) -> Vec<RawSection> {
    let start = RawSection {
        topic: None,
        form: SectionMark::Implied,
        title: String::new(),
        place: Position::line(heading.place.line + 1),
        blocks: Vec::new(),
    };
    let mut parts = vec![start];
    for block in blocks {
        let line = block.lines.start + 1;
        match &block.kind {
            BlockKind::Heading { level, text } => {
                let place = Position { line, column: 1, length: level + 1 + text.chars().count() };
                parts.push(RawSection {
                    topic: Topic::from_title(text),
                    form: SectionMark::Heading(*level),
                    title: text.clone(),
                    place,
                    blocks: Vec::new(),
                });
            }
            BlockKind::Text(text) | BlockKind::Bullet { text, .. } => {
                let current = parts.last().map(|part| (part.topic, part.form));
                match section_label(text, &block.kind, current) {
                    Some((topic, title, rest)) => parts.push(RawSection {
                        topic: Some(topic),
                        form: SectionMark::Label,
                        title,
                        place: Position::line(line),
                        blocks: rest_block(block, &rest).into_iter().collect(),
                    }),
                    // `**Trust Level**: …` after `**Description**: …` is not part of it.
                    None if ends_label(text, current) => parts.push(RawSection {
                        topic: None,
                        form: SectionMark::Label,
                        title: String::new(),
                        place: Position::line(line),
                        blocks: vec![block.clone()],
                    }),
                    None => push(&mut parts, block),
                }
            }
            BlockKind::Fence { .. }
            | BlockKind::Table(_)
            | BlockKind::Rule
            | BlockKind::Comment => {
                push(&mut parts, block);
            }
        }
    }
    parts
}

fn push(parts: &mut [RawSection], block: &Block) {
    if let Some(part) = parts.last_mut() {
        part.blocks.push(block.clone());
    }
}

/// Returns whether a label that is not that of a section ends the labelled description
/// before it.
fn ends_label(text: &str, current: Option<(Option<Topic>, SectionMark)>) -> bool {
    current == Some((Some(Topic::Purpose), SectionMark::Label)) && label(text).is_some()
}

/// Returns the text after a label as a block of its own.
fn rest_block(block: &Block, rest: &str) -> Option<Block> {
    let text = rest.trim().to_owned();
    (!text.is_empty()).then(|| Block { lines: block.lines.clone(), kind: BlockKind::Text(text) })
}

/// Parses a label that opens a section: its topic, its title, and the text after it.
///
/// In sections that are prose (errors, security, …) a label such as `**Returns**` is part
/// of the text and opens nothing.
fn section_label(
    text: &str,
    kind: &BlockKind,
    current: Option<(Option<Topic>, SectionMark)>,
) -> Option<(Topic, String, String)> {
    let (first, more) = text.split_once('\n').unwrap_or((text, ""));
    let under_heading = matches!(current, Some((_, SectionMark::Heading(_))));
    let (name, rest) = match label(first) {
        Some(found) => found,
        // A parameter may be called `output`.
        None if matches!(kind, BlockKind::Bullet { .. }) && fields::is_item(first) => return None,
        None if matches!(kind, BlockKind::Bullet { .. }) && !under_heading => {
            let (name, rest) = first.split_once(':')?;
            (name.trim(), rest.trim())
        }
        None => return None,
    };
    let topic = Topic::from_title(name)?;
    let prose = [Topic::Errors, Topic::Security, Topic::Idempotency, Topic::Usage, Topic::Purpose];
    let inside = current.and_then(|(topic, _)| topic);
    if inside == Some(topic) || (under_heading && inside.is_some_and(|t| prose.contains(&t))) {
        return None;
    }
    let rest = if more.is_empty() { rest.to_owned() } else { format!("{rest}\n{more}") };
    Some((topic, name.to_owned(), rest))
}

fn parse_part(
    part: &RawSection,
    end: usize,
    tool: &mut DocumentedTool,
    findings: &mut Vec<Finding>,
) {
    if let Some(topic) = part.topic {
        tool.sections.push(Section {
            topic,
            form: part.form,
            title: part.title.clone(),
            place: part.place,
            end,
            text: prose(&part.blocks),
        });
    }
    match part.topic {
        None if part.form == SectionMark::Implied => parse_preamble(part, tool, findings),
        None if part.form == SectionMark::Label => {
            for (name, value) in pairs(&prose(&part.blocks)) {
                parse_metadata(&name, &value, part.place, tool);
            }
        }
        None => {}
        Some(Topic::Purpose) => {
            tool.description = tool.description.take().or_else(|| description(part));
        }
        Some(Topic::Invocation) => {
            tool.invocation = tool.invocation.take().or_else(|| invocation(part));
        }
        Some(Topic::Input) => parse_input(&part.blocks, tool, findings),
        Some(Topic::Output) => {
            parse_io(&part.blocks, &mut tool.output, findings);
        }
        Some(Topic::Errors) => tool.error_samples.extend(parse_json_fences(&part.blocks, findings)),
        Some(Topic::Security) => drop(parse_json_fences(&part.blocks, findings)),
        Some(Topic::Idempotency) => {
            tool.idempotency = tool.idempotency.take().or_else(|| idempotency(part));
        }
        Some(Topic::Usage) => parse_examples(&part.blocks, tool),
    }
}

/// Parses the blocks between a tool's heading and its first section.
fn parse_preamble(part: &RawSection, tool: &mut DocumentedTool, findings: &mut Vec<Finding>) {
    let mut rest = Vec::new();
    for block in &part.blocks {
        let text = match &block.kind {
            BlockKind::Text(text) | BlockKind::Bullet { text, .. } => text,
            BlockKind::Heading { .. }
            | BlockKind::Fence { .. }
            | BlockKind::Table(_)
            | BlockKind::Rule
            | BlockKind::Comment => {
                rest.push(block.clone());
                continue;
            }
        };
        let found = pairs(text);
        if found.is_empty() {
            rest.push(block.clone());
        }
        for (name, value) in found {
            parse_metadata(&name, &value, Position::line(block.lines.start + 1), tool);
        }
    }
    let described = rest.iter().find_map(|block| match &block.kind {
        BlockKind::Text(text) => Some(located(text.clone(), block)),
        BlockKind::Heading { .. }
        | BlockKind::Fence { .. }
        | BlockKind::Table(_)
        | BlockKind::Bullet { .. }
        | BlockKind::Rule
        | BlockKind::Comment => None,
    });
    if let Some(text) = described {
        tool.sections.push(implied(Topic::Purpose, text.place, text.place.line + 1));
        tool.description = Some(text);
    }
    let only: Vec<Block> =
        rest.into_iter().filter(|block| !matches!(block.kind, BlockKind::Text(_))).collect();
    parse_input(&only, tool, findings);
    let input = &tool.input;
    if input.schema.is_some() || !input.fields.is_empty() || !input.tables.is_empty() {
        let place = input.tables.first().map_or(part.place, |table| table.place);
        tool.sections.push(implied(Topic::Input, place, place.line + 1));
    }
}

fn parse_metadata(name: &str, value: &str, place: Position, tool: &mut DocumentedTool) {
    let span =
        || code_spans(value).first().and_then(|span| serde_json::from_str::<Value>(span).ok());
    match name.to_lowercase().as_str() {
        "version" => {
            let version = plain(value).trim_start_matches(['v', 'V']).to_owned();
            tool.version = Some(Located { value: version, place });
        }
        "title" => {
            tool.title = match span() {
                Some(Value::String(title)) => Some(title),
                Some(_) | None => Some(plain(value)),
            };
        }
        "annotations" => tool.annotations = span().filter(Value::is_object),
        "description" | "purpose" => {
            tool.description = Some(Located { value: value.to_owned(), place });
        }
        _ => {}
    }
}

/// Returns the prose of blocks: paragraphs and bullets.
fn prose(blocks: &[Block]) -> String {
    let text = |block: &Block| match &block.kind {
        BlockKind::Text(text) => Some(text.clone()),
        BlockKind::Bullet { text, indent } => Some(format!("{}- {text}", " ".repeat(*indent))),
        BlockKind::Heading { .. }
        | BlockKind::Fence { .. }
        | BlockKind::Table(_)
        | BlockKind::Rule
        | BlockKind::Comment => None,
    };
    blocks.iter().filter_map(text).collect::<Vec<_>>().join("\n\n")
}

/// The sentence that generated documents have in place of a missing description.
pub(crate) const NO_DESCRIPTION: &str = "*No description.*";

/// Returns the description in a section: its `text` fence, else its prose.
fn description(part: &RawSection) -> Option<Located<String>> {
    let fenced = part.blocks.iter().find_map(|block| match &block.kind {
        BlockKind::Fence { language, body } if language == "text" => Some(body.clone()),
        BlockKind::Heading { .. }
        | BlockKind::Fence { .. }
        | BlockKind::Table(_)
        | BlockKind::Bullet { .. }
        | BlockKind::Text(_)
        | BlockKind::Rule
        | BlockKind::Comment => None,
    });
    let place =
        part.blocks.first().map_or(part.place, |block| Position::line(block.lines.start + 1));
    if let Some(value) = fenced {
        return Some(Located { value, place });
    }
    let value = prose(&part.blocks);
    let says = !value.is_empty() && value != NO_DESCRIPTION;
    says.then_some(Located { value, place })
}

/// Returns the name in a section about invocation: its first code span, else its first line.
fn invocation(part: &RawSection) -> Option<Located<String>> {
    let block = part
        .blocks
        .iter()
        .find(|block| matches!(block.kind, BlockKind::Text(_) | BlockKind::Bullet { .. }))?;
    let text = prose(std::slice::from_ref(block));
    let value = match code_spans(&text).first() {
        Some(span) => span.clone(),
        None => plain(text.trim_start_matches("- ").lines().next()?),
    };
    (!value.is_empty()).then(|| located(value, block))
}

fn located(value: String, block: &Block) -> Located<String> {
    Located { value, place: Position::line(block.lines.start + 1) }
}

/// Returns the value of a line such as `Idempotent: Yes` in a section, else its prose.
fn idempotency(part: &RawSection) -> Option<Located<String>> {
    for block in &part.blocks {
        let (BlockKind::Text(text) | BlockKind::Bullet { text, .. }) = &block.kind else {
            continue;
        };
        for line in text.lines() {
            if let Some((name, value)) = label(line)
                && name.to_lowercase().starts_with("idempoten")
            {
                return Some(located(value.to_owned(), block));
            }
        }
    }
    let text = prose(&part.blocks);
    (!text.is_empty()).then_some(Located { value: text, place: part.place })
}

fn parse_input(blocks: &[Block], tool: &mut DocumentedTool, findings: &mut Vec<Finding>) {
    for parts in parse_io(blocks, &mut tool.input, findings) {
        let place = tool.input.schema.as_ref().map_or(tool.heading.place, |schema| schema.place);
        if let (None, Some(name)) = (&tool.invocation, parts.name) {
            tool.invocation = Some(Located { value: name, place });
        }
        if let (None, Some(text)) = (&tool.description, parts.description) {
            tool.description = Some(Located { value: text, place });
            tool.sections.push(implied(Topic::Purpose, place, place.line + 1));
        }
        if let (None, Some(value)) = (&tool.output.schema, parts.output) {
            tool.output.schema = Some(Located { value, place });
        }
    }
}

/// Parses tables, fences, bullets and inline parameters of the input or the output.
/// Returns the tools that fences define completely.
fn parse_io(blocks: &[Block], side: &mut IoSpec, findings: &mut Vec<Finding>) -> Vec<ToolParts> {
    let mut tools = Vec::new();
    let mut bullets = Vec::new();
    for block in blocks {
        let place = Position::line(block.lines.start + 1);
        match &block.kind {
            BlockKind::Table(table) => {
                if let Some((found, shape)) = fields::fields_from_table(table, block) {
                    side.nothing |= found.is_empty();
                    side.fields.extend(found);
                    side.tables.push(shape);
                }
            }
            BlockKind::Fence { language, body } => {
                for value in values(language, body, place, findings) {
                    tools.extend(take_value(value, place, side));
                }
            }
            BlockKind::Bullet { .. } => bullets.push(block.clone()),
            BlockKind::Text(text) => {
                side.nothing |= fields::says_no_parameters(text);
                match inline_schema(text) {
                    Some(value) => tools.extend(take_value(value, place, side)),
                    None => side.fields.extend(fields::fields_from_inline_code(text, place)),
                }
            }
            BlockKind::Heading { .. } | BlockKind::Rule | BlockKind::Comment => {}
        }
    }
    if side.tables.is_empty() {
        side.fields.extend(fields::fields_from_bullets(&bullets));
    }
    tools
}

/// Parses the first code span that holds a JSON object.
fn inline_schema(text: &str) -> Option<Value> {
    let span = code_spans(text).into_iter().find(|span| span.trim_start().starts_with('{'))?;
    serde_json::from_str(&span).ok()
}

/// Adds a JSON value to one side of a tool, as its schema or as a sample. Returns the parts
/// of a whole tool definition.
fn take_value(value: Value, place: Position, side: &mut IoSpec) -> Option<ToolParts> {
    match json::role(&value) {
        Role::Schema(schema) => {
            side.schema.get_or_insert(Located { value: schema, place });
            None
        }
        Role::Tool(mut parts) => {
            if let Some(schema) = parts.input.take() {
                side.schema.get_or_insert(Located { value: schema, place });
            }
            Some(*parts)
        }
        Role::Call { .. } | Role::Sample => {
            side.samples.push(Located { value, place });
            None
        }
    }
}

fn values(language: &str, body: &str, place: Position, findings: &mut Vec<Finding>) -> Vec<Value> {
    let read = match language {
        "json" => json::parse(body),
        "jsonc" | "json5" => json::parse_loose(body),
        "yaml" | "yml" => json::parse_yaml(body).map(|value| vec![value]),
        // A fence without a language may contain a sketch that is not JSON.
        "" if body.trim_start().starts_with('{') => Ok(json::parse(body).unwrap_or_default()),
        _ => return Vec::new(),
    };
    match read {
        Ok(values) => values,
        Err(reason) => {
            let message = format!("this {} cannot be read: {reason}", language.to_uppercase());
            let hint = "correct it; a fence that is only a sketch should not say `json`";
            findings.push(Finding::new("E07", place, message).hint(hint));
            Vec::new()
        }
    }
}

/// Parses the JSON fences of a section that is prose.
fn parse_json_fences(blocks: &[Block], findings: &mut Vec<Finding>) -> Vec<Located<Value>> {
    let mut found = Vec::new();
    for block in blocks {
        if let BlockKind::Fence { language, body } = &block.kind
            && language == "json"
        {
            let place = Position::line(block.lines.start + 1);
            let values = values(language, body, place, findings);
            found.extend(values.into_iter().map(|value| Located { value, place }));
        }
    }
    found
}

fn parse_examples(blocks: &[Block], tool: &mut DocumentedTool) {
    for block in blocks {
        let BlockKind::Fence { language, body } = &block.kind else { continue };
        if language != "json" {
            continue;
        }
        let place = Position::line(block.lines.start + 1);
        match json::parse(body) {
            Ok(values) => {
                for value in values {
                    let call = match json::role(&value) {
                        Role::Call { tool, arguments } => Ok(Call { tool, arguments }),
                        Role::Schema(_) | Role::Tool(_) | Role::Sample => continue,
                    };
                    tool.examples.push(Example { place, call });
                }
            }
            Err(reason) => tool.examples.push(Example { place, call: Err(reason) }),
        }
    }
}

/// Sets what can be derived only when all sections of the tool were parsed.
fn complete(tool: &mut DocumentedTool) {
    if let Some(invocation) = &tool.invocation {
        tool.name = invocation.value.clone();
    }
    tool.sections.sort_by_key(|section| section.place);
}
