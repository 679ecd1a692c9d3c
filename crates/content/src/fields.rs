//! The fields of a document that the tools return.

/// A field of a document: its column, and its format in a result.
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) format: FieldFormat,
}

/// The JSON type of a field in a result.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum FieldFormat {
    Number,
    Flag,
    Text,
    NullableText,
}

/// All fields, in the contract's order.
pub(crate) const DOCUMENT_FIELDS: [Field; 17] = [
    Field { name: "id", format: FieldFormat::Number },
    Field { name: "parent", format: FieldFormat::Number },
    Field { name: "pagetitle", format: FieldFormat::Text },
    Field { name: "longtitle", format: FieldFormat::Text },
    Field { name: "description", format: FieldFormat::Text },
    Field { name: "alias", format: FieldFormat::NullableText },
    Field { name: "published", format: FieldFormat::Number },
    Field { name: "deleted", format: FieldFormat::Number },
    Field { name: "hidemenu", format: FieldFormat::Flag },
    Field { name: "menuindex", format: FieldFormat::Number },
    Field { name: "template", format: FieldFormat::Number },
    Field { name: "createdon", format: FieldFormat::Number },
    Field { name: "editedon", format: FieldFormat::Number },
    Field { name: "pub_date", format: FieldFormat::Number },
    Field { name: "unpub_date", format: FieldFormat::Number },
    Field { name: "isfolder", format: FieldFormat::Number },
    Field { name: "type", format: FieldFormat::Text },
];
