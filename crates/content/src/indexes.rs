//! Which indexes would help. They are only ever suggested: this toolset
//! changes nothing.

use tool::{Finding, Severity};

use crate::database::Cell;
use crate::explain::ExplainError;
use crate::provider::Content;
use crate::sql::{self, Dialect};

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
const INDEXES: &[Index] = &[
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
}

impl Index {
    /// Whether this engine has a use for it.
    fn is_for(&self, dialect: Dialect) -> bool {
        let falls = self.columns.iter().any(|column| matches!(column, Down(_)));
        dialect == Dialect::MySql || !falls
    }

    /// Whether an index that exists does what this one would.
    fn is_like(&self, there: &Existing) -> bool {
        there.columns.len() >= self.columns.len()
            && self.columns.iter().zip(&there.columns).all(|(wanted, (name, falls))| {
                wanted.name() == name && *falls == matches!(wanted, Down(_))
            })
    }
}

/// An index that the database has.
struct Existing {
    table: String,
    name: String,
    /// Each with whether it goes from high to low.
    columns: Vec<(String, bool)>,
}

impl Content {
    /// Indexes that are missing, each with the statement that makes it.
    pub async fn missing_indexes(&self) -> Result<Vec<(Finding, String)>, ExplainError> {
        let existing = self.existing_indexes().await?;
        let prefix = self.site.prefix.as_str();
        let is_there = |index: &Index| {
            let table = format!("{prefix}{}", index.table);
            existing.iter().any(|there| there.table == table && index.is_like(there))
        };
        let missing = INDEXES
            .iter()
            .filter(|index| index.is_for(self.site.dialect) && self.site.has_table(index.table))
            .filter(|index| !is_there(index));
        let suggest = |index: &Index| {
            let table = format!("{prefix}{}", index.table);
            let finding = Finding::new(Severity::Info, "missing-index", table, index.why);
            (finding, sql::create_index(&self.site, index))
        };
        Ok(missing.map(suggest).collect())
    }

    async fn existing_indexes(&self) -> Result<Vec<Existing>, ExplainError> {
        let mut existing: Vec<Existing> = Vec::new();
        for row in self.database.fetch(&sql::indexes(&self.site)).await? {
            let mut cells = row.into_iter();
            let falls = cells.next_back().and_then(|cell| cell.number()) == Some(1);
            let mut texts = cells.filter_map(Cell::text);
            let (Some(table), Some(name), Some(column)) =
                (texts.next(), texts.next(), texts.next())
            else {
                continue;
            };
            match existing.iter_mut().find(|one| one.table == table && one.name == name) {
                Some(one) => one.columns.push((column, falls)),
                None => existing.push(Existing { table, name, columns: vec![(column, falls)] }),
            }
        }
        Ok(existing)
    }
}
