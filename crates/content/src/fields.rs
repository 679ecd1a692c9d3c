//! The fields of a document, in the contract's order.

/// One field and how it is shown.
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) shown: FieldFormat,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum FieldFormat {
    Number,
    Flag,
    Text,
    /// Text that may be missing.
    Maybe,
}

pub(crate) const DOCUMENT: [Field; 17] = [
    Field { name: "id", shown: FieldFormat::Number },
    Field { name: "parent", shown: FieldFormat::Number },
    Field { name: "pagetitle", shown: FieldFormat::Text },
    Field { name: "longtitle", shown: FieldFormat::Text },
    Field { name: "description", shown: FieldFormat::Text },
    Field { name: "alias", shown: FieldFormat::Maybe },
    Field { name: "published", shown: FieldFormat::Number },
    Field { name: "deleted", shown: FieldFormat::Number },
    Field { name: "hidemenu", shown: FieldFormat::Flag },
    Field { name: "menuindex", shown: FieldFormat::Number },
    Field { name: "template", shown: FieldFormat::Number },
    Field { name: "createdon", shown: FieldFormat::Number },
    Field { name: "editedon", shown: FieldFormat::Number },
    Field { name: "pub_date", shown: FieldFormat::Number },
    Field { name: "unpub_date", shown: FieldFormat::Number },
    Field { name: "isfolder", shown: FieldFormat::Number },
    Field { name: "type", shown: FieldFormat::Text },
];
