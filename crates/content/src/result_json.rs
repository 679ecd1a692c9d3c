//! Writes the result of a tool as JSON text, directly from the database rows.
//!
//! Building a tree of JSON values first would cost more than everything else that the
//! toolset does.

use tool::Json;

use crate::contract::TOOLSET_VERSION;
use crate::database::{Cell, Rows};
use crate::fields::{DOCUMENT_FIELDS, FieldFormat};
use crate::models::Model;
use crate::query::{DocumentQuery, Page, RecordQuery};
use crate::tools::ResultShape;

/// Writes documents as a tool result.
pub(crate) fn documents(shape: ResultShape, query: &DocumentQuery, rows: Rows) -> Json {
    let (page, n_rows) = (query.page, rows.len());
    let mut writer = ResultWriter::with_capacity(n_rows);
    writer.items(shape, rows, |writer, row| writer.document(query, row));
    writer.meta(shape, page, n_rows, None);
    writer.finish()
}

/// Writes records as a tool result; `fields` are the columns of the rows, in order.
pub(crate) fn records(
    shape: ResultShape,
    query: &RecordQuery,
    fields: &[&'static str],
    rows: Rows,
) -> Json {
    let (page, n_rows) = (query.page, rows.len());
    let mut writer = ResultWriter::with_capacity(n_rows);
    writer.items(shape, rows, |writer, row| writer.record(query.model, fields, row));
    writer.meta(shape, page, n_rows, Some(query.model));
    writer.finish()
}

/// Writes a tool result from left to right: the object for `structuredContent`, and at
/// the same time its copy in a string, for clients that read only text content. Because
/// both grow together, only texts from the database are searched for characters that
/// the copy must escape.
struct ResultWriter {
    object: Vec<u8>,
    /// The beginning of the tool result, which ends with the copy.
    result: Vec<u8>,
}

impl ResultWriter {
    fn with_capacity(n_rows: usize) -> ResultWriter {
        let capacity = 256 + 768 * n_rows;
        let mut result = Vec::with_capacity(3 * capacity);
        result.extend_from_slice(br#"{"content":[{"type":"text","text":""#);
        ResultWriter { object: Vec::with_capacity(capacity), result }
    }

    fn finish(self) -> Json {
        let ResultWriter { object, mut result } = self;
        result.extend_from_slice(br#""}],"isError":false,"structuredContent":"#);
        result.extend_from_slice(&object);
        result.push(b'}');
        Json::from_trusted(result)
    }

    /// Writes punctuation, which needs no escapes in the copy.
    fn raw(&mut self, text: &str) {
        self.object.extend_from_slice(text.as_bytes());
        self.result.extend_from_slice(text.as_bytes());
    }

    /// Writes a number, a flag or null, which need no escapes in the copy.
    fn plain<T: serde::Serialize>(&mut self, value: &T) {
        let from = self.write_to_object(value);
        self.result.extend_from_slice(&self.object[from..]);
    }

    fn string(&mut self, text: &str) {
        let from = self.write_to_object(text);
        // The object has no control characters any more, so these two are all.
        for &byte in &self.object[from..] {
            if matches!(byte, b'"' | b'\\') {
                self.result.push(b'\\');
            }
            self.result.push(byte);
        }
    }

    fn nullable_string(&mut self, text: Option<&str>) {
        match text {
            Some(text) => self.string(text),
            None => self.raw("null"),
        }
    }

    /// Writes a value to the object alone, and returns where it begins.
    fn write_to_object<T: serde::Serialize + ?Sized>(&mut self, value: &T) -> usize {
        let from = self.object.len();
        serde_json::to_writer(&mut self.object, value).expect("text and numbers always serialise");
        from
    }

    /// Writes the name of a member, with a comma before it unless it is the first. Names
    /// are ours or those of template variables, and need no escapes.
    fn key(&mut self, first: bool, name: &str) {
        let comma = if first { "" } else { "," };
        for part in [comma, "\"", name, "\":"] {
            self.object.extend_from_slice(part.as_bytes());
        }
        for part in [comma, r#"\""#, name, r#"\":"#] {
            self.result.extend_from_slice(part.as_bytes());
        }
    }

    /// Writes the rows as `items` or `item`; `write` writes one row.
    fn items(
        &mut self,
        shape: ResultShape,
        rows: Rows,
        mut write: impl FnMut(&mut ResultWriter, Vec<Cell>),
    ) {
        match shape {
            ResultShape::Items => {
                self.raw("{");
                self.key(true, "items");
                self.raw("[");
                for (at, row) in rows.into_iter().enumerate() {
                    self.raw(if at == 0 { "" } else { "," });
                    write(self, row);
                }
                self.raw("]");
            }
            ResultShape::Item => {
                self.raw("{");
                self.key(true, "item");
                match rows.into_iter().next() {
                    Some(row) => write(self, row),
                    None => self.raw("null"),
                }
            }
        }
    }

    fn meta(&mut self, shape: ResultShape, page: Page, n_rows: usize, model: Option<&Model>) {
        self.key(false, "meta");
        self.raw("{");
        if shape == ResultShape::Items {
            for (name, number) in [("limit", page.limit), ("offset", page.offset)] {
                self.key(name == "limit", name);
                self.plain(&number);
            }
            self.key(false, "count");
            self.plain(&n_rows);
        }
        self.key(shape == ResultShape::Item, "toolsetVersion");
        self.string(TOOLSET_VERSION);
        if let Some(model) = model {
            self.key(false, "model");
            self.string(model.name);
        }
        self.raw("}}");
    }

    fn document(&mut self, query: &DocumentQuery, row: Vec<Cell>) {
        let mut cells = row.into_iter();
        self.raw("{");
        for (at, (field, cell)) in DOCUMENT_FIELDS.iter().zip(cells.by_ref()).enumerate() {
            self.key(at == 0, field.name);
            self.field(field.format, cell);
        }
        if !query.tvs.is_empty() {
            self.key(false, "tvs");
            self.raw("{");
            for (at, (tv, cell)) in query.tvs.iter().zip(cells).enumerate() {
                self.key(at == 0, &tv.name);
                self.nullable_string(cell.text().as_deref());
            }
            self.raw("}");
        }
        self.raw("}");
    }

    fn field(&mut self, format: FieldFormat, cell: Cell) {
        match format {
            FieldFormat::Number => self.plain(&cell.number()),
            FieldFormat::Flag => self.plain(&(cell.number().unwrap_or(0) != 0)),
            FieldFormat::Text => self.string(&cell.text().unwrap_or_default()),
            FieldFormat::NullableText => self.nullable_string(cell.text().as_deref()),
        }
    }

    fn record(&mut self, model: &Model, fields: &[&'static str], row: Vec<Cell>) {
        self.raw("{");
        for (at, (field, cell)) in fields.iter().zip(row).enumerate() {
            self.key(at == 0, field);
            if model.numbers.contains(field) {
                self.plain(&cell.number());
            } else {
                self.nullable_string(cell.text().as_deref());
            }
        }
        self.raw("}");
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn the_mirror_is_the_object_whatever_the_site_says() {
        let mut writer = ResultWriter::with_capacity(1);
        writer.raw("{");
        writer.key(true, "n");
        writer.plain(&Some(7));
        for (at, said) in ["plain", "\"quoted\"", "C:\\\\x\\", "\n\t\0\u{1f}", "日本 \u{2028}", ""]
            .into_iter()
            .enumerate()
        {
            writer.key(false, &format!("s{at}"));
            writer.string(said);
        }
        writer.key(false, "none");
        writer.nullable_string(None);
        writer.raw("}");
        let result = writer.finish().to_value().unwrap();
        let mirror: Value =
            serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
        assert_eq!(mirror, result["structuredContent"]);
        assert_eq!(mirror["s3"], "\n\t\0\u{1f}");
    }
}
