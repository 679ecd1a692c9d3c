//! The registry as a provider.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::FutureExt;
use futures::stream::{self, BoxStream, StreamExt};
use serde_json::{Map, Value, json};
use tool::{
    Ask, Context as Asked, Event, Failure, Json, Listing, Provider, Reply, Resource, RpcError,
};

use crate::definition::{Call, Run};
use crate::registry::{Ready, Registry};
use crate::state::States;
use crate::{Answer, Context, Error, Fault, schema};

/// How many problems of one call are told at once.
const MOST_PROBLEMS: usize = 8;

struct Native {
    registry: Registry,
    states: Arc<States>,
    listing: Arc<Listing>,
    /// Where the discovery report is read.
    report_uri: String,
}

impl Registry {
    /// The registry as a provider. What is registered is fixed from here on.
    pub fn into_provider(self) -> Arc<dyn Provider> {
        for failed in &self.report.failed {
            tracing::warn!(
                tool = failed.name,
                module = failed.module,
                "left out: {}",
                failed.error
            );
        }
        Arc::new(Native::new(self))
    }
}

impl Native {
    fn new(registry: Registry) -> Native {
        let report_uri = report_uri(&registry.server.name);
        let listing = Listing {
            server: registry.server.clone(),
            tools: registry.tools.iter().map(|ready| ready.listed.clone()).collect(),
            resources: vec![report_resource(&report_uri)],
            ..Listing::default()
        };
        let (states, listing) = (Arc::new(registry.states.clone()), Arc::new(listing));
        Native { registry, states, listing, report_uri }
    }

    async fn call(&self, call: tool::Call, asked: &Asked) -> Result<Reply, Error> {
        let ready = self.registry.find(&call.name)?;
        let arguments = arguments(call.arguments.as_ref())?;
        let problems = schema::problems(&ready.input, &arguments, MOST_PROBLEMS);
        if !problems.is_empty() {
            return Err(Error::Schema { tool: call.name, problems });
        }
        warn_deprecated(ready);
        let context = Context::new(asked, &call.other_params);
        let answer = run(ready, Call::new(arguments, context, Arc::clone(&self.states))).await?;
        reply(ready, answer)
    }
}

#[async_trait]
impl Provider for Native {
    fn listing(&self) -> Arc<Listing> {
        Arc::clone(&self.listing)
    }

    fn events(&self) -> BoxStream<'static, Event> {
        // What is registered is fixed, and the process is the provider.
        stream::pending().boxed()
    }

    async fn ask(&self, ask: Ask, context: &Asked) -> Result<Reply, Failure> {
        match ask {
            Ask::Call(call) => match self.call(call, context).await {
                Ok(reply) => Ok(reply),
                Err(error) => error.into_reply(),
            },
            Ask::ReadResource(read) if read.uri == self.report_uri => Ok(self.report()),
            Ask::ReadResource(read) => {
                let message = format!("no resource is at `{}`", short(&read.uri));
                Ok(Reply::Error(RpcError::new(-32002, message)))
            }
            Ask::Prompt(prompt) => {
                let message = format!("no prompt is called `{}`", short(&prompt.name));
                Ok(Reply::Error(RpcError::new(-32602, message)))
            }
            Ask::Complete(_) => Ok(Reply::Error(RpcError::new(-32601, "nothing to complete"))),
            Ask::Other { method, .. } => {
                let message = format!("`{}` is not supported", short(&method));
                Ok(Reply::Error(RpcError::new(-32601, message)))
            }
        }
    }
}

impl Native {
    fn report(&self) -> Reply {
        let text = self.registry.report.to_json().as_str().to_owned();
        let contents =
            json!([{"uri": self.report_uri, "mimeType": "application/json", "text": text}]);
        Reply::Result(json!({"contents": contents}).into())
    }
}

fn arguments(given: Option<&Json>) -> Result<Value, Error> {
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

fn warn_deprecated(ready: &Ready) {
    if let Some(version) = &ready.definition.about.deprecated_in {
        tracing::warn!(tool = ready.definition.name, since = version, "deprecated tool called");
    }
}

/// Runs the tool within its time, and turns what it cannot say itself (it
/// panicked, it took too long) into errors.
async fn run(ready: &Ready, call: Call) -> Result<Answer, Error> {
    let name = || ready.definition.name.clone();
    let limit = limit(ready, call.context().timeout);
    let Some(run) = ready.definition.run.clone() else {
        let reason = "nothing to run".to_owned();
        return Err(Error::Transport(Failure::Unavailable { reason }));
    };
    let ended = async {
        match run {
            Run::Async(run) => {
                // A panic may come while the future is made, too.
                let answered = AssertUnwindSafe(async move { run(call).await });
                answered.catch_unwind().await.map_err(|panic| broke_off(&name(), &*panic))
            }
            Run::Blocking(run) => match tokio::task::spawn_blocking(move || run(call)).await {
                Ok(answer) => Ok(answer),
                Err(error) => match error.try_into_panic() {
                    Ok(panic) => Err(broke_off(&name(), &*panic)),
                    Err(_) => Err(Error::Transport(Failure::Cancelled)),
                },
            },
        }
    };
    match tokio::time::timeout(limit, ended).await {
        Ok(Ok(answer)) => answer.map_err(Error::Failed),
        Ok(Err(error)) => Err(error),
        Err(_) => {
            tracing::warn!(tool = ready.definition.name, ?limit, "tool took too long");
            Err(Error::Timeout { tool: name(), after: limit })
        }
    }
}

fn limit(ready: &Ready, patience: Option<Duration>) -> Duration {
    let own = ready.definition.timeout;
    patience.map_or(own, |patience| patience.min(own))
}

fn broke_off(tool: &str, panic: &(dyn std::any::Any + Send)) -> Error {
    let message = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message");
    tracing::error!(tool, message, "tool panicked");
    Error::Panic { tool: tool.to_owned() }
}

/// Writes the answer, after a check that it is what the tool declares.
fn reply(ready: &Ready, answer: Answer) -> Result<Reply, Error> {
    let wraps = ready.definition.wraps;
    if let (Some(validator), Answer::Value(value)) = (&ready.output, &answer) {
        let wrapped;
        let whole = if wraps {
            wrapped = json!({"result": value});
            &wrapped
        } else {
            value
        };
        if let Some(problem) = schema::problems(validator, whole, 1).first() {
            let reason = format!("at `{}`: {}", problem.pointer, problem.message);
            return Err(Error::Serialization { tool: ready.definition.name.clone(), reason });
        }
    }
    Ok(answer.into_reply(wraps))
}

/// Returns what was asked for, as far as it is repeated.
fn short(given: &str) -> String {
    schema::cut(given, schema::LONGEST)
}

/// Providers stand beside each other, so each has an address of its own.
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

impl From<Fault> for Error {
    fn from(fault: Fault) -> Error {
        Error::Failed(fault)
    }
}
