//! `gatelet content serve`: serves the tools of a CMS site without a gateway, over stdio or
//! HTTP.

use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Context as _;
use bytes::Bytes;
use content::http::{AuditSink, Auth, Clock, Config as EdgeConfig, Edge, Jwt, ScopeMap, State};
use http::{Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Limited};
use mcp::serve::http::Body;
use parking_lot::Mutex;
use tool::FixedProvider;
use web::listen::{Limits, Peer};

use super::answer::StatelessEndpoint;
use super::named::NamedDatabase;
use super::site::{SiteArgs, open, state_file};
use crate::exit::{CliError, Done};
use crate::paths::Paths;
use crate::terminal::say;
use crate::time::since_epoch;
use crate::wire;
use config::Rules;

/// Serve a site's content tools alone
///
/// Over HTTP on loopback unless `--stdio` is given. Callers over HTTP show a
/// personal access token (`gatelet content token create`) or a signed one.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    site: SiteArgs,

    /// Talk on standard input and output, as a host that starts gatelet expects
    #[arg(long, conflicts_with = "listen")]
    stdio: bool,

    /// Address and port for HTTP
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:4750", value_parser = config::parse_address)]
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

    #[command(flatten)]
    limits: LimitArgs,

    /// A tool that is neither listed nor answered, such as `evo.model.*`; may be given several times
    #[arg(long, value_name = "PATTERN")]
    deny_tool: Vec<String>,

    /// The scope that a method needs, such as `tools/call=mcp:read`, instead of the contract's; may
    /// be given several times
    #[arg(long, value_name = "METHOD=SCOPE", value_parser = pair)]
    scope: Vec<(String, String)>,

    /// The CMS user that a caller acts for, by the subject of its token, such as `ann=7`; may be
    /// given several times
    #[arg(long, value_name = "SUBJECT=ID", value_parser = owner)]
    owner: Vec<(String, i64)>,

    /// Refuse owners who lack the permission `emcp` of the CMS
    #[arg(long)]
    need_permission: bool,

    /// Append one line of JSON per request to this file
    #[arg(long, value_name = "FILE")]
    audit: Option<std::path::PathBuf>,
}

/// How much is answered, and how often.
#[derive(Clone, Copy, Debug, clap::Args)]
struct LimitArgs {
    /// The most items of one page
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_items: Option<u32>,

    /// How many levels of the tree one call may go down
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_depth: Option<u32>,

    /// How far into a list a page may begin
    #[arg(long, value_name = "N")]
    max_offset: Option<u32>,

    /// The most bytes of one result
    #[arg(long, value_name = "BYTES")]
    max_result_bytes: Option<usize>,

    /// The most bytes of one request
    #[arg(long, value_name = "BYTES", default_value_t = 128 * 1024)]
    max_payload_bytes: usize,

    /// Requests a minute for each caller and method; 0 for any number
    #[arg(long, value_name = "N", default_value_t = 30)]
    per_minute: u32,
}

/// Parses `NAME=VALUE`.
fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() && !value.is_empty() => {
            Ok((name.to_owned(), value.to_owned()))
        }
        _ => Err("must be written as NAME=VALUE".to_owned()),
    }
}

/// Parses `SUBJECT=ID`; the subject may contain `=`.
fn owner(text: &str) -> Result<(String, i64), String> {
    let (subject, id) = text.rsplit_once('=').ok_or("must be written as SUBJECT=ID")?;
    let id = id.parse().map_err(|_| format!("`{id}` is no id of a user"))?;
    Ok((subject.to_owned(), id))
}

impl Args {
    /// The rules of the site itself.
    fn rules(&self) -> Rules {
        Rules {
            ownership: Some(self.site.ownership),
            need_permission: self.need_permission,
            max_items: self.limits.max_items,
            max_depth: self.limits.max_depth,
            max_offset: self.limits.max_offset,
            max_result_bytes: self.limits.max_result_bytes,
            errors_as_results: self.errors_as_results,
            deny_tools: self.deny_tool.clone(),
            owners: self.owner.iter().cloned().collect(),
        }
    }
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

pub(super) async fn run(args: &Args, paths: &Paths) -> anyhow::Result<Done> {
    let config = args.site.config_with(&args.rules());
    let site = open(&config).await?;
    for finding in site.findings() {
        tracing::warn!("{finding}");
    }
    let provider: Arc<dyn tool::Provider> = Arc::new(NamedDatabase(site));
    if args.stdio {
        let options = mcp::serve::stdio::Options::default();
        mcp::serve::stdio::stdio(Arc::new(FixedProvider(provider)), options).await?;
        return Ok(Done::Fine);
    }
    web::descriptors::raise();
    let edge = Arc::new(edge(args, paths, provider).await?);
    let listener = tokio::net::TcpListener::bind(args.listen)
        .await
        .with_context(|| format!("cannot listen on {}", args.listen))?;
    let (address, signal) = (listener.local_addr()?, wire::asked_to_end(wire::HangUp::Ends)?);
    say(&format!("serving the content tools at http://{address}/mcp/content"));
    let worker = Arc::clone(&edge);
    let work = tokio::spawn(async move { worker.work().await });
    let local_only = args.auth == AuthArg::Open;
    let site = move |request| {
        let edge = Arc::clone(&edge);
        async move { respond(&edge, request, local_only).await }
    };
    web::listen::listen(listener, None, Limits::default(), site, signal).await?;
    work.abort();
    Ok(Done::Fine)
}

async fn edge(
    args: &Args,
    paths: &Paths,
    provider: Arc<dyn tool::Provider>,
) -> anyhow::Result<Edge> {
    let mut config = EdgeConfig::contract(auth(args)?);
    for server in &mut config.servers {
        server.per_minute = Some(args.limits.per_minute);
        server.max_payload_bytes = Some(args.limits.max_payload_bytes);
        server.max_result_bytes = args.limits.max_result_bytes;
        server.deny_tools = args.deny_tool.clone();
        let map = args.scope.iter().map(|(method, scope)| (scope.clone(), vec![method.clone()]));
        server.scope_map = ScopeMap(map.collect());
    }
    let state = State::open(&state_file(paths)?).await?;
    let clock: Clock = Arc::new(since_epoch);
    let edge = Edge::new(config, state, clock, audit(args)?);
    Ok(edge.with("content", Arc::new(StatelessEndpoint(provider))))
}

fn auth(args: &Args) -> Result<Auth, CliError> {
    let jwt = || {
        let secret = args.jwt_secret.clone().filter(|secret| !secret.is_empty());
        let secret = secret.ok_or_else(|| {
            CliError::Usage("signed tokens need a secret: set SAPI_JWT_SECRET".to_owned())
        })?;
        Ok(Jwt { secret, issuer: args.jwt_issuer.clone().filter(|issuer| !issuer.is_empty()) })
    };
    match args.auth {
        AuthArg::Tokens => Ok(Auth::Tokens),
        AuthArg::Jwt => jwt().map(Auth::Jwt),
        AuthArg::Both => jwt().map(Auth::Both),
        AuthArg::Open if args.listen.ip().is_loopback() => Ok(Auth::Open),
        AuthArg::Open => Err(CliError::Usage(
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
        let mut file = file.lock();
        if let Err(error) = writeln!(file, "{line}") {
            tracing::error!(%error, "the audit file cannot be written");
        }
    }))
}

/// How long the body of a request may take.
const BODY_TIME: std::time::Duration = std::time::Duration::from_secs(60);

/// Reads the body of a request, within the limit of the edge, and answers it.
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
    // The edge itself refuses a body over its limit, so it gets one that is a byte too
    // long instead of the rest.
    let limit = edge.max_body();
    let body = Limited::new(body, limit).collect();
    let body = match tokio::time::timeout(BODY_TIME, body).await {
        Ok(Ok(body)) => body.to_bytes(),
        Ok(Err(_)) => Bytes::from(vec![b' '; limit + 1]),
        Err(_) => {
            let mut late = Response::new(Body::whole("the body did not come in time"));
            *late.status_mut() = StatusCode::REQUEST_TIMEOUT;
            return late;
        }
    };
    let peer = parts.extensions.get::<Peer>().map(|peer| peer.0.ip());
    edge.respond(Request::from_parts(parts, body), peer).await.map(Body::whole)
}

/// Whether host and origin name this machine, so that no foreign web page sent the request.
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
