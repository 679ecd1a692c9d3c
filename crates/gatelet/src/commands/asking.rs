//! The three verbs from the shell: one question to gatelet, and its answer
//! for a person or for a program.

mod hints;
mod running_session;

use std::sync::Arc;
use std::time::{Duration, Instant};

use catalog::{Source, State};
use gateway::{Gateway, Surface};
use roster::{Phase, Profile, Status, SupervisedUpstream};
use serde_json::{Map, Value, json};
use tool::{Ask, Call, Client, Context, Failure, Identity, Listing, Reply};

use super::output::Output;
use super::running;
use crate::approval_queue::{self, BY_SHELL};
use crate::config_loader;
use crate::exit::{CliError, Done};
use crate::local_socket::{self, LocalRequest};
use crate::paths::Paths;
use crate::terminal::{self, say};
use crate::wire::{StartPolicy, Wiring, children_have_ended};
use running_session::RunningSession;

/// Whose words an answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Author {
    /// gatelet's, with hints how to go on.
    Gatelet,
    /// A function's or a skill's.
    Upstream,
}

/// `key=text` and `key:=JSON` among the words of a command line.
pub(crate) fn pair(word: &str) -> Result<(String, Value), CliError> {
    let Some((key, text)) = word.split_once('=') else {
        let message = format!("`{word}` is no argument; write `key=text` or `key:=JSON`");
        return Err(CliError::Usage(message));
    };
    match key.strip_suffix(':') {
        None => Ok((key.to_owned(), json!(text))),
        Some(key) => {
            let value = serde_json::from_str(text);
            let wrong = |error| CliError::Usage(format!("`{key}` is not JSON: {error}"));
            Ok((key.to_owned(), value.map_err(wrong)?))
        }
    }
}

/// Runs something with a gateway of its own.
pub(crate) fn with_gateway<T>(
    paths: &Paths,
    start_policy: StartPolicy,
    run: impl AsyncFnOnce(&Gateway) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let loaded = config_loader::load(paths)?;
    if let Some(warnings) = &loaded.warnings {
        say(&warnings.to_string());
    }
    let wiring = Wiring::new(&paths.state_directory()?, start_policy, &loaded)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let gateway = wiring.gateway(&loaded);
        let outcome = run(&gateway).await;
        drop(gateway);
        wiring.end_upstreams(Duration::from_secs(3)).await;
        children_have_ended(Duration::from_secs(3)).await;
        wiring.close().await;
        outcome
    })
}

/// The gatelet that a command asks: the one that runs for the same configuration,
/// or one of its own.
pub(crate) enum GatewayAccess<'a> {
    Running(RunningSession),
    InProcess(&'a Gateway),
}

/// Runs something with the running gatelet, or with one of its own.
pub(crate) fn with_gateway_or_running<T>(
    paths: &Paths,
    start_policy: StartPolicy,
    run: impl AsyncFnOnce(&GatewayAccess<'_>) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let state = paths.state_directory()?;
    let file = paths.config_file();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let session = runtime.block_on(async {
        let stream = local_socket::connect(&state, file.as_deref()).await?;
        RunningSession::open(stream).await.ok()
    });
    match session {
        Some(session) => runtime.block_on(run(&GatewayAccess::Running(session))),
        None => {
            drop(runtime);
            with_gateway(paths, start_policy, async |gateway| {
                run(&GatewayAccess::InProcess(gateway)).await
            })
        }
    }
}

impl GatewayAccess<'_> {
    /// Calls one of the three tools as a client would.
    pub(crate) async fn ask(
        &self,
        verb: &str,
        arguments: Map<String, Value>,
    ) -> anyhow::Result<Reply> {
        match self {
            GatewayAccess::InProcess(gateway) => ask(gateway, verb, arguments).await,
            GatewayAccess::Running(session) => {
                session.call(verb, arguments).await.map_err(|error| {
                    CliError::NoAnswer(format!("the gate that runs broke off: {error}")).into()
                })
            }
        }
    }

    /// Decides about a call that waits for approval.
    pub(crate) async fn decide(
        &self,
        number: u64,
        allow: bool,
        paths: &Paths,
    ) -> anyhow::Result<()> {
        let told = match self {
            GatewayAccess::InProcess(gateway) => {
                approval_queue::decided(gateway.approvals(), number, allow, BY_SHELL).await
            }
            GatewayAccess::Running(_) => {
                let wish = LocalRequest::Decide { number, allow };
                running::asked(paths, &wish).await?.unwrap_or_default()
            }
        };
        match told["error"].as_str() {
            Some(why) => Err(CliError::Refused(why.to_owned()).into()),
            None => Ok(()),
        }
    }

    /// Waits until what is asked about is known. A running gatelet knows.
    pub(crate) async fn wait_until_known(&self, wait: Wait<'_>) {
        if let GatewayAccess::InProcess(gateway) = self {
            wait_until_known(gateway, wait).await;
        }
    }

    /// Whether an upstream named like this cannot be reached.
    pub(crate) fn is_down(&self, label: &str) -> bool {
        match self {
            GatewayAccess::InProcess(gateway) => is_down(gateway, label),
            // What it answers says so.
            GatewayAccess::Running(_) => false,
        }
    }
}

/// Calls one of the three tools of a gateway of our own.
pub(crate) async fn ask(
    gateway: &Gateway,
    verb: &str,
    arguments: Map<String, Value>,
) -> anyhow::Result<Reply> {
    let context = context();
    let source = gateway.surface(Surface::Cash);
    let provider = source.provider_for(&context.client, &context.caller);
    let call = Call::new(verb, Value::Object(arguments).into());
    let reply = provider.ask(Ask::Call(call), &context).await;
    reply.map_err(|failure: Failure| CliError::NoAnswer(failure.to_string()).into())
}

/// Writes an answer: its text for a person; for a program the whole result, or
/// the document that gatelet itself wrote.
pub(crate) fn answer(reply: &Reply, words: Author, output: Output) -> anyhow::Result<Done> {
    let result = match reply {
        Reply::Error(error) => {
            return Err(CliError::Usage(terminal::foreign(&error.message).into_owned()).into());
        }
        Reply::Result(result) => result,
    };
    let view = reply.tool_result();
    let meta = result.member("_meta");
    let is_error = view.as_ref().is_some_and(|view| view.is_error);
    let is_gated = meta.as_ref().is_some_and(|meta| meta.member("cash/gated").is_some());
    match view {
        Some(view) if !output.is_json() => {
            let text = view.text();
            // What a function gives, and what a skill says, is not ours to change.
            let is_refused = is_error && text.starts_with("**Error:**");
            let is_ours = words == Author::Gatelet || is_gated || is_refused;
            let text = if is_ours { hints::typed(&text) } else { text };
            terminal::out(&terminal::markdown(&text));
            let unread = view.content.iter().filter(|block| block.member("text").is_none()).count();
            if unread != 0 {
                say(&format!("({unread} parts are not text; --json shows them)"));
            }
        }
        Some(view) if words == Author::Gatelet && is_document(&view.text()) => {
            let document: Value = serde_json::from_str(&view.text())?;
            terminal::out(&crate::terminal::json_text(&document)?);
        }
        Some(_) | None => terminal::out(&crate::terminal::json_text(&result.to_value()?)?),
    }
    // Where no answer came, gatelet says from whom.
    let told = meta.and_then(|meta| meta.member("cash/error"));
    let upstream = told.and_then(|told| told.member("upstream"));
    let is_silence = upstream.is_some_and(|upstream| !upstream.is_null());
    if is_gated && output.is_json() {
        say("the answer is longer than the gate lets through, and only a part of it is here");
        return Ok(Done::AnswerIsError);
    }
    Ok(match (is_error, is_silence) {
        (false, _) => Done::Fine,
        (true, false) => Done::AnswerIsError,
        (true, true) => Done::NoAnswer,
    })
}

/// Whether gatelet wrote JSON, as it was asked to.
fn is_document(text: &str) -> bool {
    text.starts_with(['{', '[']) && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

/// How long upstreams that start are waited for where an answer without them
/// is of use: so long after the last of the others was there.
const BRIEF: Duration = Duration::from_secs(5);

/// Whom to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait<'a> {
    /// Until every upstream is up or down.
    All,
    /// Until it is known what every upstream has, or that it cannot be.
    Known,
    /// Until it is known what the upstream of this name has; as [`Wait::Brief`]
    /// where there is none.
    For(&'a str),
    /// Until it is known what every upstream has, but only [`BRIEF`]ly for
    /// those that do not come up.
    Brief,
}

/// Waits until what upstreams have is known and in the catalog, or they have
/// failed to come up. Says whom it did not wait for, and tells them.
pub(crate) async fn wait_until_known(gateway: &Gateway, wait: Wait<'_>) -> Vec<String> {
    let progress = terminal::progress("starting upstreams");
    let mut still = still_unknown(gateway, wait);
    let mut since = Instant::now();
    while !still.is_empty()
        && (matches!(wait, Wait::All | Wait::Known)
            || is_for_one(gateway, wait)
            || since.elapsed() < BRIEF)
    {
        progress.set_message(format!("starting {}", still.join(", ")));
        tokio::time::sleep(Duration::from_millis(10)).await;
        let now = still_unknown(gateway, wait);
        if now.len() < still.len() {
            since = Instant::now();
        }
        still = now;
    }
    progress.finish_and_clear();
    if !still.is_empty() {
        say(&format!("still starting: {} (`gatelet help NAME` waits for one)", still.join(", ")));
    }
    still
}

/// The upstreams that are waited for and not yet there.
fn still_unknown(gateway: &Gateway, wait: Wait<'_>) -> Vec<String> {
    let snapshot = gateway.roster().default_pool().snapshot();
    let only = if is_for_one(gateway, wait) { wait.label() } else { None };
    // The catalog's first source is gatelet itself.
    let shown = snapshot.catalog.sources().iter().skip(1);
    let upstreams = snapshot.upstreams().iter().zip(shown);
    upstreams
        .filter(|(upstream, _)| {
            only.is_none_or(|label| catalog::name::same(upstream.label(), label))
        })
        .map(|(upstream, shown)| (upstream.status(), shown))
        .filter(|(status, shown)| is_still_unknown(status, shown, wait))
        .map(|(status, _)| status.label)
        .collect()
}

impl<'a> Wait<'a> {
    fn label(self) -> Option<&'a str> {
        match self {
            Wait::For(label) => Some(label),
            Wait::All | Wait::Known | Wait::Brief => None,
        }
    }
}

/// Whether one upstream is waited for, and there is such a one.
fn is_for_one(gateway: &Gateway, wait: Wait<'_>) -> bool {
    wait.label().is_some_and(|label| upstream(gateway, label).is_some())
}

fn upstream(gateway: &Gateway, label: &str) -> Option<Arc<SupervisedUpstream>> {
    let snapshot = gateway.roster().default_pool().snapshot();
    snapshot
        .upstreams()
        .iter()
        .find(|upstream| catalog::name::same(upstream.label(), label))
        .cloned()
}

/// Whether an upstream named like this cannot be reached.
pub(crate) fn is_down(gateway: &Gateway, label: &str) -> bool {
    upstream(gateway, label)
        .is_some_and(|upstream| matches!(upstream.status().phase, Phase::Down { .. }))
}

fn is_still_unknown(status: &Status, shown: &Source, wait: Wait<'_>) -> bool {
    let unknown = !status.seen && *status.listing == Listing::default();
    match &status.phase {
        // What is known beforehand is not started until it is asked.
        Phase::Asleep => unknown || wait == Wait::All && !status.seen,
        Phase::Starting => unknown || wait == Wait::All,
        Phase::Up => {
            !Arc::ptr_eq(&shown.listing, &status.listing) && shown.listing != status.listing
        }
        Phase::Down { failures, reason } => {
            *failures == 0 || shown.state != State::Unavailable { reason: reason.clone() }
        }
    }
}

pub(crate) fn context() -> Context {
    let protocol = mcp::revision::Revision::LATEST.as_str().to_owned();
    let client = Client { protocol, ..Profile::default().client() };
    Context {
        client: Arc::new(client),
        caller: Arc::new(Identity::default()),
        ..Context::anonymous()
    }
}
