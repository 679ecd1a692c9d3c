mod own_calls;

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};

use gateway::gateway::GatewayParts;
use parking_lot::Mutex;
use policy::approval::queue::{NewRequest, Queue, Subject};
use policy::approval::{
    Approvals, InMemoryQueue, QueueStore, QueuedRequest, RequestState, approvals,
};
use roster::Upstream;
use telemetry::figures::Overview;
use tool::Tool;
use tool::clock::Fake;

use super::*;
use crate::calls::Payloads;
use crate::control::AuditEntry;
use crate::control::{ConfigCheck, ConfigText, KeyRow, SettingRow, SettingSource};

#[derive(Default)]
struct Program {
    audited: Mutex<Vec<String>>,
    config: Mutex<String>,
}

#[async_trait::async_trait]
impl ProgramControl for Program {
    async fn audit(&self, entry: AuditEntry) {
        let AuditEntry { who, action, subject, outcome, .. } = entry;
        self.audited.lock().push(format!("{who} {action} [{subject}] {outcome}"));
    }

    fn log_of(&self, _: &str, _: usize) -> Vec<String> {
        Vec::new()
    }

    async fn overview(&self) -> Overview {
        Overview::default()
    }

    async fn restart(&self, label: &str) -> Result<(), String> {
        Err(format!("no upstream is called `{label}`"))
    }

    async fn set_enabled(&self, _: &str, _: bool) -> Result<(), String> {
        Ok(())
    }

    fn switched_off(&self) -> Vec<String> {
        vec!["wiki".to_owned()]
    }

    async fn begin_login(&self, label: &str, _: &str) -> Result<String, String> {
        Ok(format!("https://login.example/{label}?state=s"))
    }

    fn vouches(&self, _: &str, _: &Tool) -> bool {
        false
    }

    async fn accept(&self, _: &str, _: &Tool) -> Result<(), String> {
        Ok(())
    }

    fn keys(&self) -> Vec<KeyRow> {
        Vec::new()
    }

    fn config(&self) -> Option<ConfigText> {
        let text = self.config.lock().clone();
        Some(ConfigText { file: "gatelet.toml".to_owned(), text })
    }

    fn settings(&self) -> Vec<SettingRow> {
        let row = |key: &str, value: &str, source, next: Option<&str>| SettingRow {
            key: key.to_owned(),
            value: value.to_owned(),
            source,
            after_restart: next.map(str::to_owned),
            needs_restart: next.is_some(),
        };
        vec![
            row("gate.limit", "<b>7", SettingSource::File, None),
            row("serve.listen", "127.0.0.1:1", SettingSource::CommandLine, Some("127.0.0.1:2")),
        ]
    }

    fn check_config(&self, text: &str) -> ConfigCheck {
        let is_valid = !text.contains("wrong");
        let problems = if is_valid { String::new() } else { "it is wrong".to_owned() };
        ConfigCheck { is_valid, problems, restart_for: Vec::new() }
    }

    async fn save_config(&self, text: &str, before: &str) -> Result<(), String> {
        let mut config = self.config.lock();
        if *config != before {
            return Err("it was changed meanwhile".to_owned());
        }
        *config = text.to_owned();
        Ok(())
    }

    async fn verify_message(
        &self,
        _: &str,
        _: &str,
        signature: &str,
        _: &[u8],
    ) -> Result<(), String> {
        match signature {
            "good" => Ok(()),
            _ => Err("the signature is not of this body".to_owned()),
        }
    }

    fn remembered_rule(&self, _: &QueuedRequest) -> Result<String, String> {
        Ok("[[approvals.remember]]".to_owned())
    }

    async fn remember(&self, _: &QueuedRequest) -> Result<(), String> {
        Ok(())
    }
}

/// A console with one request that waits, and who uses it.
struct Desk {
    console: Console,
    program: Arc<Program>,
    queue: Arc<InMemoryQueue>,
    is_local: bool,
    revoked: Mutex<HashSet<String>>,
    /// Whether `operators` has the role `barred`, too.
    barred: AtomicBool,
}

async fn approvals() -> Desk {
    desk_with(Config { tls: false, hosts: Vec::new() }).await
}

async fn desk_with(config: Config) -> Desk {
    desk_of(config, Vec::new(), |_| ()).await
}

async fn desk_of(
    config: Config,
    upstreams: Vec<Upstream>,
    change: impl FnOnce(&mut GatewayParts),
) -> Desk {
    let clock: Arc<dyn Clock> = Arc::new(Fake::default());
    let queue = Arc::new(InMemoryQueue::default());
    let mut parts = GatewayParts::new(upstreams, Arc::clone(&clock));
    let store = Arc::clone(&queue) as Arc<dyn QueueStore>;
    parts.policies.approvals = Arc::new(Approvals::new(store, Arc::clone(&clock), approvals::LIFE));
    change(&mut parts);
    let program = Arc::new(Program::default());
    let gateway = Gateway::new(parts);
    let operator = Arc::clone(&program) as Arc<dyn ProgramControl>;
    let now = clock.unix_millis();
    let calls = Arc::new(CallLog::new(Arc::clone(&clock), Payloads::Dropped));
    let console = Console::new(gateway, operator, calls, clock, config);
    let subject = Subject {
        question: "it may <script>destroy</script>".to_owned(),
        ended_by_trust: true,
        caller: String::new(),
        client: "c\u{202e}\u{200b}\u{9b}\u{e0041}".to_owned(),
        upstream: "files".to_owned(),
        tool: "delete".to_owned(),
        arguments: "{\"path\":\"</pre><script>x</script>\u{2066}\u{202e}\"}".to_owned(),
        arguments_cut_from: None,
        digest: None,
    };
    let caller_hash = policy::approval::caller_hash(&identity("key:asker", "operator"));
    let new = NewRequest { binding: "b".to_owned(), caller_hash, subject };
    let mut add = |queue: &mut Queue| assert!(queue.add(new.clone(), now, 60_000).is_ok());
    queue.change(&mut add).await.unwrap();
    Desk {
        console,
        program,
        queue,
        is_local: true,
        revoked: Mutex::default(),
        barred: AtomicBool::new(false),
    }
}

/// What came back.
struct Got {
    status: u16,
    headers: http::HeaderMap,
    text: String,
}

impl Got {
    fn cookie(&self) -> String {
        let set = self.headers[header::SET_COOKIE].to_str().unwrap();
        set.split(';').next().unwrap().to_owned()
    }
}

impl Desk {
    async fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Got {
        let mut request = Request::builder().method(method).uri(path);
        if !headers.iter().any(|(name, _)| *name == "host") {
            request = request.header("host", "127.0.0.1:4747");
        }
        if method == "POST" {
            request = request.header("content-type", "application/x-www-form-urlencoded");
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Bytes::from(body.to_owned())).unwrap();
        let identify = |key: &str| match key {
            _ if self.revoked.lock().contains(key) => None,
            "operators" if self.barred.load(Ordering::Relaxed) => {
                let roles = ["barred", "operator"].map(str::to_owned).into();
                Some(Arc::new(Identity { roles, ..(*identity("ann", "operator")).clone() }))
            }
            "operators" => Some(identity("ann", "operator")),
            "asker" => Some(identity("key:asker", "operator")),
            "readers" => Some(identity("bob", "reader")),
            "admins" => {
                let scopes = ["admin", "operator"].map(str::to_owned).into();
                Some(Arc::new(Identity { scopes, ..(*identity("eve", "admin")).clone() }))
            }
            _ => None,
        };
        let visitor = Visitor { is_local: self.is_local, identify: &identify };
        let (head, content) = self.console.respond(request, &visitor).await.into_parts();
        let text = match content {
            Content::Whole(bytes) => String::from_utf8(bytes.to_vec()).unwrap(),
            Content::Events(_) => "events".to_owned(),
        };
        Got { status: head.status.as_u16(), headers: head.headers, text }
    }

    /// Logs in by a link and gives the cookie.
    async fn enter(&self) -> String {
        let got = self.send("GET", &self.console.login_link("/console"), &[], "").await;
        assert_eq!(got.status, 303);
        got.cookie()
    }

    /// Logs in by a key and gives the cookie.
    async fn enter_with(&self, key: &str) -> String {
        self.send("POST", "/console/login", &[], &format!("key={key}")).await.cookie()
    }

    async fn state(&self) -> RequestState {
        self.state_of(1).await
    }

    async fn state_of(&self, number: u64) -> RequestState {
        let queue = self.queue.read().await.unwrap();
        queue.get(number, self.console.backend.clock.unix_millis()).unwrap().state.clone()
    }
}

fn identity(subject: &str, role: &str) -> Arc<Identity> {
    let roles = [role.to_owned()].into();
    Arc::new(Identity { subject: subject.to_owned(), roles, ..Identity::default() })
}

/// What a form of a page carries.
fn form_token(page: &str) -> String {
    let at = page.find("name=\"form_token\" value=\"").expect("a form");
    page[at + 25..].split('"').next().unwrap().to_owned()
}

#[tokio::test]
async fn what_cannot_be_seen_is_spelt_out_where_somebody_decides() {
    let approvals = approvals().await;
    let cookie = approvals.enter().await;
    for path in ["/console/approvals", "/console/approvals/1"] {
        let page = approvals.send("GET", path, &[("cookie", &cookie)], "").await;
        assert!(!page.text.contains(tool::text::is_control_or_invisible), "{path}");
        assert!(page.text.contains("\\u{202e}"), "{path}: {}", page.text);
    }
}

#[tokio::test]
async fn strangers_cannot_fill_the_audit_log() {
    let approvals = approvals().await;
    let long = "x".repeat(5_000);
    for _ in 0..200 {
        approvals.send("POST", "/console/login", &[], "key=guess").await;
        approvals.send("POST", "/console/decisions", &[("webhook-id", &long)], "").await;
    }
    let audited = approvals.program.audited.lock().clone();
    assert!(audited.len() <= 30, "{}", audited.len());
    assert!(audited.iter().all(|line| line.len() < 300));
}

#[tokio::test]
async fn nobody_sees_or_does_anything_without_logging_in() {
    let approvals = approvals().await;
    for path in ["/console", "/console/approvals/1", "/console/tools", "/console/nothing"] {
        for cookie in ["", "gatelet-console=guess"] {
            let got = approvals.send("GET", path, &[("cookie", cookie)], "").await;
            assert_eq!(got.status, 401, "{path}");
            assert!(!got.text.contains("delete"), "{path}");
        }
    }
    for (method, path) in [("POST", "/console/approvals/1"), ("GET", "/console/events")] {
        let got = approvals.send(method, path, &[], "verdict=allow").await;
        assert_eq!(got.status, 401, "{path}");
    }
    assert_eq!(approvals.state().await, RequestState::Waiting);
}

#[tokio::test]
async fn a_link_works_once_and_the_cookie_stays_here() {
    let approvals = approvals().await;
    let path = approvals.console.login_link("/console");
    let got = approvals.send("GET", &path, &[], "").await;
    let set = got.headers[header::SET_COOKIE].to_str().unwrap().to_owned();
    for part in ["Path=/console", "HttpOnly", "SameSite=Strict"] {
        assert!(set.contains(part), "no {part}: {set}");
    }
    assert_eq!(approvals.send("GET", &path, &[], "").await.status, 403, "a second time");
    let page = approvals.send("GET", "/console", &[("cookie", &got.cookie())], "").await;
    assert_eq!(page.status, 200);
    let policy = page.headers[header::CONTENT_SECURITY_POLICY].to_str().unwrap();
    assert!(policy.contains("script-src 'self'") && !policy.contains("unsafe"), "{policy}");
}

#[tokio::test]
async fn a_key_logs_in_only_with_the_role_for_it() {
    let approvals = approvals().await;
    for (key, status) in
        [("operators", 303), ("readers", 403), ("admins", 403), ("guess", 403), ("", 403)]
    {
        let got = approvals.send("POST", "/console/login", &[], &format!("key={key}")).await;
        assert_eq!(got.status, status, "{key}");
    }
    let elsewhere = [("origin", "https://evil.example")];
    let got = approvals.send("POST", "/console/login", &elsewhere, "key=operators").await;
    assert_eq!(got.status, 403);
    let next =
        approvals.send("POST", "/console/login", &[], "key=operators&next=//evil.example").await;
    assert_eq!(next.headers[header::LOCATION], "/console");
}

#[tokio::test]
async fn nobody_agrees_with_a_key_to_a_call_that_the_same_identity_made() {
    let approvals = approvals().await;
    for (key, verdict, expected) in [
        ("asker", "allow", "waiting"),
        ("asker", "remember", "waiting"),
        ("asker", "deny", "denied"),
        ("asker", "allow", "denied"),
        ("operators", "allow", "allowed"),
    ] {
        let cookie =
            approvals.send("POST", "/console/login", &[], &format!("key={key}")).await.cookie();
        let session = [("cookie", cookie.as_str())];
        let page = approvals.send("GET", "/console/approvals/1", &session, "").await;
        let offers = page.text.contains(">Allow once<") || page.text.contains(">Allow after all<");
        assert_eq!(offers, key == "operators", "{}", page.text);
        let token = form_token(&page.text);
        let body = format!("form_token={token}&verdict={verdict}");
        approvals.send("POST", "/console/approvals/1", &session, &body).await;
        assert_eq!(approvals.state().await.as_str(), expected, "{key} {verdict}");
    }
    let audited = approvals.program.audited.lock().join("\n");
    let refused = "approvals.allow [request 1: files/delete] refused: it is a call of the same";
    assert!(audited.contains(refused), "{audited}");
}

#[tokio::test]
async fn whoever_runs_the_program_agrees_to_any_call() {
    let approvals = approvals().await;
    let cookie = approvals.enter().await;
    let session = [("cookie", cookie.as_str())];
    let token = form_token(&approvals.send("GET", "/console/approvals/1", &session, "").await.text);
    let body = format!("form_token={token}&verdict=allow");
    approvals.send("POST", "/console/approvals/1", &session, &body).await;
    assert_eq!(approvals.state().await.as_str(), "allowed");
}

#[tokio::test]
async fn a_session_ends_with_the_key_that_opened_it() {
    let approvals = approvals().await;
    let by_link = approvals.enter().await;
    let by_key = approvals.send("POST", "/console/login", &[], "key=operators").await.cookie();
    assert_eq!(approvals.send("GET", "/console", &[("cookie", &by_key)], "").await.status, 200);
    approvals.revoked.lock().insert("operators".to_owned());
    assert_eq!(approvals.send("GET", "/console", &[("cookie", &by_key)], "").await.status, 401);
    assert_eq!(approvals.send("GET", "/console", &[("cookie", &by_link)], "").await.status, 200);
}

#[tokio::test]
async fn no_page_and_no_cookie_go_over_plain_http_to_another_machine() {
    let mut approvals =
        desk_with(Config { tls: false, hosts: vec!["gate.example".to_owned()] }).await;
    let path = approvals.console.login_link("/console");
    let named = [("host", "gate.example")];
    let got = approvals.send("GET", &path, &named, "").await;
    assert!(got.status == 403 && !got.headers.contains_key(header::SET_COOKIE));
    approvals.is_local = false;
    let got = approvals.send("GET", &path, &[], "").await;
    assert!(got.status == 403 && !got.headers.contains_key(header::SET_COOKIE));
    let approvals = desk_with(Config { tls: true, hosts: vec!["gate.example".to_owned()] }).await;
    let got = approvals.send("GET", &approvals.console.login_link("/console"), &named, "").await;
    let set = got.headers[header::SET_COOKIE].to_str().unwrap();
    assert!(set.starts_with("__Host-gatelet=") && set.contains("Secure; HttpOnly"), "{set}");
}

#[tokio::test]
async fn a_name_that_somebody_else_made_mean_this_machine_is_not_answered() {
    let approvals = approvals().await;
    let cookie = approvals.enter().await;
    let headers = [("host", "rebound.example:4747"), ("cookie", cookie.as_str())];
    assert_eq!(approvals.send("GET", "/console", &headers, "").await.status, 403);
}

#[tokio::test]
async fn only_a_form_of_this_session_decides_and_that_is_audited() {
    let approvals = approvals().await;
    let cookie = approvals.enter().await;
    let other = approvals.enter().await;
    let page = approvals.send("GET", "/console/approvals", &[("cookie", &cookie)], "").await;
    let token = form_token(&page.text);
    let foreign =
        form_token(&approvals.send("GET", "/console", &[("cookie", &other)], "").await.text);
    let session = ("cookie", cookie.as_str());
    let allow = |token: &str| format!("form_token={token}&verdict=allow");
    for (headers, body) in [
        (vec![session], "verdict=allow".to_owned()),
        (vec![session], allow(&foreign)),
        (vec![session, ("origin", "http://evil.example")], allow(&token)),
        (vec![session, ("sec-fetch-site", "cross-site")], allow(&token)),
    ] {
        let got = approvals.send("POST", "/console/approvals/1", &headers, &body).await;
        assert_eq!(got.status, 403, "{headers:?} {body}");
    }
    assert_eq!(approvals.state().await, RequestState::Waiting);
    let own = [session, ("origin", "http://127.0.0.1:4747"), ("sec-fetch-site", "same-origin")];
    let got = approvals.send("POST", "/console/approvals/1", &own, &allow(&token)).await;
    assert_eq!(got.status, 303);
    assert!(
        matches!(approvals.state().await, RequestState::Allowed { by, .. } if by.contains("console"))
    );
    let audited = approvals.program.audited.lock().join("\n");
    assert!(audited.contains("approvals.allow [request 1: files/delete] done"), "{audited}");
    // What was done is said once.
    let page = approvals.send("GET", "/console/approvals", &[session], "").await;
    assert!(page.text.contains("may go through once"), "{}", page.text);
    let page = approvals.send("GET", "/console/approvals", &[session], "").await;
    assert!(!page.text.contains("may go through once"));
}

#[tokio::test]
async fn what_a_model_or_a_server_wrote_is_text() {
    let approvals = approvals().await;
    let cookie = approvals.enter().await;
    for path in ["/console/approvals", "/console/approvals/1"] {
        let page = approvals.send("GET", path, &[("cookie", &cookie)], "").await;
        assert!(page.text.contains("&lt;script&gt;destroy"), "{}", page.text);
        assert!(!page.text.contains("<script>"), "{}", page.text);
        assert!(!page.text.contains("</pre><script"), "{}", page.text);
    }
}

#[tokio::test]
async fn every_page_answers_and_what_is_not_there_says_so() {
    let approvals = approvals().await;
    let cookie = approvals.enter().await;
    let session = [("cookie", cookie.as_str())];
    for path in [
        "",
        "/approvals",
        "/approvals/1",
        "/calls",
        "/calls?ending=error",
        "/upstreams",
        "/tools",
        "/tools?q=read",
        "/artifacts",
        "/callers",
        "/callers?q=time",
        "/findings",
        "/config",
    ] {
        let page = approvals.send("GET", &format!("/console{path}"), &session, "").await;
        assert_eq!(page.status, 200, "{path}: {}", page.text);
        assert!(page.text.contains("<h1>"), "{path}");
    }
    for path in ["/nothing", "/approvals/7", "/approvals/x", "/upstreams/none", "/tools/none.none"]
    {
        assert_eq!(
            approvals.send("GET", &format!("/console{path}"), &session, "").await.status,
            404,
            "{path}"
        );
    }
    assert_eq!(approvals.send("GET", "/console/events", &session, "").await.text, "events");
    assert_eq!(approvals.send("GET", "/console/assets/console.js", &[], "").await.status, 200);
}

#[tokio::test]
async fn what_is_in_force_is_shown_with_its_source_and_as_text() {
    let approvals = approvals().await;
    let cookie = approvals.enter().await;
    let page = approvals.send("GET", "/console/config", &[("cookie", &cookie)], "").await.text;
    assert!(page.contains("&lt;b&gt;7") && !page.contains("<b>7"), "{page}");
    assert!(page.contains("applies at once"), "{page}");
    let row = page.split("<tr>").find(|row| row.contains("serve.listen")).unwrap();
    for word in ["127.0.0.1:1", "the command line", "the file says", "127.0.0.1:2"] {
        assert!(row.contains(word), "{row}");
    }
}

#[tokio::test]
async fn a_configuration_is_looked_at_before_it_is_saved() {
    let approvals = approvals().await;
    *approvals.program.config.lock() = "[gate]\n".to_owned();
    let cookie = approvals.enter().await;
    let session = [("cookie", cookie.as_str())];
    let token = form_token(&approvals.send("GET", "/console/config", &session, "").await.text);
    let send = async |path: &str, fields: &str| {
        approvals.send("POST", path, &session, &format!("form_token={token}&{fields}")).await
    };
    let review = send("/console/config/review", "text=%5Bgate%5D%0D%0Alimit+%3D+1%0D%0A").await;
    assert!(
        review.text.contains("+ limit = 1") && review.text.contains(">Save<"),
        "{}",
        review.text
    );
    assert_eq!(*approvals.program.config.lock(), "[gate]\n", "nothing is saved yet");
    let wrong = send("/console/config/review", "text=wrong").await;
    assert!(wrong.text.contains("it is wrong") && !wrong.text.contains(">Save<"), "{}", wrong.text);
    let late = send("/console/config/save", "text=x&before=other").await;
    assert_eq!(late.status, 303);
    assert_eq!(*approvals.program.config.lock(), "[gate]\n", "somebody else changed it");
    send("/console/config/save", "text=x&before=%5Bgate%5D%0D%0A").await;
    assert_eq!(*approvals.program.config.lock(), "x");
    assert!(approvals.program.audited.lock().join("\n").contains("config.save [] done"));
}

#[tokio::test]
async fn a_signed_message_decides_and_any_other_does_not() {
    let approvals = approvals().await;
    let decide = |number: u64| {
        format!(
            r#"{{"type":"approval.decided","data":{{"number":{number},"decision":"allow","by":"ann"}}}}"#
        )
    };
    let send = async |signature: &str, body: &str| {
        let headers =
            [("webhook-id", "m1"), ("webhook-timestamp", "1"), ("webhook-signature", signature)];
        approvals.send("POST", "/console/decisions", &headers, body).await.status
    };
    assert_eq!(send("bad", &decide(1)).await, 401);
    assert_eq!(send("good", "{}").await, 400);
    assert_eq!(send("good", &decide(7)).await, 409);
    assert_eq!(approvals.state().await, RequestState::Waiting);
    assert_eq!(send("good", &decide(1)).await, 200);
    assert!(
        matches!(approvals.state().await, RequestState::Allowed { by, .. } if by == "ann by webhook")
    );
}

#[tokio::test]
async fn every_form_leaves_a_line_in_the_audit_log() {
    let approvals = approvals().await;
    *approvals.program.config.lock() = "x".to_owned();
    let cookie = approvals.enter().await;
    let session = [("cookie", cookie.as_str())];
    let token = form_token(&approvals.send("GET", "/console", &session, "").await.text);
    for (path, fields, action) in [
        ("/approvals/1", "verdict=deny", "approvals.deny"),
        ("/approvals/1", "verdict=allow", "approvals.allow"),
        ("/upstreams/files/restart", "", "upstreams.restart"),
        ("/upstreams/files/enabled", "enabled=false", "upstreams.disable"),
        ("/upstreams/wiki/enabled", "enabled=true", "upstreams.enable"),
        ("/upstreams/wiki/login", "", "upstreams.login"),
        ("/config/save", "text=y&before=x", "config.save"),
        ("/logout", "", "console.logout"),
    ] {
        approvals.program.audited.lock().clear();
        let body = format!("form_token={token}&{fields}");
        approvals.send("POST", &format!("/console{path}"), &session, &body).await;
        let audited = approvals.program.audited.lock().clone();
        let [line] = &audited[..] else { panic!("{path}: {audited:?}") };
        assert!(line.starts_with(&format!("the operator {action} ")), "{path}: {line}");
    }
}

#[tokio::test]
async fn vouching_for_a_tool_is_offered_only_where_it_ends_the_question() {
    for ends in [true, false] {
        let approvals = approvals().await;
        let mut set = |queue: &mut Queue| {
            let mut document = serde_json::to_value(&*queue).unwrap();
            document["requests"][0]["ended_by_trust"] = ends.into();
            *queue = serde_json::from_value(document).unwrap();
        };
        approvals.queue.change(&mut set).await.unwrap();
        let cookie = approvals.enter().await;
        let page =
            approvals.send("GET", "/console/approvals/1", &[("cookie", cookie.as_str())], "").await;
        assert_eq!(page.text.contains("gatelet trust grant files/delete"), ends, "{}", page.text);
    }
}

#[tokio::test]
async fn a_login_is_begun_only_by_a_browser_on_this_machine() {
    for (host, is_begun) in [("127.0.0.1:4747", true), ("gate.example", false)] {
        let approvals =
            desk_with(Config { tls: true, hosts: vec!["gate.example".to_owned()] }).await;
        let named = ("host", host);
        let link = approvals.console.login_link("/console");
        let cookie = approvals.send("GET", &link, &[named], "").await.cookie();
        let session = [named, ("cookie", cookie.as_str())];
        let page = approvals.send("GET", "/console/upstreams", &session, "").await;
        assert!(page.text.contains("Switch on wiki"), "{}", page.text);
        let body = format!("form_token={}", form_token(&page.text));
        let page = approvals.send("POST", "/console/upstreams/wiki/login", &session, &body).await;
        assert_eq!(page.text.contains("https://login.example/wiki?state=s"), is_begun, "{host}");
        assert_eq!(page.text.contains("cannot be begun"), !is_begun, "{host}");
    }
}

#[tokio::test]
async fn whoever_is_looked_as_is_named_with_what_they_are_told() {
    let approvals = approvals().await;
    let cookie = approvals.enter().await;
    let session = [("cookie", cookie.as_str())];
    let path = "/console/callers?subject=key%3Aann&roles=reader&scopes=&groups=";
    let page = approvals.send("GET", path, &session, "").await;
    assert!(page.text.contains("What key:ann is told"), "{}", page.text);
    let plain = approvals.send("GET", "/console/callers", &session, "").await;
    assert!(!plain.text.contains("is told"), "nobody is looked as: {}", plain.text);
}
