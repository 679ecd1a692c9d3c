use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::*;

const SECRET: &str = "a secret of at least thirty-two bytes";

/// Answers every request with its own method, and counts.
#[derive(Default)]
struct Echo {
    n_calls: AtomicUsize,
    streamed: bool,
}

#[async_trait]
impl MessageResponder for Echo {
    async fn respond(
        &self,
        message: Bytes,
        caller: &Arc<Identity>,
        _: Option<&str>,
    ) -> MessageReply {
        self.n_calls.fetch_add(1, Ordering::SeqCst);
        let message: Value = serde_json::from_slice(&message).unwrap();
        if message.get("id").is_none() {
            return MessageReply::default();
        }
        let result = json!({"method": message["method"], "subject": caller.subject});
        let reply = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
        let body = Some(reply.to_string().into());
        MessageReply { body, session: None, streamed: self.streamed }
    }
}

struct House {
    edge: Edge,
    inner: Arc<Echo>,
    time: Arc<Mutex<Duration>>,
    audit: Arc<Mutex<Vec<Value>>>,
}

fn jwt() -> Auth {
    Auth::Jwt(Jwt { secret: SECRET.to_owned(), issuer: None })
}

async fn house(change: impl FnOnce(&mut Config)) -> House {
    house_with(Arc::new(Echo::default()), change).await
}

async fn house_with(inner: Arc<Echo>, change: impl FnOnce(&mut Config)) -> House {
    let mut config = Config::contract(jwt());
    change(&mut config);
    let time = Arc::new(Mutex::new(Duration::from_secs(1_800_000_000)));
    let clock = Arc::clone(&time);
    let audit = Arc::new(Mutex::new(Vec::new()));
    let lines = Arc::clone(&audit);
    let edge = Edge::new(
        config,
        State::in_memory().await.unwrap(),
        Arc::new(move || *clock.lock().unwrap()),
        Arc::new(move |line| lines.lock().unwrap().push(serde_json::from_str(line).unwrap())),
    );
    let edge = edge.with("content", Arc::clone(&inner) as Arc<dyn MessageResponder>);
    House { edge, inner, time, audit }
}

fn token(claims: &Value) -> String {
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let message = format!("{}.{}", part(&json!({"alg": "HS256", "typ": "JWT"})), part(claims));
    let mut mac = Hmac::<Sha256>::new_from_slice(SECRET.as_bytes()).unwrap();
    mac.update(message.as_bytes());
    format!("{message}.{}", URL_SAFE_NO_PAD.encode(mac.finalize().into_bytes()))
}

fn good_token() -> String {
    token(&json!({"sub": "tester", "scopes": ["mcp:read", "mcp:call"], "exp": 1_800_003_600}))
}

fn post(path: &str, body: &Value) -> Request<Bytes> {
    Request::post(path)
        .header("authorization", format!("Bearer {}", good_token()))
        .header("content-type", "application/json")
        .body(body.to_string().into())
        .unwrap()
}

fn message(method: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": {}})
}

fn search(limit: i64) -> Value {
    let params = json!({"name": "evo.content.search", "arguments": {"limit": limit, "offset": 0}});
    json!({"jsonrpc": "2.0", "id": "d1", "method": "tools/call", "params": params})
}

impl House {
    async fn send(&self, request: Request<Bytes>) -> (u16, Value, HeaderMap) {
        let response = self.edge.respond(request, None).await;
        let body = serde_json::from_slice(response.body()).unwrap_or_default();
        (response.status().as_u16(), body, response.headers().clone())
    }

    #[track_caller]
    fn n_calls(&self) -> usize {
        self.inner.n_calls.load(Ordering::SeqCst)
    }
}

async fn check(house: &House, request: Request<Bytes>, status: u16, code: &str) -> HeaderMap {
    let (got, body, headers) = house.send(request).await;
    assert_eq!((got, body["error"]["code"].as_str().unwrap_or_default()), (status, code));
    if !code.is_empty() {
        assert_eq!(body["error"]["trace_id"], headers["x-trace-id"].to_str().unwrap());
    }
    headers
}

const PATH: &str = "/mcp/content";

#[tokio::test]
async fn a_caller_without_a_good_token_is_refused_first() {
    let house = house(|_| {}).await;
    let bare = || Request::post(PATH).header("content-type", "text/plain");
    let none = bare().body(Bytes::new()).unwrap();
    check(&house, none, 401, "unauthenticated").await;
    for claims in [
        json!({"sub": "x", "scopes": "*", "exp": 1_799_999_999}),
        json!({"sub": "x", "scopes": "*", "exp": 1_800_003_600, "nbf": 1_800_000_001}),
        json!({"sub": "x", "scopes": "*", "exp": "never"}),
        json!({"sub": "x", "scopes": "*"}),
    ] {
        let bearer = format!("Bearer {}", token(&claims));
        let request = bare().header("authorization", bearer).body(Bytes::new()).unwrap();
        check(&house, request, 401, "unauthenticated").await;
    }
    let forged = format!("Bearer {}x", good_token());
    let request = bare().header("authorization", forged).body(Bytes::new()).unwrap();
    check(&house, request, 401, "unauthenticated").await;
    assert_eq!(house.n_calls(), 0);
}

/// Read as "nobody", such a claim would open what its owner may not see.
#[tokio::test]
async fn a_token_whose_owner_or_subject_cannot_be_read_is_refused() {
    let house = house(|_| {}).await;
    let with = |claim: &str, value: &Value| {
        let mut claims = json!({"sub": "x", "scopes": "*", "exp": 1_800_003_600});
        claims[claim] = value.clone();
        Request::post(PATH)
            .header("authorization", format!("Bearer {}", token(&claims)))
            .header("content-type", "application/json")
            .body(message("ping").to_string().into())
            .unwrap()
    };
    for odd in [json!(2.0), json!("2 "), json!("u2"), json!(""), json!([2]), json!(true), json!({})]
    {
        check(&house, with("user_id", &odd), 401, "unauthenticated").await;
    }
    for odd in [json!([2]), json!(true), json!(1.5), json!({})] {
        check(&house, with("sub", &odd), 401, "unauthenticated").await;
    }
    assert_eq!(house.n_calls(), 0);
    for (good, actor) in [(json!(2), json!(2)), (json!("2"), json!(2)), (Value::Null, Value::Null)]
    {
        assert_eq!(house.send(with("user_id", &good)).await.0, 200, "{good}");
        assert_eq!(house.audit.lock().unwrap().last().unwrap()["actor_user_id"], actor);
    }
    let (_, body, _) = house.send(with("sub", &json!(7))).await;
    assert_eq!(body["result"]["subject"], "7");
}

#[tokio::test]
async fn an_unsigned_token_is_no_token() {
    let house = house(|_| {}).await;
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let claims = json!({"sub": "x", "scopes": "*"});
    let unsigned = format!("{}.{}.", part(&json!({"alg": "none"})), part(&claims));
    let request = Request::post(PATH)
        .header("authorization", format!("Bearer {unsigned}"))
        .body(Bytes::new())
        .unwrap();
    check(&house, request, 401, "unauthenticated").await;
}

#[tokio::test]
async fn a_missing_secret_is_our_own_fault() {
    let house =
        house(|config| config.auth = Auth::Jwt(Jwt { secret: String::new(), issuer: None })).await;
    check(&house, post(PATH, &message("ping")), 500, "internal_error").await;
}

#[tokio::test]
async fn the_checks_come_in_the_order_of_the_contract() {
    let house = house(|config| config.security.allow_servers = vec!["content".to_owned()]).await;
    let request = |path: &str, media: &str, body: &str| {
        Request::post(path)
            .header("authorization", format!("Bearer {}", good_token()))
            .header("content-type", media)
            .body(Bytes::from(body.to_owned()))
            .unwrap()
    };
    let big = format!(r#"{{"method":"ping","pad":"{}"}}"#, "x".repeat(300 * 1024));
    let admin = message("admin/reindex").to_string();
    check(&house, request("/mcp/other", "text/plain", &admin), 403, "scope_denied").await;
    check(&house, request("/mcp/other", "text/plain", &big), 415, "unsupported_media_type").await;
    check(&house, request("/mcp/other", "application/json", &big), 413, "payload_too_large").await;
    let call = search(1).to_string();
    check(&house, request("/mcp/other", "application/json", &call), 403, "server_denied").await;
    check(&house, request("/nowhere", "application/json", &call), 404, "server_not_found").await;
    let get = Request::get(PATH)
        .header("authorization", format!("Bearer {}", good_token()))
        .body(Bytes::new())
        .unwrap();
    let headers = check(&house, get, 405, "method_not_allowed").await;
    assert_eq!(headers["allow"], "POST");
    assert_eq!(house.n_calls(), 0);
}

#[tokio::test]
async fn a_plain_client_with_read_and_call_gets_through_its_whole_start() {
    let house = house(|_| {}).await;
    let (status, body, headers) = house.send(post(PATH, &message("initialize"))).await;
    assert_eq!(status, 200);
    assert_eq!(body["result"]["serverInfo"]["platform"], "eMCP");
    assert_eq!(body["result"]["capabilities"]["evo"]["toolsetVersion"], "1.0");
    assert!(!headers["mcp-session-id"].is_empty());
    let note = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let (status, _, _) = house.send(post(PATH, &note)).await;
    assert_eq!(status, 202);
    for method in ["ping", "tools/list", "tools/call", "prompts/list"] {
        assert_eq!(house.send(post(PATH, &message(method))).await.0, 200, "{method}");
    }
    check(&house, post(PATH, &message("custom/method")), 403, "scope_denied").await;
}

#[tokio::test]
async fn a_server_map_adds_to_the_global_one() {
    let house = house(|config| {
        let map = vec![("mcp:call".to_owned(), vec!["custom/*".to_owned()])];
        config.servers[0].scope_map = ScopeMap(map);
    })
    .await;
    assert_eq!(house.send(post(PATH, &message("custom/method"))).await.0, 200);
    assert_eq!(house.send(post(PATH, &message("ping"))).await.0, 200);
}

#[tokio::test]
async fn what_two_readers_could_read_differently_is_refused() {
    let house = house(|_| {}).await;
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call"}"#;
    let request = Request::post(PATH)
        .header("authorization", format!("Bearer {}", good_token()))
        .header("content-type", "application/json; charset=utf-8")
        .body(Bytes::from(body))
        .unwrap();
    check(&house, request, 400, "invalid_payload").await;
    let (status, body, _) = house.send(post(PATH, &json!([search(1)]))).await;
    assert_eq!((status, &body["error"]["code"]), (200, &json!(-32600)));
    assert_eq!(house.n_calls(), 0);
}

#[tokio::test]
async fn denied_tools_and_write_tools_are_refused() {
    let house = house(|config| config.servers[0].deny_tools = vec!["evo.model.*".to_owned()]).await;
    let call = |name: &str| json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name}});
    check(&house, post(PATH, &call("evo.model.get")), 403, "tool_denied").await;
    check(&house, post(PATH, &call("evo.write.cache.clear")), 403, "tool_denied").await;
    let dispatch = "/mcp/content/dispatch";
    check(&house, post(dispatch, &call("evo.model.list")), 403, "tool_denied").await;
    assert!(!house.edge.work_once().await.unwrap());
}

#[tokio::test]
async fn every_method_has_its_own_window() {
    let house = house(|config| config.servers[0].per_minute = Some(2)).await;
    for _ in 0..2 {
        assert_eq!(house.send(post(PATH, &message("tools/list"))).await.0, 200);
    }
    let headers = check(&house, post(PATH, &message("tools/list")), 429, "rate_limited").await;
    assert_eq!(headers["retry-after"], "60");
    assert_eq!(house.send(post(PATH, &message("ping"))).await.0, 200);
    *house.time.lock().unwrap() += Duration::from_secs(60);
    assert_eq!(house.send(post(PATH, &message("tools/list"))).await.0, 200);
}

#[tokio::test]
async fn a_result_over_its_limit_is_refused() {
    let house = house(|config| config.max_result_bytes = 32).await;
    check(&house, post(PATH, &message("initialize")), 413, "result_too_large").await;
}

/// Answers as the toolset does when it refuses a caller, in either form.
struct Refusing(Value);

#[async_trait]
impl MessageResponder for Refusing {
    async fn respond(&self, _: Bytes, _: &Arc<Identity>, _: Option<&str>) -> MessageReply {
        MessageReply { body: Some(self.0.to_string().into()), ..MessageReply::default() }
    }
}

#[tokio::test]
async fn a_caller_whom_the_site_forbids_gets_403_and_a_line_that_says_so() {
    let said = "Forbidden: this token belongs to no active user of the site.";
    let data = json!({"reason": "forbidden"});
    let error = json!({"code": -32602, "message": said, "data": data});
    let content = json!([{"type": "text", "text": said}]);
    let result = json!({"content": content, "isError": true,
        "_meta": {"gatelet/reason": "forbidden"}});
    for reply in [
        json!({"jsonrpc": "2.0", "id": "d1", "error": error}),
        json!({"jsonrpc": "2.0", "id": "d1", "result": result}),
    ] {
        let mut house = house(|_| {}).await;
        house.edge = house.edge.with("content", Arc::new(Refusing(reply)));
        check(&house, post(PATH, &search(1)), 403, "forbidden").await;
        let (_, body, _) = house.send(post(PATH, &search(1))).await;
        assert_eq!(body["error"]["message"], "Forbidden");
        assert_eq!(body["error"]["detail"], said);
        assert_eq!(house.audit.lock().unwrap().last().unwrap()["status"], 403);
    }
}

#[tokio::test]
async fn what_a_site_says_is_no_refusal() {
    let mut house = house(|_| {}).await;
    let items =
        json!([{"pagetitle": "gatelet/reason", "alias": "forbidden", "reason": "forbidden"}]);
    let result = json!({"structuredContent": {"items": items}});
    let reply = json!({"jsonrpc": "2.0", "id": "d1", "result": result});
    house.edge = house.edge.with("content", Arc::new(Refusing(reply)));
    assert_eq!(house.send(post(PATH, &search(1))).await.0, 200);
}

#[tokio::test]
async fn streams_are_refused_unless_switched_on() {
    let streaming = || Arc::new(Echo { streamed: true, ..Echo::default() });
    let off = house_with(streaming(), |_| {}).await;
    check(&off, post(PATH, &message("ping")), 403, "streaming_disabled").await;
    let stream = Stream { enabled: true, max_seconds: 60, heartbeat_seconds: 5 };
    let on = house_with(streaming(), |config| config.servers[0].stream = Some(stream)).await;
    let (status, _, headers) = on.send(post(PATH, &message("ping"))).await;
    assert_eq!((status, &headers["x-emcp-stream-max-seconds"]), (200, &"60".parse().unwrap()));
    assert_eq!(headers["x-emcp-heartbeat-seconds"], "5");
    assert_eq!(headers["content-type"], "text/event-stream");
}

#[tokio::test]
async fn the_trace_of_the_caller_comes_back_and_is_written_down() {
    let house = house(|_| {}).await;
    let mut request = post(PATH, &message("ping"));
    request.headers_mut().insert("x-trace-id", "trace-7".parse().unwrap());
    let (_, _, headers) = house.send(request).await;
    assert_eq!(headers["x-trace-id"], "trace-7");
    let audit = house.audit.lock().unwrap();
    let line = &audit[0];
    assert_eq!(line["trace_id"], "trace-7");
    assert_eq!(line["method"], "ping");
    assert_eq!(line["status"], 200);
    assert_eq!(line["rate_limit_identity"], "api:tester");
    assert_eq!(line["timestamp"], "2027-01-15T08:00:00Z");
}

fn dispatched(key: &str, body: &Value) -> Request<Bytes> {
    let mut request = post("/mcp/content/dispatch", body);
    request.headers_mut().insert("idempotency-key", key.parse().unwrap());
    request
}

#[tokio::test]
async fn a_dispatched_request_runs_once_and_its_result_is_kept() {
    let house = house(|_| {}).await;
    let (status, first, _) = house.send(dispatched("k1", &search(1))).await;
    assert_eq!((status, &first["status"]), (202, &json!("accepted")));
    assert_eq!((&first["reused"], &first["idempotency_key"]), (&json!(false), &json!("k1")));
    let (status, again, _) = house.send(dispatched("k1", &search(1))).await;
    assert_eq!((status, &again["reused"]), (202, &json!(true)));
    assert_eq!((&again["task_id"], &again["trace_id"]), (&first["task_id"], &first["trace_id"]));
    check(&house, dispatched("k1", &search(2)), 409, "idempotency_conflict").await;

    assert!(house.edge.work_once().await.unwrap());
    assert!(!house.edge.work_once().await.unwrap());
    assert_eq!(house.n_calls(), 1);
    let (status, done, _) = house.send(dispatched("k1", &search(1))).await;
    assert_eq!((status, &done["status"]), (200, &json!("completed")));
    assert_eq!(done["result"]["response"]["result"]["method"], "tools/call");

    let task = |who: &str| {
        let claims = json!({"sub": who, "scopes": "mcp:read", "exp": 1_800_003_600});
        task_of(&first["task_id"], &claims)
    };
    let (status, body, _) = house.send(task("tester")).await;
    assert_eq!(
        (status, &body["status"], &body["progress"]),
        (200, &json!("completed"), &json!(100))
    );
    check(&house, task("somebody-else"), 404, "task_not_found").await;
}

fn task_of(id: &Value, claims: &Value) -> Request<Bytes> {
    Request::get(format!("/mcp/content/tasks/{id}"))
        .header("authorization", format!("Bearer {}", token(claims)))
        .body(Bytes::new())
        .unwrap()
}

fn dispatched_as(claims: &Value, key: &str) -> Request<Bytes> {
    let mut request = dispatched(key, &search(1));
    let bearer = format!("Bearer {}", token(claims));
    request.headers_mut().insert("authorization", bearer.parse().unwrap());
    request
}

#[tokio::test]
async fn so_many_tasks_of_one_caller_wait_and_no_more() {
    let house = house(|config| {
        config.per_minute = 0;
        config.servers.iter_mut().for_each(|server| server.per_minute = Some(0));
    })
    .await;
    for n in 0..dispatch::MAX_TASKS {
        let (status, body, _) = house.send(dispatched(&format!("k{n}"), &search(1))).await;
        assert_eq!(status, 202, "{n}: {body}");
    }
    let (status, body, _) = house.send(dispatched("one more", &search(1))).await;
    assert_eq!(status, 429, "{body}");
    let (status, ..) = house.send(dispatched("k7", &search(1))).await;
    assert_eq!(status, 202, "what was asked before is known");
    let other = json!({"sub": "bob", "scopes": ["mcp:call"], "exp": 1_800_003_600});
    let (status, body, _) = house.send(dispatched_as(&other, "k")).await;
    assert_eq!(status, 202, "nobody else is touched: {body}");
    assert!(house.edge.work_once().await.unwrap());
    let (status, body, _) = house.send(dispatched("one more", &search(1))).await;
    assert_eq!(status, 202, "{body}");
}

#[tokio::test]
async fn nobody_signs_himself_into_being_the_holder_of_a_personal_token() {
    let house = house(|_| {}).await;
    let claims = json!({"sub": "token:1", "scopes": "*", "exp": 1_800_003_600});
    check(&house, dispatched_as(&claims, "k"), 401, "unauthenticated").await;
}

#[tokio::test]
async fn who_has_no_name_has_no_tasks() {
    let house = house(|_| {}).await;
    let nameless = json!({"scopes": "*", "exp": 1_800_003_600});
    check(&house, dispatched_as(&nameless, "k"), 403, "forbidden").await;
    let (_, task, _) = house.send(dispatched("k", &search(1))).await;
    check(&house, task_of(&task["task_id"], &nameless), 404, "task_not_found").await;
}

#[tokio::test]
async fn a_user_and_a_subject_of_the_same_number_are_two_owners() {
    let house = house(|_| {}).await;
    let user = json!({"sub": "ann", "user_id": 7, "scopes": "*", "exp": 1_800_003_600});
    let subject = json!({"sub": "7", "scopes": "*", "exp": 1_800_003_600});
    let (_, task, _) = house.send(dispatched_as(&user, "k")).await;
    check(&house, task_of(&task["task_id"], &subject), 404, "task_not_found").await;
    assert_eq!(house.send(task_of(&task["task_id"], &user)).await.0, 200);
    let (status, own, _) = house.send(dispatched_as(&subject, "k")).await;
    assert_eq!((status, &own["reused"]), (202, &json!(false)));
}

#[tokio::test]
async fn callers_without_a_name_are_counted_by_where_they_are() {
    let house = house(|config| config.servers[0].per_minute = Some(1)).await;
    let bearer = format!("Bearer {}", token(&json!({"scopes": "*", "exp": 1_800_003_600})));
    let request = || {
        let mut request = post(PATH, &message("ping"));
        request.headers_mut().insert("authorization", bearer.parse().unwrap());
        request
    };
    let mut answers = Vec::new();
    for peer in ["192.0.2.1", "192.0.2.2", "192.0.2.1"] {
        let peer = Some(peer.parse().unwrap());
        answers.push(house.edge.respond(request(), peer).await.status().as_u16());
    }
    assert_eq!(answers, [200, 200, 429]);
}

#[tokio::test]
async fn methods_and_servers_that_nobody_knows_are_counted_together() {
    let house = house(|config| {
        config.servers[0].per_minute = Some(3);
        config.per_minute = 3;
    })
    .await;
    let mut statuses = Vec::new();
    for n in 0..4 {
        let note = json!({"jsonrpc": "2.0", "method": format!("notifications/x{n}")});
        statuses.push(house.send(post(PATH, &note)).await.0);
    }
    assert_eq!(statuses, [202, 202, 202, 429]);
    let mut statuses = Vec::new();
    for n in 0..4 {
        let path = format!("/mcp/other{n}");
        statuses.push(house.send(post(&path, &message("ping"))).await.0);
    }
    assert_eq!(statuses, [404, 404, 404, 429]);
    // What the protocol has is counted by itself.
    let note = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(house.send(post(PATH, &note)).await.0, 202);
}

#[tokio::test]
async fn a_forbidden_task_fails_at_once_and_says_why_in_words() {
    let mut house = house(|_| {}).await;
    let said = "this token belongs to no active user of the site.";
    let error = json!({"code": -32602, "message": said, "data": {"reason": "forbidden"}});
    let reply = json!({"jsonrpc": "2.0", "id": "d1", "error": error});
    house.edge = house.edge.with("content", Arc::new(Refusing(reply)));
    let (_, task, _) = house.send(dispatched("k", &search(1))).await;
    while house.edge.work_once().await.unwrap() {}
    let claims = json!({"sub": "tester", "scopes": "*", "exp": 1_800_003_600});
    let (_, body, _) = house.send(task_of(&task["task_id"], &claims)).await;
    assert_eq!((&body["status"], &body["attempts"]), (&json!("failed"), &json!(1)));
    assert_eq!(body["error"], format!("forbidden: {said}"));
}

#[tokio::test]
async fn a_task_that_ended_is_forgotten_after_the_lifetime_of_its_key() {
    let house = house(|_| {}).await;
    let count = async || -> i64 {
        let query = sqlx::query_scalar("select count(*) from tasks");
        query.fetch_one(&house.edge.state.0).await.unwrap()
    };
    house.send(dispatched("first", &search(1))).await;
    assert!(house.edge.work_once().await.unwrap());
    house.send(dispatched("second", &search(1))).await;
    assert_eq!(count().await, 2);
    *house.time.lock().unwrap() += Duration::from_secs(86_400);
    let claims = json!({"sub": "tester", "scopes": "*", "exp": 1_900_000_000});
    house.send(dispatched_as(&claims, "third")).await;
    // The second waits still, however old it is.
    assert_eq!(count().await, 2);
}

#[tokio::test]
async fn a_task_that_ends_the_process_every_time_is_given_up() {
    let house = house(|_| {}).await;
    house.send(dispatched("k", &search(1))).await;
    let running = "update tasks set status = 50, attempts = attempts + 1";
    for expected in [10, 10, 100] {
        sqlx::raw_sql(running).execute(&house.edge.state.0).await.unwrap();
        house.edge.state.recover().await.unwrap();
        let status: i64 = sqlx::query_scalar("select status from tasks")
            .fetch_one(&house.edge.state.0)
            .await
            .unwrap();
        assert_eq!(status, expected);
    }
}

#[tokio::test]
async fn racing_equal_requests_make_one_task() {
    let house = house(|config| config.servers[0].per_minute = Some(0)).await;
    let body = search(1);
    let racing = (0..20).map(|_| house.send(dispatched("race", &body)));
    let answers = futures::future::join_all(racing).await;
    let new = answers.iter().filter(|(_, body, _)| body["reused"] == json!(false)).count();
    assert_eq!(new, 1);
    while house.edge.work_once().await.unwrap() {}
    assert_eq!(house.n_calls(), 1);
}

#[tokio::test]
async fn without_a_queue_a_request_runs_at_once_or_not_at_all() {
    let sync = house(|config| config.queue = Queue::Off(Failover::Sync)).await;
    let request = || post("/mcp/content/dispatch", &search(1));
    let (status, body, _) = sync.send(request()).await;
    assert_eq!(
        (status, &body["status"], &body["task_id"]),
        (200, &json!("completed"), &Value::Null)
    );
    let hash = "d9a9c4fa8e17e22513c6f7cfe89405b51a7619ab";
    assert_eq!(body["idempotency_key"], format!("sync:{hash}"));
    assert_eq!(sync.send(request()).await.1["reused"], json!(true));
    assert_eq!(sync.n_calls(), 1);
    let fail = house(|config| config.queue = Queue::Off(Failover::Fail)).await;
    check(&fail, request(), 503, "async_unavailable").await;
}

#[tokio::test]
async fn a_dispatch_without_a_method_is_no_payload() {
    let house = house(|_| {}).await;
    let body = json!({"jsonrpc": "2.0", "id": "m3", "params": {}});
    check(&house, post("/mcp/content/dispatch", &body), 400, "invalid_payload").await;
    check(&house, post("/mcp/content/dispatch", &json!("x")), 400, "invalid_payload").await;
}

#[tokio::test]
async fn tasks_survive_the_process() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("state.sqlite");
    let clock: Clock = Arc::new(|| Duration::from_secs(1_800_000_000));
    let make = async || {
        let state = State::open(&path).await.unwrap();
        let inner: Arc<dyn MessageResponder> = Arc::new(Echo::default());
        Edge::new(Config::contract(jwt()), state, Arc::clone(&clock), Arc::new(|_| {}))
            .with("content", inner)
    };
    let before = make().await;
    assert_eq!(before.respond(dispatched("k", &search(1)), None).await.status(), 202);
    before.state.0.close().await;
    let after = make().await;
    assert!(after.work_once().await.unwrap());
    assert_eq!(after.respond(dispatched("k", &search(1)), None).await.status(), 200);
}

#[tokio::test]
async fn the_state_is_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    let fresh = directory.path().join("fresh.sqlite");
    // Earlier versions left this one open to everybody.
    let earlier = directory.path().join("earlier.sqlite");
    std::fs::write(&earlier, "").unwrap();
    std::fs::set_permissions(&earlier, std::fs::Permissions::from_mode(0o644)).unwrap();
    for path in [fresh, earlier] {
        let state = State::open(&path).await.unwrap();
        state.recover().await.unwrap();
        for end in ["", "-wal", "-shm"] {
            let file = format!("{}{end}", path.display());
            let mode = std::fs::metadata(&file).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{file}");
        }
    }
}

#[tokio::test]
async fn personal_tokens_are_good_until_they_expire_or_are_revoked() {
    let house = house(|config| config.auth = Auth::Tokens).await;
    let now = *house.time.lock().unwrap();
    let new = NewToken {
        name: "laptop".to_owned(),
        user_id: Some(2),
        scopes: ["mcp:call".to_owned()].into(),
        expires: Some(Duration::from_secs(100)),
    };
    let (text, made) = house.edge.state.create_token(&new, now).await.unwrap();
    assert_eq!((text.len(), &text[..5]), (45, "emcp_"));
    let listed = house.edge.state.list_tokens().await.unwrap();
    assert_eq!((listed.len(), listed[0].prefix.as_str()), (1, &text[..12]));
    let with = |text: &str, method: &str| {
        Request::post(PATH)
            .header("authorization", format!("Bearer {text}"))
            .header("content-type", "application/json")
            .body(message(method).to_string().into())
            .unwrap()
    };
    // Who may call may read, but not administer.
    assert_eq!(house.send(with(&text, "tools/list")).await.0, 200);
    check(&house, with(&text, "admin/x"), 403, "scope_denied").await;
    check(&house, with("emcp_wrong", "ping"), 401, "invalid_token").await;
    *house.time.lock().unwrap() += Duration::from_secs(100);
    check(&house, with(&text, "ping"), 401, "invalid_token").await;
    *house.time.lock().unwrap() = now;
    assert_eq!(house.send(with(&text, "ping")).await.0, 200);
    assert!(house.edge.state.revoke_token(made.id, now).await.unwrap());
    check(&house, with(&text, "ping"), 401, "invalid_token").await;
}

#[test]
fn payload_hashes_are_those_of_the_contract() {
    let vectors: Value =
        serde_json::from_str(include_str!("../../tests/vectors/transport.json")).unwrap();
    for case in vectors["payload_hash"].as_array().unwrap() {
        let body: Value = serde_json::from_str(case["request_body"].as_str().unwrap()).unwrap();
        let hash = payload_hash(
            case["server"].as_str().unwrap(),
            body["method"].as_str().unwrap(),
            body.get("params"),
            case["actor_user_id"].as_i64(),
        );
        assert_eq!(case["payload_hash"], hash);
    }
}

#[test]
fn secrets_are_redacted_however_deep() {
    let vectors: Value =
        serde_json::from_str(include_str!("../../tests/vectors/transport.json")).unwrap();
    let case = &vectors["redactor"];
    assert_eq!(redact(&case["input"]), case["output"]);
    assert_eq!(redact(&json!("plain")), json!("plain"));
    assert_eq!(redact(&json!({" Authorization ": 1})), json!({" Authorization ": "[REDACTED]"}));
}

#[tokio::test]
async fn a_message_that_is_nested_without_end_is_answered_with_an_error() {
    let house = house(|_| {}).await;
    for depth in [200, 5_000, 60_000] {
        let nested = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let text = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{{\"a\":{nested}}}}}"
        );
        let mut request = post("/mcp/content/dispatch", &Value::Null);
        *request.body_mut() = text.into();
        let (status, body, _) = house.send(request).await;
        assert!((200..500).contains(&status), "{depth}: {status} {body}");
    }
}
