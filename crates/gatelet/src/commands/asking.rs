//! Calls the tools `call`, `help` and `skill` from the shell, and prints the reply for a
//! person or a program. Uses the running gatelet of the same configuration, or a gateway
//! in this process.

mod hints;
mod running_session;
mod start_progress;

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
use start_progress::{Awaited, StartProgress, slowest_of};

/// Who wrote the text of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Author {
    /// The gateway; hints in it are turned into shell commands.
    Gatelet,
    /// A function or a skill; the text is printed as it is.
    Upstream,
}

/// Parses an argument of a command line: `key=text` or `key:=JSON`.
pub(crate) fn parse_pair(word: &str) -> Result<(String, Value), CliError> {
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

/// A function with a dot behind its namespace, however it was copied: `files/read` from a list,
/// `files:read#1a2b3c4d` from a search.
pub(crate) fn dotted(name: &str) -> String {
    let Some(at) = name.find(['.', '/', ':']).filter(|at| !name[*at..].starts_with('.')) else {
        return name.to_owned();
    };
    let (namespace, function) = (&name[..at], &name[at + 1..]);
    let is_hash = |hash: &str| hash.len() == 8 && hash.bytes().all(|b| b.is_ascii_hexdigit());
    let function = match function.rsplit_once('#') {
        Some((function, hash)) if is_hash(hash) => function,
        Some(_) | None => function,
    };
    format!("{namespace}.{function}")
}

/// Runs something with a gateway in this process, and ends its upstreams afterwards.
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

/// The gateway that a command uses: that of the running gatelet with the same
/// configuration, or one in this process.
pub(crate) enum GatewayAccess<'a> {
    Running(RunningSession),
    InProcess(&'a Gateway),
}

/// Runs something with the running gatelet, or without one, with a gateway in this process.
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
        Some(RunningSession::open(stream).await)
    });
    let session = match session {
        // A second gate would start every server once more, beside one that only sleeps.
        Some(Err(error)) if error.kind() == std::io::ErrorKind::TimedOut => {
            return Err(
                CliError::NoAnswer(format!("the gate that runs gave no answer: {error}")).into()
            );
        }
        session => session.and_then(Result::ok),
    };
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
    /// Calls one of the three tools (`verb`) as a client would.
    pub(crate) async fn call_tool(
        &self,
        verb: &str,
        arguments: Map<String, Value>,
    ) -> anyhow::Result<Reply> {
        match self {
            GatewayAccess::InProcess(gateway) => call_tool(gateway, verb, arguments).await,
            GatewayAccess::Running(session) => {
                session.call(verb, arguments).await.map_err(|error| {
                    CliError::NoAnswer(format!("the gate that runs broke off: {error}")).into()
                })
            }
        }
    }

    /// Allows or denies the request for approval with this number.
    pub(crate) async fn decide(
        &self,
        number: u64,
        allow: bool,
        paths: &Paths,
    ) -> anyhow::Result<()> {
        let answer = match self {
            GatewayAccess::InProcess(gateway) => {
                approval_queue::decide(gateway.approvals(), number, allow, BY_SHELL).await
            }
            GatewayAccess::Running(_) => {
                let request = LocalRequest::Decide { number, allow };
                running::ask_async(paths, &request).await?.unwrap_or_default()
            }
        };
        match answer["error"].as_str() {
            Some(why) => Err(CliError::Refused(why.to_owned()).into()),
            None => Ok(()),
        }
    }

    /// Waits for the listings of upstreams. A running gatelet has them already.
    pub(crate) async fn wait_until_known(&self, wait: Wait<'_>) {
        if let GatewayAccess::InProcess(gateway) = self {
            wait_until_known(gateway, wait).await;
        }
    }

    /// Whether the upstream with this label is down, as far as the reply does not say so.
    pub(crate) fn is_down(&self, label: &str) -> bool {
        match self {
            GatewayAccess::InProcess(gateway) => is_down(gateway, label),
            // The reply of a running gatelet says so.
            GatewayAccess::Running(_) => false,
        }
    }
}

/// Calls one of the three tools (`verb`) of a gateway in this process.
pub(crate) async fn call_tool(
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

/// Prints a reply: its text for a person; for a program the whole result as JSON, or the
/// JSON document that the gateway itself wrote.
pub(crate) fn print_reply(reply: &Reply, author: Author, output: Output) -> anyhow::Result<Done> {
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
            // The text of a function or a skill stays as it is.
            let is_refused = is_error && text.starts_with("**Error:**");
            let is_ours = author == Author::Gatelet || is_gated || is_refused;
            let text = if is_ours { hints::as_commands(&text) } else { text };
            terminal::out(&terminal::markdown(&text));
            let n_other =
                view.content.iter().filter(|block| block.member("text").is_none()).count();
            if n_other != 0 {
                say(&format!("({n_other} parts are not text; --json shows them)"));
            }
        }
        Some(view) if author == Author::Gatelet && is_json(&view.text()) => {
            let document: Value = serde_json::from_str(&view.text())?;
            terminal::out(&crate::terminal::json_text(&document)?);
        }
        Some(_) | None => terminal::out(&crate::terminal::json_text(&result.to_value()?)?),
    }
    // If an upstream did not answer, the error names it.
    let error = meta.and_then(|meta| meta.member("cash/error"));
    let upstream = error.and_then(|error| error.member("upstream"));
    let is_unanswered = upstream.is_some_and(|upstream| !upstream.is_null());
    if is_gated && output.is_json() {
        say("the answer is longer than the gate lets through, and only a part of it is here");
        return Ok(Done::AnswerIsError);
    }
    Ok(match (is_error, is_unanswered) {
        (false, _) => Done::Fine,
        (true, false) => Done::AnswerIsError,
        (true, true) => Done::NoAnswer,
    })
}

fn is_json(text: &str) -> bool {
    text.starts_with(['{', '[']) && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

/// How long [`Wait::Brief`] waits for the remaining upstreams after the last one came up.
const BRIEF: Duration = Duration::from_secs(5);

/// How long [`Wait::Brief`] waits in all: a thousand upstreams come up one after the other,
/// none of them late.
const MAX_BRIEF: Duration = Duration::from_secs(15);

/// Whether a brief wait goes on, so long after it began and after the last upstream came up.
fn is_still_brief(since_start: Duration, since_last: Duration) -> bool {
    since_last < BRIEF && since_start < MAX_BRIEF
}

/// Which upstreams to wait for, and how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait<'a> {
    /// Until every upstream is up or down.
    All,
    /// Until every upstream has a listing (a remembered one will do) or is down.
    Known,
    /// Like `Known`, for the upstream with this label only; like `Brief` if there is none.
    For(&'a str),
    /// Like `Known`, but only for a few seconds.
    Brief,
}

/// Waits until the listings of upstreams are in the catalog, or they have failed to come
/// up. Prints and returns the labels of those that are still starting.
pub(crate) async fn wait_until_known(gateway: &Gateway, wait: Wait<'_>) -> Vec<String> {
    let mut still = still_unknown(gateway, wait);
    let (began, n_all) = (Instant::now(), n_awaited(gateway, wait));
    let mut progress = StartProgress::new(n_all);
    let mut since = began;
    while !still.is_empty()
        && (matches!(wait, Wait::All | Wait::Known)
            || is_for_one(gateway, wait)
            || is_still_brief(began.elapsed(), since.elapsed()))
    {
        progress.update(&still, began.elapsed());
        tokio::time::sleep(Duration::from_millis(10)).await;
        let now = still_unknown(gateway, wait);
        if now.len() < still.len() {
            since = Instant::now();
        }
        still = now;
    }
    progress.finish();
    if !still.is_empty() {
        say(&format!("still starting: {} (`gatelet help NAME` waits for one)", slowest_of(&still)));
    }
    still.into_iter().map(|one| one.label).collect()
}

/// How many upstreams are waited for, those included that are known already.
fn n_awaited(gateway: &Gateway, wait: Wait<'_>) -> usize {
    match is_for_one(gateway, wait) {
        true => 1,
        false => gateway.roster().default_pool().snapshot().upstreams().len(),
    }
}

/// The upstreams that are still to be waited for.
fn still_unknown(gateway: &Gateway, wait: Wait<'_>) -> Vec<Awaited> {
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
        .map(|(status, _)| Awaited { label: status.label, starting_for: status.starting_for })
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

/// Whether one upstream is waited for, and it exists.
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

/// Whether the upstream with this label is down.
pub(crate) fn is_down(gateway: &Gateway, label: &str) -> bool {
    upstream(gateway, label)
        .is_some_and(|upstream| matches!(upstream.status().phase, Phase::Down { .. }))
}

fn is_still_unknown(status: &Status, shown: &Source, wait: Wait<'_>) -> bool {
    let unknown = !status.seen && *status.listing == Listing::default();
    match &status.phase {
        // With a remembered listing, an upstream is not started before it is called.
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

/// The context of a request by this command, as an anonymous caller.
pub(crate) fn context() -> Context {
    let protocol = mcp::revision::Revision::LATEST.as_str().to_owned();
    let client = Client { protocol, ..Profile::default().client() };
    Context {
        client: Arc::new(client),
        caller: Arc::new(Identity::default()),
        ..Context::anonymous()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_brief_wait_ends_however_many_upstreams_come_up_one_after_the_other() {
        let second = Duration::from_secs(1);
        assert!(is_still_brief(second * 4, second * 4));
        assert!(!is_still_brief(second * 6, second * 6), "nothing comes any more");
        assert!(is_still_brief(second * 14, second));
        assert!(!is_still_brief(second * 16, second), "somebody waits for an answer");
    }

    #[test]
    fn a_function_is_taken_however_it_was_copied() {
        for name in ["files.read", "files/read", "files:read", "files:read#1a2b3c4d"] {
            assert_eq!(dotted(name), "files.read", "{name}");
        }
        assert_eq!(dotted("files.a/b"), "files.a/b");
        assert_eq!(dotted("files:a#b"), "files.a#b");
        assert_eq!(dotted("read"), "read");
    }
}
