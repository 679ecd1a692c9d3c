//! The surface `direct`: every upstream tool with its whole definition, under a name that
//! every host accepts.
//!
//! Definitions, arguments and answers pass unchanged; only the name is gatelet's.
//! The name is made of the upstream's label and the tool's own name, so it does
//! not depend on other upstreams.

use std::sync::Arc;

use catalog::Slot;
use catalog::summary::echo;
use tool::{Call, Context, Failure, Json, Listing, Reply, RpcError, Tool};

use super::by_name::{NameResolver, ToolNames};
use super::cash::Cash;
use super::instructions::{ListedDirectly, instructions};
use super::provider::ToolSurface;
use super::tasks::Tasks;
use super::upstream_instructions;
use crate::choice::Surface;
use crate::dispatch::{CallError, Dispatcher, Origin, Outcome, no_call_text};
use policy::call::{CallMode, Request};
use policy::confirm::move_to_meta;
use policy::visibility::CallerView;
use roster::{Snapshot, UpstreamPool};

/// The origin of this surface's calls.
pub(crate) const ORIGIN: Origin = Origin { surface: Surface::Direct, call_text: no_call_text };

/// The surface `direct`, for clients with one set of capabilities.
pub struct Direct {
    pub(crate) pool: Arc<UpstreamPool>,
    pub(crate) pipeline: Arc<Dispatcher>,
    pub(crate) tasks: Arc<Tasks>,
    /// Lists everything but the tools.
    pub(crate) cash: Cash,
}

impl ToolSurface for Direct {
    fn listing(&self, snapshot: &Snapshot, visible: &CallerView<'_>) -> Listing {
        let seen = |(slot, _): &&(Slot, Tool)| visible.shows_function(&snapshot.catalog, *slot);
        let tools = ToolNames::of(snapshot).tools().iter().filter(seen);
        let member = |slot, tool| self.cash.listed.with_group(snapshot, Some(slot), tool);
        let tools = tools.map(|(slot, tool)| member(*slot, tool)).collect();
        let mut listing = Listing { tools, ..self.cash.listing(snapshot, visible) };
        let own = instructions(Surface::Direct, ListedDirectly::All, &snapshot.catalog, visible);
        // Hosts cut long instructions, so those of the upstreams come last.
        let theirs = upstream_instructions::joined(snapshot, visible);
        let all = [Some(own), theirs].into_iter().flatten().collect::<Vec<_>>().join("\n\n");
        listing.server.instructions = Some(all);
        listing.findings.extend(ToolNames::of(snapshot).findings.iter().cloned());
        listing
    }

    async fn call(&self, call: Call, context: &Context) -> Result<Reply, Failure> {
        let call = move_to_meta(call);
        let by_name = NameResolver { pool: &self.pool, live: &self.pipeline.live };
        let (snapshot, found) = by_name.resolve(&call.name, context).await;
        let Some(slot) = found else {
            return Ok(Reply::Error(RpcError::new(
                -32602,
                format!("no tool `{}`", echo(&call.name)),
            )));
        };
        let request = Request {
            arguments: call.arguments,
            rest: call.other_params,
            mode: CallMode::PassThrough,
            ..Request::new(snapshot.target(slot), Json::empty_object())
        };
        let mut failure = None;
        let to_reply = |outcome| match outcome {
            Ok(Outcome::Reply(reply)) => {
                self.tasks.remember_call(&snapshot, slot, context, &reply);
                reply
            }
            // Nothing is stored or planned in this mode.
            Ok(
                Outcome::Kept { artifact, .. }
                | Outcome::Unkept { artifact, .. }
                | Outcome::Unpicked { artifact, .. },
            ) => Reply::Result(artifact.result.clone()),
            Ok(Outcome::Plan(_)) => Reply::Result(Json::empty_object()),
            Err(CallError::Failed { cause, .. }) => {
                let reply = Reply::error_text(&cause.to_string());
                failure = Some(cause);
                reply
            }
            Err(error @ (CallError::BadArguments { .. } | CallError::Refused(_))) => {
                Reply::error_text(&error.to_string())
            }
        };
        let reply = self.pipeline.dispatch(&snapshot, request, ORIGIN, context, to_reply).await;
        // A client that talks to the upstream itself would see the failure too.
        failure.map_or(Ok(reply), Err)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use async_trait::async_trait;
    use serde_json::json;
    use testkit::{Scripted, listing, tool};
    use tool::{Ask, Client, Provider};

    use super::*;
    use crate::fixture::{open, settle};
    use roster::{Connector, Start, Upstream};

    /// An upstream that takes a while to start.
    struct Slow(Arc<Scripted>);

    #[async_trait]
    impl Connector for Slow {
        async fn connect(&self, _: &Client) -> Result<Arc<dyn Provider>, Failure> {
            tokio::time::sleep(Duration::from_secs(2)).await;
            Ok(Arc::clone(&self.0) as _)
        }
    }

    fn slow(fingerprint: &str) -> Upstream {
        let tools = listing(vec![tool("x", "It.", &json!({}))]);
        let answer = fingerprint.to_owned();
        let provider = Scripted::new(tools, move |_| Ok(Reply::text(&answer)));
        Upstream {
            start: Start::OnDemand,
            fingerprint: fingerprint.to_owned(),
            ..Upstream::new("up", Arc::new(Slow(provider)))
        }
    }

    async fn call(surface: &Arc<dyn Provider>, name: &str) -> String {
        let ask = Ask::Call(Call::new(name, json!({}).into()));
        match surface.ask(ask, &Context::anonymous()).await {
            Ok(Reply::Error(error)) => error.message,
            Ok(reply) => reply.tool_result().unwrap().text(),
            Err(failure) => failure.to_string(),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn first_calls_wait_until_the_upstream_is_listed() {
        let opened = open(vec![slow("1")], |_| {}).await;
        let client = Arc::new(Client::named("test", ""));
        let surface =
            opened.gateway.surface(Surface::Direct).provider_for(&client, &Arc::default());
        let calls = (0..30).map(|_| call(&surface, "up_x"));
        let answers = futures::future::join_all(calls).await;
        assert!(answers.iter().all(|answer| answer == "1"), "{answers:?}");
        assert_eq!(call(&surface, "up_y").await, "no tool `up_y`");
        assert_eq!(call(&surface, "down_x").await, "no tool `down_x`");
    }

    #[tokio::test(start_paused = true)]
    async fn calls_are_answered_while_the_entry_of_their_upstream_changes() {
        let opened = open(vec![slow("1")], |_| {}).await;
        let client = Arc::new(Client::named("test", ""));
        let surface =
            opened.gateway.surface(Surface::Direct).provider_for(&client, &Arc::default());
        assert_eq!(call(&surface, "up_x").await, "1");
        let before = opened.gateway.roster().default_pool().snapshot();
        opened.gateway.roster().reload(vec![slow("2")]);
        let mut answers = vec![call(&surface, "up_x").await];
        for _ in 0..1000 {
            tokio::time::sleep(Duration::from_millis(5)).await;
            let answer = call(&surface, "up_x").await;
            if answers.last() != Some(&answer) {
                answers.push(answer);
            }
        }
        assert_eq!(answers, ["1", "2"]);
        // Who took a snapshot before is served by what lists the same.
        let ask = || Ask::Call(Call::new("x", json!({}).into()));
        let reply = before.upstream(1).unwrap().ask(ask(), &Context::anonymous()).await.unwrap();
        assert_eq!(reply.tool_result().unwrap().text(), "2");
        opened.gateway.roster().reload(Vec::new());
        settle().await;
        let failure =
            before.upstream(1).unwrap().ask(ask(), &Context::anonymous()).await.unwrap_err();
        assert!(failure.to_string().ends_with("changed just now"), "{failure}");
    }

    #[tokio::test(start_paused = true)]
    async fn what_hosts_would_cut_is_a_finding_on_the_surfaces_that_list_it() {
        let long = "n".repeat(80);
        let tools = vec![
            tool(&long, "Short.", &json!({})),
            tool("wordy", &"word ".repeat(500), &json!({})),
            tool("fine", &"x".repeat(2_048), &json!({})),
        ];
        let provider = Scripted::new(listing(tools), |_| Ok(Reply::text("x")));
        let upstream = Upstream::new("up", crate::fixture::Scripts::of(provider));
        let opened = open(vec![upstream], |_| {}).await;
        let client = Arc::new(Client::named("test", ""));
        let codes = |surface: Surface| {
            let surface = opened.gateway.surface(surface).provider_for(&client, &Arc::default());
            let listing = surface.listing();
            let own = ["name-shortened", "description-cut"];
            let found = listing.findings.iter().filter(|found| own.contains(&found.code.as_str()));
            found.map(|found| format!("{} {}", found.code, &found.subject[..6])).collect::<Vec<_>>()
        };
        let (name, words) = ("name-shortened up/nnn", "description-cut up/wor");
        assert_eq!(codes(Surface::Direct), [name, words]);
        assert_eq!(codes(Surface::Proxy), [name]);
        assert!(codes(Surface::Cash).is_empty() && codes(Surface::Gateway).is_empty());
    }
}
