//! The fields of a document, in the contract's order.

/// One field and how it is shown.
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) shown: Shown,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shown {
    Number,
    Flag,
    Text,
    /// Text that may be missing.
    Maybe,
}

pub(crate) const DOCUMENT: [Field; 17] = [
    Field { name: "id", shown: Shown::Number },
    Field { name: "parent", shown: Shown::Number },
    Field { name: "pagetitle", shown: Shown::Text },
    Field { name: "longtitle", shown: Shown::Text },
    Field { name: "description", shown: Shown::Text },
    Field { name: "alias", shown: Shown::Maybe },
    Field { name: "published", shown: Shown::Number },
    Field { name: "deleted", shown: Shown::Number },
    Field { name: "hidemenu", shown: Shown::Flag },
    Field { name: "menuindex", shown: Shown::Number },
    Field { name: "template", shown: Shown::Number },
    Field { name: "createdon", shown: Shown::Number },
    Field { name: "editedon", shown: Shown::Number },
    Field { name: "pub_date", shown: Shown::Number },
    Field { name: "unpub_date", shown: Shown::Number },
    Field { name: "isfolder", shown: Shown::Number },
    Field { name: "type", shown: Shown::Text },
];
