//! How a question is answered: its statement, the engine's plan for it, and
//! which indexes would help.

use serde_json::Value;
use tool::{Call, Finding, Severity};

use crate::database::{Cell, Trouble};
use crate::provider::Content;
use crate::query::Operand;
use crate::sql::{self, Dialect, Sight, Statement};
use crate::tools::{self, Read};

/// A question that was rendered and not asked yet.
pub struct Prepared {
    statement: Statement,
}

/// Why a question cannot be looked at.
#[derive(Debug, thiserror::Error)]
pub enum ExplainError {
    #[error("there is no tool `{0}`")]
    NoTool(String),
    #[error("{0}")]
    Arguments(String),
    #[error("the database gave no answer: {0}")]
    Database(String),
}

impl From<Trouble> for ExplainError {
    fn from(trouble: Trouble) -> ExplainError {
        let cause = std::error::Error::source(&trouble).map(ToString::to_string);
        ExplainError::Database(cause.unwrap_or_else(|| trouble.to_string()))
    }
}

impl Prepared {
    pub fn sql(&self) -> &str {
        &self.statement.text
    }

    /// What is bound to it: integers, real numbers and texts.
    pub fn values(&self) -> Vec<Value> {
        let value = |operand: &Operand| match operand {
            Operand::Integer(integer) => Value::from(*integer),
            Operand::Real(real) => Value::from(*real),
            Operand::Text(text) => Value::from(text.as_str()),
        };
        self.statement.values.iter().map(value).collect()
    }
}

/// An index that makes some question cheap.
#[derive(Debug)]
pub(crate) struct Index {
    pub(crate) table: &'static str,
    pub(crate) columns: &'static [&'static str],
    pub(crate) why: &'static str,
}

/// Every index that the tools can use, besides primary keys.
pub(crate) const INDEXES: &[Index] = &[
    Index {
        table: "site_content",
        columns: &["parent", "menuindex"],
        why: "children, siblings and their ranges in menu order",
    },
    Index {
        table: "site_content_closure",
        columns: &["ancestor", "depth", "descendant"],
        why: "descendants, root_tree and search below a parent, a page at a time",
    },
    Index {
        table: "site_content_closure",
        columns: &["descendant", "depth"],
        why: "ancestors, and search with parent 0 on a large site",
    },
    Index {
        table: "site_tmplvar_contentvalues",
        columns: &["tmplvarid", "contentid"],
        why: "template variables of a document",
    },
    Index { table: "site_content", columns: &["pagetitle"], why: "search ordered by pagetitle" },
    Index { table: "site_content", columns: &["menuindex"], why: "search ordered by menuindex" },
    Index { table: "site_content", columns: &["createdon"], why: "search ordered by createdon" },
    Index { table: "site_content", columns: &["pub_date"], why: "search ordered by pub_date" },
    Index {
        table: "site_content",
        columns: &["pub_date", "createdon"],
        why: "search with order_by_date",
    },
    Index { table: "site_content", columns: &["deleted"], why: "search for deleted documents" },
    Index {
        table: "site_content",
        columns: &["published", "deleted"],
        why: "search for unpublished documents",
    },
    Index { table: "site_content", columns: &["template"], why: "search by template" },
    Index {
        table: "site_content_tags",
        columns: &["tv_id", "tag_id", "doc_id"],
        why: "search by tags",
    },
];

impl Content {
    /// Renders a question as everybody would ask it.
    pub fn prepare(&self, tool: &str, arguments: &Value) -> Result<Prepared, ExplainError> {
        let definition = tools::find(tool).ok_or_else(|| ExplainError::NoTool(tool.to_owned()))?;
        let limits = &self.config.limits;
        let invalid = |error: crate::arguments::Invalid| ExplainError::Arguments(error.0);
        let statement = match definition.read {
            Read::Documents(read) => {
                let query = read(arguments, limits).map_err(invalid)?;
                sql::documents(&self.site, &query, Sight::Whole)
            }
            Read::Records(read) => {
                let query = read(arguments, limits).map_err(invalid)?;
                sql::records(&self.site, &query, Sight::Whole)
            }
        };
        Ok(Prepared { statement })
    }

    /// The engine's plan for a question, a line per step.
    pub async fn plan(&self, prepared: &Prepared) -> Result<Vec<String>, ExplainError> {
        let statement = sql::explain(&self.site, &prepared.statement);
        let rows = self.database.fetch(&statement).await?;
        let line = |row: Vec<Cell>| {
            let texts = row.into_iter().filter_map(Cell::text);
            let texts: Vec<String> = match self.site.dialect {
                Dialect::Sqlite => texts.skip(3).collect(),
                Dialect::MySql | Dialect::Postgres => texts.collect(),
            };
            texts.join(" | ")
        };
        Ok(rows.into_iter().map(line).collect())
    }

    /// Indexes that are missing, each with the statement that makes it. They
    /// are only ever suggested: this toolset changes nothing.
    pub async fn missing_indexes(&self) -> Result<Vec<(Finding, String)>, ExplainError> {
        let rows = self.database.fetch(&sql::indexes(&self.site)).await?;
        let mut present: Vec<(String, String, Vec<String>)> = Vec::new();
        for row in rows {
            let mut texts = row.into_iter().filter_map(Cell::text);
            let (Some(table), Some(index), Some(column)) =
                (texts.next(), texts.next(), texts.next())
            else {
                continue;
            };
            match present.iter_mut().find(|(of, name, _)| *of == table && *name == index) {
                Some((_, _, columns)) => columns.push(column),
                None => present.push((table, index, vec![column])),
            }
        }
        let prefix = self.site.prefix.as_str();
        let has = |index: &Index| {
            let table = format!("{prefix}{}", index.table);
            let fits = |columns: &[String]| {
                columns.len() >= index.columns.len()
                    && columns.iter().zip(index.columns).all(|(ours, wanted)| ours == wanted)
            };
            present.iter().any(|(of, _, columns)| *of == table && fits(columns))
        };
        let missing =
            INDEXES.iter().filter(|index| self.site.has_table(index.table) && !has(index));
        let suggest = |index: &Index| {
            let table = format!("{prefix}{}", index.table);
            let finding = Finding::new(Severity::Info, "missing-index", table, index.why);
            (finding, sql::create_index(&self.site, index))
        };
        Ok(missing.map(suggest).collect())
    }

    /// One call of every tool, for a check of an installation.
    pub fn sample_calls() -> Vec<Call> {
        let call = |name: &str| {
            let arguments = match name {
                "evo.content.get" => serde_json::json!({"id": 1}),
                "evo.content.search" | "evo.content.root_tree" => serde_json::json!({"limit": 1}),
                "evo.model.list" => serde_json::json!({"model": "SiteTemplate", "limit": 1}),
                "evo.model.get" => serde_json::json!({"model": "SiteTemplate", "id": 1}),
                _ => serde_json::json!({"id": 1, "limit": 1, "from": 0}),
            };
            Call::new(name, arguments.into())
        };
        tools::TOOLS.iter().map(|tool| call(tool.name)).collect()
    }
}
