//! The meta-tools that the gateway and proxy surfaces share: browse, execute,
//! view and hydrate.
//!
//! Each meta-tool is a method that takes its unchecked arguments and returns a result, or
//! an error in the form of the specification.

pub(crate) mod definition;

mod arguments;
mod batch;
mod browse;
mod card_format;
mod execute;
mod history;
mod primitives;
mod request;
mod script;

use std::sync::Arc;

use catalog::directory::Entry;
use catalog::summary::{cut, echo};
use catalog::{Catalog, Directory, GuessBy, Slot};
use offload::StopFlag;
use tool::{Context, Json, Listing, Reply, Server, Tool};

use super::about;
use super::capabilities;
use super::instructions::{ListedDirectly, instructions};
use crate::choice::Surface;
use crate::dispatch::MAX_REPEATED_URI;
use crate::error::GatewayError;
use crate::record::EventKind;
use crate::search::SearchRequest;
use artifacts::envelope;
use artifacts::view::{Selector, Span, ViewError, view};
use artifacts::{ArtifactMeta, Owner};
use policy::call::TargetKind;
use policy::code::Code;
use policy::confirm;
use policy::live::LiveStages;
use policy::refusal::RefusalCode;
use policy::validate::ValidCall;
use policy::visibility::{CallerView, Item};
use request::{Answer, missing_argument, parse_arguments, refusal_error, string_argument};
use roster::{Snapshot, UpstreamPool};

pub(crate) use arguments::NamedUpstream;
pub(crate) use batch::ids as ids_of_calls;
pub use definition::names;
pub(crate) use definition::{MAX_MAP_TOKENS, tools};
pub(crate) use execute::ReplyPart;
pub use request::Config;
pub(crate) use request::{MAX_CARDS, Meta, MetaTools};

/// The most characters of a description in the reply of `tool_hydrate`.
const MAX_DESCRIPTION: usize = 8_000;

/// Renders a call as clients of surfaces with meta-tools write it.
pub(crate) fn call_text(_: &Catalog, call: &ValidCall) -> String {
    let id = &call.callee.id;
    match &call.kind {
        TargetKind::Tool(_) => format!("tool_execute(tool_id=\"{id}\", args=…"),
        TargetKind::Prompt { .. } => format!("prompt_get(prompt_id=\"{id}\", args=…"),
        TargetKind::Resource { uri, .. } => {
            let uri = Json::encode(uri);
            if uri.as_str().len() <= MAX_REPEATED_URI {
                format!("resource_read(uri={uri}")
            } else {
                String::new()
            }
        }
        TargetKind::Skill { .. }
        | TargetKind::Task { .. }
        | TargetKind::Help { .. }
        | TargetKind::Completion { .. }
        | TargetKind::Subscription { .. } => String::new(),
    }
}

/// Returns the snapshot to answer a request from, after waiting until the upstreams that
/// its arguments name are listed.
pub(crate) async fn listed_snapshot(
    policies: &LiveStages,
    pool: &UpstreamPool,
    arguments: Option<&Json>,
    context: &Context,
) -> Arc<Snapshot> {
    let mut snapshot = pool.snapshot();
    let several =
        batch::ids(arguments).iter().map(|id| NamedUpstream::by_id(id)).collect::<Vec<_>>();
    for named in several.into_iter().chain(arguments.and_then(arguments::named_upstream)) {
        snapshot = wait_for_listing(policies, pool, snapshot, &named, context).await;
    }
    snapshot
}

/// Waits until an upstream is listed, and returns the snapshot afterwards.
///
/// An upstream with a remembered listing is started only if that does not have the
/// wanted id. Callers do not wait for an upstream that they may not see.
pub(crate) async fn wait_for_listing(
    policies: &LiveStages,
    pool: &UpstreamPool,
    snapshot: Arc<Snapshot>,
    named: &NamedUpstream,
    context: &Context,
) -> Arc<Snapshot> {
    let visible = policies.visible_to(&context.caller);
    if !visible.shows_upstream(&snapshot.catalog, &named.upstream) {
        return snapshot;
    }
    if pool.any_first_listing() {
        Box::pin(pool.first_listing(&named.upstream)).await;
    }
    let snapshot = pool.snapshot();
    let Some(id) = &named.id else { return snapshot };
    let tools = &snapshot.directory().tools;
    let begins = |entry: &Entry| entry.id.starts_with(id.as_str());
    if tools.get(id).is_some() || tools.entries().iter().any(begins) {
        return snapshot;
    }
    Box::pin(pool.current_listing(&named.upstream)).await;
    pool.snapshot()
}

/// Makes the listing of a surface with meta-tools around its `tools`.
pub(crate) fn listing(
    surface: Surface,
    meta_tools: &MetaTools,
    snapshot: &Snapshot,
    tools: Vec<Tool>,
    visible: &CallerView<'_>,
) -> Listing {
    let capabilities = capabilities::of_meta_tools(
        &meta_tools.skills,
        &meta_tools.listed.config(),
        snapshot,
        visible,
    );
    let shows = |thing: &Item<'_>| visible.shows(thing);
    let server = Server {
        instructions: Some(instructions(
            surface,
            ListedDirectly::NotAll,
            &snapshot.catalog,
            visible,
        )),
        ..about::server(&meta_tools.about, snapshot, capabilities, &shows)
    };
    Listing { server, tools, findings: snapshot.report(), ..Listing::default() }
}

impl Meta<'_> {
    /// Answers a call of a meta-tool; `None` if there is none of that name.
    pub(crate) async fn answer(&self, name: &str, arguments: Option<&Json>) -> Option<Reply> {
        let answer = match name {
            "tool_browse" => {
                self.browse_and_report(name, browse::BrowsedKind::Tools, arguments).await
            }
            "resource_browse" => {
                self.browse_and_report(name, browse::BrowsedKind::Resources, arguments).await
            }
            "prompt_browse" => {
                self.browse_and_report(name, browse::BrowsedKind::Prompts, arguments).await
            }
            "tool_view" => self.view_and_report(name, arguments).await,
            "tool_hydrate" => self.hydrate_and_report(name, arguments).await,
            "tool_run" if !self.config().run_tool => return None,
            "tool_execute" | "tool_run" | "resource_read" | "prompt_get" => {
                return Some(self.reply_and_record(self.dispatch(name, arguments).await));
            }
            _ => return None,
        };
        Some(answer.unwrap_or_else(|error| error.to_reply()))
    }

    /// Answers a meta-tool that goes through the pipeline, which spends the quota.
    async fn dispatch(&self, name: &str, arguments: Option<&Json>) -> Answer {
        arguments::check(name, arguments)?;
        match name {
            "tool_execute" => self.execute(arguments).await,
            "tool_run" => self.run_script(arguments).await,
            "resource_read" => self.read_resource(arguments).await,
            _ => self.get_prompt(arguments).await,
        }
    }

    /// Checks the arguments of a meta-tool and spends its quota.
    async fn check_and_spend(
        &self,
        name: &str,
        arguments: Option<&Json>,
    ) -> Result<(), GatewayError> {
        arguments::check(name, arguments)?;
        let in_force = self.tools.pipeline.live.now();
        let spent = in_force.stages.quota.spend_meta(name, self.context).await;
        spent.map_err(|refusal| refusal_error(&refusal, ""))
    }

    /// Refunds the quota if the answer is a refusal, and returns the answer.
    async fn refund_if_refused<T>(
        &self,
        name: &str,
        answer: Result<T, GatewayError>,
    ) -> Result<T, GatewayError> {
        let refused =
            [Code::ArgsInvalid, Code::AuthRequired, Code::PolicyDenied, Code::PermissionDenied];
        if answer.as_ref().is_err_and(|error| refused.contains(&error.code)) {
            self.tools.pipeline.live.now().stages.quota.refund_meta(name, self.context).await;
        }
        answer
    }

    /// Turns the answer of a call into a reply. A call that was refused before the
    /// pipeline leaves a record here.
    pub(crate) fn reply_and_record(&self, answer: Answer) -> Reply {
        let error = match answer {
            Ok(reply) => return reply,
            Err(error) => error,
        };
        let (why, reply) = (RefusalCode::from_surface_code(error.code), error.to_reply());
        self.tools.pipeline.record_refusal(self.tools.origin, self.context, why, &reply);
        reply
    }

    async fn browse_and_report(
        &self,
        name: &str,
        kind: browse::BrowsedKind,
        arguments: Option<&Json>,
    ) -> Answer {
        let text = |key: &str| arguments.and_then(|arguments| arguments.member_as::<String>(key));
        let path = text("path").unwrap_or_default();
        let request = SearchRequest {
            path_depth: path.split('/').filter(|segment| !segment.is_empty()).count(),
            ..SearchRequest::by_words(name, &text("query").unwrap_or_default())
        };
        let check = arguments::check(name, arguments);
        let answer = async { self.browse(kind, arguments) };
        self.tools.search.run(request, check, self.snapshot, self.context, answer).await
    }

    async fn hydrate_and_report(&self, name: &str, arguments: Option<&Json>) -> Answer {
        let recorder = &self.tools.pipeline.recorder;
        let since = recorder.clock.elapsed();
        let answer = match self.check_and_spend(name, arguments).await {
            Ok(()) => self.refund_if_refused(name, self.hydrate(arguments)).await,
            Err(error) => Err(error),
        };
        let id = arguments.and_then(|arguments| arguments.member_as::<String>("tool_id"));
        let id = id.and_then(|id| Some(self.resolve(&id).ok()?.0.id.clone())).unwrap_or_default();
        let what = || EventKind::Hydrated { sent: sent_json(&answer.as_ref()) };
        recorder.event(self.context, &id, since, error_code(&answer), what);
        answer
    }

    async fn view_and_report(&self, name: &str, arguments: Option<&Json>) -> Answer {
        let recorder = &self.tools.pipeline.recorder;
        let since = recorder.clock.elapsed();
        let answer = match self.check_and_spend(name, arguments).await {
            Ok(()) => self.refund_if_refused(name, self.view(arguments).await).await,
            Err(error) => Err(error),
        };
        let selector = arguments.and_then(|arguments| arguments.member("selector"));
        let what = || EventKind::Viewed {
            handle: arguments
                .and_then(|arguments| arguments.member_as("handle"))
                .unwrap_or_default(),
            selector: selector
                .and_then(|arguments| arguments.member_as("type"))
                .unwrap_or_default(),
            sent: sent_json(&answer.as_ref()),
        };
        recorder.event(self.context, "", since, error_code(&answer), what);
        answer
    }

    pub(crate) fn directory(&self) -> &Directory {
        self.snapshot.directory()
    }

    pub(crate) fn sees(&self, slot: Slot) -> bool {
        self.visible.shows_function(&self.snapshot.catalog, slot)
    }

    fn guessed_by(&self) -> GuessBy {
        self.visible.guesses_by()
    }

    /// Returns whether nothing is hidden from this caller.
    pub(crate) fn sees_all(&self) -> bool {
        self.visible.shows_all()
    }

    /// Returns whether this caller sees an entry of the directory.
    pub(crate) fn shows(&self, entry: &Entry) -> bool {
        self.visible.shows_item(&self.snapshot.catalog, entry.item)
    }

    fn config(&self) -> Arc<Config> {
        self.tools.config.load_full()
    }

    /// Answers `tool_hydrate`: everything about a tool that its card leaves out.
    fn hydrate(&self, arguments: Option<&Json>) -> Answer {
        let arguments = parse_arguments(arguments)?;
        let id =
            string_argument(&arguments, "tool_id")?.ok_or_else(|| missing_argument("tool_id"))?;
        let (entry, slot, _) = self.resolve(&id)?;
        let tool = self.snapshot.catalog.tool(slot);
        let mut all = tool::Object::new();
        all.push("tool_id", Json::encode(&entry.id));
        if let Some(description) = &tool.description {
            all.push("description", Json::encode(&cut(description, MAX_DESCRIPTION)));
        }
        all.push("args_schema", tool.input_schema.clone());
        if let Some(schema) = &tool.output_schema {
            all.push("output_schema", schema.clone());
        }
        if let Some(annotations) = tool.raw.member("annotations") {
            all.push("annotations", annotations);
        }
        self.note(&entry.id);
        Ok(Reply::text(all.to_json().as_str()))
    }

    /// Answers `tool_view`: a part of an artifact, or the list of the caller's artifacts.
    async fn view(&self, arguments: Option<&Json>) -> Answer {
        let parsed = parse_arguments(arguments)?;
        let selector = arguments.and_then(|arguments| arguments.member("selector"));
        let Some(handle) = string_argument(&parsed, "handle")?.filter(|handle| !handle.is_empty())
        else {
            return self.list_artifacts(selector.as_ref()).await;
        };
        let failed = |message: String| GatewayError::new(Code::ViewFailed, message, &handle);
        let (artifact_handle, part) = envelope::split_handle(&handle);
        let gone = || {
            failed(format!("no artifact `{}`: it expired, or is another session's", echo(&handle)))
        };
        let token = confirm::take_token(&mut self.rest.clone());
        let found = self
            .tools
            .pipeline
            .viewable_artifact(artifact_handle, token.as_deref(), self.context)
            .await;
        let loaded = found.map_err(|refusal| refusal_error(&refusal, &handle))?.ok_or_else(gone)?;
        let selector = match &selector {
            Some(selector) => Selector::parse(selector),
            None => Ok(Selector::Head { start: 0, chars: 2_000 }),
        };
        let limits = self.config().view;
        let cut = move |stop: &StopFlag| {
            let part = envelope::part(&loaded.artifact, part)?;
            Some(selector.and_then(|it| view(&part.bytes, &part.media_type, &it, &limits, stop)))
        };
        let viewed = offload::evaluate(self.context.caller.caller_key(), cut).await;
        let viewed = viewed.unwrap_or(Some(Err(ViewError::Stopped)));
        let viewed = viewed.ok_or_else(gone)?;
        Ok(Reply::Result(viewed.map_err(|error| failed(error.to_string()))?.to_result()))
    }

    /// Lists the caller's artifacts, as many as go into an answer, or those that a
    /// selector selects.
    async fn list_artifacts(&self, selector: Option<&Json>) -> Answer {
        let kept = self.tools.pipeline.artifacts.list(&Owner::from_context(self.context)).await;
        if kept.is_empty() {
            return Ok(Reply::text("nothing is kept; results too long to send are"));
        }
        let line = |meta: &ArtifactMeta| {
            let ArtifactMeta { handle, upstream, tool, chars, .. } = meta;
            format!("{handle} {upstream}/{tool} {chars} chars")
        };
        let text = kept.iter().map(line).collect::<Vec<_>>().join("\n");
        if kept.len() <= MAX_CARDS && selector.is_none() {
            return Ok(Reply::text(&text));
        }
        let all = Selector::Lines(Span { start: 0, end: None });
        let (selector, limits) = (selector.map_or(Ok(all), Selector::parse), self.config().view);
        let cut =
            move |stop: &StopFlag| view(text.as_bytes(), "text/plain", &selector?, &limits, stop);
        let viewed = offload::evaluate(self.context.caller.caller_key(), cut).await;
        let viewed = viewed.unwrap_or(Err(ViewError::Stopped));
        let failed = |error: ViewError| GatewayError::new(Code::ViewFailed, error.to_string(), "");
        Ok(Reply::Result(viewed.map_err(failed)?.to_result()))
    }

    /// Remembers that the caller used an id, for stable browsing.
    pub(crate) fn note(&self, id: &str) {
        if self.config().cache_stable {
            self.history.with(
                self.tools.origin.surface,
                Owner::from_context(self.context),
                |seen| {
                    seen.note(self.snapshot.generation, id);
                },
            );
        }
    }
}

/// Returns what the client gets, for the event.
fn sent_json(answer: &Result<&Reply, &GatewayError>) -> Json {
    match answer {
        Ok(Reply::Result(json)) => json.clone(),
        Ok(Reply::Error(error)) => error.raw.clone(),
        Err(error) => error.to_json(),
    }
}

fn error_code<T>(answer: &Result<T, GatewayError>) -> Option<Code> {
    answer.as_ref().err().map(|error| error.code)
}
