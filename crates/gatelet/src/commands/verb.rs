//! The three verbs from the shell: one question to the gate, and its answer
//! for a person or for a program.

use std::sync::Arc;
use std::time::Duration;

use catalog::{Source, State};
use gateway::roster::{Link, Phase, Status};
use gateway::{Gateway, Surface};
use serde_json::{Map, Value};
use tool::{Ask, Call, Client, Context, Failure, Identity, Listing, Reply};

use crate::cli::Place;
use crate::config;
use crate::exit::{Done, Stop};
use crate::terminal::{self, say};
use crate::wire::{Pace, Wiring, children_have_ended};

/// How an answer is written.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub(crate) struct Output {
    /// Write JSON even on a terminal
    #[arg(long, conflicts_with = "text")]
    json: bool,

    /// Write text even into a pipe
    #[arg(long)]
    text: bool,
}

impl Output {
    pub(crate) fn is_json(self) -> bool {
        self.json || !self.text && !terminal::is_read_by_a_person()
    }
}

/// Runs something with a gateway of its own.
pub(crate) fn with_gateway<T>(
    place: &Place,
    pace: Pace,
    run: impl AsyncFnOnce(&Gateway) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let loaded = config::load(place)?;
    if let Some(warnings) = &loaded.warnings {
        say(&warnings.to_string());
    }
    let wiring = Wiring::new(&config::state_directory(place)?, pace, &loaded.config)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let gateway = wiring.gateway(&loaded);
        let outcome = run(&gateway).await;
        drop(gateway);
        children_have_ended(Duration::from_secs(3)).await;
        wiring.close();
        outcome
    })
}

/// Calls one of the three tools as a client would.
pub(crate) async fn ask(
    gateway: &Gateway,
    verb: &str,
    arguments: Map<String, Value>,
) -> anyhow::Result<Reply> {
    let context = context();
    let provider = gateway.door(Surface::Cash).open(&context.client, &context.caller);
    let call = Call::new(verb, Value::Object(arguments).into());
    let reply = provider.ask(Ask::Call(call), &context).await;
    reply.map_err(|failure: Failure| Stop::NoAnswer(failure.to_string()).into())
}

/// Writes an answer: its text for a person, the whole result for a program.
pub(crate) fn answer(reply: &Reply, output: Output) -> anyhow::Result<Done> {
    let result = match reply {
        Reply::Error(error) => return Err(Stop::Usage(error.message.clone()).into()),
        Reply::Result(result) => result,
    };
    let view = reply.tool_result();
    let is_error = view.as_ref().is_some_and(|view| view.is_error);
    match view {
        Some(view) if !output.is_json() => {
            terminal::out(&terminal::markdown(&view.text()));
            let unread = view.content.iter().filter(|block| block.member("text").is_none()).count();
            if unread != 0 {
                say(&format!("({unread} parts are not text; --json shows them)"));
            }
        }
        Some(_) | None => terminal::out(&serde_json::to_string_pretty(&result.value()?)?),
    }
    Ok(if is_error { Done::AnswerIsError } else { Done::Fine })
}

/// Waits until what every upstream has is known and in the catalog, or the
/// upstream has failed to come up. With [`Pace::AtOnce`], until every one is
/// up or down.
pub(crate) async fn settle(gateway: &Gateway, pace: Pace) {
    let hall = gateway.roster().default_hall();
    let progress = terminal::progress("starting upstreams");
    loop {
        let snapshot = hall.snapshot();
        // The catalog's first source is the gate itself.
        let shown = snapshot.catalog.sources().iter().skip(1);
        let waiting: Vec<String> = snapshot
            .links()
            .iter()
            .zip(shown)
            .map(|(link, shown)| (link.status(), shown))
            .filter(|(status, shown)| is_unsettled(status, shown, pace))
            .map(|(status, _)| status.label)
            .collect();
        if waiting.is_empty() {
            break;
        }
        progress.set_message(format!("starting {}", waiting.join(", ")));
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    progress.finish_and_clear();
}

/// Whether an upstream named like this cannot be reached.
pub(crate) fn is_down(gateway: &Gateway, label: &str) -> bool {
    let snapshot = gateway.roster().default_hall().snapshot();
    let named = |link: &&Arc<Link>| catalog::name::same(link.label(), label);
    let link = snapshot.links().iter().find(named);
    link.is_some_and(|link| matches!(link.status().phase, Phase::Down { .. }))
}

fn is_unsettled(status: &Status, shown: &Source, pace: Pace) -> bool {
    let unknown = !status.seen && *status.listing == Listing::default();
    match &status.phase {
        // What is known beforehand is not started until it is asked.
        Phase::Asleep => unknown || pace == Pace::AtOnce && !status.seen,
        Phase::Starting => unknown || pace == Pace::AtOnce,
        Phase::Up => {
            !Arc::ptr_eq(&shown.listing, &status.listing) && shown.listing != status.listing
        }
        Phase::Down { failures, reason } => {
            *failures == 0 || shown.state != State::Unavailable { reason: reason.clone() }
        }
    }
}

pub(crate) fn context() -> Context {
    let client = Client {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ..Client::named("gatelet", mcp::revision::Revision::LATEST.as_str())
    };
    Context {
        client: Arc::new(client),
        caller: Arc::new(Identity::default()),
        ..Context::anonymous()
    }
}
