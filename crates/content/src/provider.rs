//! The toolset as a [`Provider`]: opens a site, lists the tools and answers calls.

use std::sync::Arc;

use async_trait::async_trait;
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use serde_json::{Map, Value, json};
use tool::{
    Ask, Call, Context, Event, Failure, Finding, Json, Listing, Provider, Reply, RpcError, Server,
    Tool,
};

use crate::arguments::InvalidArguments;
use crate::config::{Config, ErrorForm};
use crate::contract::{FORBIDDEN, PLATFORM, REASON_META_KEY, RESULT_TOO_LARGE, TOOLSET_VERSION};
use crate::database::{
    ConnectError, ConnectionRefusal, Database, DatabaseError, Rows, connection_refusal,
};
use crate::pattern;
use crate::probe::{ProbeError, probe};
use crate::query::{DocumentQuery, RecordQuery};
use crate::result_json;
use crate::site::Site;
use crate::sql;
use crate::tools::{self, Definition, QueryParser, TOOLS};
use crate::viewer::{Viewer, ViewerError};

const INVALID_PARAMS: i64 = -32602;
const NOT_FOUND: i64 = -32601;
const INTERNAL: i64 = -32603;

/// Why a site cannot be served. One variant per remedy.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The URL is wrong.
    #[error("{0}")]
    Url(String),
    /// The database is away.
    #[error("the database cannot be reached: {0}")]
    Unreachable(String),
    /// The server is there, but refuses the connection.
    #[error("the database server refuses us: {0}")]
    Refused(String),
    /// There is no such file, or no such database on the server.
    #[error("{0}")]
    NoDatabase(String),
    /// The database is there, but it does not contain a site.
    #[error("{0}")]
    NoSite(String),
}

/// An open site, which answers calls of the content tools.
pub struct Content {
    pub(crate) config: Config,
    pub(crate) database: Database,
    pub(crate) site: Site,
    listing: Arc<Listing>,
}

/// Opens a site as a provider of the content tools.
pub async fn open(config: &Config) -> Result<Arc<dyn Provider>, OpenError> {
    Ok(Arc::new(Content::open(config).await?))
}

impl Content {
    /// Connects to the database and examines its tables.
    pub async fn open(config: &Config) -> Result<Content, OpenError> {
        let database = Database::connect(&config.source, &config.pool).await?;
        let prefix = config.prefix.as_deref();
        let site = probe(&database, prefix, config.tree, config.few_documents).await?;
        let listing = Arc::new(Listing { findings: site.findings.clone(), ..listing(config) });
        Ok(Content { config: config.clone(), database, site, listing })
    }

    /// Returns what the operator should know about this site, such as missing tables.
    pub fn findings(&self) -> &[Finding] {
        &self.site.findings
    }

    /// Closes every connection.
    pub async fn close(&self) {
        self.database.close().await;
    }

    async fn call(&self, call: &Call, context: &Context) -> Result<Reply, Failure> {
        let Some(tool) = tools::find(&call.name).filter(|tool| is_offered(&self.config, tool))
        else {
            let message = format!("Tool [{}] not found.", call.name);
            return Ok(Reply::Error(RpcError::new(NOT_FOUND, message)));
        };
        match self.run_tool(tool, call, context).await {
            Ok(result) => Ok(self.check_size(result)),
            Err(CallError::InvalidArguments(InvalidArguments(message))) => {
                Ok(self.invalid_reply(&message))
            }
            Err(CallError::Forbidden(message)) => Ok(self.forbidden_reply(&message)),
            Err(CallError::DatabaseError(error)) => self.database_reply(error),
        }
    }

    async fn run_tool(
        &self,
        tool: &Definition,
        call: &Call,
        context: &Context,
    ) -> Result<Json, CallError> {
        let arguments = parse_arguments(call)?;
        match tool.parser {
            QueryParser::Documents(parse) => {
                let query = parse(&arguments, &self.config.limits)?;
                let rows = self.documents(&query, context).await?;
                Ok(result_json::documents(tool.result_shape, &query, rows))
            }
            QueryParser::Records(parse) => {
                let query = parse(&arguments, &self.config.limits)?;
                let rows = self.records(&query, context).await?;
                let fields: Vec<&str> = self.site.fields(query.model).collect();
                Ok(result_json::records(tool.result_shape, &query, &fields, rows))
            }
        }
    }

    async fn documents(&self, query: &DocumentQuery, context: &Context) -> Result<Rows, CallError> {
        let viewer = self.viewer(context).await?;
        let statement = sql::documents(&self.site, query, viewer.visibility);
        Ok(self.database.fetch(&statement).await?)
    }

    async fn records(&self, query: &RecordQuery, context: &Context) -> Result<Rows, CallError> {
        let model = query.model;
        let viewer = self.viewer(context).await?;
        if !viewer.may_read(model, &self.site, &self.database).await? {
            let message = format!(
                "Model [{}] needs the permission [{}] on this site.",
                model.name, model.permission
            );
            return Err(CallError::Forbidden(message));
        }
        if !self.site.has_table(model.table) {
            let message = format!("Model [{}] has no table in this database.", model.name);
            return Err(InvalidArguments(message).into());
        }
        let used = query.filters.iter().map(|filter| filter.field).chain([query.order.0]);
        for field in used {
            if !self.site.has_column(model.table, field) {
                let message = format!("Field [{field}] does not exist in this database.");
                return Err(InvalidArguments(message).into());
            }
        }
        let statement = sql::records(&self.site, query, viewer.visibility);
        Ok(self.database.fetch(&statement).await?)
    }

    async fn viewer(&self, context: &Context) -> Result<Viewer, CallError> {
        match Viewer::find(&context.caller, &self.config, &self.site, &self.database).await {
            Ok(viewer) => Ok(viewer),
            Err(ViewerError::DatabaseError(error)) => Err(error.into()),
            Err(
                refusal @ (ViewerError::Blocked
                | ViewerError::Unreadable
                | ViewerError::NotPermitted
                | ViewerError::NoUsers),
            ) => Err(CallError::Forbidden(format!("Forbidden: {refusal}."))),
        }
    }

    /// Returns the result as a reply, or an error if it is over the size limit.
    fn check_size(&self, result: Json) -> Reply {
        let limit = self.config.limits.max_result_bytes;
        let size = result.as_bytes().len();
        if size <= limit {
            return Reply::Result(result);
        }
        let message = format!(
            "The result has {size} bytes, more than the {limit} allowed; ask for a smaller limit \
             or fewer with_tvs."
        );
        match self.config.errors {
            ErrorForm::Rpc => {
                let data = json!({"reason": RESULT_TOO_LARGE}).into();
                Reply::Error(RpcError::with_data(INVALID_PARAMS, message, &data))
            }
            ErrorForm::Result => Reply::error_text(&message),
        }
    }

    fn invalid_reply(&self, message: &str) -> Reply {
        match self.config.errors {
            ErrorForm::Rpc => Reply::Error(RpcError::new(INVALID_PARAMS, message)),
            ErrorForm::Result => Reply::error_text(message),
        }
    }

    /// An error for a call that the site does not permit. MCP has no code for that, so it
    /// looks like invalid arguments; the HTTP edge recognises it by the reason.
    fn forbidden_reply(&self, message: &str) -> Reply {
        match self.config.errors {
            ErrorForm::Rpc => {
                let data = json!({"reason": FORBIDDEN}).into();
                Reply::Error(RpcError::with_data(INVALID_PARAMS, message, &data))
            }
            ErrorForm::Result => {
                let content = json!([{"type": "text", "text": message}]);
                let meta = json!({REASON_META_KEY: FORBIDDEN});
                let result = json!({"content": content, "isError": true, "_meta": meta});
                Reply::Result(result.into())
            }
        }
    }

    /// Converts a database error: a lost connection is a failure that may be retried; a
    /// rejected statement is a bug of ours, and its message goes to the log only.
    fn database_reply(&self, error: DatabaseError) -> Result<Reply, Failure> {
        match error {
            DatabaseError::Lost(error) => {
                tracing::warn!(%error, "the content database is away");
                let reason = "the content database cannot be reached; try again".to_owned();
                Err(Failure::Unavailable { reason })
            }
            DatabaseError::Slow(after) => Err(Failure::Timeout { after }),
            DatabaseError::Refused(error) => {
                tracing::error!(%error, "the content database refused a statement");
                let message = "Something went wrong while processing the request.";
                Ok(Reply::Error(RpcError::new(INTERNAL, message)))
            }
        }
    }
}

#[async_trait]
impl Provider for Content {
    fn listing(&self) -> Arc<Listing> {
        Arc::clone(&self.listing)
    }

    fn events(&self) -> BoxStream<'static, Event> {
        stream::pending().boxed()
    }

    async fn ask(&self, ask: Ask, context: &Context) -> Result<Reply, Failure> {
        match ask {
            Ask::Call(call) => self.call(&call, context).await,
            Ask::ReadResource(_) | Ask::Prompt(_) | Ask::Complete(_) | Ask::Other { .. } => {
                let message = format!("The method [{}] was not found.", ask.method());
                Ok(Reply::Error(RpcError::new(NOT_FOUND, message)))
            }
        }
    }
}

/// Why a call has no result.
enum CallError {
    InvalidArguments(InvalidArguments),
    Forbidden(String),
    DatabaseError(DatabaseError),
}

impl From<InvalidArguments> for CallError {
    fn from(invalid: InvalidArguments) -> CallError {
        CallError::InvalidArguments(invalid)
    }
}

impl From<DatabaseError> for CallError {
    fn from(error: DatabaseError) -> CallError {
        CallError::DatabaseError(error)
    }
}

/// Parses the arguments object of a call; absent arguments are an empty object.
fn parse_arguments(call: &Call) -> Result<Value, InvalidArguments> {
    let Some(arguments) = call.arguments.as_ref().filter(|json| !json.is_null()) else {
        return Ok(Value::Object(Map::new()));
    };
    let unreadable = |error| InvalidArguments(format!("The arguments cannot be read: {error}."));
    let value = arguments.to_value().map_err(unreadable)?;
    match value {
        Value::Object(_) => Ok(value),
        // In PHP, where the contract comes from, an empty list is an empty object.
        Value::Array(items) if items.is_empty() => Ok(Value::Object(Map::new())),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Err(InvalidArguments("The arguments must be an object.".to_owned()))
        }
    }
}

/// Returns whether the operator has not denied a tool.
fn is_offered(config: &Config, tool: &Definition) -> bool {
    !config.deny_tools.iter().any(|pattern| pattern::matches(pattern, tool.name))
}

/// Returns the listing of a site with this configuration, without asking its database.
pub fn listing(config: &Config) -> Listing {
    let version = env!("CARGO_PKG_VERSION");
    let capabilities = json!({
        "tools": {"listChanged": false},
        "evo": {"toolsetVersion": TOOLSET_VERSION},
    });
    let raw = json!({
        "name": "eMCP Content Server",
        "version": version,
        "platform": PLATFORM,
        "platformVersion": version,
    });
    let mut server = Server::new("eMCP Content Server", version, capabilities.into());
    server.raw = raw.into();
    server.instructions = Some(
        "Read-only content of an Evolution CMS site. Start with evo.content.root_tree or \
         evo.content.search; template variables (TVs) hold a document's own fields, and \
         evo.model.list with model SiteTmplvar lists their names."
            .to_owned(),
    );
    let offered = TOOLS.iter().filter(|tool| is_offered(config, tool));
    let tools = offered.map(|tool| Tool::parse(tool.json(&config.limits).into()));
    Listing { server, tools: tools.filter_map(Result::ok).collect(), ..Listing::default() }
}

impl From<ConnectError> for OpenError {
    fn from(error: ConnectError) -> OpenError {
        match error {
            ConnectError::Scheme(_) => OpenError::Url(error.to_string()),
            ConnectError::Url(cause) => {
                OpenError::Url(format!("the database URL cannot be read: {cause}"))
            }
            ConnectError::NoFile(_) => OpenError::NoDatabase(error.to_string()),
            ConnectError::Unreachable(cause) => open_error(&cause),
        }
    }
}

/// Converts the error of an engine that could not be connected to.
fn open_error(cause: &sqlx::Error) -> OpenError {
    match connection_refusal(cause) {
        Some(ConnectionRefusal::NoDatabase) => {
            OpenError::NoDatabase(format!("no such database: {cause}"))
        }
        Some(ConnectionRefusal::AccessDenied) => OpenError::Refused(cause.to_string()),
        None => OpenError::Unreachable(cause.to_string()),
    }
}

impl From<ProbeError> for OpenError {
    fn from(error: ProbeError) -> OpenError {
        match error {
            ProbeError::DatabaseError(
                DatabaseError::Lost(cause) | DatabaseError::Refused(cause),
            ) => open_error(&cause),
            ProbeError::DatabaseError(slow @ DatabaseError::Slow(_)) => {
                OpenError::Unreachable(slow.to_string())
            }
            ProbeError::Prefix(_)
            | ProbeError::NoDocuments { .. }
            | ProbeError::Several(_)
            | ProbeError::Columns { .. } => OpenError::NoSite(error.to_string()),
        }
    }
}
