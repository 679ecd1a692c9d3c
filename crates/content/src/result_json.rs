//! Writes the result of a tool as JSON, directly from the rows.
//!
//! A page of documents is some hundred values; building a tree of them only to
//! write it out costs more than everything else the toolset does.

use tool::Json;

use crate::contract::TOOLSET_VERSION;
use crate::database::{Cell, Rows};
use crate::fields::{DOCUMENT, FieldFormat};
use crate::models::Model;
use crate::query::{DocumentQuery, Page, RecordQuery};
use crate::tools::ResultShape;

/// Documents as a tool result.
pub(crate) fn documents(answer: ResultShape, query: &DocumentQuery, rows: Rows) -> Json {
    let (page, n_rows) = (query.page, rows.len());
    let mut text = Text::with_room_for(n_rows);
    text.items(answer, rows, |text, row| text.document(query, row));
    text.meta(answer, page, n_rows, None);
    text.done()
}

/// Records as a tool result; `fields` are the columns, in their order.
pub(crate) fn records(
    answer: ResultShape,
    query: &RecordQuery,
    fields: &[&'static str],
    rows: Rows,
) -> Json {
    let (page, n_rows) = (query.page, rows.len());
    let mut text = Text::with_room_for(n_rows);
    text.items(answer, rows, |text, row| text.record(query.model, fields, row));
    text.meta(answer, page, n_rows, Some(query.model));
    text.done()
}

/// A tool result as it is written, from left to right: the object, and its
/// mirror for those who read only text, which is the object inside a string.
/// Both grow together, so only what a site's authors wrote is looked through
/// for what needs an escape.
struct Text {
    object: Vec<u8>,
    /// The result up to and with the mirror.
    result: Vec<u8>,
}

impl Text {
    fn with_room_for(n_rows: usize) -> Text {
        let room = 256 + 768 * n_rows;
        let mut result = Vec::with_capacity(3 * room);
        result.extend_from_slice(br#"{"content":[{"type":"text","text":""#);
        Text { object: Vec::with_capacity(room), result }
    }

    fn done(self) -> Json {
        let Text { object, mut result } = self;
        result.extend_from_slice(br#""}],"isError":false,"structuredContent":"#);
        result.extend_from_slice(&object);
        result.push(b'}');
        Json::from_trusted(result)
    }

    /// Punctuation, which is the same in a string.
    fn raw(&mut self, text: &str) {
        self.object.extend_from_slice(text.as_bytes());
        self.result.extend_from_slice(text.as_bytes());
    }

    /// A number, a flag or nothing, which are the same in a string.
    fn plain<T: serde::Serialize>(&mut self, value: &T) {
        let from = self.write(value);
        self.result.extend_from_slice(&self.object[from..]);
    }

    fn string(&mut self, text: &str) {
        let from = self.write(text);
        // JSON has no control characters, so these two are all.
        for &byte in &self.object[from..] {
            if matches!(byte, b'"' | b'\\') {
                self.result.push(b'\\');
            }
            self.result.push(byte);
        }
    }

    fn maybe(&mut self, text: Option<&str>) {
        match text {
            Some(text) => self.string(text),
            None => self.raw("null"),
        }
    }

    /// Writes to the object alone, and says where.
    fn write<T: serde::Serialize + ?Sized>(&mut self, value: &T) -> usize {
        let from = self.object.len();
        serde_json::to_writer(&mut self.object, value).expect("text and numbers always serialise");
        from
    }

    /// The name of a member, which is one of ours or of a variable and needs
    /// no escapes; `first` ones have no comma before them.
    fn key(&mut self, first: bool, name: &str) {
        let comma = if first { "" } else { "," };
        for part in [comma, "\"", name, "\":"] {
            self.object.extend_from_slice(part.as_bytes());
        }
        for part in [comma, r#"\""#, name, r#"\":"#] {
            self.result.extend_from_slice(part.as_bytes());
        }
    }

    fn items(
        &mut self,
        answer: ResultShape,
        rows: Rows,
        mut write: impl FnMut(&mut Text, Vec<Cell>),
    ) {
        match answer {
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

    fn meta(&mut self, answer: ResultShape, page: Page, n_rows: usize, model: Option<&Model>) {
        self.key(false, "meta");
        self.raw("{");
        if answer == ResultShape::Items {
            for (name, number) in [("limit", page.limit), ("offset", page.offset)] {
                self.key(name == "limit", name);
                self.plain(&number);
            }
            self.key(false, "count");
            self.plain(&n_rows);
        }
        self.key(answer == ResultShape::Item, "toolsetVersion");
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
        for (at, (field, cell)) in DOCUMENT.iter().zip(cells.by_ref()).enumerate() {
            self.key(at == 0, field.name);
            self.shown(field.shown, cell);
        }
        if !query.tvs.is_empty() {
            self.key(false, "tvs");
            self.raw("{");
            for (at, (tv, cell)) in query.tvs.iter().zip(cells).enumerate() {
                self.key(at == 0, &tv.name);
                self.maybe(cell.text().as_deref());
            }
            self.raw("}");
        }
        self.raw("}");
    }

    fn shown(&mut self, shown: FieldFormat, cell: Cell) {
        match shown {
            FieldFormat::Number => self.plain(&cell.number()),
            FieldFormat::Flag => self.plain(&(cell.number().unwrap_or(0) != 0)),
            FieldFormat::Text => self.string(&cell.text().unwrap_or_default()),
            FieldFormat::Maybe => self.maybe(cell.text().as_deref()),
        }
    }

    fn record(&mut self, model: &Model, fields: &[&'static str], row: Vec<Cell>) {
        self.raw("{");
        for (at, (field, cell)) in fields.iter().zip(row).enumerate() {
            self.key(at == 0, field);
            if model.numbers.contains(field) {
                self.plain(&cell.number());
            } else {
                self.maybe(cell.text().as_deref());
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
        let mut text = Text::with_room_for(1);
        text.raw("{");
        text.key(true, "n");
        text.plain(&Some(7));
        for (at, said) in ["plain", "\"quoted\"", "C:\\\\x\\", "\n\t\0\u{1f}", "日本 \u{2028}", ""]
            .into_iter()
            .enumerate()
        {
            text.key(false, &format!("s{at}"));
            text.string(said);
        }
        text.key(false, "none");
        text.maybe(None);
        text.raw("}");
        let result = text.done().to_value().unwrap();
        let mirror: Value =
            serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
        assert_eq!(mirror, result["structuredContent"]);
        assert_eq!(mirror["s3"], "\n\t\0\u{1f}");
    }
}
