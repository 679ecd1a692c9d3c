//! Batches of `call`: `calls=[{namespace, function, kwargs, pick}, …]`.

use async_trait::async_trait;
use catalog::summary::echo;
use tool::{Call, Context, Json, Object, Reply};

use super::super::batch::{self, CALLS, MakeCall};
use super::super::names;
use super::arguments::{self, CallArguments};
use super::request::{Cash, Scope};

const EXAMPLE: &str =
    "{\"namespace\": \"…\", \"function\": \"…\", \"kwargs\": {…}, \"pick\": \"…\"}";

/// The calls of a batch, unparsed.
#[derive(Debug)]
pub(super) struct Batch {
    calls: Vec<Json>,
    /// The size limit that the caller gives for all answers together, in characters.
    size_limit: Option<usize>,
}

impl Batch {
    /// Parses a batch; `None` if the arguments are a single call.
    pub(super) fn parse(arguments: Option<&Json>) -> Option<Result<Batch, String>> {
        let arguments = arguments.filter(|given| given.mentions(CALLS))?;
        let object = Object::parse(arguments).ok()?;
        let own = ["namespace", "function", "kwargs"].map(|key| object.get(key));
        let is_named = |json: &Json| {
            !json.is_null() && json.string_value().is_none_or(|text| !text.is_empty())
        };
        let [_, function, kwargs] = own;
        // Some models write a function `calls` with the list in its `kwargs`.
        let inner =
            kwargs.filter(|_| function.and_then(Json::string_value).as_deref() == Some(CALLS));
        let inner = inner.and_then(|kwargs| kwargs.member(CALLS));
        let calls = match (object.get(CALLS).filter(|calls| !calls.is_null()), inner) {
            (Some(calls), _) => calls.clone(),
            (None, Some(calls)) => calls,
            (None, None) => return None,
        };
        let text = function.and_then(Json::string_value).unwrap_or_default();
        if function.is_some_and(is_named) && text != CALLS {
            return None;
        }
        let size_limit = object.get("sizelimit").and_then(arguments::parse_size);
        let calls = batch::parse(&calls, EXAMPLE).and_then(|calls| {
            match calls.iter().find_map(names::problem_in_function_call) {
                Some(why) => Err(why),
                None => Ok(calls),
            }
        });
        Some(calls.map(|calls| Batch { calls, size_limit }))
    }
}

impl Cash {
    /// Makes the calls of a batch and joins their answers, in order.
    pub(super) async fn run_batch(
        &self,
        batch: Batch,
        rest: &Object,
        scope: Scope,
        context: &Context,
    ) -> Reply {
        let limit = self.pipeline.gate.load().limit(batch.size_limit);
        batch::run(batch.calls, limit, &CashCalls { cash: self, rest, scope, context }).await
    }
}

/// Makes the calls of one batch.
struct CashCalls<'a> {
    cash: &'a Cash,
    rest: &'a Object,
    scope: Scope,
    context: &'a Context,
}

#[async_trait]
impl MakeCall for CashCalls<'_> {
    fn only_reads(&self, call: &Json) -> bool {
        let snapshot = self.cash.pool.snapshot();
        let request = self.cash.request(&snapshot, self.context);
        let hint = || {
            let arguments = CallArguments::parse(Some(call)).ok()?;
            let slot = request.resolve(&arguments.namespace, &arguments.function).ok()?;
            snapshot.catalog.tool(slot).annotations.read_only
        };
        hint() == Some(true)
    }

    async fn make(&self, call: &Json, share: usize) -> Reply {
        let arguments = Some(call.clone());
        let asked = Call { name: "call".to_owned(), arguments, other_params: self.rest.clone() };
        Box::pin(self.cash.call_within(asked, self.scope, Some(share), self.context)).await
    }

    /// Returns a name such as `orders.list`.
    fn name(&self, call: &Json) -> String {
        let text = |key: &str| call.member_as::<String>(key).unwrap_or_default();
        let (namespace, function) = (text("namespace"), text("function"));
        match namespace.as_str() {
            "" => echo(&function),
            _ => echo(&format!("{namespace}.{function}")),
        }
    }

    fn meta_key(&self) -> &'static str {
        "cash/calls"
    }

    fn artifacts(&self) -> &dyn artifacts::Store {
        &*self.cash.pipeline.artifacts
    }

    fn context(&self) -> &Context {
        self.context
    }
}
