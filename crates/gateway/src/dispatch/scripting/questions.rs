//! Questions that the calls of a script have for the client (`input_required`), and the
//! client's responses.
//!
//! An upstream that answers `input_required` gets the same call again with the
//! input. A script pauses there: its own reply asks all questions of its calls, each
//! under the number of its call, and the `requestState` of the client's next request
//! is the handle of the journal.

use std::collections::BTreeMap;

use script::Journal;
use serde_json::{Map, Value, json};
use tool::{Json, Object, Reply};

use policy::validate::ValidCall;

const REQUESTS: &str = "inputRequests";
const RESPONSES: &str = "inputResponses";
const STATE: &str = "requestState";

/// Returns whether a result asks the client for input.
pub(super) fn is_question(json: &Json) -> bool {
    json.mentions("\"resultType\"")
        && json.member_as::<String>("resultType").as_deref() == Some("input_required")
}

/// Returns the handle of the journal that a request resumes, if it responds to a
/// question.
pub(super) fn journal_handle(call: &ValidCall) -> Option<String> {
    call.other_param(STATE).and_then(Json::string_value)
}

/// The questions of all calls of a script.
#[derive(Debug, Default)]
pub(super) struct Questions {
    requests: Map<String, Value>,
    states: BTreeMap<u64, Option<String>>,
}

impl Questions {
    /// Adds the questions of a call: its number in the script and its result.
    pub(super) fn add(&mut self, number: u64, result: &Json) {
        let requests = result.member(REQUESTS).and_then(|requests| Object::parse(&requests).ok());
        for (key, request) in requests.unwrap_or_default().iter() {
            self.requests.insert(format!("{number}.{key}"), request.to_value().unwrap_or_default());
        }
        self.states.insert(number, result.member_as(STATE));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.states.is_empty()
    }

    /// Returns the `requestState` of each call that asks, for the journal.
    pub(super) fn states(&self) -> BTreeMap<u64, Option<String>> {
        self.states.clone()
    }

    /// Renders the script's reply that asks all questions.
    pub(super) fn to_reply(&self, handle: &str) -> Reply {
        let result = json!({
            "resultType": "input_required",
            REQUESTS: self.requests,
            STATE: handle,
            "_meta": {"gatelet/script": {"id": handle, "paused": true}},
        });
        Reply::Result(result.into())
    }
}

/// The client's responses: the `requestState` and the responses of each call that
/// asked, by its number.
#[derive(Debug, Default)]
pub(super) struct ClientResponses(BTreeMap<u64, (Option<String>, Object)>);

impl ClientResponses {
    /// Reads the responses of a request, for the calls of the journal that wait for them.
    pub(super) fn from_call(call: &ValidCall, journal: &Journal) -> ClientResponses {
        let responses = call.other_param(RESPONSES).and_then(|given| Object::parse(given).ok());
        let responses = responses.unwrap_or_default();
        let for_call = |(number, state): (&u64, &Option<String>)| {
            let prefix = format!("{number}.");
            let mut own = Object::new();
            let given = responses
                .iter()
                .filter_map(|(key, value)| Some((key.strip_prefix(&prefix)?, value)));
            given.for_each(|(key, value)| own.push(key, value.clone()));
            (*number, (state.clone(), own))
        };
        // Without a response the call is made anew, and asks again.
        let is_answered = call.other_param(STATE).is_some();
        ClientResponses(journal.questions.iter().filter(|_| is_answered).map(for_call).collect())
    }

    /// Adds the responses for a call to the parameters beside its arguments.
    pub(super) fn add_to(&self, number: u64, other_params: &mut Object) {
        let Some((state, responses)) = self.0.get(&number) else { return };
        if !responses.is_empty() {
            other_params.push(RESPONSES, responses.to_json());
        }
        if let Some(state) = state {
            other_params.push(STATE, Json::encode(state));
        }
    }
}
