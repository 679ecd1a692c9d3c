//! What the calls of a script ask of the client, and what the client says.
//!
//! An upstream that answers `input_required` gets the same call again with the
//! input. A script stops there: its own reply asks for all that its calls ask for,
//! each under the number of its call, and the client's next request leads back to
//! the journal by its state.

use std::collections::BTreeMap;

use script::Journal;
use serde_json::{Map, Value, json};
use tool::{Json, Object, Reply};

use policy::validate::ValidCall;

const REQUESTS: &str = "inputRequests";
const RESPONSES: &str = "inputResponses";
const STATE: &str = "requestState";

/// Whether a result asks something of the client.
pub(super) fn is_question(json: &Json) -> bool {
    json.mentions("\"resultType\"")
        && json.member_as::<String>("resultType").as_deref() == Some("input_required")
}

/// The journal that a request goes on with, where it answers a question.
pub(super) fn handle(call: &ValidCall) -> Option<String> {
    call.beside(STATE).and_then(Json::string_value)
}

/// What the calls of a script ask.
#[derive(Debug, Default)]
pub(super) struct Questions {
    requests: Map<String, Value>,
    states: BTreeMap<u64, Option<String>>,
}

impl Questions {
    /// Notes what a call asks.
    pub(super) fn add(&mut self, number: u64, asked: &Json) {
        let requests = asked.member(REQUESTS).and_then(|requests| Object::parse(&requests).ok());
        for (key, request) in requests.unwrap_or_default().iter() {
            self.requests.insert(format!("{number}.{key}"), request.to_value().unwrap_or_default());
        }
        self.states.insert(number, asked.member_as(STATE));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.states.is_empty()
    }

    /// The states of the servers that ask, by call, for the journal.
    pub(super) fn states(&self) -> BTreeMap<u64, Option<String>> {
        self.states.clone()
    }

    /// The script's own question, for all of them.
    pub(super) fn to_reply(&self, handle: &str) -> Reply {
        let asked = json!({
            "resultType": "input_required",
            REQUESTS: self.requests,
            STATE: handle,
            "_meta": {"gatelet/script": {"id": handle, "paused": true}},
        });
        Reply::Result(asked.into())
    }
}

/// What the client says, by the call that asked.
#[derive(Debug, Default)]
pub(super) struct Input(BTreeMap<u64, (Option<String>, Object)>);

impl Input {
    /// What came with a request, for the calls of the journal that wait for it.
    pub(super) fn read(call: &ValidCall, journal: &Journal) -> Input {
        let responses = call.beside(RESPONSES).and_then(|given| Object::parse(given).ok());
        let responses = responses.unwrap_or_default();
        let of_call = |(number, state): (&u64, &Option<String>)| {
            let prefix = format!("{number}.");
            let mut own = Object::new();
            let given = responses
                .iter()
                .filter_map(|(key, value)| Some((key.strip_prefix(&prefix)?, value)));
            given.for_each(|(key, value)| own.push(key, value.clone()));
            (*number, (state.clone(), own))
        };
        // Without an answer the call is made anew, and asks again.
        let is_answered = call.beside(STATE).is_some();
        Input(journal.questions.iter().filter(|_| is_answered).map(of_call).collect())
    }

    /// Puts the input of a call beside its arguments.
    pub(super) fn give(&self, number: u64, rest: &mut Object) {
        let Some((state, responses)) = self.0.get(&number) else { return };
        if !responses.is_empty() {
            rest.push(RESPONSES, responses.to_json());
        }
        if let Some(state) = state {
            rest.push(STATE, Json::encode(state));
        }
    }
}
