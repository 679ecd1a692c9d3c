//! Explains a call: its SQL statement, and the engine's plan for it.

use serde_json::Value;
use tool::Call;

use crate::database::{Cell, DatabaseError};
use crate::provider::Content;
use crate::query::Operand;
use crate::sql::{self, Visibility};
use crate::statement::{Dialect, Statement};
use crate::tools::{self, QueryParser};

/// The SQL statement of a call, which was not run.
pub struct PreparedQuery {
    statement: Statement,
}

/// Why a call cannot be explained, or its plan not fetched.
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
    fn from(error: DatabaseError) -> ExplainError {
        let cause = std::error::Error::source(&error).map(ToString::to_string);
        ExplainError::Database(cause.unwrap_or_else(|| error.to_string()))
    }
}

impl PreparedQuery {
    pub fn sql(&self) -> &str {
        &self.statement.text
    }

    /// Returns the values that are bound to the statement; decimal numbers are texts.
    pub fn values(&self) -> Vec<Value> {
        let value = |operand: &Operand| match operand {
            Operand::Integer(integer) => Value::from(*integer),
            Operand::Decimal(text) | Operand::Text(text) => Value::from(text.as_str()),
        };
        self.statement.values.iter().map(value).collect()
    }
}

impl Content {
    /// Renders the SQL statement of a call, for a caller who may see everything.
    pub fn prepare(&self, tool: &str, arguments: &Value) -> Result<PreparedQuery, ExplainError> {
        let definition = tools::find(tool).ok_or_else(|| ExplainError::NoTool(tool.to_owned()))?;
        let limits = &self.config.limits;
        let invalid = |error: crate::arguments::InvalidArguments| ExplainError::Arguments(error.0);
        let statement = match definition.parser {
            QueryParser::Documents(parse) => {
                let query = parse(arguments, limits).map_err(invalid)?;
                sql::documents(&self.site, &query, Visibility::Whole)
            }
            QueryParser::Records(parse) => {
                let query = parse(arguments, limits).map_err(invalid)?;
                sql::records(&self.site, &query, Visibility::Whole)
            }
        };
        Ok(PreparedQuery { statement })
    }

    /// Fetches the engine's plan for a statement, one line per step.
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

    /// Returns one valid call for each tool, to check an installation with.
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
