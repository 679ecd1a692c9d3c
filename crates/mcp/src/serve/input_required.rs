//! Bridges `input_required` results of modern providers to legacy clients.
//!
//! A modern provider that needs input replies `input_required` and expects the same request
//! again with the input. A legacy client is asked during its request instead.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use futures::future::try_join_all;
use tool::{Ask, Client, Context, Failure, Json, Object, Provider, Reply, RpcError};

use super::adapt;
use super::channel::missing_capability;
use super::parked::ParkedCalls;
use crate::revision::code;

/// The maximum number of `input_required` replies to one request.
const ROUNDS: usize = 16;

/// The pause before the next try if the provider asks for no input.
const PAUSE: Duration = Duration::from_millis(100);

/// Sends a request to the provider, and asks the client for the input that it requires.
/// `rebuild_ask` makes the request again.
pub(crate) async fn ask(
    provider: &Arc<dyn Provider>,
    ask: Ask,
    rebuild_ask: impl Fn() -> Option<Ask>,
    context: &Context,
) -> Result<Reply, Failure> {
    let mut reply = provider.ask(ask, context).await?;
    for _ in 0..ROUNDS {
        let wanted = match &reply {
            Reply::Result(result) if adapt::wants_input(result) => InputRequests::parse(result),
            Reply::Result(_) | Reply::Error(_) => return Ok(reply),
        };
        let Some(mut again) = rebuild_ask() else { return Ok(reply) };
        match wanted.ask_client(context).await? {
            Ok(responses) => again.other_params_mut().set("inputResponses", responses.to_json()),
            Err(error) => return Ok(Reply::Error(error)),
        }
        again.other_params_mut().remove("requestState");
        if let Some(state) = wanted.state {
            again.other_params_mut().push("requestState", state);
        }
        if wanted.requests.is_empty() {
            again.other_params_mut().remove("inputResponses");
            tokio::time::sleep(PAUSE).await;
        }
        reply = provider.ask(again, context).await?;
    }
    let reason = format!("it still wants input after {ROUNDS} input_required");
    Err(Failure::Unusable { reason })
}

/// Returns the reply to a modern client, or an error if it requires input that the client
/// has no capability for. Marks the `requestState` as the provider's.
pub(crate) fn check_answerable(reply: Reply, client: &Client) -> Reply {
    let (result, wanted) = match &reply {
        Reply::Result(result) if adapt::wants_input(result) => {
            (result, InputRequests::parse(result))
        }
        Reply::Result(_) | Reply::Error(_) => return reply,
    };
    let missing = wanted.requests.iter().find_map(|(_, request)| {
        let (method, params) = method_and_params(request);
        missing_capability(client, &method, &params)
    });
    if let Some(missing) = missing {
        return Reply::Error(missing_capability_error(missing));
    }
    let state = wanted.state.as_ref().and_then(Json::string_value);
    match (state.as_deref().map(ParkedCalls::mark_foreign), Object::parse(result)) {
        (Some(Cow::Owned(mark_foreign)), Ok(mut members)) => {
            members.set("requestState", Json::encode(&mark_foreign));
            Reply::Result(members.to_json())
        }
        _ => reply,
    }
}

/// The content of an `input_required` result.
struct InputRequests {
    requests: Object,
    state: Option<Json>,
}

impl InputRequests {
    fn parse(result: &Json) -> InputRequests {
        let requests = result.member("inputRequests");
        let requests = requests.and_then(|requests| Object::parse(&requests).ok());
        InputRequests {
            requests: requests.unwrap_or_default(),
            state: result.member("requestState"),
        }
    }

    /// Asks the client all requests concurrently, and returns its answers by key, or the
    /// first error.
    async fn ask_client(&self, context: &Context) -> Result<Result<Object, RpcError>, Failure> {
        let asked = self.requests.iter().map(|(key, request)| async move {
            let (method, params) = method_and_params(request);
            if let Some(missing) = missing_capability(&context.client, &method, &params) {
                return Ok(Err(missing_capability_error(missing)));
            }
            Ok(match context.client_handle.request(&method, params).await? {
                Reply::Result(result) => Ok((key.to_owned(), result)),
                Reply::Error(error) => Err(error),
            })
        });
        let answers: Vec<Result<_, _>> = try_join_all(asked).await?;
        Ok(answers.into_iter().collect())
    }
}

fn method_and_params(request: &Json) -> (String, Json) {
    let method = request.member_as::<String>("method").unwrap_or_default();
    (method, request.member("params").unwrap_or_else(Json::empty_object))
}

/// Returns the error for a client that lacks a capability.
pub(crate) fn missing_capability_error(capability: &str) -> RpcError {
    let (outer, inner) = capability.split_once('.').unwrap_or((capability, ""));
    let inner = match inner {
        "" => serde_json::json!({}),
        key => serde_json::json!({key: {}}),
    };
    let data = serde_json::json!({"requiredCapabilities": {outer: inner}});
    let message = format!("this needs a client that declares `{capability}`");
    RpcError::with_data(code::MISSING_CAPABILITY, message, &data.into())
}
