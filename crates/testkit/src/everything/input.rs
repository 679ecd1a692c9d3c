//! The tools and prompts of the conformance provider that need input from the client.

use futures::future::join_all;
use serde_json::{Value, json};
use tool::{Call, Context, Failure, Json, Object, Reply, RpcError};

use super::style::Style;

/// The input that a tool needs, round by round.
pub(super) struct InputRequest {
    rounds: Vec<Vec<Question>>,
    /// Whether a `requestState` goes with the questions and has to come back.
    state: bool,
    /// Whether only questions are asked for which the client has the capability.
    only_supported: bool,
    /// Builds the tool's result from the answers.
    respond: fn(&[(String, Value)]) -> Value,
}

/// A request to the client; `key` names its answer.
struct Question {
    key: &'static str,
    method: &'static str,
    params: Value,
}

/// Returns the input that a tool or prompt needs; `None` when it needs none.
pub(super) fn input_request(name: &str) -> Option<InputRequest> {
    let one = |question: Question| vec![vec![question]];
    let plain =
        InputRequest { rounds: Vec::new(), state: false, only_supported: false, respond: greeting };
    Some(match name {
        "test_sampling" => InputRequest {
            rounds: one(sampling("sample", "{prompt}", 100)),
            respond: sampled,
            ..plain
        },
        "test_elicitation" => InputRequest {
            rounds: one(elicit(
                "input",
                "{message}",
                &json!({
                    "username": {"type": "string", "description": "User's response"},
                    "email": {"type": "string", "description": "User's email address"},
                }),
                &["username", "email"],
            )),
            respond: elicited,
            ..plain
        },
        "test_elicitation_sep1034_defaults" => InputRequest {
            rounds: one(elicit("input", "Please check", &defaults(), &[])),
            respond: completed,
            ..plain
        },
        "test_elicitation_sep1330_enums" => InputRequest {
            rounds: one(elicit("input", "Please choose", &enums(), &[])),
            respond: completed,
            ..plain
        },
        "test_streaming_elicitation" | "test_input_required_result_elicitation" => {
            InputRequest { rounds: one(name_question("user_name", "What is your name?")), ..plain }
        }
        "test_input_required_result_sampling" => InputRequest {
            rounds: one(sampling("capital_question", "What is the capital of France?", 100)),
            respond: sampled,
            ..plain
        },
        "test_input_required_result_list_roots" => InputRequest { rounds: one(roots()), ..plain },
        "test_input_required_result_request_state"
        | "test_input_required_result_tampered_state" => {
            let ok = json!({"ok": {"type": "boolean"}});
            InputRequest {
                rounds: one(elicit("confirm", "Please confirm", &ok, &["ok"])),
                state: true,
                respond: state_ok,
                ..plain
            }
        }
        "test_input_required_result_multiple_inputs" => InputRequest {
            rounds: vec![vec![
                name_question("user_name", "What is your name?"),
                sampling("greeting", "Generate a greeting", 50),
                roots(),
            ]],
            state: true,
            ..plain
        },
        "test_input_required_result_multi_round" => InputRequest {
            rounds: vec![
                vec![name_question("step1", "Step 1: What is your name?")],
                vec![elicit(
                    "step2",
                    "Step 2: What is your favorite color?",
                    &json!({"color": {"type": "string"}}),
                    &["color"],
                )],
            ],
            state: true,
            ..plain
        },
        "test_input_required_result_capabilities" => InputRequest {
            rounds: vec![vec![
                name_question("user_name", "What is your name?"),
                sampling("greeting", "Generate a greeting", 50),
            ]],
            only_supported: true,
            ..plain
        },
        "test_input_required_result_prompt" => InputRequest {
            rounds: one(elicit(
                "user_context",
                "What context should the prompt use?",
                &json!({"context": {"type": "string"}}),
                &["context"],
            )),
            respond: prompted,
            ..plain
        },
        _ => return None,
    })
}

impl InputRequest {
    /// Runs the call, in the given style.
    pub(super) async fn run(
        self,
        style: Style,
        call: &Call,
        context: &Context,
    ) -> Result<Reply, Failure> {
        let asks = match style {
            Style::Asking => true,
            Style::Requiring => false,
            Style::Mixed => {
                !call.name.contains("input_required") && call.name != "test_streaming_elicitation"
            }
        };
        if asks { self.ask(call, context).await } else { Ok(self.require(call, context)) }
    }

    /// Asks the client during the call.
    async fn ask(self, call: &Call, context: &Context) -> Result<Reply, Failure> {
        let mut answers = Vec::new();
        for round in &self.rounds {
            let asked = round.iter().filter(|question| self.asks(question, context));
            let asked = asked.map(|question| async {
                let reply =
                    context.client_handle.request(question.method, question.filled(call)).await;
                (question.key, reply)
            });
            for (key, reply) in join_all(asked).await {
                match reply {
                    Ok(Reply::Result(result)) => answers.push((key.to_owned(), value(&result))),
                    Ok(Reply::Error(error)) => return Ok(Reply::Error(error)),
                    Err(failure) => return Ok(Reply::error_text(&failure.to_string())),
                }
            }
        }
        Ok(Reply::Result((self.respond)(&answers).into()))
    }

    /// Answers `input_required` until all input is there.
    fn require(self, call: &Call, context: &Context) -> Reply {
        let responses = match call.other_params.get("inputResponses") {
            None => Object::new(),
            Some(responses) => match Object::parse(responses) {
                Ok(responses) if responses.iter().all(|(_, one)| one.is_object()) => responses,
                _ => return invalid("`inputResponses` must be an object of objects"),
            },
        };
        let state = call.other_params.get("requestState").and_then(Json::string_value);
        let round = match self.round(call, state.as_deref()) {
            Ok(round) => round,
            Err(refusal) => return refusal,
        };
        let asked = &self.rounds[round];
        let answered = |question: &Question| responses.get(question.key).is_some();
        let open: Vec<_> = asked.iter().filter(|question| self.asks(question, context)).collect();
        if !open.iter().all(|question| answered(question)) {
            return self.questions(call, &open, round);
        }
        if round + 1 < self.rounds.len() {
            let next: Vec<_> = self.rounds[round + 1].iter().collect();
            return self.questions(call, &next, round + 1);
        }
        let answers: Vec<_> =
            responses.iter().map(|(key, answer)| (key.to_owned(), value(answer))).collect();
        let mut result = (self.respond)(&answers);
        result["resultType"] = json!("complete");
        Reply::Result(result.into())
    }

    /// Returns the round that a `requestState` belongs to.
    fn round(&self, call: &Call, state: Option<&str>) -> Result<usize, Reply> {
        let Some(state) = state else { return Ok(0) };
        let known = (0..self.rounds.len()).find(|round| state == request_state(call, *round));
        known.filter(|_| self.state).ok_or_else(|| invalid("`requestState` was tampered with"))
    }

    fn questions(&self, call: &Call, open: &[&Question], round: usize) -> Reply {
        let mut requests = serde_json::Map::new();
        for question in open {
            let request =
                json!({"method": question.method, "params": value(&question.filled(call))});
            requests.insert(question.key.to_owned(), request);
        }
        let mut result = json!({"resultType": "input_required", "inputRequests": requests});
        if self.state {
            result["requestState"] = json!(request_state(call, round));
        }
        Reply::Result(result.into())
    }

    fn asks(&self, question: &Question, context: &Context) -> bool {
        let capability = match question.method {
            "sampling/createMessage" => "sampling",
            "roots/list" => "roots",
            _ => "elicitation",
        };
        !self.only_supported || context.client.has_capability(capability)
    }
}

impl Question {
    /// Returns the params with the arguments of the call filled in.
    fn filled(&self, call: &Call) -> Json {
        let argument = |key: &str| -> String {
            call.arguments.as_ref().and_then(|all| all.member_as(key)).unwrap_or_default()
        };
        let mut params = self.params.clone();
        if params["message"] == json!("{message}") {
            params["message"] = json!(argument("message"));
        }
        if params["messages"][0]["content"]["text"] == json!("{prompt}") {
            params["messages"][0]["content"]["text"] = json!(argument("prompt"));
        }
        params.into()
    }
}

/// Returns the `requestState` of a round; any other text is refused.
fn request_state(call: &Call, round: usize) -> String {
    format!("{}:round-{}:sealed", call.name, round + 1)
}

fn invalid(message: &str) -> Reply {
    Reply::Error(RpcError::new(-32602, message))
}

fn value(json: &Json) -> Value {
    json.to_value().unwrap_or_default()
}

fn elicit(key: &'static str, message: &str, properties: &Value, required: &[&str]) -> Question {
    let schema = json!({"type": "object", "properties": properties, "required": required});
    let params = json!({"message": message, "requestedSchema": schema});
    Question { key, method: "elicitation/create", params }
}

fn name_question(key: &'static str, message: &str) -> Question {
    elicit(key, message, &json!({"name": {"type": "string"}}), &["name"])
}

fn sampling(key: &'static str, prompt: &str, tokens: u32) -> Question {
    let message = json!({"role": "user", "content": {"type": "text", "text": prompt}});
    let params = json!({"messages": [message], "maxTokens": tokens});
    Question { key, method: "sampling/createMessage", params }
}

fn roots() -> Question {
    Question { key: "client_roots", method: "roots/list", params: json!({}) }
}

fn text(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

fn greeting(answers: &[(String, Value)]) -> Value {
    let name = answers.iter().find_map(|(_, answer)| answer["content"]["name"].as_str());
    let all: Vec<_> = answers.iter().map(|(_, answer)| answer).collect();
    text(&format!("Hello, {}! {}", name.unwrap_or("you"), json!(all)))
}

fn state_ok(answers: &[(String, Value)]) -> Value {
    text(&format!("state-ok {}", answers.len()))
}

fn sampled(answers: &[(String, Value)]) -> Value {
    let said = answers.first().map(|(_, answer)| &answer["content"]["text"]);
    text(&format!("LLM response: {}", said.and_then(Value::as_str).unwrap_or_default()))
}

fn elicited(answers: &[(String, Value)]) -> Value {
    let answer = answers.first().map(|(_, answer)| answer.clone()).unwrap_or_default();
    text(&format!("User response: <action: {}, content: {}>", answer["action"], answer["content"]))
}

fn completed(answers: &[(String, Value)]) -> Value {
    let answer = answers.first().map(|(_, answer)| answer.clone()).unwrap_or_default();
    let action = answer["action"].as_str().unwrap_or_default();
    text(&format!("Elicitation completed: action={action}, content={}", answer["content"]))
}

fn prompted(answers: &[(String, Value)]) -> Value {
    let answer = answers.first().map(|(_, answer)| answer.clone()).unwrap_or_default();
    let said = format!("Use this context: {}", answer["content"]["context"]);
    json!({"messages": [{"role": "user", "content": {"type": "text", "text": said}}]})
}

fn defaults() -> Value {
    json!({
        "name": {"type": "string", "description": "User name", "default": "John Doe"},
        "age": {"type": "integer", "description": "User age", "default": 30},
        "score": {"type": "number", "description": "User score", "default": 95.5},
        "status": {"type": "string", "description": "User status",
            "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "description": "Verification status", "default": true},
    })
}

fn enums() -> Value {
    let titled = |last: &str| {
        json!([
            {"const": "value1", "title": format!("First {last}")},
            {"const": "value2", "title": format!("Second {last}")},
            {"const": "value3", "title": format!("Third {last}")},
        ])
    };
    json!({
        "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
        "titledSingle": {"type": "string", "oneOf": titled("Option")},
        "legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"]},
        "untitledMulti": {"type": "array",
            "items": {"type": "string", "enum": ["option1", "option2", "option3"]}},
        "titledMulti": {"type": "array", "items": {"anyOf": titled("Choice")}},
    })
}
