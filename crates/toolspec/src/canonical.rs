//! The edits that bring headings, tables and schemas of a document to the canonical form.

use crate::document::{DocumentedTool, Field, IoSpec, Required, TableShape, Topic};
use crate::finding::Edit;
use crate::markdown::{code_span, label, write_row};
use crate::parse::fields::column;
use crate::rule_input::RuleInput;
use crate::types;

/// Replaces a bold label by a heading; the text after the label goes below the heading.
pub(crate) fn label_to_heading(
    written: &str,
    line: usize,
    heading: &str,
    topic: Topic,
) -> Option<Edit> {
    let body = written.trim_start();
    let body = body.strip_prefix("- ").or_else(|| body.strip_prefix("* ")).unwrap_or(body);
    let rest = match label(body) {
        Some((_, rest)) => rest,
        None => body.split_once(':').map(|(_, rest)| rest.trim())?,
    };
    // Several labels on one line belong together.
    if rest.contains("| **") {
        return None;
    }
    // Blank lines separate the heading. Under the heading about idempotency, the answer is
    // a label again.
    let answer = match rest.to_lowercase().as_str() {
        "yes" => "**Idempotent**: Yes",
        "no" => "**Idempotent**: No",
        "partially" => "**Idempotent**: Partially",
        _ => rest,
    };
    let rest = if topic == Topic::Idempotency { answer } else { rest };
    let text =
        if rest.is_empty() { format!("\n{heading}\n") } else { format!("\n{heading}\n\n{rest}") };
    Some(Edit { from: line, end: line + 1, text })
}

/// Rewrites a table with canonical columns, types and values; `None` if that would lose
/// something: a damaged row, an unknown column, a conditional requirement.
pub(crate) fn canonical_table(
    subject: &RuleInput<'_>,
    spec: &IoSpec,
    table: &TableShape,
    is_input: bool,
) -> Option<Edit> {
    let rows = table.place.line..table.end;
    let fields: Vec<&Field> =
        spec.fields.iter().filter(|field| rows.contains(&field.place.line)).collect();
    let n_rows = table.end - table.place.line - 2;
    let has_every_row = fields.len() == n_rows && n_rows != 0;
    let knows_columns = table.columns.iter().all(|title| column(title).is_some());
    let knows_requirements = fields.iter().all(|field| {
        field.required != Some(Required::Conditional) && (!is_input || field.required.is_some())
    });
    if !has_every_row
        || !knows_columns
        || !knows_requirements
        || subject.is_damaged(table.place.line, table.end)
    {
        return None;
    }
    let mut lines = if is_input { input_table_header() } else { output_table_header() };
    lines.extend(fields.iter().map(|field| field_row(field, is_input)));
    Some(Edit { from: table.place.line, end: table.end, text: lines.join("\n") })
}

pub(crate) fn input_table_header() -> Vec<String> {
    vec![
        "| Parameter Name | Type | Required | Description | Example Value |".to_owned(),
        "| :--- | :--- | :--- | :--- | :--- |".to_owned(),
    ]
}

pub(crate) fn output_table_header() -> Vec<String> {
    vec![
        "| Field Name | Type | Description | Example Value |".to_owned(),
        "| :--- | :--- | :--- | :--- |".to_owned(),
    ]
}

fn field_row(field: &Field, is_input: bool) -> String {
    let name = code_span(&field.path);
    let typed = field.type_text.as_deref().map(types::parse);
    let type_cell = match (typed, &field.type_text) {
        (Some(typed), _) if typed.is_known => code_span(&types::write(&typed.schema)),
        (_, Some(text)) => code_span(text),
        (_, None) => String::new(),
    };
    let description = with_default(field);
    let example = field.example.as_deref().map(code_span).unwrap_or_default();
    if !is_input {
        return write_row(&[name, type_cell, description, example]);
    }
    let required = match field.required {
        Some(Required::Yes) => "Yes",
        Some(Required::No | Required::Conditional) | None => "No",
    };
    write_row(&[name, type_cell, required.to_owned(), description, example])
}

/// Returns the description with the default, for which there is no canonical column.
fn with_default(field: &Field) -> String {
    let mentions_default = field.description.to_lowercase().contains("default");
    match &field.default {
        Some(default) if !mentions_default => {
            format!("{} (default: {})", field.description, code_span(default)).trim().to_owned()
        }
        Some(_) | None => field.description.clone(),
    }
}

/// Inserts the JSON Schema that a table amounts to, below the table.
pub(crate) fn schema_fence(
    subject: &RuleInput<'_>,
    spec: &IoSpec,
    table: &TableShape,
    tool: &DocumentedTool,
) -> Option<Edit> {
    let knows_all = spec.fields.iter().all(|field| {
        field.type_text.as_ref().is_some_and(|text| types::parse(text).is_known)
            && field.required.is_some()
    });
    if !knows_all || subject.is_damaged(tool.heading.place.line, tool.end) {
        return None;
    }
    let schema = serde_json::to_string_pretty(&spec.effective()?).ok()?;
    Some(Edit { from: table.end, end: table.end, text: format!("\n```json\n{schema}\n```") })
}
