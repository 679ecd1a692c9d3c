//! Serves a registry as a [`Provider`]: checks arguments, runs tools, checks their output.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::FutureExt;
use futures::stream::{self, BoxStream, StreamExt};
use serde_json::{Map, Value, json};
use tool::{
    Ask, Context as ProviderContext, Event, Failure, Json, Listing, Provider, Reply, Resource,
    RpcError,
};

use crate::definition::{Call, ToolBody};
use crate::registry::{CallableTool, Registry};
use crate::state::SharedStates;
use crate::{Context, Error, Output, ToolError, schema};

/// How many problems with the arguments of one call are reported at most.
const MAX_PROBLEMS: usize = 8;

/// A registry as a provider.
struct NativeProvider {
    registry: Registry,
    states: Arc<SharedStates>,
    listing: Arc<Listing>,
    /// The URI of the resource that is the discovery report.
    report_uri: String,
}

impl Registry {
    /// Turns the registry into a provider. No tools can be added afterwards.
    pub fn into_provider(self) -> Arc<dyn Provider> {
        for failed in &self.report.failed {
            tracing::warn!(
                tool = failed.name,
                module = failed.module,
                "left out: {}",
                failed.error
            );
        }
        Arc::new(NativeProvider::new(self))
    }
}

impl NativeProvider {
    fn new(registry: Registry) -> NativeProvider {
        let report_uri = report_uri(&registry.server.name);
        let listing = Listing {
            server: registry.server.clone(),
            tools: registry.tools.iter().map(|callable| callable.listed.clone()).collect(),
            resources: vec![report_resource(&report_uri)],
            ..Listing::default()
        };
        let (states, listing) = (Arc::new(registry.states.clone()), Arc::new(listing));
        NativeProvider { registry, states, listing, report_uri }
    }

    async fn call(
        &self,
        call: tool::Call,
        provider_context: &ProviderContext,
    ) -> Result<Reply, Error> {
        let callable = self.registry.find(&call.name)?;
        let arguments = parse_arguments(call.arguments.as_ref())?;
        let problems = schema::find_problems(&callable.input, &arguments, MAX_PROBLEMS);
        if !problems.is_empty() {
            return Err(Error::Schema { tool: call.name, problems });
        }
        warn_deprecated(callable);
        let context = Context::new(provider_context, &call.other_params);
        let output = run(callable, Call::new(arguments, context, Arc::clone(&self.states))).await?;
        checked_reply(callable, output)
    }
}

#[async_trait]
impl Provider for NativeProvider {
    fn listing(&self) -> Arc<Listing> {
        Arc::clone(&self.listing)
    }

    fn events(&self) -> BoxStream<'static, Event> {
        // The tools never change, and the provider lives as long as the process.
        stream::pending().boxed()
    }

    async fn ask(&self, ask: Ask, context: &ProviderContext) -> Result<Reply, Failure> {
        match ask {
            Ask::Call(call) => match self.call(call, context).await {
                Ok(reply) => Ok(reply),
                Err(error) => error.into_reply(),
            },
            Ask::ReadResource(read) if read.uri == self.report_uri => Ok(self.report()),
            Ask::ReadResource(read) => {
                let message = format!("no resource is at `{}`", shorten(&read.uri));
                Ok(Reply::Error(RpcError::new(-32002, message)))
            }
            Ask::Prompt(prompt) => {
                let message = format!("no prompt is called `{}`", shorten(&prompt.name));
                Ok(Reply::Error(RpcError::new(-32602, message)))
            }
            Ask::Complete(_) => Ok(Reply::Error(RpcError::new(-32601, "nothing to complete"))),
            Ask::Other { method, .. } => {
                let message = format!("`{}` is not supported", shorten(&method));
                Ok(Reply::Error(RpcError::new(-32601, message)))
            }
        }
    }
}

impl NativeProvider {
    fn report(&self) -> Reply {
        let text = self.registry.report.to_json().as_str().to_owned();
        let contents =
            json!([{"uri": self.report_uri, "mimeType": "application/json", "text": text}]);
        Reply::Result(json!({"contents": contents}).into())
    }
}

/// Parses the arguments object of a call; absent arguments are an empty object.
fn parse_arguments(given: Option<&Json>) -> Result<Value, Error> {
    let invalid = |reason: String| Error::Validation { reason };
    let value = match given {
        None => return Ok(Value::Object(Map::new())),
        Some(json) => json.to_value().map_err(|error| invalid(format!("`arguments`: {error}")))?,
    };
    match value {
        // Some clients write null for "none".
        Value::Null => Ok(Value::Object(Map::new())),
        Value::Object(_) => Ok(value),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Err(invalid("`arguments` must be an object".to_owned()))
        }
    }
}

fn warn_deprecated(callable: &CallableTool) {
    if let Some(version) = &callable.definition.metadata.deprecated_in {
        tracing::warn!(tool = callable.definition.name, since = version, "deprecated tool called");
    }
}

/// Runs the tool within its time limit, and turns a panic and a timeout into errors.
async fn run(callable: &CallableTool, call: Call) -> Result<Output, Error> {
    let name = || callable.definition.name.clone();
    let limit = time_limit(callable, call.context().timeout);
    let Some(run) = callable.definition.run.clone() else {
        let reason = "nothing to run".to_owned();
        return Err(Error::Transport(Failure::Unavailable { reason }));
    };
    let outcome = async {
        match run {
            ToolBody::Async(run) => {
                // The function may also panic while it makes the future.
                let output = AssertUnwindSafe(async move { run(call).await });
                output.catch_unwind().await.map_err(|panic| panic_error(&name(), &*panic))
            }
            ToolBody::Blocking(run) => match tokio::task::spawn_blocking(move || run(call)).await {
                Ok(output) => Ok(output),
                Err(error) => match error.try_into_panic() {
                    Ok(panic) => Err(panic_error(&name(), &*panic)),
                    Err(_) => Err(Error::Transport(Failure::Cancelled)),
                },
            },
        }
    };
    match tokio::time::timeout(limit, outcome).await {
        Ok(Ok(output)) => output.map_err(Error::Failed),
        Ok(Err(error)) => Err(error),
        Err(_) => {
            tracing::warn!(tool = callable.definition.name, ?limit, "tool took too long");
            Err(Error::Timeout { tool: name(), after: limit })
        }
    }
}

/// Returns the shorter of the tool's own timeout and the caller's.
fn time_limit(callable: &CallableTool, caller_timeout: Option<Duration>) -> Duration {
    let tool_timeout = callable.definition.timeout;
    caller_timeout.map_or(tool_timeout, |timeout| timeout.min(tool_timeout))
}

fn panic_error(tool: &str, panic: &(dyn std::any::Any + Send)) -> Error {
    let message = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message");
    tracing::error!(tool, message, "tool panicked");
    Error::Panic { tool: tool.to_owned() }
}

/// Renders the output as a reply, if it fits the output schema that the tool declares.
fn checked_reply(callable: &CallableTool, output: Output) -> Result<Reply, Error> {
    let wraps_in_result = callable.definition.wraps_in_result;
    if let (Some(validator), Output::Value(value)) = (&callable.output, &output) {
        let wrapped;
        let whole = if wraps_in_result {
            wrapped = json!({"result": value});
            &wrapped
        } else {
            value
        };
        if let Some(problem) = schema::find_problems(validator, whole, 1).first() {
            let reason = format!("at `{}`: {}", problem.pointer, problem.message);
            return Err(Error::Serialization { tool: callable.definition.name.clone(), reason });
        }
    }
    Ok(output.into_reply(wraps_in_result))
}

/// Shortens a name that a caller sent, for an error message.
fn shorten(name: &str) -> String {
    schema::truncate(name, schema::MAX_QUOTED)
}

/// The URI of the discovery report. It contains the name of the server, so that two
/// providers of one process have different ones.
fn report_uri(server: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let write = |byte| match plain(byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    format!("tools://{}/discovery", server.bytes().map(write).collect::<String>())
}

fn report_resource(uri: &str) -> Resource {
    let raw = json!({
        "uri": uri,
        "name": "discovery",
        "title": "Discovery report",
        "description": "Which tools were found, which were refused and why, and how long it took.",
        "mimeType": "application/json",
    });
    Resource::parse(raw.into()).expect("the resource has a URI")
}

impl From<ToolError> for Error {
    fn from(error: ToolError) -> Error {
        Error::Failed(error)
    }
}
