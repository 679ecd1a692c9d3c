//! What becomes of a function, of a registration, and of a call.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use native::registry::Registered;
use native::{
    Args, Blocks, Context, Definition, Output, RegistrationError, Registry, State, Text, ToolError,
    tool,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tool::{Ask, Call, Json, Object, Provider, ReadResource, Reply};

#[derive(Default)]
struct Counter(AtomicUsize);

/// Adds two whole numbers.
///
/// The second paragraph is part of the description.
#[tool(
    name = "math.add",
    title = "Add",
    read_only,
    idempotent,
    open_world = false,
    category = "math",
    tags = ["sum", "plus"],
    version = "2.1.0",
    cache_ttl = "5m"
)]
fn add(
    /// The first number.
    a: i64,
    /// The second number.
    #[default(1)]
    b: i64,
    note: Option<String>,
) -> i64 {
    drop(note);
    a + b
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct Point {
    x: f64,
    y: f64,
}

/// Moves a point.
#[tool(manual)]
async fn shift(Args(point): Args<Point>) -> Result<Point, ToolError> {
    if point.x < 0.0 {
        let fault = ToolError::new("OutOfRange", "x is negative");
        return Err(fault.details(json!({"parameter_name": "x"})));
    }
    Ok(Point { x: point.x + 1.0, y: point.y })
}

/// Reads a file that is not there.
#[tool(manual)]
fn missing_file() -> Result<String, std::io::Error> {
    Err(std::io::Error::other("gone"))
}

/// Panics.
#[tool(manual)]
fn boom(late: bool) {
    assert!(late, "the secret is 42");
}

/// Panics in a future.
#[tool(manual)]
async fn boom_async() -> Text {
    panic!("the secret is 42")
}

/// Never ends.
#[tool(manual, timeout = "2s")]
async fn forever() {
    std::future::pending::<()>().await;
}

/// Breaks its promise: NaN has no JSON.
#[tool(manual)]
fn not_a_number() -> f64 {
    f64::NAN
}

/// Counts its calls.
#[tool(manual)]
fn count(counter: State<Counter>, context: &Context) -> usize {
    context.progress(1.0, Some(2.0), "half way");
    counter.0.fetch_add(1, Ordering::Relaxed) + 1
}

/// Shows a block.
#[tool(manual, deprecated_in = "1.4")]
fn picture() -> Blocks {
    Blocks(vec![json!({"type": "image", "data": "", "mimeType": "image/png"}).into()])
}

fn registry() -> Registry {
    let mut registry = Registry::new("t", "1").state(Counter::default());
    registry.add::<add>().unwrap();
    registry.add::<shift>().unwrap();
    registry.add::<missing_file>().unwrap();
    registry.add::<boom>().unwrap();
    registry.add::<boom_async>().unwrap();
    registry.add::<forever>().unwrap();
    registry.add::<not_a_number>().unwrap();
    registry.add::<count>().unwrap();
    registry.add::<picture>().unwrap();
    registry
}

async fn ask(provider: &dyn Provider, name: &str, arguments: Value) -> Reply {
    let ask = Ask::Call(Call::new(name, arguments.into()));
    provider.ask(ask, &tool::Context::anonymous()).await.unwrap()
}

async fn call(name: &str, arguments: Value) -> Value {
    match ask(&*registry().into_provider(), name, arguments).await {
        Reply::Result(result) => result.to_value().unwrap(),
        Reply::Error(error) => error.raw.to_value().unwrap(),
    }
}

/// The body of an error result.
async fn fault(name: &str, arguments: Value) -> Value {
    let result = call(name, arguments).await;
    assert_eq!(result["isError"], true, "{result}");
    serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap()
}

#[test]
fn a_function_becomes_a_definition_with_schemas_and_hints() {
    let listing = registry().into_provider().listing();
    let raw = listing.tools[0].raw.to_value().unwrap();
    assert_eq!(
        raw,
        json!({
            "name": "math.add",
            "title": "Add",
            "description":
                "Adds two whole numbers.\n\nThe second paragraph is part of the description.",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "a": {"type": "integer", "description": "The first number."},
                    "b": {"type": "integer", "description": "The second number.", "default": 1},
                    "note": {"type": ["string", "null"]},
                },
                "required": ["a"],
                "additionalProperties": false,
            },
            "outputSchema": {
                "type": "object",
                "properties": {"result": {"type": "integer"}},
                "required": ["result"],
            },
            "annotations": {
                "readOnlyHint": true, "idempotentHint": true, "openWorldHint": false,
            },
            "_meta": {"gatelet/tool": {
                "module": "tools", "category": "math", "tags": ["sum", "plus"],
                "version": "2.1.0", "cache_ttl": 300,
            }},
        })
    );
}

#[tokio::test]
async fn a_call_fills_in_defaults_and_answers_text_and_structure() {
    assert_eq!(
        call("math.add", json!({"a": 41})).await,
        json!({"content": [{"type": "text", "text": "42"}], "structuredContent": {"result": 42}})
    );
    assert_eq!(
        call("shift", json!({"x": 1, "y": 2})).await["structuredContent"],
        json!({"x": 2.0, "y": 2.0})
    );
}

#[test]
fn the_function_itself_stays_callable() {
    assert_eq!(add(1, 2, None), 3);
}

#[tokio::test]
async fn arguments_that_do_not_fit_are_told_all_at_once_with_pointers() {
    let body = fault("math.add", json!({"a": "x", "c": 1})).await;
    assert_eq!(body["status"], "failure");
    assert_eq!(body["error_type"], "SchemaError");
    assert_eq!(body["error_details"]["problems"].as_array().unwrap().len(), 2);
    assert!(body["error_message"].as_str().unwrap().contains("`/a`"), "{body}");
    assert!(body["error_details"]["remedy"].is_string());
}

#[tokio::test]
async fn an_unknown_tool_is_invalid_params_with_a_suggestion() {
    let error = call("math.ad", json!({})).await;
    assert_eq!(error["code"], -32602);
    assert_eq!(error["message"], "no tool is called `math.ad`; did you mean `math.add`?");
    assert_eq!(error["data"]["error_type"], "ToolNotFoundError");
}

#[tokio::test]
async fn arguments_that_are_no_object_are_invalid_params() {
    let error = call("math.add", json!([1, 2])).await;
    assert_eq!(
        (&error["code"], &error["data"]["error_type"]),
        (&json!(-32602), &json!("ValidationError"))
    );
}

#[tokio::test]
async fn a_tools_own_error_keeps_its_type_and_details() {
    let body = fault("shift", json!({"x": -1, "y": 0})).await;
    assert_eq!(
        body,
        json!({
            "status": "failure", "error_type": "OutOfRange", "error_message": "x is negative",
            "error_details": {"parameter_name": "x"},
        })
    );
    let body = fault("missing_file", json!({})).await;
    assert_eq!((&body["error_type"], &body["error_message"]), (&json!("IoError"), &json!("gone")));
}

#[tokio::test]
async fn a_panic_is_an_error_reply_without_its_message_and_the_next_call_works() {
    let provider = registry().into_provider();
    for name in ["boom", "boom_async"] {
        let arguments = if name == "boom" { json!({"late": false}) } else { json!({}) };
        let reply = ask(&*provider, name, arguments).await;
        let text = reply.tool_result().unwrap().text();
        assert!(text.contains("PanicError") && !text.contains("secret"), "{text}");
    }
    let reply = ask(&*provider, "boom", json!({"late": true})).await;
    assert_eq!(reply.tool_result().unwrap().text(), "done");
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_takes_too_long_is_given_up() {
    let body = fault("forever", json!({})).await;
    assert_eq!(body["error_type"], "TimeoutError");
    assert_eq!(body["error_details"]["after_ms"], 2000);
}

#[tokio::test(start_paused = true)]
async fn a_caller_with_less_patience_waits_less() {
    let context =
        tool::Context { timeout: Some(Duration::from_millis(5)), ..tool::Context::anonymous() };
    let ask = Ask::Call(Call::new("forever", Json::empty_object()));
    let reply = registry().into_provider().ask(ask, &context).await.unwrap();
    assert!(reply.tool_result().unwrap().text().contains("within 5ms"));
}

#[tokio::test]
async fn a_result_that_is_not_what_was_declared_is_not_sent() {
    let body = fault("not_a_number", json!({})).await;
    assert_eq!(body["error_type"], "SerializationError");
}

struct Listener(std::sync::Mutex<Vec<tool::Notification>>);

#[async_trait::async_trait]
impl tool::ClientHandle for Listener {
    fn notify(&self, note: tool::Notification) {
        self.0.lock().unwrap().push(note);
    }

    async fn request(&self, _: &str, _: Json) -> Result<Reply, tool::Failure> {
        Err(tool::Failure::Cancelled)
    }
}

#[tokio::test]
async fn state_is_shared_and_progress_goes_to_who_asked_for_it() {
    let provider = registry().into_provider();
    let back = Arc::new(Listener(std::sync::Mutex::default()));
    let listener: Arc<dyn tool::ClientHandle> = back.clone();
    let context = tool::Context { client_handle: listener, ..tool::Context::anonymous() };
    let mut rest = Object::new();
    rest.push("_meta", json!({"progressToken": "p1"}).into());
    let with_token =
        Ask::Call(Call { name: "count".to_owned(), arguments: None, other_params: rest });
    provider.ask(with_token, &context).await.unwrap();
    let silent = Ask::Call(Call::new("count", Json::empty_object()));
    let second = provider.ask(silent, &context).await.unwrap();
    assert_eq!(second.tool_result().unwrap().text(), "2");
    let notes = back.0.lock().unwrap();
    assert_eq!(notes.len(), 1);
    assert_eq!(notes[0].params.get("progressToken").unwrap().as_str(), "\"p1\"");
}

#[tokio::test]
async fn blocks_go_out_as_they_are_and_a_deprecated_tool_says_so() {
    assert_eq!(call("picture", json!({})).await["content"][0]["type"], "image");
    let listing = registry().into_provider().listing();
    let picture = listing.tools.last().unwrap();
    assert!(picture.description.as_ref().unwrap().starts_with("Deprecated since 1.4."));
    assert_eq!(picture.output_schema, None);
}

fn hand_made(name: &str) -> Definition {
    Definition::new(name)
        .module("here", "here.rs", 1)
        .description("d")
        .input_schema(json!({"type": "object", "properties": {}}))
        .runs(|_| Ok(Output::done()))
}

#[test]
fn the_same_tool_twice_is_a_no_op() {
    let mut registry = Registry::new("t", "1");
    assert_eq!(registry.register(hand_made("x")), Ok(Registered::New));
    assert_eq!(registry.register(hand_made("x")), Ok(Registered::Already));
    assert_eq!(registry.list_registered_tools().collect::<Vec<_>>(), ["x"]);
}

#[track_caller]
fn refused(second: Definition, expected: &str) {
    let mut registry = Registry::new("t", "1");
    registry.register(hand_made("x")).unwrap();
    assert_eq!(registry.register(second).unwrap_err().to_string(), expected);
}

#[test]
fn a_changed_or_foreign_tool_of_the_same_name_is_refused() {
    refused(
        hand_made("x").input_schema(json!({"type": "object"})),
        "`x` is registered already, and its input schema differs",
    );
    refused(
        hand_made("x").output_schema(json!({"type": "object"})),
        "`x` is registered already, and its output schema differs",
    );
    refused(
        hand_made("x").description("other"),
        "`x` is registered already, and its description differs",
    );
    refused(
        hand_made("x").module("elsewhere", "e.rs", 1),
        "`x` of elsewhere is registered already by here",
    );
}

#[test]
fn what_differs_is_said() {
    refused(
        hand_made("x").read_only(true),
        "`x` is registered already, and its set of hints differs",
    );
    refused(
        hand_made("x").timeout(Duration::from_secs(1)),
        "`x` is registered already, and its timeout differs",
    );
    refused(
        hand_made("x").module("here", "elsewhere.rs", 7),
        "`x` is registered already, and its function differs",
    );
}

#[tokio::test]
async fn an_integer_may_be_written_with_a_point() {
    let sum = call("math.add", json!({"a": 1.0, "b": 2.0})).await;
    assert_eq!(sum["structuredContent"]["result"], 3);
}

#[test]
fn what_cannot_be_called_cannot_be_registered() {
    refused(
        Definition::new("y").runs(|_| Ok(Output::done())),
        "`y` has no input schema, and a tool without one cannot be registered",
    );
    refused(
        hand_made("y").input_schema(json!({"type": "object", "properties": {"a": {"type": 5}}})),
        "the input schema of `y` is invalid at `/properties/a/type`: \
         5 is not valid under any of the schemas listed in the 'anyOf' keyword",
    );
    refused(
        hand_made("y").input_schema(json!({"type": "string"})),
        "the input schema of `y` must have `\"type\": \"object\"` at its root",
    );
    refused(
        hand_made("no blanks"),
        "`no blanks` is not a tool name: 1 to 128 of `A-Z a-z 0-9 _ - . /`",
    );
    refused(
        hand_made("y").needs_state::<u8>(),
        "`y` needs `State<u8>`, which the registry does not have",
    );
    refused(Definition::new("y").input_schema(json!({"type": "object"})), "`y` has nothing to run");
}

#[test]
fn a_schema_never_refers_to_something_outside() {
    let mut registry = Registry::new("t", "1");
    let outside = json!({"type": "object", "properties": {"a": {"$ref": "https://example.com/s"}}});
    let error = registry.register(hand_made("y").input_schema(outside)).unwrap_err();
    assert!(matches!(error, RegistrationError::InvalidSchema { .. }), "{error}");
}

#[test]
fn linked_tools_are_discovered_once_and_what_fails_is_reported() {
    let registry = Registry::new("t", "1").discover().discover();
    assert_eq!(registry.list_registered_tools().collect::<Vec<_>>(), ["math.add"]);
    assert_eq!(registry.report().failed, []);
    let found = &registry.report().found[0];
    assert_eq!((found.module.as_str(), found.version.as_str()), ("tools", "2.1.0"));
    assert!(found.place.contains("tests/tools.rs:"), "{}", found.place);

    let mut taken = Registry::new("t", "1");
    taken.register(hand_made("math.add")).unwrap();
    let report = taken.discover().report().clone();
    assert_eq!(report.failed[0].error, "`math.add` of tools is registered already by here");
}

#[test]
fn discovery_can_be_limited_to_a_module() {
    let registry = Registry::new("t", "1").discover_in("elsewhere");
    assert_eq!(registry.list_registered_tools().count(), 0);
    assert_eq!(Registry::new("t", "1").discover_in("tool").list_registered_tools().count(), 0);
}

#[tokio::test]
async fn the_report_is_a_resource() {
    let provider = Registry::new("t", "1").discover().into_provider();
    let uri = provider.listing().resources[0].uri.clone();
    let read = Ask::ReadResource(ReadResource { uri, other_params: Object::new() });
    let reply = provider.ask(read, &tool::Context::anonymous()).await.unwrap();
    let Reply::Result(result) = reply else { panic!("{reply:?}") };
    let text = result.to_value().unwrap()["contents"][0]["text"].as_str().unwrap().to_owned();
    let report: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(report["total_tools"], 1);
}

#[test]
fn a_schema_is_looked_up_by_name() {
    let registry = registry();
    assert!(registry.get_tool_schema("shift").unwrap().as_str().contains("\"x\""));
    let error = registry.get_tool_schema("shit").unwrap_err();
    assert_eq!(error.to_string(), "no tool is called `shit`; did you mean `shift`?");
}

#[tokio::test]
async fn a_refusal_says_where_and_does_not_repeat_what_it_was_given() {
    let long = "hunter2".repeat(10_000);
    let refused = call("math.add", json!({"a": long})).await.to_string();
    assert!(refused.contains("/a"), "{refused}");
    assert!(!refused.contains("hunter2") && refused.len() < 1_000, "{refused}");
    let unknown = call(&"x".repeat(1_000_000), json!({})).await.to_string();
    assert!(unknown.len() < 500, "{unknown}");
}

/// Names that the macro could have taken for itself.
mod hygiene {
    use native::{Args, Registry, tool};
    use schemars::JsonSchema;
    use serde::Deserialize;

    #[derive(Deserialize, JsonSchema)]
    struct Arguments {
        text: String,
    }

    /// Says it again.
    #[tool(manual)]
    fn call(arguments: Args<Arguments>) -> String {
        arguments.0.text
    }

    /// Says it.
    #[tool(manual)]
    fn arguments(call: String, #[default(1)] answer: u32) -> String {
        format!("{call}{answer}")
    }

    #[derive(Deserialize, JsonSchema)]
    struct Wrapped {
        inner: Option<Arguments>,
    }

    /// Takes the user's own type by the name that the macro once used.
    #[tool(manual)]
    fn answer(wrapped: Wrapped, plain: Option<Arguments>) -> bool {
        wrapped.inner.is_some() || plain.is_some_and(|plain| plain.text.is_empty())
    }

    /// Is not there.
    #[tool]
    #[cfg(any())]
    fn absent(missing: NoSuchType) {}

    #[test]
    fn a_tool_may_be_called_and_take_what_it_likes() {
        let mut registry = Registry::new("t", "1");
        registry.add::<call>().unwrap();
        registry.add::<arguments>().unwrap();
        registry.add::<answer>().unwrap();
        let schema = registry.get_tool_schema("call").unwrap().to_value().unwrap();
        assert_eq!(schema["required"], serde_json::json!(["text"]));
        let schema = registry.get_tool_schema("answer").unwrap().to_string();
        assert!(schema.contains("text"), "{schema}");
    }
}
