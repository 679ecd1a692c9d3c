//! The facts about a site's database: its dialect, table prefix, tables and columns.
//!
//! They are collected once, when the toolset is opened. SQL is rendered according to
//! them, so a column that does not exist is never selected.

use std::collections::BTreeMap;

use tool::Finding;

#[cfg(test)]
use crate::fields::DOCUMENT_FIELDS;
#[cfg(test)]
use crate::models::MODELS;
use crate::models::{Model, is_sensitive};
use crate::statement::Dialect;

/// The prefix of every table name.
///
/// Invariant: at most 64 bytes of `[A-Za-z0-9_]`, so it can be part of a quoted name
/// on every engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Prefix(String);

impl Prefix {
    pub(crate) fn new(text: &str) -> Option<Prefix> {
        let legal = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        (text.len() <= 64 && text.bytes().all(legal)).then(|| Prefix(text.to_owned()))
    }

    /// The prefix that the CMS's installer proposes.
    pub(crate) fn cms_default() -> Prefix {
        Prefix("evo_".to_owned())
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// The type of a column, as far as it matters for comparisons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ColumnType {
    Integer,
    /// A boolean of PostgreSQL; the other engines store flags as integers.
    Boolean,
    Text,
}

/// How descendants and ancestors are found in this database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TreeBy {
    /// In the closure table.
    Closure,
    /// By a recursive query over the column `parent`.
    Parents,
}

/// The facts about one database.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    pub(crate) dialect: Dialect,
    pub(crate) prefix: Prefix,
    pub(crate) tree: TreeBy,
    pub(crate) findings: Vec<Finding>,
    /// The deepest level down to which there are few documents below the roots. Only the
    /// speed of queries depends on it.
    pub(crate) shallow_depth: Option<i64>,
    /// The columns of each table, by the table's name without the prefix.
    pub(crate) columns: BTreeMap<&'static str, BTreeMap<String, ColumnType>>,
}

/// The tables that queries may use, besides those of the models.
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
    /// A site whose database has all tables and columns, for tests of rendering.
    #[cfg(test)]
    pub(crate) fn complete(dialect: Dialect, tree: TreeBy) -> Site {
        let integer = |name: &str| !matches!(name, "value" | "name" | "default_text");
        let mut columns: BTreeMap<&'static str, BTreeMap<String, ColumnType>> = BTreeMap::new();
        for table in TABLES.into_iter().chain(MODELS.iter().map(|model| model.table)) {
            let model = MODELS.iter().find(|model| model.table == table);
            let names = model.map_or(&[][..], |model| model.fields).iter().copied();
            let more = DOCUMENT_FIELDS.iter().map(|field| field.name);
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
        let prefix = Prefix::cms_default();
        Site { dialect, prefix, tree, findings: Vec::new(), shallow_depth: None, columns }
    }

    pub(crate) fn has_column(&self, table: &str, column: &str) -> bool {
        self.columns.get(table).is_some_and(|columns| columns.contains_key(column))
    }

    pub(crate) fn has_table(&self, table: &str) -> bool {
        self.columns.contains_key(table)
    }

    pub(crate) fn has_tvs(&self) -> bool {
        self.has_column("site_tmplvars", "name")
            && self.has_column("site_tmplvar_contentvalues", "value")
    }

    pub(crate) fn has_tags(&self) -> bool {
        self.has_column("site_content_tags", "doc_id") && self.has_column("tags", "name")
    }

    /// Returns whether there are few documents from the roots down to this depth.
    pub(crate) fn is_shallow(&self, depth: i64) -> bool {
        self.shallow_depth.is_some_and(|shallow| depth <= shallow)
    }

    pub(crate) fn is_boolean(&self, table: &str, column: &str) -> bool {
        self.column_type(table, column) == ColumnType::Boolean
    }

    pub(crate) fn column_type(&self, table: &str, column: &str) -> ColumnType {
        let known = self.columns.get(table).and_then(|columns| columns.get(column));
        known.copied().unwrap_or(ColumnType::Text)
    }

    /// Returns the readable fields of a model that this database has.
    pub(crate) fn fields(&self, model: &Model) -> impl Iterator<Item = &'static str> {
        let known = self.columns.get(model.table);
        let has = move |field: &&str| known.is_some_and(|columns| columns.contains_key(*field));
        model.fields.iter().copied().filter(has).filter(|field| !is_sensitive(field))
    }
}
