//! The meta-tools that the gateway and proxy surfaces share: browse, execute,
//! view and hydrate.
//!
//! Each meta-tool is a method that takes its arguments as they came and always
//! has an answer: a result, or an error in the specification's shape.

pub(crate) mod definition;

mod arguments;
mod batch;
mod browse;
mod card_form;
mod execute;
mod history;
mod primitives;
mod request;
mod script;

use std::sync::Arc;

use catalog::directory::Entry;
use catalog::summary::{cut, echo};
use catalog::{Catalog, Directory, GuessBy, Slot};
use offload::Stop;
use tool::{Context, Json, Listing, Reply, Server, Tool};

use super::about;
use super::capabilities;
use super::instructions::instructions;
use crate::choice::Surface;
use crate::dispatch::{MAX_REPEATED_ARGUMENTS, repeated_arguments};
use crate::error::GatewayError;
use crate::record::EventKind;
use crate::search::Wanted;
use artifacts::envelope;
use artifacts::view::{Selector, Span, ViewError, view};
use artifacts::{ArtifactMeta, Owner};
use policy::call::What;
use policy::code::Code;
use policy::confirm;
use policy::live::LiveStages;
use policy::refusal::Refused;
use policy::validate::ValidCall;
use policy::visibility::{Thing, Visible};
use request::{Answer, members, missing, refused, text};
use roster::{Snapshot, UpstreamPool};

pub(crate) use arguments::Named;
pub(crate) use batch::ids as ids_of_calls;
pub use definition::names;
pub(crate) use definition::{MAP, tools};
pub(crate) use execute::Wanted as WantedPart;
pub use request::Config;
pub(crate) use request::{MAX_CARDS, Meta, MetaTools};

/// How much of a tool's description is told with its schema.
const DESCRIPTION: usize = 8_000;

/// A call as surfaces of meta-tools have it written.
pub(crate) fn call_text(_: &Catalog, call: &ValidCall) -> String {
    let (id, arguments) = (&call.callee.id, repeated_arguments(call));
    match &call.what {
        What::Tool(_) => format!("tool_execute(tool_id=\"{id}\", args={arguments}"),
        What::Prompt { .. } => format!("prompt_get(prompt_id=\"{id}\", args={arguments}"),
        What::Resource { uri, .. } => {
            let uri = Json::encode(uri);
            if uri.as_str().len() <= MAX_REPEATED_ARGUMENTS {
                format!("resource_read(uri={uri}")
            } else {
                String::new()
            }
        }
        What::Skill { .. }
        | What::Task { .. }
        | What::Help { .. }
        | What::Completion { .. }
        | What::Subscription { .. } => String::new(),
    }
}

/// The snapshot to answer a request from.
///
/// A named upstream that is being listed for the first time is waited for; one
/// with a remembered listing is started before something is reported missing.
/// Nobody waits for an upstream that they may not see.
pub(crate) async fn snapshot(
    policies: &LiveStages,
    pool: &UpstreamPool,
    arguments: Option<&Json>,
    context: &Context,
) -> Arc<Snapshot> {
    let mut snapshot = pool.snapshot();
    let several = batch::ids(arguments).iter().map(|id| Named::by_id(id)).collect::<Vec<_>>();
    for named in several.into_iter().chain(arguments.and_then(arguments::named)) {
        snapshot = wait_for_listing(policies, pool, snapshot, &named, context).await;
    }
    snapshot
}

/// The same for a request whose tool is known by its id.
pub(crate) async fn wait_for_listing(
    policies: &LiveStages,
    pool: &UpstreamPool,
    snapshot: Arc<Snapshot>,
    named: &Named,
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

/// What a surface of meta-tools lists beside its tools.
pub(crate) fn listing(
    surface: Surface,
    own: &MetaTools,
    snapshot: &Snapshot,
    tools: Vec<Tool>,
    visible: &Visible<'_>,
) -> Listing {
    let capabilities =
        capabilities::of_meta_tools(&own.skills, &own.listed.config(), snapshot, visible);
    let shows = |thing: &Thing<'_>| visible.shows(thing);
    let server = Server {
        instructions: Some(instructions(surface, &snapshot.catalog, visible)),
        ..about::server(&own.about, snapshot, capabilities, &shows)
    };
    Listing { server, tools, findings: snapshot.report(), ..Listing::default() }
}

impl Meta<'_> {
    /// Answers one meta-tool; `None` when there is none of that name.
    pub(crate) async fn answer(&self, name: &str, arguments: Option<&Json>) -> Option<Reply> {
        let answer = match name {
            "tool_browse" => self.browsed(name, browse::Kind::Tools, arguments).await,
            "resource_browse" => self.browsed(name, browse::Kind::Resources, arguments).await,
            "prompt_browse" => self.browsed(name, browse::Kind::Prompts, arguments).await,
            "tool_view" => self.viewed(name, arguments).await,
            "tool_hydrate" => self.hydrated(name, arguments).await,
            "tool_run" if !self.config().run_tool => return None,
            "tool_execute" | "tool_run" | "resource_read" | "prompt_get" => {
                return Some(self.settled(self.carried(name, arguments).await));
            }
            _ => return None,
        };
        Some(answer.unwrap_or_else(|error| error.to_reply()))
    }

    /// What goes through the pipeline, which takes what it costs.
    async fn carried(&self, name: &str, arguments: Option<&Json>) -> Answer {
        arguments::check(name, arguments)?;
        match name {
            "tool_execute" => self.execute(arguments).await,
            "tool_run" => self.run_script(arguments).await,
            "resource_read" => self.read(arguments).await,
            _ => self.prompt(arguments).await,
        }
    }

    /// Takes what using a meta-tool costs, if it is used as it can be.
    async fn enter(&self, name: &str, arguments: Option<&Json>) -> Result<(), GatewayError> {
        arguments::check(name, arguments)?;
        let in_force = self.tools.pipeline.live.now();
        let spent = in_force.stages.quota.spend_meta(name, self.context).await;
        spent.map_err(|refusal| refused(&refusal, ""))
    }

    /// Gives it back when the use was refused all the same.
    async fn leave<T>(
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

    /// The answer of a call, which leaves a record even where it never got as
    /// far as the pipeline.
    pub(crate) fn settled(&self, answer: Answer) -> Reply {
        let error = match answer {
            Ok(reply) => return reply,
            Err(error) => error,
        };
        let (why, reply) = (Refused::before(error.code), error.to_reply());
        self.tools.pipeline.refused(self.tools.origin, self.context, why, &reply);
        reply
    }

    async fn browsed(&self, name: &str, kind: browse::Kind, arguments: Option<&Json>) -> Answer {
        let given = |key: &str| arguments.and_then(|given| given.member_as::<String>(key));
        let path = given("path").unwrap_or_default();
        let wanted = Wanted {
            path_depth: path.split('/').filter(|segment| !segment.is_empty()).count(),
            ..Wanted::by_words(name, &given("query").unwrap_or_default())
        };
        let check = arguments::check(name, arguments);
        let answer = async { self.browse(kind, arguments) };
        self.tools.search.run(wanted, check, self.snapshot, self.context, answer).await
    }

    async fn hydrated(&self, name: &str, arguments: Option<&Json>) -> Answer {
        let recorder = &self.tools.pipeline.recorder;
        let since = recorder.clock.elapsed();
        let answer = match self.enter(name, arguments).await {
            Ok(()) => self.leave(name, self.hydrate(arguments)).await,
            Err(error) => Err(error),
        };
        let id = arguments.and_then(|given| given.member_as::<String>("tool_id"));
        let id = id.and_then(|id| Some(self.resolve(&id).ok()?.0.id.clone())).unwrap_or_default();
        let what = || EventKind::Hydrated { sent: sent(&answer.as_ref()) };
        recorder.event(self.context, &id, since, code(&answer), what);
        answer
    }

    async fn viewed(&self, name: &str, arguments: Option<&Json>) -> Answer {
        let recorder = &self.tools.pipeline.recorder;
        let since = recorder.clock.elapsed();
        let answer = match self.enter(name, arguments).await {
            Ok(()) => self.leave(name, self.view(arguments).await).await,
            Err(error) => Err(error),
        };
        let selector = arguments.and_then(|given| given.member("selector"));
        let what = || EventKind::Viewed {
            handle: arguments.and_then(|given| given.member_as("handle")).unwrap_or_default(),
            selector: selector.and_then(|given| given.member_as("type")).unwrap_or_default(),
            sent: sent(&answer.as_ref()),
        };
        recorder.event(self.context, "", since, code(&answer), what);
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

    /// Whether nothing is hidden from this caller.
    pub(crate) fn sees_all(&self) -> bool {
        self.visible.shows_all()
    }

    /// Whether an entry exists as far as this caller is concerned.
    pub(crate) fn shows(&self, entry: &Entry) -> bool {
        self.visible.shows_item(&self.snapshot.catalog, entry.item)
    }

    fn config(&self) -> Arc<Config> {
        self.tools.config.load_full()
    }

    /// Everything about one tool that its card leaves out.
    fn hydrate(&self, arguments: Option<&Json>) -> Answer {
        let arguments = members(arguments)?;
        let id = text(&arguments, "tool_id")?.ok_or_else(|| missing("tool_id"))?;
        let (entry, slot, _) = self.resolve(&id)?;
        let tool = self.snapshot.catalog.tool(slot);
        let mut all = tool::Object::new();
        all.push("tool_id", Json::encode(&entry.id));
        if let Some(description) = &tool.description {
            all.push("description", Json::encode(&cut(description, DESCRIPTION)));
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

    /// A piece of something kept, or the list of everything kept.
    async fn view(&self, arguments: Option<&Json>) -> Answer {
        let given = members(arguments)?;
        let selector = arguments.and_then(|arguments| arguments.member("selector"));
        let Some(handle) = text(&given, "handle")?.filter(|handle| !handle.is_empty()) else {
            return self.listed(selector.as_ref()).await;
        };
        let failed = |message: String| GatewayError::new(Code::ViewFailed, message, &handle);
        let (own, at) = envelope::split_handle(&handle);
        let gone = || {
            failed(format!("no artifact `{}`: it expired, or is another session's", echo(&handle)))
        };
        let token = confirm::take(&mut self.rest.clone());
        let found = self.tools.pipeline.viewable(own, token.as_deref(), self.context).await;
        let artifact = found.map_err(|refusal| refused(&refusal, &handle))?.ok_or_else(gone)?;
        let selector = match &selector {
            Some(selector) => Selector::parse(selector),
            None => Ok(Selector::Head { start: 0, chars: 2_000 }),
        };
        let limits = self.config().view;
        let cut = move |stop: &Stop| {
            let part = envelope::part(&artifact, at)?;
            Some(selector.and_then(|it| view(&part.bytes, &part.media_type, &it, &limits, stop)))
        };
        let viewed = offload::evaluate(self.context.caller.caller_key(), cut).await;
        let viewed = viewed.unwrap_or(Some(Err(ViewError::Stopped)));
        let viewed = viewed.ok_or_else(gone)?;
        Ok(Reply::Result(viewed.map_err(|error| failed(error.to_string()))?.to_result()))
    }

    /// What is kept for the caller, as many as go into an answer; a selector
    /// picks others.
    async fn listed(&self, selector: Option<&Json>) -> Answer {
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
        let cut = move |stop: &Stop| view(text.as_bytes(), "text/plain", &selector?, &limits, stop);
        let viewed = offload::evaluate(self.context.caller.caller_key(), cut).await;
        let viewed = viewed.unwrap_or(Err(ViewError::Stopped));
        let failed = |error: ViewError| GatewayError::new(Code::ViewFailed, error.to_string(), "");
        Ok(Reply::Result(viewed.map_err(failed)?.to_result()))
    }

    /// Remembers that an id was seen, for stable browsing.
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

/// What goes out, for the event.
fn sent(answer: &Result<&Reply, &GatewayError>) -> Json {
    match answer {
        Ok(Reply::Result(json)) => json.clone(),
        Ok(Reply::Error(error)) => error.raw.clone(),
        Err(error) => error.to_json(),
    }
}

fn code<T>(answer: &Result<T, GatewayError>) -> Option<Code> {
    answer.as_ref().err().map(|error| error.code)
}
