//! `gatelet content serve`: the site alone, on a pipe or over HTTP.

use std::io::Write;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context as _;
use bytes::Bytes;
use content::http::{AuditSink, Auth, Clock, Config as EdgeConfig, Edge, Jwt, State};
use content::{ErrorForm, Overrides};
use http::{Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Limited};
use mcp::serve::http::Body;
use tool::Always;

use super::answer::Stateless;
use super::{SiteArgs, now, open, state_file};
use crate::cli::Place;
use crate::config;
use crate::exit::{Done, Stop};
use crate::terminal::say;

/// Serve a site's content tools alone
///
/// Over HTTP on loopback unless `--stdio` is given. Callers over HTTP show a
/// personal access token (`gatelet content token create`) or a signed one.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    site: SiteArgs,

    /// Talk on standard input and output, as a host that starts gatelet expects
    #[arg(long, conflicts_with = "listen")]
    stdio: bool,

    /// Address and port for HTTP
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:4750", value_parser = config::address)]
    listen: SocketAddr,

    /// How callers over HTTP are known
    #[arg(long, value_name = "HOW", default_value = "tokens")]
    auth: AuthArg,

    /// The secret of signed tokens (HS256)
    #[arg(long, value_name = "SECRET", env = "SAPI_JWT_SECRET", hide_env_values = true)]
    jwt_secret: Option<String>,

    /// Who must have signed
    #[arg(long, value_name = "ISSUER", env = "SAPI_JWT_ISS")]
    jwt_issuer: Option<String>,

    /// Report bad arguments as tool results with `isError`, which models read, instead of as errors
    #[arg(long)]
    errors_as_results: bool,

    /// The most items of one page
    #[arg(long, value_name = "N")]
    max_items: Option<i64>,

    /// Requests a minute for each caller and method; 0 for any number
    #[arg(long, value_name = "N", default_value_t = 30)]
    per_minute: u32,

    /// Append one line of JSON per request to this file
    #[arg(long, value_name = "FILE")]
    audit: Option<std::path::PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum AuthArg {
    /// Personal access tokens
    Tokens,
    /// Signed tokens (HS256)
    Jwt,
    /// Either
    Both,
    /// Nobody is asked: only for this machine
    Open,
}

pub(super) async fn run(args: &Args, place: &Place) -> anyhow::Result<Done> {
    let mut config = args.site.config();
    if args.errors_as_results {
        config.errors = ErrorForm::Result;
    }
    let own = Overrides { max_result_items: args.max_items, ..Overrides::default() };
    config.limits = config.limits.with(&own);
    let site = open(&config).await?;
    for finding in site.findings() {
        tracing::warn!("{finding}");
    }
    let provider: Arc<dyn tool::Provider> = Arc::new(site);
    if args.stdio {
        let options = mcp::serve::stdio::Options::default();
        mcp::serve::stdio::stdio(Arc::new(Always(provider)), options).await?;
        return Ok(Done::Fine);
    }
    let edge = Arc::new(edge(args, place, provider).await?);
    let listener = tokio::net::TcpListener::bind(args.listen)
        .await
        .with_context(|| format!("cannot listen on {}", args.listen))?;
    let address = listener.local_addr()?;
    say(&format!("serving the content tools at http://{address}/mcp/content"));
    let worker = Arc::clone(&edge);
    let work = tokio::spawn(async move { worker.work().await });
    let local_only = args.auth == AuthArg::Open;
    let site = move |request| {
        let edge = Arc::clone(&edge);
        async move { respond(&edge, request, local_only).await }
    };
    let stop = async {
        let _ = tokio::signal::ctrl_c().await;
    };
    mcp::serve::http::listen(listener, site, stop).await?;
    work.abort();
    Ok(Done::Fine)
}

async fn edge(
    args: &Args,
    place: &Place,
    provider: Arc<dyn tool::Provider>,
) -> anyhow::Result<Edge> {
    let mut config = EdgeConfig::contract(auth(args)?);
    for server in &mut config.servers {
        server.per_minute = Some(args.per_minute);
    }
    let state = State::open(&state_file(place)?).await?;
    let clock: Clock = Arc::new(now);
    let edge = Edge::new(config, state, clock, audit(args)?);
    Ok(edge.with("content", Arc::new(Stateless(provider))))
}

fn auth(args: &Args) -> Result<Auth, Stop> {
    let jwt = || {
        let secret = args.jwt_secret.clone().filter(|secret| !secret.is_empty());
        let secret = secret.ok_or_else(|| {
            Stop::Usage("signed tokens need a secret: set SAPI_JWT_SECRET".to_owned())
        })?;
        Ok(Jwt { secret, issuer: args.jwt_issuer.clone().filter(|issuer| !issuer.is_empty()) })
    };
    match args.auth {
        AuthArg::Tokens => Ok(Auth::Tokens),
        AuthArg::Jwt => jwt().map(Auth::Jwt),
        AuthArg::Both => jwt().map(Auth::Both),
        AuthArg::Open if args.listen.ip().is_loopback() => Ok(Auth::Open),
        AuthArg::Open => Err(Stop::Usage(
            "`--auth open` is only for loopback; use `--auth tokens` elsewhere".to_owned(),
        )),
    }
}

fn audit(args: &Args) -> anyhow::Result<AuditSink> {
    let Some(path) = &args.audit else {
        return Ok(Arc::new(|line| tracing::info!(target: "audit", "{line}")));
    };
    let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
    let file = file.with_context(|| format!("cannot write `{}`", path.display()))?;
    let file = Mutex::new(file);
    Ok(Arc::new(move |line| {
        let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = writeln!(file, "{line}") {
            tracing::error!(%error, "the audit file cannot be written");
        }
    }))
}

/// Reads a request whole, within what the edge wants to see of it.
async fn respond<B>(edge: &Edge, request: Request<B>, local_only: bool) -> Response<Body>
where
    B: http_body::Body,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let (parts, body) = request.into_parts();
    if local_only && !is_local(&parts.headers) {
        let mut refusal = Response::new(Body::whole("this server is for this machine only"));
        *refusal.status_mut() = StatusCode::FORBIDDEN;
        return refusal;
    }
    // A body over the limit is refused by the edge in its own words: it is
    // shown one byte more than is allowed, and never the rest.
    let limit = edge.max_body();
    let body = match Limited::new(body, limit).collect().await {
        Ok(body) => body.to_bytes(),
        Err(_) => Bytes::from(vec![b' '; limit + 1]),
    };
    edge.respond(Request::from_parts(parts, body), None).await.map(Body::whole)
}

/// Whether a browser could have been sent here by somebody else's page.
fn is_local(headers: &http::HeaderMap) -> bool {
    let local = |text: &str| {
        let host = text.rsplit_once(':').map_or(text, |(host, _)| host);
        let host = if text.ends_with(']') { text } else { host };
        matches!(host, "localhost" | "127.0.0.1" | "[::1]")
    };
    let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
    let host = text(header::HOST).is_none_or(local);
    let origin = text(header::ORIGIN)
        .is_none_or(|origin| origin.split_once("://").is_some_and(|(_, host)| local(host)));
    host && origin
}
