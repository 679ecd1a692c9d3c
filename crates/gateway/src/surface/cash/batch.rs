//! Several calls in one: `calls=[{namespace, function, kwargs, pick}, …]`.

use async_trait::async_trait;
use catalog::summary::echo;
use tool::{Call, Context, Json, Object, Reply};

use super::super::batch::{self, CALLS, MakeCall};
use super::super::names;
use super::arguments::{self, CallArguments};
use super::request::{Cash, Scope};

const EXAMPLE: &str =
    "{\"namespace\": \"…\", \"function\": \"…\", \"kwargs\": {…}, \"pick\": \"…\"}";

/// Several calls, as they were written.
#[derive(Debug)]
pub(super) struct Batch {
    calls: Vec<Json>,
    /// How many characters all answers may have, if the caller says so.
    wanted: Option<usize>,
}

impl Batch {
    /// Reads several calls, if there are any; the error says what is wrong.
    pub(super) fn read(arguments: Option<&Json>) -> Option<Result<Batch, String>> {
        let arguments = arguments.filter(|given| given.mentions(CALLS))?;
        let object = Object::parse(arguments).ok()?;
        let own = ["namespace", "function", "kwargs"].map(|key| object.get(key));
        let is_named = |json: &Json| {
            !json.is_null() && json.string_value().is_none_or(|text| !text.is_empty())
        };
        let [_, function, kwargs] = own;
        // What others put into `kwargs` of a function of that name is meant so, too.
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
        let wanted = object.get("sizelimit").and_then(arguments::size);
        let calls = batch::read(&calls, EXAMPLE).and_then(|calls| {
            match calls.iter().find_map(names::in_one_call) {
                Some(why) => Err(why),
                None => Ok(calls),
            }
        });
        Some(calls.map(|calls| Batch { calls, wanted }))
    }
}

impl Cash {
    /// Makes several calls and puts their answers together, in order.
    pub(super) async fn calls(
        &self,
        batch: Batch,
        rest: &Object,
        scope: Scope,
        context: &Context,
    ) -> Reply {
        let limit = self.pipeline.gate.load().limit(batch.wanted);
        batch::run(batch.calls, limit, &CashCalls { cash: self, rest, scope, context }).await
    }
}

/// The calls of one request.
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
            let arguments = CallArguments::read(Some(call)).ok()?;
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

    /// `orders.list`.
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
