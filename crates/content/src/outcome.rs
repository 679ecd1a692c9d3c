//! What a tool answers with, written as JSON straight from the rows.
//!
//! A page of documents is some hundred values; building a tree of them only to
//! write it out costs more than everything else the toolset does.

use tool::{Json, Reply};

use crate::database::{Cell, Rows};
use crate::fields::{DOCUMENT, Shown};
use crate::models::Model;
use crate::provider::TOOLSET_VERSION;
use crate::query::{Documents, Page, Records};
use crate::tools::Answer;

/// Documents as `structuredContent`.
pub(crate) fn documents(answer: Answer, query: &Documents, rows: Rows) -> String {
    let (page, n_rows) = (query.page, rows.len());
    let mut text = Text::with_room_for(n_rows);
    text.items(answer, rows, |text, row| text.document(query, row));
    text.meta(answer, page, n_rows, None);
    text.done()
}

/// Records as `structuredContent`; `fields` are the columns, in their order.
pub(crate) fn records(
    answer: Answer,
    query: &Records,
    fields: &[&'static str],
    rows: Rows,
) -> String {
    let (page, n_rows) = (query.page, rows.len());
    let mut text = Text::with_room_for(n_rows);
    text.items(answer, rows, |text, row| text.record(query.model, fields, row));
    text.meta(answer, page, n_rows, Some(query.model));
    text.done()
}

/// A tool result: the object, and its text for those who read only text.
pub(crate) fn success(structured: &str) -> Reply {
    // The mirror is longer by its escaped quotes.
    let mut text = Text(Vec::with_capacity(3 * structured.len() + 128));
    text.raw(r#"{"content":[{"type":"text","text":"#);
    text.string(structured);
    text.raw(r#"}],"isError":false,"structuredContent":"#);
    text.raw(structured);
    text.raw("}");
    Reply::Result(Json::trusted(text.0))
}

/// JSON as it is written, from left to right.
struct Text(Vec<u8>);

impl Text {
    fn with_room_for(n_rows: usize) -> Text {
        Text(Vec::with_capacity(256 + 512 * n_rows))
    }

    fn done(self) -> String {
        String::from_utf8(self.0).expect("JSON is written as UTF-8")
    }

    fn raw(&mut self, text: &str) {
        self.0.extend_from_slice(text.as_bytes());
    }

    fn value<T: serde::Serialize + ?Sized>(&mut self, value: &T) {
        serde_json::to_writer(&mut self.0, value).expect("text and numbers always serialise");
    }

    fn string(&mut self, text: &str) {
        self.value(text);
    }

    /// The name of a member, which is one of ours or of a variable and needs
    /// no escapes; `first` ones have no comma before them.
    fn key(&mut self, first: bool, name: &str) {
        self.raw(if first { "\"" } else { ",\"" });
        self.raw(name);
        self.raw("\":");
    }

    fn items(&mut self, answer: Answer, rows: Rows, mut write: impl FnMut(&mut Text, Vec<Cell>)) {
        match answer {
            Answer::Items => {
                self.raw(r#"{"items":["#);
                for (at, row) in rows.into_iter().enumerate() {
                    self.raw(if at == 0 { "" } else { "," });
                    write(self, row);
                }
                self.raw("]");
            }
            Answer::Item => {
                self.raw(r#"{"item":"#);
                match rows.into_iter().next() {
                    Some(row) => write(self, row),
                    None => self.raw("null"),
                }
            }
        }
    }

    fn meta(&mut self, answer: Answer, page: Page, n_rows: usize, model: Option<&Model>) {
        self.raw(r#","meta":{"#);
        if answer == Answer::Items {
            for (name, number) in [("limit", page.limit), ("offset", page.offset)] {
                self.key(name == "limit", name);
                self.value(&number);
            }
            self.key(false, "count");
            self.value(&n_rows);
        }
        self.key(answer == Answer::Item, "toolsetVersion");
        self.string(TOOLSET_VERSION);
        if let Some(model) = model {
            self.key(false, "model");
            self.string(model.name);
        }
        self.raw("}}");
    }

    fn document(&mut self, query: &Documents, row: Vec<Cell>) {
        let mut cells = row.into_iter();
        self.raw("{");
        for (at, (field, cell)) in DOCUMENT.iter().zip(cells.by_ref()).enumerate() {
            self.key(at == 0, field.name);
            self.shown(field.shown, cell);
        }
        if !query.tvs.is_empty() {
            self.raw(r#","tvs":{"#);
            for (at, (tv, cell)) in query.tvs.iter().zip(cells).enumerate() {
                self.key(at == 0, &tv.name);
                self.value(&cell.text());
            }
            self.raw("}");
        }
        self.raw("}");
    }

    fn shown(&mut self, shown: Shown, cell: Cell) {
        match shown {
            Shown::Number => self.value(&cell.number()),
            Shown::Flag => self.value(&(cell.number().unwrap_or(0) != 0)),
            Shown::Text => self.value(&cell.text().unwrap_or_default()),
            Shown::Maybe => self.value(&cell.text()),
        }
    }

    fn record(&mut self, model: &Model, fields: &[&'static str], row: Vec<Cell>) {
        self.raw("{");
        for (at, (field, cell)) in fields.iter().zip(row).enumerate() {
            self.key(at == 0, field);
            if model.numbers.contains(field) {
                self.value(&cell.number());
            } else {
                self.value(&cell.text());
            }
        }
        self.raw("}");
    }
}
