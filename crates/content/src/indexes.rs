//! The database indexes that the queries of the tools can use.

use crate::statement::Dialect;

/// An index that makes some queries fast.
#[derive(Debug)]
pub(crate) struct Index {
    pub(crate) table: &'static str,
    pub(crate) columns: &'static [Column],
    /// The queries that use it, for the operator.
    pub(crate) why: &'static str,
}

/// A column of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Column {
    Ascending(&'static str),
    /// From high to low. Only MariaDB and MySQL need it: to list the newest first, they
    /// would sort the whole table, while the others read an ascending index backwards
    /// and sort only equal values.
    Descending(&'static str),
}

use Column::{Ascending, Descending};

/// Every index that the tools can use, besides primary keys.
pub(crate) const INDEXES: &[Index] = &[
    Index {
        table: "site_content",
        columns: &[Ascending("parent"), Ascending("menuindex")],
        why: "children, siblings and their ranges in menu order",
    },
    Index {
        table: "site_content_closure",
        columns: &[Ascending("ancestor"), Ascending("depth"), Ascending("descendant")],
        why: "descendants, root_tree and search below a parent",
    },
    Index {
        table: "site_content_closure",
        columns: &[Ascending("descendant"), Ascending("depth")],
        why: "ancestors, and search with parent 0 on a large site",
    },
    Index {
        table: "site_tmplvar_contentvalues",
        columns: &[Ascending("tmplvarid"), Ascending("contentid")],
        why: "template variables of a document",
    },
    Index {
        table: "site_content",
        columns: &[Ascending("deleted"), Ascending("id")],
        why: "search, and search for deleted documents",
    },
    Index {
        table: "site_content",
        columns: &[Ascending("deleted"), Ascending("pagetitle")],
        why: "search ordered by pagetitle",
    },
    Index {
        table: "site_content",
        columns: &[Ascending("deleted"), Ascending("menuindex")],
        why: "search ordered by menuindex",
    },
    Index {
        table: "site_content",
        columns: &[Ascending("deleted"), Ascending("createdon")],
        why: "search ordered by createdon",
    },
    Index {
        table: "site_content",
        columns: &[Ascending("deleted"), Ascending("pub_date")],
        why: "search ordered by pub_date, and with order_by_date",
    },
    Index {
        table: "site_content",
        columns: &[Ascending("deleted"), Ascending("pub_date"), Ascending("createdon")],
        why: "search with order_by_date",
    },
    Index {
        table: "site_content",
        columns: &[Ascending("deleted"), Descending("pagetitle")],
        why: "search ordered by pagetitle, last first",
    },
    Index {
        table: "site_content",
        columns: &[Ascending("deleted"), Descending("menuindex")],
        why: "search ordered by menuindex, last first",
    },
    Index {
        table: "site_content",
        columns: &[Ascending("deleted"), Descending("createdon")],
        why: "search ordered by createdon, newest first",
    },
    Index {
        table: "site_content",
        columns: &[Ascending("deleted"), Descending("pub_date")],
        why: "search ordered by date, newest first",
    },
    Index {
        table: "site_content",
        columns: &[Ascending("deleted"), Ascending("pub_date"), Descending("createdon")],
        why: "search ordered by date, newest first",
    },
    Index {
        table: "site_content",
        columns: &[Ascending("template"), Ascending("deleted")],
        why: "search by template",
    },
    Index {
        table: "site_content",
        columns: &[Ascending("published"), Ascending("deleted")],
        why: "search for unpublished documents",
    },
    Index {
        table: "site_content",
        columns: &[Ascending("hidemenu"), Ascending("deleted")],
        why: "search by hidemenu",
    },
    Index {
        table: "site_tmplvars",
        columns: &[Ascending("name")],
        why: "template variables by their names",
    },
    Index {
        table: "site_content_tags",
        columns: &[Ascending("tv_id"), Ascending("tag_id"), Ascending("doc_id")],
        why: "search by tags",
    },
];

impl Column {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Ascending(name) | Descending(name) => name,
        }
    }

    pub(crate) fn is_descending(self) -> bool {
        matches!(self, Descending(_))
    }
}

impl Index {
    /// Returns whether the queries for this engine can use the index.
    pub(crate) fn is_useful_for(&self, dialect: Dialect) -> bool {
        let is_descending = self.columns.iter().any(|column| column.is_descending());
        dialect == Dialect::MySql || !is_descending
    }
}
