//! Asks the client for the input that a provider requires.
//!
//! Providers of the modern revision answer `input_required` and expect the same
//! question again with the input. A client of an older revision is asked each
//! thing in turn, on the stream of its request, and never notices.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use futures::future::try_join_all;
use tool::{Ask, Client, Context, Failure, Json, Object, Provider, Reply, RpcError};

use super::adapt;
use super::channel::missing_capability;
use super::parked::ParkedCalls;
use crate::revision::code;

/// How often a provider may want more before it is told to stop.
const ROUNDS: usize = 16;

/// The pause before a provider that wants nothing but another try gets it.
const PAUSE: Duration = Duration::from_millis(100);

/// Asks the provider, and the client for what the provider wants to know.
pub(crate) async fn ask(
    provider: &Arc<dyn Provider>,
    ask: Ask,
    read_again: impl Fn() -> Option<Ask>,
    context: &Context,
) -> Result<Reply, Failure> {
    let mut reply = provider.ask(ask, context).await?;
    for _ in 0..ROUNDS {
        let wanted = match &reply {
            Reply::Result(result) if adapt::wants_input(result) => InputRequests::read(result),
            Reply::Result(_) | Reply::Error(_) => return Ok(reply),
        };
        let Some(mut again) = read_again() else { return Ok(reply) };
        match wanted.answers(context).await? {
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

/// The reply, unless it asks a client for what the client cannot give. Such a
/// client is never asked. The provider's state is marked as the provider's.
pub(crate) fn answerable(reply: Reply, client: &Client) -> Reply {
    let (result, wanted) = match &reply {
        Reply::Result(result) if adapt::wants_input(result) => {
            (result, InputRequests::read(result))
        }
        Reply::Result(_) | Reply::Error(_) => return reply,
    };
    let missing = wanted.requests.iter().find_map(|(_, request)| {
        let (method, params) = question(request);
        missing_capability(client, &method, &params)
    });
    if let Some(missing) = missing {
        return Reply::Error(incapable(missing));
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

/// What a provider wants before it answers.
struct InputRequests {
    requests: Object,
    state: Option<Json>,
}

impl InputRequests {
    fn read(result: &Json) -> InputRequests {
        let requests = result.member("inputRequests");
        let requests = requests.and_then(|requests| Object::parse(&requests).ok());
        InputRequests {
            requests: requests.unwrap_or_default(),
            state: result.member("requestState"),
        }
    }

    /// The client's answers, all asked for at once; or why one is missing.
    async fn answers(&self, context: &Context) -> Result<Result<Object, RpcError>, Failure> {
        let asked = self.requests.iter().map(|(key, request)| async move {
            let (method, params) = question(request);
            if let Some(missing) = missing_capability(&context.client, &method, &params) {
                return Ok(Err(incapable(missing)));
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

fn question(request: &Json) -> (String, Json) {
    let method = request.member_as::<String>("method").unwrap_or_default();
    (method, request.member("params").unwrap_or_else(Json::empty_object))
}

/// The error that a modern server gives for what the client cannot do.
pub(crate) fn incapable(capability: &str) -> RpcError {
    let (outer, inner) = capability.split_once('.').unwrap_or((capability, ""));
    let inner = match inner {
        "" => serde_json::json!({}),
        key => serde_json::json!({key: {}}),
    };
    let data = serde_json::json!({"requiredCapabilities": {outer: inner}});
    let message = format!("this needs a client that declares `{capability}`");
    RpcError::with_data(code::MISSING_CAPABILITY, message, &data.into())
}
