//! `resource_read` and `prompt_get`: resolve what is asked for and forward the request to
//! its upstream.

use std::sync::Arc;

use catalog::directory::{Entry, Section};
use catalog::index::Kind;
use catalog::nearest;
use catalog::selection::{self, Repairs};
use catalog::{GuessBy, ItemRef};
use serde_json::{Value, json};
use tool::{Json, Reply};

use super::request::{
    Answer, MAX_SUGGESTIONS, Meta, MetaTools, bad_argument, missing_argument, parse_arguments,
    refusal_error, string_argument,
};
use crate::dispatch::{CallError, ForwardedRequest, Outcome};
use crate::error::GatewayError;
use crate::surface::artifact_resources;
use artifacts::envelope::Envelope;
use policy::call::{CallMode, Target, TargetKind};
use policy::code::Code;
use roster::primitives::Viewer;

impl Meta<'_> {
    /// Answers `resource_read`: by id, or by URI for a template that is filled in.
    pub(super) async fn read_resource(&self, arguments: Option<&Json>) -> Answer {
        let given = parse_arguments(arguments)?;
        let id = string_argument(&given, "resource_id")?;
        // An id never contains `://`, so this is a URI.
        let misplaced = id.as_ref().filter(|id| id.contains("://"));
        if let Some(uri) = string_argument(&given, "uri")?.or_else(|| misplaced.cloned()) {
            let unknown = || GatewayError::new(Code::ResourceNotFound, "no upstream has it", &uri);
            let source = self.source_of(&uri).ok_or_else(unknown)?;
            return self.forward(self.snapshot.resource(source, &uri), None).await;
        }
        let id = id.ok_or_else(|| missing_argument("resource_id"))?;
        let entry = self.find(&self.directory().resources, &id, Kind::Resource)?;
        let sources = self.snapshot.catalog.sources();
        let target = match entry.item {
            ItemRef::Resource { source, at } => {
                let uri = &sources[source].listing.resources[at].uri;
                let what = TargetKind::Resource { source, uri: uri.clone() };
                self.snapshot.other_target(&entry.id, source, uri, what)
            }
            ItemRef::Template { source, at } => {
                let template = &sources[source].listing.templates[at].uri_template;
                let message = format!("this is a template: pass `uri`, filled in from {template}");
                return Err(GatewayError::new(Code::ArgsInvalid, message, &entry.id)
                    .detail("uri_template", template.as_str()));
            }
            ItemRef::Tool(_) | ItemRef::Prompt { .. } | ItemRef::Skill { .. } => {
                return Err(missing_argument("resource_id"));
            }
        };
        self.forward(target, None).await
    }

    /// Answers `prompt_get`.
    pub(super) async fn get_prompt(&self, arguments: Option<&Json>) -> Answer {
        let given = parse_arguments(arguments)?;
        let id =
            string_argument(&given, "prompt_id")?.ok_or_else(|| missing_argument("prompt_id"))?;
        let entry = self.find(&self.directory().prompts, &id, Kind::Prompt)?;
        let ItemRef::Prompt { source, at } = entry.item else {
            return Err(missing_argument("prompt_id"));
        };
        let prompt = &self.snapshot.catalog.sources()[source].listing.prompts[at];
        let args = arguments.and_then(|arguments| arguments.member("args"));
        let args = args.filter(|args| !args.is_null()).unwrap_or_else(Json::empty_object);
        if !args.is_object() {
            return Err(bad_argument("`args` must be an object"));
        }
        let what = TargetKind::Prompt { source, name: prompt.name.clone() };
        let target = self.snapshot.other_target(&entry.id, source, &prompt.name, what);
        self.forward(target, Some(args)).await
    }

    /// Forwards a request for a resource or a prompt to its upstream.
    async fn forward(&self, target: Target, arguments: Option<Json>) -> Answer {
        let (callee, what) = (Arc::clone(&target.callee), target.kind.clone());
        let forwarded = ForwardedRequest {
            target,
            arguments,
            other_params: self.rest.clone(),
            size_limit: None,
            mode: CallMode::Strict,
            render: None,
        };
        let to_reply = |outcome| {
            self.outcome_reply(&callee.id, &what, outcome).unwrap_or_else(|error| error.to_reply())
        };
        let MetaTools { pipeline, origin, .. } = self.tools;
        Ok(pipeline.forward(self.snapshot, forwarded, *origin, self.context, to_reply).await)
    }

    /// Turns the outcome of reading `what`, with this id, into a reply.
    fn outcome_reply(
        &self,
        id: &str,
        what: &TargetKind,
        outcome: Result<Outcome, CallError>,
    ) -> Answer {
        let scrubber = &self.tools.pipeline.scrubber;
        match outcome {
            Ok(Outcome::Reply(Reply::Error(refusal))) => {
                let error = GatewayError::from_rpc_error(&refusal, id, scrubber);
                // A read has no other argument than the resource, so invalid arguments
                // mean that it does not exist; newer servers have no other code.
                Err(match (what, error.code) {
                    (TargetKind::Resource { .. }, Code::ArgsInvalid) => {
                        GatewayError { code: Code::ResourceNotFound, ..error }
                    }
                    (
                        TargetKind::Resource { .. }
                        | TargetKind::Prompt { .. }
                        | TargetKind::Tool(_)
                        | TargetKind::Skill { .. }
                        | TargetKind::Task { .. }
                        | TargetKind::Help { .. }
                        | TargetKind::Completion { .. }
                        | TargetKind::Subscription { .. },
                        _,
                    ) => error,
                })
            }
            Ok(Outcome::Reply(reply)) => Ok(reply),
            Ok(Outcome::Kept { artifact, .. }) => {
                Ok(Envelope::new(&artifact, artifact_resources::provenance(&artifact, id), false)
                    .to_reply())
            }
            Ok(Outcome::Unkept { artifact, over, why, beginning }) => {
                let envelope =
                    Envelope::new(&artifact, artifact_resources::provenance(&artifact, id), false);
                Ok(envelope.unkept(&over, why, &beginning).to_reply())
            }
            // Nothing is planned or picked here.
            Ok(Outcome::Plan(_) | Outcome::Unpicked { .. }) => Ok(Reply::text("")),
            Err(CallError::BadArguments { problems }) => {
                let messages: Vec<String> = problems.iter().map(ToString::to_string).collect();
                let each: Vec<Value> = problems
                    .iter()
                    .map(|problem| json!({"at": problem.at, "message": problem.message}))
                    .collect();
                let error = GatewayError::new(Code::ArgsInvalid, messages.join("; "), id);
                Err(error.detail("problems", each))
            }
            Err(CallError::Refused(refusal)) => Err(refusal_error(&refusal, id)),
            Err(CallError::Failed { cause, .. }) => {
                Err(GatewayError::from_failure(&cause, id, scrubber))
            }
        }
    }

    /// Returns the source of a URI, if the caller sees it.
    fn source_of(&self, uri: &str) -> Option<usize> {
        let viewer = Viewer {
            shows: &|thing| self.visible.shows_directly(thing),
            hides_resources: self.visible.hides_resources(),
        };
        self.snapshot.primitives().visible_resource(&self.snapshot.catalog, uri, &viewer)
    }

    /// Resolves an id among what the caller sees.
    fn find<'s>(
        &self,
        section: &'s Section,
        id: &str,
        kind: Kind,
    ) -> Result<&'s Entry, GatewayError> {
        let exact = section.get(id).filter(|at| self.shows(&section.entries()[*at]));
        let at = exact.or_else(|| {
            let seen = section.entries().iter().filter(|entry| self.shows(entry));
            let ids: Vec<&str> = seen.map(|entry| entry.id.as_str()).collect();
            let (found, _) = selection::resolve(id.trim(), &ids, Repairs::Allowed).ok()?;
            section.get(found)
        });
        at.map(|at| &section.entries()[at]).ok_or_else(|| self.unknown_id(section, kind, id))
    }

    /// Makes the error for an unknown id, with similar ids and search results among what
    /// the caller sees.
    fn unknown_id(&self, section: &Section, kind: Kind, id: &str) -> GatewayError {
        let code = match kind {
            Kind::Prompt => Code::PromptNotFound,
            Kind::Resource | Kind::Tool | Kind::Skill => Code::ResourceNotFound,
        };
        let error = GatewayError::new(code, "nothing has this id; browse for it", id);
        let seen = section.entries().iter().filter(|entry| self.shows(entry));
        let rated = nearest::rank_by_similarity(id, seen.map(|entry| entry.id.as_str()));
        let close = rated.into_iter().filter(|(score, _)| nearest::TYPO_SIMILARITY <= *score);
        let mut near: Vec<&str> = close.take(MAX_SUGGESTIONS).map(|(_, id)| id).collect();
        let entry = |place| self.directory().position(place).map(|at| &section.entries()[at]);
        let keep = |place| entry(place).is_some_and(|entry| self.shows(entry));
        if self.guessed_by() == GuessBy::SpellingAndMeaning && near.is_empty() {
            let meant = self.snapshot.catalog.nearest_items(kind, id, MAX_SUGGESTIONS, &keep);
            near.extend(meant.into_iter().filter_map(|place| entry(place).map(|e| e.id.as_str())));
        }
        if near.is_empty() { error } else { error.detail("candidates", near) }
    }
}
