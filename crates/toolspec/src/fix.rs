//! Brings a document to the canonical form, line by line, without touching
//! prose. What a machine cannot know stays as it is.

use crate::document::{Documented, Field, Required, Side, TableShape, Topic};
use crate::finding::{Edit, Finding};
use crate::lint::{Against, Subject, lint};
use crate::markdown::{code_span, label, write_row};
use crate::parse::fields::column;
use crate::types;

/// How often the rules look again at what they repaired. Repairs only make
/// documents more canonical, so they settle; the bound is for the unexpected.
const MOST_PASSES: usize = 8;

/// Repairs what can be repaired. Returns the text and what is left to do.
///
/// A pass that leaves the same things to repair has repaired nothing (its text
/// went where nobody reads it, behind an open comment say) and is taken back,
/// so repairing a repaired text changes nothing.
pub fn fix(text: &str) -> (String, Vec<Finding>) {
    let mut text = text.to_owned();
    let mut findings = lint(&text, &Against::default()).1;
    for _ in 0..MOST_PASSES {
        // Behind an open fence nobody knows what is text.
        if findings.iter().any(|finding| finding.code == "E01") {
            break;
        }
        let edits: Vec<Edit> = findings.iter().filter_map(|finding| finding.fix.clone()).collect();
        let next = apply(&text, edits);
        let left = lint(&next, &Against::default()).1;
        if next == text || repairable(&left) == repairable(&findings) {
            break;
        }
        (text, findings) = (next, left);
    }
    (text, findings)
}

/// What has a repair, by its code, in order.
fn repairable(findings: &[Finding]) -> Vec<&str> {
    findings.iter().filter(|finding| finding.fix.is_some()).map(|finding| finding.code).collect()
}

/// Applies edits from the last line to the first; of two that touch the same
/// line, the first given.
fn apply(text: &str, edits: Vec<Edit>) -> String {
    let crlf = text.contains("\r\n");
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let mut taken: Vec<(usize, usize)> = Vec::new();
    let mut chosen: Vec<Edit> = Vec::new();
    for edit in edits {
        let clash = taken
            .iter()
            .any(|&(from, to)| edit.from < to.max(from + 1) && from < edit.to.max(edit.from + 1));
        if !clash {
            taken.push((edit.from, edit.to));
            chosen.push(edit);
        }
    }
    chosen.sort_by_key(|edit| std::cmp::Reverse(edit.from));
    for edit in chosen {
        let from = edit.from.saturating_sub(1).min(lines.len());
        let to = edit.to.saturating_sub(1).clamp(from, lines.len());
        lines.splice(from..to, edit.text.split('\n').map(str::to_owned));
    }
    let joined = lines.join(if crlf { "\r\n" } else { "\n" });
    if text.ends_with('\n') {
        format!("{joined}{}", if crlf { "\r\n" } else { "\n" })
    } else {
        joined
    }
}

/// A bold label becomes a heading; what stood beside it stays below it.
pub(crate) fn label_fix(written: &str, line: usize, heading: &str, topic: Topic) -> Option<Edit> {
    let body = written.trim_start();
    let body = body.strip_prefix("- ").or_else(|| body.strip_prefix("* ")).unwrap_or(body);
    let rest = match label(body) {
        Some((_, rest)) => rest,
        None => body.split_once(':').map(|(_, rest)| rest.trim())?,
    };
    // Several pairs on one line belong together.
    if rest.contains("| **") {
        return None;
    }
    // A blank line before and after, so that the heading stands alone. Below
    // it, idempotency is said with a label again.
    let answer = match rest.to_lowercase().as_str() {
        "yes" => "**Idempotent**: Yes",
        "no" => "**Idempotent**: No",
        "partially" => "**Idempotent**: Partially",
        _ => rest,
    };
    let rest = if topic == Topic::Idempotency { answer } else { rest };
    let text =
        if rest.is_empty() { format!("\n{heading}\n") } else { format!("\n{heading}\n\n{rest}") };
    Some(Edit { from: line, to: line + 1, text })
}

/// The table with canonical columns, types and values; `None` where that would
/// lose something: a damaged row, an unknown column, a condition.
pub(crate) fn canonical_table(
    subject: &Subject<'_>,
    side: &Side,
    table: &TableShape,
    is_input: bool,
) -> Option<Edit> {
    let rows = table.place.line..table.end;
    let fields: Vec<&Field> =
        side.fields.iter().filter(|field| rows.contains(&field.place.line)).collect();
    let n_rows = table.end - table.place.line - 2;
    let whole = fields.len() == n_rows && n_rows != 0;
    let known = table.columns.iter().all(|title| column(title).is_some());
    let telling = fields.iter().all(|field| {
        field.required != Some(Required::Conditional) && (!is_input || field.required.is_some())
    });
    if !whole || !known || !telling || subject.is_damaged(table.place.line, table.end) {
        return None;
    }
    let mut lines = if is_input { input_head() } else { output_head() };
    lines.extend(fields.iter().map(|field| row(field, is_input)));
    Some(Edit { from: table.place.line, to: table.end, text: lines.join("\n") })
}

pub(crate) fn input_head() -> Vec<String> {
    vec![
        "| Parameter Name | Type | Required | Description | Example Value |".to_owned(),
        "| :--- | :--- | :--- | :--- | :--- |".to_owned(),
    ]
}

pub(crate) fn output_head() -> Vec<String> {
    vec![
        "| Field Name | Type | Description | Example Value |".to_owned(),
        "| :--- | :--- | :--- | :--- |".to_owned(),
    ]
}

fn row(field: &Field, is_input: bool) -> String {
    let name = code_span(&field.path);
    let typed = field.type_text.as_deref().map(types::read);
    let of = match (typed, &field.type_text) {
        (Some(typed), _) if typed.known => code_span(&types::write(&typed.schema)),
        (_, Some(text)) => code_span(text),
        (_, None) => String::new(),
    };
    let description = with_default(field);
    let example = field.example.as_deref().map(code_span).unwrap_or_default();
    if !is_input {
        return write_row(&[name, of, description, example]);
    }
    let required = match field.required {
        Some(Required::Yes) => "Yes",
        Some(Required::No | Required::Conditional) | None => "No",
    };
    write_row(&[name, of, required.to_owned(), description, example])
}

/// The canonical columns have no place for a default but the description.
fn with_default(field: &Field) -> String {
    let told = field.description.to_lowercase().contains("default");
    match &field.default {
        Some(default) if !told => {
            format!("{} (default: {})", field.description, code_span(default)).trim().to_owned()
        }
        Some(_) | None => field.description.clone(),
    }
}

/// The JSON Schema that a table amounts to, to stand under it.
pub(crate) fn schema_fence(
    subject: &Subject<'_>,
    side: &Side,
    table: &TableShape,
    tool: &Documented,
) -> Option<Edit> {
    let known = side.fields.iter().all(|field| {
        field.type_text.as_ref().is_some_and(|text| types::read(text).known)
            && field.required.is_some()
    });
    if !known || subject.is_damaged(tool.heading.place.line, tool.end) {
        return None;
    }
    let schema = serde_json::to_string_pretty(&side.effective()?).ok()?;
    Some(Edit { from: table.end, to: table.end, text: format!("\n```json\n{schema}\n```") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variant_becomes_canonical_and_keeps_its_prose() {
        let variant = "# Things - MCP Tool Specification\n\n**Version**: v2.0.0 | **Last Updated**: May 2026\n\n\
                       ## Tools\n\n### `thing_get`\n\nGets a thing.\n\n**Parameters**:\n\n\
                       | Parameter | Type | Default | Description |\n|---|---|---|---|\n\
                       | `id` | `str` | — | Which one. |\n| `deep` | `bool` | `False` | All of it. |\n\n\
                       **Returns**: The thing.\n";
        let (fixed, _) = fix(variant);
        let expected = "# Things - MCP Tool Specification\n\n**Version**: v2.0.0 | **Last Updated**: May 2026\n\n\
                        ## Tools\n\n### Tool: `thing_get`\n\n**Version**: 2.0.0\n\nGets a thing.\n\n\
                        #### 2. Invocation Name\n\n`thing_get`\n\n\n#### 3. Input Schema (Parameters)\n\n\n\
                        | Parameter Name | Type | Required | Description | Example Value |\n\
                        | :--- | :--- | :--- | :--- | :--- |\n\
                        | `id` | `string` | Yes | Which one. |  |\n\
                        | `deep` | `boolean` | No | All of it. (default: `false`) |  |\n\n\n\
                        #### 4. Output Schema (Return Value)\n\nThe thing.\n";
        assert_eq!(fixed, expected);
        assert_eq!(fix(&fixed).0, fixed);
    }

    #[test]
    fn line_ends_and_damaged_tables_stay() {
        let text = "# T\r\n\r\n## Tool: `a_b`\r\n\r\n### Parameters\r\n\r\n| Parameter | Type |\r\n|---|---|\r\n| `x | `str` |\r\n";
        let (fixed, _) = fix(text);
        assert!(
            fixed.contains("| `x | `str` |\r\n")
                && fixed.contains("### 3. Input Schema (Parameters)\r\n"),
            "{fixed}"
        );
        assert!(!fixed.replace("\r\n", "").contains('\n'));
    }
}
