//! The human of the conformance suite: reads what there is to do, logs in with
//! a browser that agrees to everything, and loses patience.
//!
//! It does what `gatelet login` does, with the same code.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use mcp::connect::Credential;
use mcp::oauth::{Grant, GrantStore, Login, LoginReach, LoginRequest, OAuthCredential};
use serde_json::Value;

/// Where a login leads back to. Nobody listens there: the browser only says
/// where it was sent.
const REDIRECT: &str = "http://127.0.0.1:9/callback";

/// How the suite describes a client by an address.
const METADATA: &str = "https://conformance-test.local/client-metadata.json";

/// How often the human logs in.
const PATIENCE: usize = 3;

pub(crate) struct Human {
    url: String,
    drawer: Arc<Drawer>,
    keeper: Arc<OAuthCredential>,
    logins: AtomicUsize,
}

#[derive(Default)]
struct Drawer(Mutex<Option<Grant>>);

impl GrantStore for Drawer {
    fn load(&self) -> Result<Option<Grant>, String> {
        Ok(self.0.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }

    fn save(&self, grant: &Grant) -> Result<(), String> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(grant.clone());
        Ok(())
    }
}

impl Human {
    pub(crate) fn new(url: &str) -> Human {
        let drawer = Arc::new(Drawer::default());
        let now = Arc::new(|| seconds() * 1000);
        let keeper =
            OAuthCredential::new("run `log in`", url, Arc::clone(&drawer) as _, now, || 0.5);
        Human { url: url.to_owned(), drawer, keeper: Arc::new(keeper), logins: AtomicUsize::new(0) }
    }

    pub(crate) fn credential(&self) -> Arc<dyn Credential> {
        Arc::clone(&self.keeper) as _
    }

    /// Does what it was told: `log in --scope "a b"`.
    pub(crate) async fn log_in(&self, todo: &str) -> Result<(), String> {
        eprintln!("{todo}");
        if PATIENCE <= self.logins.fetch_add(1, Ordering::Relaxed) {
            return Err(format!("enough: {todo}"));
        }
        let scope = todo.split_once("--scope \"").and_then(|(_, rest)| rest.split_once('"'));
        let scopes = scope.map_or("", |(scope, _)| scope).split_whitespace();
        let before = self.drawer.load()?;
        let given = given();
        let text = |key: &str| given[key].as_str().map(str::to_owned);
        let wanted = LoginRequest {
            url: self.url.clone(),
            client_id: text("client_id"),
            client_secret: text("client_secret"),
            client_metadata_url: Some(METADATA.to_owned()),
            scopes: scopes.map(str::to_owned).collect(),
            granted: before.map(|grant| grant.scopes).unwrap_or_default(),
            // All servers of the suite are on this machine, each on its own port.
            reach: LoginReach::Anywhere,
            ..LoginRequest::default()
        };
        let login = Login::begin(&wanted, REDIRECT).await.map_err(|error| error.to_string())?;
        let callback = browse(login.url()).await?;
        let grant = login.finish(&callback, seconds()).await.map_err(|error| error.to_string())?;
        self.drawer.save(&grant)
    }
}

/// What the suite tells the client beforehand.
#[expect(clippy::disallowed_methods, reason = "the suite says what it wants by the environment")]
fn given() -> Value {
    let text = std::env::var("MCP_CONFORMANCE_CONTEXT").unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

/// Goes where the page leads, without going there.
async fn browse(url: &str) -> Result<String, String> {
    let client = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none());
    let client = client.build().map_err(|error| error.to_string())?;
    let response = client.get(url).send().await.map_err(|error| error.to_string())?;
    let to = response.headers().get("location").and_then(|to| to.to_str().ok());
    to.map(str::to_owned).ok_or_else(|| format!("HTTP {}, and nowhere to go", response.status()))
}

#[expect(clippy::disallowed_methods, reason = "the suite has tokens that end in real time")]
fn seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}
