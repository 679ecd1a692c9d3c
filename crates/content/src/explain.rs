//! Shows how a query is answered: its SQL statement, and the engine's plan for it.

use serde_json::Value;
use tool::Call;

use crate::database::{Cell, DatabaseError};
use crate::provider::Content;
use crate::query::Operand;
use crate::sql::{self, Visibility};
use crate::statement::{Dialect, Statement};
use crate::tools::{self, QueryParser};

/// A query that was rendered as SQL and not run yet.
pub struct PreparedQuery {
    statement: Statement,
}

/// Why a query cannot be explained.
#[derive(Debug, thiserror::Error)]
pub enum ExplainError {
    #[error("there is no tool `{0}`")]
    NoTool(String),
    #[error("{0}")]
    Arguments(String),
    #[error("the database gave no answer: {0}")]
    Database(String),
}

impl From<DatabaseError> for ExplainError {
    fn from(trouble: DatabaseError) -> ExplainError {
        let cause = std::error::Error::source(&trouble).map(ToString::to_string);
        ExplainError::Database(cause.unwrap_or_else(|| trouble.to_string()))
    }
}

impl PreparedQuery {
    pub fn sql(&self) -> &str {
        &self.statement.text
    }

    /// Returns what is bound to it: integers and texts; numbers of any other kind
    /// are texts.
    pub fn values(&self) -> Vec<Value> {
        let value = |operand: &Operand| match operand {
            Operand::Integer(integer) => Value::from(*integer),
            Operand::Decimal(text) | Operand::Text(text) => Value::from(text.as_str()),
        };
        self.statement.values.iter().map(value).collect()
    }
}

impl Content {
    /// Renders the query of a call, without restrictions of a caller.
    pub fn prepare(&self, tool: &str, arguments: &Value) -> Result<PreparedQuery, ExplainError> {
        let definition = tools::find(tool).ok_or_else(|| ExplainError::NoTool(tool.to_owned()))?;
        let limits = &self.config.limits;
        let invalid = |error: crate::arguments::InvalidArguments| ExplainError::Arguments(error.0);
        let statement = match definition.read {
            QueryParser::Documents(read) => {
                let query = read(arguments, limits).map_err(invalid)?;
                sql::documents(&self.site, &query, Visibility::Whole)
            }
            QueryParser::Records(read) => {
                let query = read(arguments, limits).map_err(invalid)?;
                sql::records(&self.site, &query, Visibility::Whole)
            }
        };
        Ok(PreparedQuery { statement })
    }

    /// The engine's plan for a query, one line per step.
    pub async fn plan(&self, prepared: &PreparedQuery) -> Result<Vec<String>, ExplainError> {
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
