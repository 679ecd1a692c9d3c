//! The indexes that make the tools' questions cheap.

use crate::statement::Dialect;

/// An index that makes some question cheap.
#[derive(Debug)]
pub(crate) struct Index {
    pub(crate) table: &'static str,
    pub(crate) columns: &'static [Column],
    pub(crate) why: &'static str,
}

/// A column of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Column {
    Up(&'static str),
    /// From high to low. Only MariaDB and MySQL need it: the others sort equal
    /// values as they go, these would sort the whole table to list the newest
    /// first.
    Down(&'static str),
}

use Column::{Down, Up};

/// Every index that the tools can use, besides primary keys.
pub(crate) const INDEXES: &[Index] = &[
    Index {
        table: "site_content",
        columns: &[Up("parent"), Up("menuindex")],
        why: "children, siblings and their ranges in menu order",
    },
    Index {
        table: "site_content_closure",
        columns: &[Up("ancestor"), Up("depth"), Up("descendant")],
        why: "descendants, root_tree and search below a parent",
    },
    Index {
        table: "site_content_closure",
        columns: &[Up("descendant"), Up("depth")],
        why: "ancestors, and search with parent 0 on a large site",
    },
    Index {
        table: "site_tmplvar_contentvalues",
        columns: &[Up("tmplvarid"), Up("contentid")],
        why: "template variables of a document",
    },
    Index {
        table: "site_content",
        columns: &[Up("deleted"), Up("id")],
        why: "search, and search for deleted documents",
    },
    Index {
        table: "site_content",
        columns: &[Up("deleted"), Up("pagetitle")],
        why: "search ordered by pagetitle",
    },
    Index {
        table: "site_content",
        columns: &[Up("deleted"), Up("menuindex")],
        why: "search ordered by menuindex",
    },
    Index {
        table: "site_content",
        columns: &[Up("deleted"), Up("createdon")],
        why: "search ordered by createdon",
    },
    Index {
        table: "site_content",
        columns: &[Up("deleted"), Up("pub_date")],
        why: "search ordered by pub_date, and with order_by_date",
    },
    Index {
        table: "site_content",
        columns: &[Up("deleted"), Up("pub_date"), Up("createdon")],
        why: "search with order_by_date",
    },
    Index {
        table: "site_content",
        columns: &[Up("deleted"), Down("pagetitle")],
        why: "search ordered by pagetitle, last first",
    },
    Index {
        table: "site_content",
        columns: &[Up("deleted"), Down("menuindex")],
        why: "search ordered by menuindex, last first",
    },
    Index {
        table: "site_content",
        columns: &[Up("deleted"), Down("createdon")],
        why: "search ordered by createdon, newest first",
    },
    Index {
        table: "site_content",
        columns: &[Up("deleted"), Down("pub_date")],
        why: "search ordered by date, newest first",
    },
    Index {
        table: "site_content",
        columns: &[Up("deleted"), Up("pub_date"), Down("createdon")],
        why: "search ordered by date, newest first",
    },
    Index {
        table: "site_content",
        columns: &[Up("template"), Up("deleted")],
        why: "search by template",
    },
    Index {
        table: "site_content",
        columns: &[Up("published"), Up("deleted")],
        why: "search for unpublished documents",
    },
    Index {
        table: "site_content",
        columns: &[Up("hidemenu"), Up("deleted")],
        why: "search by hidemenu",
    },
    Index {
        table: "site_tmplvars",
        columns: &[Up("name")],
        why: "template variables by their names",
    },
    Index {
        table: "site_content_tags",
        columns: &[Up("tv_id"), Up("tag_id"), Up("doc_id")],
        why: "search by tags",
    },
];

impl Column {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Up(name) | Down(name) => name,
        }
    }

    /// Whether it goes from high to low.
    pub(crate) fn falls(self) -> bool {
        matches!(self, Down(_))
    }
}

impl Index {
    /// Whether this engine has a use for it.
    pub(crate) fn is_for(&self, dialect: Dialect) -> bool {
        let falls = self.columns.iter().any(|column| column.falls());
        dialect == Dialect::MySql || !falls
    }
}
