//! The HTTP endpoint, request by request.

use std::sync::Arc;
use std::time::Duration;

use crate::site::{Answer, Site, modern};
use ::http::{Method, StatusCode};
use mcp::serve::http::{Endpoint, Options, SessionLimits};
use serde_json::{Value, json};
use testkit::everything::{Everything, Style};
use tool::{Event, FixedProvider, Kind};

fn site(style: Style) -> Site {
    Site::new(Everything::new(style))
}

#[tokio::test(start_paused = true)]
async fn a_session_begins_with_initialize_and_ends_with_delete() {
    let site = site(Style::Mixed);
    let session = site.initialize("2025-11-25", json!({})).await;
    assert_eq!(session.result["protocolVersion"], "2025-11-25");
    assert_eq!(session.result["serverInfo"]["name"], "everything");
    let listed = site.in_session(&session, "tools/list", json!({})).await;
    assert_eq!(listed.status, StatusCode::OK);
    assert!(listed.json()["result"]["tools"].as_array().unwrap().len() > 20);
    assert!(listed.json()["result"].get("resultType").is_none());
    assert_eq!(site.delete(&session).await.status, StatusCode::NO_CONTENT);
    let gone = site.in_session(&session, "tools/list", json!({})).await;
    assert_eq!(gone.status, StatusCode::NOT_FOUND);
    assert_eq!(site.endpoint.n_sessions(), 0);
}

#[tokio::test(start_paused = true)]
async fn every_older_revision_is_spoken() {
    let site = site(Style::Mixed);
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let session = site.initialize(revision, json!({})).await;
        assert_eq!(session.result["protocolVersion"], revision);
        let pong = site.in_session(&session, "ping", json!({})).await;
        assert_eq!(pong.json()["result"], json!({}));
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_comes_in_one_piece_unless_something_flows_before_it() {
    let site = site(Style::Mixed);
    let session = site.initialize("2025-11-25", json!({})).await;
    let plain = site.call(&session, "test_simple_text", json!({})).await;
    assert_eq!(plain.media_type(), "application/json");
    let logged = site.call(&session, "test_tool_with_logging", json!({})).await;
    assert_eq!(logged.media_type(), "text/event-stream");
    let messages = logged.all().await;
    let methods: Vec<_> = messages.iter().map(|message| message["method"].as_str()).collect();
    let log = Some("notifications/message");
    assert_eq!(methods, [log, log, log, None]);
    assert_eq!(messages[3]["id"], 1);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_accepts_only_json_gets_only_json() {
    let site = site(Style::Mixed);
    let session = site.initialize("2025-11-25", json!({"elicitation": {}})).await;
    let body = call("test_tool_with_logging", &json!({}));
    let accept = [("accept", "application/json"), ("mcp-session-id", session.id.as_str())];
    let answer = site.send(Method::POST, &accept, &body).await;
    assert_eq!(answer.media_type(), "application/json");
    assert_eq!(answer.json()["id"], 1);
    let body = call("test_elicitation", &json!({"message": "?"}));
    let answer = site.send(Method::POST, &accept, &body).await;
    assert!(answer.json()["result"]["isError"].as_bool().unwrap(), "{:?}", answer.json());
}

#[tokio::test(start_paused = true)]
async fn log_lines_below_the_level_of_the_session_are_left_out() {
    let site = site(Style::Mixed);
    let session = site.initialize("2025-06-18", json!({})).await;
    let set = site.in_session(&session, "logging/setLevel", json!({"level": "error"})).await;
    assert_eq!(set.json()["result"], json!({}));
    let quiet = site.call(&session, "test_tool_with_logging", json!({})).await;
    assert_eq!(quiet.media_type(), "application/json");
    let wrong = site.in_session(&session, "logging/setLevel", json!({"level": "loud"})).await;
    assert_eq!(wrong.json()["error"]["code"], -32602);
}

#[tokio::test(start_paused = true)]
async fn progress_carries_the_token_of_the_client_and_only_flows_when_wanted() {
    let site = site(Style::Mixed);
    let session = site.initialize("2025-06-18", json!({})).await;
    let meta = json!({"progressToken": "mine"});
    let params = json!({"name": "test_tool_with_progress", "_meta": meta});
    let messages = site.in_session(&session, "tools/call", params).await.all().await;
    let tokens: Vec<_> = messages.iter().map(|m| m["params"]["progressToken"].as_str()).collect();
    assert_eq!(tokens, [Some("mine"), Some("mine"), Some("mine"), None]);
    let without = site.call(&session, "test_tool_with_progress", json!({})).await;
    assert_eq!(without.media_type(), "application/json");
}

#[tokio::test(start_paused = true)]
async fn a_question_of_the_provider_reaches_the_client_on_its_own_stream() {
    for style in [Style::Asking, Style::Requiring] {
        let site = site(style);
        let session = site.initialize("2025-11-25", json!({"elicitation": {}})).await;
        let mut stream = site.call(&session, "test_elicitation", json!({"message": "Who?"})).await;
        let question = stream.next().await;
        assert_eq!(question["method"], "elicitation/create", "{style:?}");
        assert_eq!(question["params"]["message"], "Who?");
        let result = json!({"action": "accept", "content": {"username": "ann"}});
        let reply = json!({"jsonrpc": "2.0", "id": question["id"], "result": result});
        assert_eq!(site.post(&session, &reply).await.status, StatusCode::ACCEPTED);
        let answer = stream.next().await;
        let text = answer["result"]["content"][0]["text"].as_str().unwrap();
        assert!(text.contains("ann"), "{style:?}: {text}");
        assert!(answer["result"].get("resultType").is_none(), "{style:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_cannot_be_asked_fails_the_call_cleanly() {
    for (style, code) in [(Style::Asking, None), (Style::Requiring, Some(-32021))] {
        let site = site(style);
        let session = site.initialize("2025-11-25", json!({})).await;
        let answer = site.call(&session, "test_elicitation", json!({"message": "Who?"})).await;
        let answer = answer.json();
        assert_eq!(answer["error"]["code"].as_i64(), code, "{answer}");
        if code.is_none() {
            let text = answer["result"]["content"][0]["text"].as_str().unwrap();
            assert!(text.contains("did not declare `elicitation`"), "{text}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_modern_client_is_asked_with_its_answer_and_its_next_request_goes_on() {
    let site = site(Style::Asking);
    let capabilities = json!({"elicitation": {}, "sampling": {}, "roots": {}});
    let name = "test_input_required_result_multi_round";
    let first = site.modern("tools/call", json!({"name": name}), &capabilities).await.json();
    let (requests, state) = (&first["result"]["inputRequests"], &first["result"]["requestState"]);
    assert_eq!(first["result"]["resultType"], "input_required");
    let (key, request) = requests.as_object().unwrap().iter().next().unwrap();
    assert_eq!(request["params"]["message"], "Step 1: What is your name?");

    let answer = json!({key: {"action": "accept", "content": {"name": "Ann"}}});
    let params = json!({"name": name, "inputResponses": answer, "requestState": state});
    let second = site.modern("tools/call", params.clone(), &capabilities).await.json();
    assert_eq!(second["result"]["resultType"], "input_required");
    assert_ne!(&second["result"]["requestState"], state);
    let key = second["result"]["inputRequests"].as_object().unwrap().keys().next().unwrap();

    let again = site.modern("tools/call", params, &capabilities).await.json();
    assert_eq!(again["error"]["code"], -32602, "a state is good once");
    let tampered = json!({"name": name, "requestState": format!("{}x", state.as_str().unwrap())});
    let tampered = site.modern("tools/call", tampered, &capabilities).await.json();
    assert_eq!(tampered["error"]["code"], -32602);

    let state = &second["result"]["requestState"];
    let elsewhere = json!({"name": "test_simple_text", "requestState": state});
    let elsewhere = site.modern("tools/call", elsewhere, &capabilities).await.json();
    assert_eq!(elsewhere["error"]["code"], -32602, "a state is good for its own call");
    let empty = json!({"name": name, "inputResponses": {}, "requestState": state});
    let asked_again = site.modern("tools/call", empty, &capabilities).await.json();
    let missing = asked_again["result"]["inputRequests"].as_object().unwrap();
    assert_eq!(missing.keys().next().unwrap(), key, "what is missing is asked again");

    let answer = json!({key: {"action": "accept", "content": {"color": "blue"}}});
    let state = &asked_again["result"]["requestState"];
    let params = json!({"name": name, "inputResponses": answer, "requestState": state});
    let last = site.modern("tools/call", params, &capabilities).await.json();
    assert_eq!(last["result"]["resultType"], "complete");
    assert!(last["result"]["content"][0]["text"].as_str().unwrap().contains("Hello, Ann!"));
}

#[tokio::test(start_paused = true)]
async fn a_modern_client_is_never_asked_for_what_it_cannot_give() {
    let site = site(Style::Requiring);
    let params = json!({"name": "test_elicitation", "arguments": {"message": "Who?"}});
    let answer = site.modern("tools/call", params, &json!({})).await.json();
    assert_eq!(answer["error"]["code"], -32021, "{answer}");
}

#[tokio::test(start_paused = true)]
async fn arguments_nested_without_end_reach_whoever_judges_them() {
    let site = site(Style::Mixed);
    let name = "test_simple_text";
    let body = modern("tools/call", json!({"name": name, "arguments": {}}), &json!({}));
    let deep = r#"{"a":"#.repeat(50_000) + "1" + &"}".repeat(50_000);
    let body = body.to_string().replace(r#""arguments":{}"#, &format!(r#""arguments":{deep}"#));
    let headers =
        [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/call"), ("mcp-name", name)];
    let answer = site.send_text(Method::POST, &headers, body).await.json();
    assert_eq!(answer["result"]["resultType"], "complete", "{answer}");
}

#[tokio::test(start_paused = true)]
async fn a_request_that_names_two_hosts_is_refused() {
    let site = site(Style::Mixed);
    let hosts = [("host", "localhost"), ("host", "127.0.0.1")];
    let body = modern("tools/list", json!({}), &json!({}));
    let answer = site.send(Method::POST, &hosts, &body).await;
    assert_eq!(answer.status, StatusCode::BAD_REQUEST);
}

#[tokio::test(start_paused = true)]
async fn a_parked_call_belongs_to_its_caller() {
    let site = site(Style::Asking);
    let capabilities = json!({"elicitation": {}});
    let params = json!({"name": "test_elicitation", "arguments": {"message": "?"}});
    let ann = site.as_caller("ann");
    let first = ann.modern("tools/call", params, &capabilities).await.json();
    let params =
        json!({"name": "test_elicitation", "requestState": first["result"]["requestState"]});
    let bob = site.as_caller("bob").modern("tools/call", params, &capabilities).await.json();
    assert_eq!(bob["error"]["code"], -32602);
}

#[tokio::test(start_paused = true)]
async fn a_session_belongs_to_the_caller_who_opened_it() {
    let site = site(Style::Mixed);
    let ann = site.as_caller("ann");
    let session = ann.initialize("2025-11-25", json!({})).await;
    let bob = site.as_caller("bob");
    assert_eq!(bob.in_session(&session, "ping", json!({})).await.status, StatusCode::NOT_FOUND);
    assert_eq!(bob.delete(&session).await.status, StatusCode::NOT_FOUND);
    assert_eq!(ann.in_session(&session, "ping", json!({})).await.status, StatusCode::OK);
}

#[tokio::test(start_paused = true)]
async fn a_session_does_not_outlive_the_rights_it_was_opened_with() {
    let site = site(Style::Mixed);
    let session = site.with_roles("ann", &["editor"]).initialize("2025-11-25", json!({})).await;
    let degraded = site.as_caller("ann");
    let answer = degraded.in_session(&session, "ping", json!({})).await;
    assert_eq!(answer.status, StatusCode::NOT_FOUND);
    let ann = site.with_roles("ann", &["editor"]);
    assert_eq!(ann.in_session(&session, "ping", json!({})).await.status, StatusCode::OK);
}

#[tokio::test(start_paused = true)]
async fn a_broken_stream_is_taken_up_where_it_ended() {
    let site = site(Style::Mixed);
    let session = site.initialize("2025-11-25", json!({})).await;
    let mut stream = site.call(&session, "test_tool_with_logging", json!({})).await;
    let (prime, first) = (stream.event().await, stream.event().await);
    assert!(prime.contains("retry: 1000\n") && prime.ends_with("data: \n\n"), "{prime}");
    let id = first.lines().find_map(|line| line.strip_prefix("id: ")).unwrap().to_owned();
    drop(stream);
    let headers = [
        ("accept", "text/event-stream"),
        ("mcp-session-id", session.id.as_str()),
        ("last-event-id", id.as_str()),
    ];
    let rest = site.send(Method::GET, &headers, &json!(null)).await.all().await;
    let methods: Vec<_> = rest.iter().map(|message| message["method"].as_str()).collect();
    assert_eq!(methods, [Some("notifications/message"), Some("notifications/message"), None]);
    assert_eq!(rest[2]["result"]["content"][0]["type"], "text");
    let stale = [headers[0], headers[1], ("last-event-id", "99-1")];
    let stale = site.send(Method::GET, &stale, &json!(null)).await;
    assert_eq!(stale.status, StatusCode::BAD_REQUEST);
}

#[tokio::test(start_paused = true)]
async fn a_slow_answer_opens_a_stream_that_can_be_resumed() {
    let options = Options { stream_after: Duration::from_millis(10), ..Options::default() };
    let site = Site::with(Everything::new(Style::Mixed), options);
    let session = site.initialize("2025-11-25", json!({})).await;
    let answer = site.call(&session, "test_reconnection", json!({})).await;
    assert_eq!(answer.media_type(), "text/event-stream");
    assert_eq!(answer.all().await[0]["id"], 1);
}

#[tokio::test(start_paused = true)]
async fn news_of_the_provider_flow_on_the_stream_of_the_session() {
    let everything = Everything::new(Style::Mixed);
    let site = Site::new(everything.clone());
    let session = site.initialize("2025-11-25", json!({})).await;
    let mut stream = site.listen(&session).await;
    assert!(stream.event().await.ends_with("data: \n\n"));
    let uri = "test://watched-resource";
    site.in_session(&session, "resources/subscribe", json!({"uri": uri})).await;
    assert!(everything.subscribed().contains(uri));
    let updated = |uri: &str| {
        let params = tool::Object::from_iter([("uri".to_owned(), tool::Json::encode(uri))]);
        let note = tool::Notification { method: "notifications/resources/updated".into(), params };
        Event::Updated { uri: uri.to_owned(), notification: note }
    };
    everything.tell(updated("test://other"));
    everything.tell(updated(uri));
    everything.tell(Event::Changed(Kind::Templates));
    assert_eq!(stream.next().await["params"]["uri"], uri);
    assert_eq!(stream.next().await["method"], "notifications/resources/list_changed");
    site.delete(&session).await;
    assert!(stream.ended().await);
    tokio::task::yield_now().await;
    assert!(everything.subscribed().is_empty(), "what a session wanted ends with it");
}

#[tokio::test(start_paused = true)]
async fn an_idle_session_is_cleared_unless_somebody_listens() {
    let sessions =
        SessionLimits { idle: Duration::from_secs(60), sessions: 2, ..SessionLimits::default() };
    let options = Options { sessions, ..Options::default() };
    let site = Site::with(Everything::new(Style::Mixed), options);
    let idle = site.initialize("2025-11-25", json!({})).await;
    let listening = site.initialize("2025-11-25", json!({})).await;
    let stream = site.listen(&listening).await;
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert_eq!(site.in_session(&idle, "ping", json!({})).await.status, StatusCode::NOT_FOUND);
    assert_eq!(site.in_session(&listening, "ping", json!({})).await.status, StatusCode::OK);
    drop(stream);
    for _ in 0..3 {
        site.initialize("2025-11-25", json!({})).await;
    }
    assert_eq!(site.endpoint.n_sessions(), 2, "the longest unused gives way");
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_call_is_dropped_and_needs_no_answer() {
    let everything = Everything::new(Style::Asking);
    let site = Site::new(everything);
    let session = site.initialize("2025-11-25", json!({"elicitation": {}})).await;
    let mut stream = site.call(&session, "test_elicitation", json!({"message": "?"})).await;
    stream.next().await;
    let params = json!({"requestId": 1});
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
    site.post(&session, &cancel).await;
    assert!(stream.ended().await);
}

#[tokio::test(start_paused = true)]
async fn batches_are_known_to_one_revision_only() {
    let site = site(Style::Mixed);
    let batch = json!([
        {"jsonrpc": "2.0", "id": "a", "method": "ping"},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": "b", "method": "tools/call", "params": {"name": "test_simple_text"}},
    ]);
    let session = site.initialize("2025-03-26", json!({})).await;
    let answers = site.post(&session, &batch).await.json();
    let mut ids: Vec<_> = answers.as_array().unwrap().iter().map(|one| &one["id"]).collect();
    ids.sort_by_key(|id| id.to_string());
    assert_eq!(ids, ["a", "b"]);
    let session = site.initialize("2025-06-18", json!({})).await;
    assert_eq!(site.post(&session, &batch).await.status, StatusCode::BAD_REQUEST);
}

#[tokio::test(start_paused = true)]
async fn what_is_no_proper_request_is_refused_with_the_right_status() {
    let options = Options { body: 1000, ..Options::default() };
    let site = Site::with(Everything::new(Style::Mixed), options);
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    let check = async |method: Method, headers: &[(&str, &str)], body: &Value, status: u16| {
        let answer = site.send(method.clone(), headers, body).await;
        assert_eq!(answer.status.as_u16(), status, "{method} {headers:?}");
    };
    check(Method::POST, &[("host", "evil.example")], &ping, 403).await;
    check(Method::POST, &[("origin", "https://evil.example")], &ping, 403).await;
    check(Method::POST, &[("content-type", "text/plain")], &ping, 415).await;
    check(Method::POST, &[("accept", "text/html")], &ping, 406).await;
    check(Method::POST, &[], &json!("x".repeat(2000)), 413).await;
    check(Method::POST, &[], &json!({"no": "message"}), 400).await;
    check(Method::POST, &[], &ping, 400).await;
    check(Method::POST, &[("mcp-session-id", "nobody")], &ping, 404).await;
    check(Method::GET, &[], &json!(null), 405).await;
    check(Method::PUT, &[], &json!(null), 405).await;
    check(Method::GET, &[("mcp-session-id", "nobody")], &json!(null), 404).await;
}

#[tokio::test(start_paused = true)]
async fn a_modern_request_is_answered_with_what_its_revision_wants() {
    let site = site(Style::Asking);
    let none = json!({});
    let found = site.modern("server/discover", json!({}), &none).await;
    assert_eq!(found.status, StatusCode::OK);
    let result = &found.json()["result"];
    assert_eq!(result["supportedVersions"], json!(["2026-07-28"]));
    assert_eq!(result["ttlMs"], 0);
    assert_eq!(result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "everything");
    let missing = json!({"uri": "test://missing"});
    let missing = site.modern("resources/read", missing, &none).await.json();
    assert_eq!(missing["error"]["code"], -32602);
    let unknown = site.modern("no/such", json!({}), &none).await;
    assert_eq!((unknown.status, unknown.json()["id"].clone()), (StatusCode::NOT_FOUND, json!(1)));
    let incapable = json!({"name": "test_missing_capability"});
    let incapable = site.modern("tools/call", incapable, &none).await;
    assert_eq!(incapable.status, StatusCode::BAD_REQUEST);
    assert_eq!(incapable.json()["error"]["code"], -32021);
    let mut old = modern("server/discover", json!({}), &none);
    old["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2099-01-01");
    let headers = [("mcp-protocol-version", "2099-01-01"), ("mcp-method", "server/discover")];
    let old = site.send(Method::POST, &headers, &old).await;
    assert_eq!(old.json()["error"]["code"], -32022);
    let mismatched = modern("server/discover", json!({}), &none);
    let mismatched = site.send(Method::POST, &[("mcp-method", "tools/list")], &mismatched).await;
    assert_eq!(mismatched.json()["error"]["code"], -32020);
}

#[tokio::test(start_paused = true)]
async fn a_modern_request_gets_log_lines_only_when_it_wants_them() {
    let site = site(Style::Mixed);
    let quiet = site.modern("tools/call", json!({"name": "test_logging_tool"}), &json!({})).await;
    assert_eq!(quiet.media_type(), "application/json");
    let meta = json!({"io.modelcontextprotocol/logLevel": "info"});
    let params = json!({"name": "test_logging_tool", "_meta": meta});
    let loud = site.modern("tools/call", params, &json!({})).await.all().await;
    assert_eq!(loud.len(), 4);
    assert_eq!(loud[3]["result"]["resultType"], "complete");
}

#[tokio::test(start_paused = true)]
async fn a_listener_is_told_what_it_asked_for_and_by_its_id() {
    let everything = Everything::new(Style::Mixed);
    let site = Site::new(everything.clone());
    let uri = "test://watched-resource";
    let wanted = json!({"promptsListChanged": true, "resourceSubscriptions": [uri]});
    let params = json!({"notifications": wanted});
    let mut stream = site.modern("subscriptions/listen", params, &json!({})).await;
    let id = "io.modelcontextprotocol/subscriptionId";
    let first = stream.next().await;
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(first["params"]["notifications"], wanted);
    assert_eq!(first["params"]["_meta"][id], 1);
    assert!(everything.subscribed().contains(uri));
    everything.tell(Event::Changed(Kind::Tools));
    everything.tell(Event::Changed(Kind::Prompts));
    let second = stream.next().await;
    assert_eq!(second["method"], "notifications/prompts/list_changed");
    assert_eq!(second["params"]["_meta"][id], 1);
    drop(stream);
    tokio::task::yield_now().await;
    tokio::task::yield_now().await;
    assert!(everything.subscribed().is_empty(), "nobody listens any more");
}

#[tokio::test(start_paused = true)]
async fn an_old_client_posts_here_and_reads_there() {
    let everything = Everything::new(Style::Asking);
    let endpoint = Endpoint::new(Arc::new(FixedProvider(everything)), Options::default());
    let get = ::http::Request::get("/sse").header("host", "localhost").body(()).unwrap();
    let mut stream = Answer::read(endpoint.respond_sse_get(&get, "/messages")).await;
    let hello = stream.event().await;
    let address = hello.strip_prefix("event: endpoint\ndata: ").unwrap().trim().to_owned();
    let post = async |body: Value| {
        let body = http_body_util::Full::new(bytes::Bytes::from(body.to_string()));
        let request =
            ::http::Request::post(&address).header("host", "localhost").body(body).unwrap();
        assert_eq!(endpoint.respond_sse_post(request).await.status(), StatusCode::ACCEPTED);
    };
    let params = json!({"protocolVersion": "2024-11-05", "capabilities": {"elicitation": {}}});
    post(json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})).await;
    assert_eq!(stream.next().await["result"]["protocolVersion"], "2024-11-05");
    post(call("test_elicitation", &json!({"message": "Who?"}))).await;
    let question = stream.next().await;
    assert_eq!(question["method"], "elicitation/create");
    post(json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}})).await;
    assert_eq!(stream.next().await["id"], 1);
    drop(stream);
    let request = ::http::Request::post(&address).header("host", "localhost");
    let request = request.body(http_body_util::Empty::<bytes::Bytes>::new()).unwrap();
    assert_eq!(endpoint.respond_sse_post(request).await.status(), StatusCode::NOT_FOUND);
}

fn call(name: &str, arguments: &Value) -> Value {
    let params = json!({"name": name, "arguments": arguments});
    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
}

#[tokio::test(start_paused = true)]
async fn an_id_that_is_being_answered_cannot_be_used_again() {
    let site = site(Style::Asking);
    let session = site.initialize("2025-11-25", json!({"elicitation": {}})).await;
    let mut first = site.call(&session, "test_elicitation", json!({"message": "Who?"})).await;
    let question = first.next().await;
    let second = site.call(&session, "test_simple_text", json!({})).await;
    assert_eq!(second.status, StatusCode::BAD_REQUEST);
    let error = &second.json()["error"];
    assert_eq!((&second.json()["id"], &error["code"]), (&json!(1), &json!(-32600)));
    assert!(error["message"].as_str().unwrap().contains("its own id"), "{error}");
    // The first is not disturbed, and its id is free once it is answered.
    let result = json!({"action": "accept", "content": {"username": "ann"}});
    let reply = json!({"jsonrpc": "2.0", "id": question["id"], "result": result});
    site.post(&session, &reply).await;
    assert!(first.next().await["result"]["content"][0]["text"].as_str().unwrap().contains("ann"));
    let third = site.call(&session, "test_simple_text", json!({})).await;
    assert_eq!(third.status, StatusCode::OK);
}

#[tokio::test(start_paused = true)]
async fn a_batch_that_uses_an_id_twice_is_answered_with_an_error_for_the_second() {
    let site = site(Style::Mixed);
    let session = site.initialize("2025-03-26", json!({})).await;
    let call = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call",
                      "params": {"name": "test_simple_text"}});
    let answers = site.post(&session, &json!([call, call])).await.json();
    let codes: Vec<Option<i64>> =
        answers.as_array().unwrap().iter().map(|one| one["error"]["code"].as_i64()).collect();
    assert_eq!(codes, [Some(-32600), None], "{answers}");
}

#[tokio::test(start_paused = true)]
async fn an_answer_over_the_limit_is_an_error_that_says_so() {
    let options = Options { answer: 50, ..Options::default() };
    let site = Site::with(Everything::new(Style::Mixed), options);
    let session = site.initialize("2025-11-25", json!({})).await;
    let check = |answer: &Value| {
        assert_eq!(answer["error"]["code"], -32603, "{answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains("limit of 50"), "{answer}");
    };
    check(&site.call(&session, "test_simple_text", json!({})).await.json());
    let params = json!({"name": "test_simple_text"});
    check(&site.modern("tools/call", params, &json!({})).await.json());
    let logged = site.call(&session, "test_tool_with_logging", json!({})).await.all().await;
    check(logged.last().unwrap());
}

/// A provider that says on which session it is asked.
struct Telling;

#[async_trait::async_trait]
impl tool::Provider for Telling {
    fn listing(&self) -> Arc<tool::Listing> {
        let tool = testkit::tool("session", "Says the session.", &json!({"type": "object"}));
        Arc::new(testkit::listing(vec![tool]))
    }

    fn events(&self) -> futures::stream::BoxStream<'static, Event> {
        Box::pin(futures::stream::pending())
    }

    async fn ask(
        &self,
        _: tool::Ask,
        context: &tool::Context,
    ) -> Result<tool::Reply, tool::Failure> {
        Ok(tool::Reply::text(&format!("{} {}", context.is_connection_only(), context.session)))
    }
}

#[tokio::test(start_paused = true)]
async fn strangers_with_equal_clients_have_nothing_in_common() {
    let site = Site::new(Arc::new(Telling));
    let on = async |site: &Site| {
        let params = json!({"name": "session"});
        let answer = site.modern("tools/call", params, &json!({})).await.json();
        answer["result"]["content"][0]["text"].as_str().unwrap().to_owned()
    };
    let (one, other) = (on(&site).await, on(&site).await);
    assert!(one.starts_with("true visit:"), "{one}");
    assert_ne!(one, other, "every connection is a caller of its own");
    let ann = site.as_caller("ann");
    assert_eq!(on(&ann).await, on(&ann).await, "who has a name is the same caller everywhere");
    assert!(on(&ann).await.starts_with("false implied:3:ann"));
}
