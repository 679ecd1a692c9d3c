//! A client that is let in by itself.

use mcp::oauth::{GrantKind, InMemoryGrant};

use super::*;

/// Who we are, and whose tokens we use.
fn wanted(server: &Server, secret: &str) -> LoginRequest {
    LoginRequest {
        url: server.url(),
        issuer: Some(server.origin.clone()),
        client_id: Some("machine".to_owned()),
        client_secret: Some(secret.to_owned()),
        ..LoginRequest::default()
    }
}

/// A stage on which nobody ever logs in.
async fn stage(change: impl FnOnce(&Server, &mut LoginRequest)) -> (Stage, Arc<InMemoryGrant>) {
    let mut stage = Stage::new().await;
    let mut wanted = wanted(&stage.server, "its secret");
    change(&stage.server, &mut wanted);
    let keep = Arc::new(InMemoryGrant::default());
    let keeper = OAuthCredential::new(
        "change its `client_secret`",
        &stage.server.url(),
        Arc::clone(&keep) as _,
        now(&stage.bench),
        || 1.0,
    );
    let keeper =
        keeper.only_for_issuer(wanted.issuer.clone()).with_client_credentials(Some(wanted));
    stage.keeper = Arc::new(keeper);
    (stage, keep)
}

#[tokio::test]
async fn a_client_is_let_in_without_a_human() {
    let (stage, keep) = stage(|_, _| {}).await;
    assert_eq!(stage.keeper.credential_health(), CredentialHealth::Fine);
    let upstream = stage.connect().await.unwrap();
    let grant = keep.load().unwrap().unwrap();
    assert_eq!(call(&upstream).await.unwrap(), grant.access_token);
    assert_eq!(grant.kind, GrantKind::ClientCredentials);
    assert_eq!(grant.issuer.as_deref(), Some(stage.server.origin.as_str()));
    assert_eq!(grant.resource, stage.server.url());
    let form = stage.server.book().form.clone();
    assert_eq!(form["grant_type"], "client_credentials");
    assert_eq!((form["resource"].as_str(), form["scope"].as_str()), (&*stage.server.url(), "read"));
    assert!(!form.contains_key("client_secret"), "it goes into a header");
    assert_eq!(stage.server.asked("/token"), 1);
    assert_eq!((stage.server.asked("/authorize"), stage.server.asked("/register")), (0, 0));
}

#[tokio::test]
async fn the_next_token_is_had_in_the_same_way() {
    let (stage, keep) = stage(|_, _| {}).await;
    let upstream = stage.connect().await.unwrap();
    let first = keep.load().unwrap().unwrap().access_token;
    stage.pass(3_580);
    let second = call(&upstream).await.unwrap();
    assert_ne!(first, second);
    assert_eq!(stage.server.book().form["grant_type"], "client_credentials");
    // One that is taken away is replaced at once, and by one request for all.
    stage.server.book().good.clear();
    let (a, b) = tokio::join!(call(&upstream), call(&upstream));
    assert_eq!(a.unwrap(), b.unwrap());
    assert_eq!(stage.server.asked("/token"), 3);
}

#[tokio::test]
async fn a_client_that_is_refused_is_tried_ever_less_often() {
    let (stage, _) = stage(|_, wanted| wanted.client_secret = Some("old".to_owned())).await;
    let told = stage.connect().await.err().unwrap().to_string();
    assert!(told.contains("change its `client_secret`"), "{told}");
    assert!(!told.contains("old"), "{told}");
    for _ in 0..20 {
        assert!(stage.connect().await.is_err());
    }
    assert_eq!(stage.server.asked("/token"), 1);
    stage.pass(3);
    assert!(stage.connect().await.is_err());
    stage.pass(3);
    assert!(stage.connect().await.is_err());
    assert_eq!(stage.server.asked("/token"), 2, "the second pause is longer");
    assert!(matches!(stage.keeper.credential_health(), CredentialHealth::Broken { .. }));
}

#[tokio::test]
async fn the_secret_goes_to_the_named_issuer_only() {
    let other = Server::start().await.unwrap();
    let origin = other.origin.clone();
    let (stage, keep) = stage(|server, wanted| {
        wanted.reach = LoginReach::Anywhere;
        // Whoever took the server over names an issuer of their own.
        server.book().issuer = Some(origin);
    })
    .await;
    let told = stage.connect().await.err().unwrap().to_string();
    assert!(told.contains("the configuration names"), "{told}");
    assert_eq!((other.asked("/token"), stage.server.asked("/token")), (0, 0));
    assert_eq!(keep.load().unwrap(), None);
}

#[tokio::test]
async fn a_server_leads_to_no_other_program_of_this_machine() {
    let other = Server::start().await.unwrap();
    let origin = other.origin.clone();
    let (stage, _) = stage(|server, wanted| {
        wanted.issuer = Some(origin.clone());
        server.book().issuer = Some(origin);
    })
    .await;
    assert!(stage.connect().await.is_err());
    assert_eq!(other.book().asked, BTreeMap::new());
}

#[tokio::test]
async fn what_is_missing_is_said_and_nothing_is_asked() {
    let (stage, _) = stage(|_, wanted| wanted.issuer = None).await;
    let told = stage.connect().await.err().unwrap().to_string();
    assert!(told.contains("there is no `issuer` in `oauth`"), "{told}");
    assert_eq!(stage.server.asked("/token"), 0);
}
