//! `gatelet login` and `gatelet logout`: gets, stores and revokes the tokens of upstreams
//! that want OAuth.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use anyhow::Context;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use mcp::connect::Certificates;
use mcp::oauth::{Grant, Login, LoginReach, LoginRequest, Revoked, revoke};
use store::vault::Vault;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

use crate::config_loader;
use crate::exit::{CliError, Done};
use crate::paths::Paths;
use crate::terminal::{DIM, GOOD, out, paint, say};
use crate::time::unix_seconds;
use crate::wire;
use config::{GrantType, Reach, Upstream};

/// How long a human may take to log in with the browser.
const LOGIN_TIMEOUT: Duration = Duration::from_secs(600);
/// How many bytes of a request of the browser are read.
const MAX_REQUEST_BYTES: u64 = 16 << 10;

/// Log in to an upstream that wants OAuth, with a browser
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The upstream's label
    label: String,
    /// Log in for one caller only, by the name of their identity, such as `key:ann`
    #[arg(long = "as", value_name = "CALLER")]
    caller: Option<String>,
    /// Ask for this scope; may be given several times
    #[arg(long, value_name = "SCOPE")]
    scope: Vec<String>,
    /// The port on this machine that the login leads back to
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
    /// Let the server lead the login to this address, too: it may lead to itself and to
    /// secured servers elsewhere; may be given several times
    #[arg(long, value_name = "URL")]
    authorization_server: Vec<reqwest::Url>,
    /// Only print the address to open
    #[arg(long)]
    no_browser: bool,
}

/// Forget the token of an upstream, and give it back where the server takes that
#[derive(Debug, clap::Args)]
pub(crate) struct LogoutArgs {
    /// The upstream's label
    label: String,
    /// Forget the token of one caller only
    #[arg(long = "as", value_name = "CALLER")]
    caller: Option<String>,
}

pub(crate) fn run(args: &Args, paths: &Paths) -> anyhow::Result<Done> {
    let plan = LoginPlan::new(args, paths)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let grant = runtime.block_on(async {
        let pending = plan.begin().await?;
        say("Open this address in a browser and allow access:");
        out(pending.url());
        if !args.no_browser {
            open_browser(pending.url());
        }
        pending.finish().await
    })?;
    plan.store(&grant)?;
    say(&format!("{} to `{}`{}", paint(GOOD, "logged in"), plan.label, summary(&grant)));
    say(&paint(DIM, "A running gate takes it up by itself within a minute."));
    Ok(Done::Fine)
}

/// A login that is prepared: what to ask for, and where to store the token.
pub(super) struct LoginPlan {
    label: String,
    /// The name of the token in the vault.
    vault_entry: String,
    vault: Vault,
    request: LoginRequest,
    /// The port for the browser to come back to; 0 for any.
    port: u16,
}

/// A login that waits for a human to finish it in a browser on this machine.
pub(super) struct PendingLogin {
    login: Login,
    listener: TcpListener,
    /// The URL of the listener.
    base_url: String,
}

impl LoginPlan {
    /// The plan for the token that all callers of an upstream share.
    pub(super) fn shared(label: &str, paths: &Paths) -> anyhow::Result<LoginPlan> {
        let args = Args {
            label: label.to_owned(),
            caller: None,
            scope: Vec::new(),
            port: None,
            authorization_server: Vec::new(),
            no_browser: true,
        };
        LoginPlan::new(&args, paths)
    }

    fn new(args: &Args, paths: &Paths) -> anyhow::Result<LoginPlan> {
        let loaded = config_loader::load(paths)?;
        let upstream = find(&loaded.config.upstreams, &args.label)?;
        let vault = wire::vault(&paths.state_directory()?);
        let vault_entry = wire::vault_entry(&upstream.label, args.caller.as_deref());
        let mut request = login_request(upstream, args)?;
        // The scopes of the last token are asked for again, if it can be read.
        let before = wire::load_grant(&vault, &vault_entry).ok().flatten();
        let before = before.filter(|grant| grant.why_not_for(&request.url).is_none());
        request.granted = before.map(|grant| grant.scopes).unwrap_or_default();
        let port = args.port.or(upstream.access.oauth.redirect_port).unwrap_or(0);
        Ok(LoginPlan { label: upstream.label.clone(), vault_entry, vault, request, port })
    }

    /// Asks the upstream where to log in.
    pub(super) async fn begin(&self) -> anyhow::Result<PendingLogin> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, self.port));
        let listener = TcpListener::bind(address).await;
        let listener = listener.with_context(|| format!("cannot listen on {address}"))?;
        let base_url = format!("http://127.0.0.1:{}", listener.local_addr()?.port());
        let login = Login::begin(&self.request, &format!("{base_url}/callback")).await;
        let login = login.map_err(|error| CliError::NoAnswer(error.to_string()))?;
        Ok(PendingLogin { login, listener, base_url })
    }

    /// Stores the token in the vault, where gatelets find it.
    pub(super) fn store(&self, grant: &Grant) -> anyhow::Result<()> {
        Ok(self.vault.save(&self.vault_entry, &serde_json::to_vec(grant)?)?)
    }
}

impl PendingLogin {
    /// The URL to open in a browser.
    pub(super) fn url(&self) -> &str {
        self.login.url()
    }

    /// Waits until a human has logged in.
    pub(super) async fn finish(self) -> anyhow::Result<Grant> {
        let PendingLogin { login, listener, base_url } = self;
        let state = parameter(login.url(), "state").unwrap_or_default();
        let callback =
            tokio::time::timeout(LOGIN_TIMEOUT, wait_for_callback(&listener, &state)).await;
        let callback =
            callback.map_err(|_| CliError::NoAnswer("nobody logged in in time".to_owned()))??;
        let grant = login.finish(&format!("{base_url}{callback}"), unix_seconds()).await;
        Ok(grant.map_err(|error| CliError::NoAnswer(error.to_string()))?)
    }
}

pub(crate) fn logout(args: &LogoutArgs, paths: &Paths) -> anyhow::Result<Done> {
    let loaded = config_loader::load(paths).ok();
    let upstreams = loaded.as_ref().map(|loaded| loaded.config.upstreams.as_slice());
    // The token of an upstream that is no longer configured can be removed too.
    let upstream = find(upstreams.unwrap_or_default(), &args.label).ok();
    let label = upstream.map_or(args.label.as_str(), |upstream| upstream.label.as_str());
    let certificates = match upstream.map(|upstream| &upstream.reach) {
        Some(Reach::Address { certificates, .. }) => certificates.clone(),
        Some(Reach::Program { .. } | Reach::Content { .. } | Reach::Nowhere { .. }) | None => {
            Certificates::default()
        }
    };
    let vault = wire::vault(&paths.state_directory()?);
    let name = wire::vault_entry(label, args.caller.as_deref());
    let grant = wire::load_grant(&vault, &name).ok().flatten();
    if !vault.remove(&name)? {
        return Err(CliError::Usage(format!("there is no token of `{label}` to forget")).into());
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let revoked = grant.map(|grant| runtime.block_on(revoke(&grant, &certificates)));
    let more = match revoked.unwrap_or(Revoked::NotOffered) {
        Revoked::Done => ", and gave it back: it is worth nothing now".to_owned(),
        Revoked::NotOffered => {
            "; the server takes nothing back, so it may be good until it expires".to_owned()
        }
        Revoked::Failed(why) => {
            format!("; it could not be given back ({why}), so it may be good until it expires")
        }
    };
    say(&format!("{} the token of `{label}`{more}", paint(GOOD, "forgot")));
    Ok(Done::Fine)
}

fn find<'a>(upstreams: &'a [Upstream], label: &str) -> Result<&'a Upstream, CliError> {
    let found = upstreams.iter().find(|upstream| catalog::name::same(&upstream.label, label));
    found.ok_or_else(|| {
        let labels: Vec<&str> = upstreams.iter().map(|upstream| upstream.label.as_str()).collect();
        let all = if labels.is_empty() { "none".to_owned() } else { labels.join(", ") };
        CliError::Usage(format!("no upstream is called `{label}`; configured: {all}"))
    })
}

fn login_request(upstream: &Upstream, args: &Args) -> Result<LoginRequest, CliError> {
    let label = &upstream.label;
    let Reach::Address { url, headers, certificates, .. } = &upstream.reach else {
        return Err(CliError::Usage(match &upstream.reach {
            Reach::Nowhere { reason } => format!("`{label}` cannot be reached: {reason}"),
            Reach::Program { .. } | Reach::Address { .. } | Reach::Content { .. } => {
                format!("`{label}` is no address: there is nothing to log in to")
            }
        }));
    };
    let fixed = headers.keys().any(|name| name.eq_ignore_ascii_case("authorization"));
    if fixed && args.caller.is_none() {
        return Err(CliError::Usage(format!(
            "`{label}` has an `Authorization` header in the configuration: remove it to log in"
        )));
    }
    let access = &upstream.access;
    if access.oauth.grant == GrantType::ClientCredentials {
        return Err(CliError::Usage(format!(
            "`{label}` is entered with `client_credentials`: nobody has to log in"
        )));
    }
    if args.caller.is_some() && !access.per_caller && access.callers.is_empty() {
        return Err(CliError::Usage(format!(
            "`{label}` is the same for all callers: set `per_caller = true` to log in for one"
        )));
    }
    let oauth = access.oauth.clone();
    let mut scopes = oauth.scopes;
    scopes.extend(args.scope.iter().flat_map(|scope| scope.split_whitespace()).map(str::to_owned));
    Ok(LoginRequest {
        url: url.clone(),
        issuer: oauth.issuer,
        client_id: oauth.client_id,
        client_secret: oauth.client_secret,
        client_metadata_url: oauth.client_metadata_url,
        scopes,
        granted: Vec::new(),
        certificates: certificates.clone(),
        challenge: None,
        reach: LoginReach::Guarded(args.authorization_server.clone()),
    })
}

/// Waits until the browser comes back with our own `state`, and returns path and query of
/// that request. Browsers open connections that they never use, so all are served at once.
async fn wait_for_callback(listener: &TcpListener, state: &str) -> anyhow::Result<String> {
    let mut open = FuturesUnordered::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let answered = answer_browser(accepted?.0, state);
                open.push(tokio::time::timeout(Duration::from_secs(10), answered));
            }
            Some(answered) = open.next() => {
                if let Ok(Ok(Some(callback))) = answered {
                    return Ok(callback);
                }
            }
        }
    }
}

/// Answers one request; returns its path and query if it is the callback.
async fn answer_browser(stream: TcpStream, state: &str) -> std::io::Result<Option<String>> {
    let mut reader = BufReader::new(stream.take(MAX_REQUEST_BYTES));
    let mut first = String::new();
    reader.read_line(&mut first).await?;
    let mut line = String::new();
    while reader.read_line(&mut line).await? != 0 && !line.trim().is_empty() {
        line.clear();
    }
    let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
    let ours =
        path.starts_with("/callback?") && parameter(&path, "state").as_deref() == Some(state);
    let (status, words) = match (ours, parameter(&path, "error")) {
        (true, None) => ("200 OK", "You are logged in. This page can be closed."),
        (true, Some(_)) => ("200 OK", "The login was refused. This page can be closed."),
        (false, _) => ("404 Not Found", "There is nothing here."),
    };
    let page = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: {}\r\n\
         connection: close\r\n\r\n{words}",
        words.len()
    );
    let mut stream = reader.into_inner().into_inner();
    stream.write_all(page.as_bytes()).await?;
    stream.shutdown().await?;
    Ok(ours.then_some(path))
}

fn parameter(address: &str, name: &str) -> Option<String> {
    let url = reqwest::Url::parse("http://localhost").ok()?.join(address).ok()?;
    url.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
}

/// Opens a URL in the browser, if there is one. The URL is printed too, so errors are
/// ignored.
pub(super) fn open_browser(url: &str) {
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let mut command = std::process::Command::new(program);
    let quiet = std::process::Stdio::null;
    command.arg(url).stdin(quiet()).stdout(quiet()).stderr(quiet());
    command.spawn().ok();
}

fn summary(grant: &Grant) -> String {
    match grant.scopes.as_slice() {
        [] => String::new(),
        scopes => format!(", allowed: {}", scopes.join(" ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_connection_that_a_browser_opens_ahead_delays_nobody() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let _idle = TcpStream::connect(address).await.unwrap();
        let mut used = TcpStream::connect(address).await.unwrap();
        let request = b"GET /callback?state=s&code=c HTTP/1.1\r\nhost: localhost\r\n\r\n";
        used.write_all(request).await.unwrap();
        // Less than the patience with a connection on which nothing comes.
        let callback = wait_for_callback(&listener, "s");
        let waited = tokio::time::timeout(Duration::from_secs(8), callback).await;
        assert_eq!(waited.unwrap().unwrap(), "/callback?state=s&code=c");
    }
}
