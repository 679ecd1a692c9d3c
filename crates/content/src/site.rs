//! What is known about the database of a site.
//!
//! The facts are collected once, when the toolset is opened. Statements are rendered
//! for them, so a column that does not exist is never selected.

use std::collections::BTreeMap;

use tool::Finding;

#[cfg(test)]
use crate::fields::DOCUMENT;
#[cfg(test)]
use crate::models::MODELS;
use crate::models::{Model, is_sensitive};
use crate::statement::Dialect;

/// What stands before every table name.
///
/// Invariant: at most 64 bytes of `[A-Za-z0-9_]`, so it can stand in a quoted
/// name on every engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Prefix(String);

impl Prefix {
    pub(crate) fn new(text: &str) -> Option<Prefix> {
        let legal = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        (text.len() <= 64 && text.bytes().all(legal)).then(|| Prefix(text.to_owned()))
    }

    /// Returns what the CMS proposes.
    pub(crate) fn usual() -> Prefix {
        Prefix("evo_".to_owned())
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// The kinds of column that are compared differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ColumnType {
    Integer,
    /// A real boolean, which only PostgreSQL has.
    Boolean,
    Text,
}

/// How the tree of documents is walked here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TreeBy {
    Closure,
    Parents,
}

/// The facts about one database.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    pub(crate) dialect: Dialect,
    pub(crate) prefix: Prefix,
    pub(crate) tree: TreeBy,
    pub(crate) findings: Vec<Finding>,
    /// How deep below the roots a walk may go and still meets few documents.
    /// Counted at the start; only how fast an answer comes hangs on it.
    pub(crate) shallow: Option<i64>,
    pub(crate) columns: BTreeMap<&'static str, BTreeMap<String, ColumnType>>,
}

/// Tables that are looked at besides those of the models.
pub(crate) const TABLES: [&str; 11] = [
    "site_content",
    "site_content_closure",
    "site_tmplvar_access",
    "site_content_tags",
    "tags",
    "document_groups",
    "member_groups",
    "membergroup_access",
    "system_settings",
    "user_settings",
    "documentgroup_names",
];

impl Site {
    /// A site whose database has everything, for tests of rendering.
    #[cfg(test)]
    pub(crate) fn complete(dialect: Dialect, tree: TreeBy) -> Site {
        let integer = |name: &str| !matches!(name, "value" | "name" | "default_text");
        let mut columns: BTreeMap<&'static str, BTreeMap<String, ColumnType>> = BTreeMap::new();
        for table in TABLES.into_iter().chain(MODELS.iter().map(|model| model.table)) {
            let model = MODELS.iter().find(|model| model.table == table);
            let names = model.map_or(&[][..], |model| model.fields).iter().copied();
            let more = DOCUMENT.iter().map(|field| field.name);
            let extra =
                ["privatemgr", "privateweb", "context", "tmplvarid", "doc_id", "ancestor", "id"];
            for name in names.chain(more).chain(extra).chain(["name", "value", "internalKey"]) {
                let kind = match name {
                    "hidemenu" | "privatemgr" | "privateweb" if dialect == Dialect::Postgres => {
                        ColumnType::Boolean
                    }
                    name if integer(name) => ColumnType::Integer,
                    _ => ColumnType::Text,
                };
                columns.entry(table).or_default().insert(name.to_owned(), kind);
            }
        }
        let prefix = Prefix::usual();
        Site { dialect, prefix, tree, findings: Vec::new(), shallow: None, columns }
    }

    pub(crate) fn has(&self, table: &str, column: &str) -> bool {
        self.columns.get(table).is_some_and(|columns| columns.contains_key(column))
    }

    pub(crate) fn has_table(&self, table: &str) -> bool {
        self.columns.contains_key(table)
    }

    pub(crate) fn has_tvs(&self) -> bool {
        self.has("site_tmplvars", "name") && self.has("site_tmplvar_contentvalues", "value")
    }

    pub(crate) fn has_tags(&self) -> bool {
        self.has("site_content_tags", "doc_id") && self.has("tags", "name")
    }

    /// Whether there is little from the roots down to this depth.
    pub(crate) fn is_shallow(&self, depth: i64) -> bool {
        self.shallow.is_some_and(|shallow| depth <= shallow)
    }

    pub(crate) fn is_boolean(&self, table: &str, column: &str) -> bool {
        self.column_type(table, column) == ColumnType::Boolean
    }

    pub(crate) fn column_type(&self, table: &str, column: &str) -> ColumnType {
        let known = self.columns.get(table).and_then(|columns| columns.get(column));
        known.copied().unwrap_or(ColumnType::Text)
    }

    /// The fields of a model that this database has: listed, never sensitive.
    pub(crate) fn fields(&self, model: &Model) -> impl Iterator<Item = &'static str> {
        let known = self.columns.get(model.table);
        let has = move |field: &&str| known.is_some_and(|columns| columns.contains_key(*field));
        model.fields.iter().copied().filter(has).filter(|field| !is_sensitive(field))
    }
}
