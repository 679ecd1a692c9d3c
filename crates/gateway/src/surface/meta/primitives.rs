//! `resource_read` and `prompt_get`: found here, carried by dispatch like every
//! call.

use std::sync::Arc;

use catalog::directory::{Entry, Section};
use catalog::index::Kind;
use catalog::nearest;
use catalog::selection::{self, Repairs};
use catalog::{GuessBy, ItemRef};
use serde_json::{Value, json};
use tool::{Json, Reply};

use super::request::{Answer, Meta, MetaTools, NEAR, bad, members, missing, refused, text};
use crate::dispatch::{CallError, Outcome};
use crate::error::GatewayError;
use crate::surface::artifact_resources;
use artifacts::envelope::Envelope;
use policy::call::{Mode, Request, Target, What};
use policy::code::Code;
use roster::primitives::Viewer;

impl Meta<'_> {
    /// By id, or by URI where a template leaves something to fill in.
    pub(super) async fn read(&self, arguments: Option<&Json>) -> Answer {
        let given = members(arguments)?;
        let id = text(&given, "resource_id")?;
        // No id has this in it.
        let misplaced = id.as_ref().filter(|id| id.contains("://"));
        if let Some(uri) = text(&given, "uri")?.or_else(|| misplaced.cloned()) {
            let unknown = || GatewayError::new(Code::ResourceNotFound, "no upstream has it", &uri);
            let source = self.source_of(&uri).ok_or_else(unknown)?;
            return self.asked(self.snapshot.resource(source, &uri), None).await;
        }
        let id = id.ok_or_else(|| missing("resource_id"))?;
        let entry = self.find(&self.directory().resources, &id, Kind::Resource)?;
        let sources = self.snapshot.catalog.sources();
        let target = match entry.item {
            ItemRef::Resource { source, at } => {
                let uri = &sources[source].listing.resources[at].uri;
                let what = What::Resource { source, uri: uri.clone() };
                self.snapshot.other_target(&entry.id, source, uri, what)
            }
            ItemRef::Template { source, at } => {
                let template = &sources[source].listing.templates[at].uri_template;
                let message = format!("this is a template: pass `uri`, filled in from {template}");
                return Err(GatewayError::new(Code::ArgsInvalid, message, &entry.id)
                    .detail("uri_template", template.as_str()));
            }
            ItemRef::Tool(_) | ItemRef::Prompt { .. } | ItemRef::Skill { .. } => {
                return Err(missing("resource_id"));
            }
        };
        self.asked(target, None).await
    }

    pub(super) async fn prompt(&self, arguments: Option<&Json>) -> Answer {
        let given = members(arguments)?;
        let id = text(&given, "prompt_id")?.ok_or_else(|| missing("prompt_id"))?;
        let entry = self.find(&self.directory().prompts, &id, Kind::Prompt)?;
        let ItemRef::Prompt { source, at } = entry.item else { return Err(missing("prompt_id")) };
        let prompt = &self.snapshot.catalog.sources()[source].listing.prompts[at];
        let args = arguments.and_then(|arguments| arguments.member("args"));
        let args = args.filter(|args| !args.is_null()).unwrap_or_else(Json::empty_object);
        if !args.is_object() {
            return Err(bad("`args` must be an object"));
        }
        let what = What::Prompt { source, name: prompt.name.clone() };
        let target = self.snapshot.other_target(&entry.id, source, &prompt.name, what);
        self.asked(target, Some(args)).await
    }

    async fn asked(&self, target: Target, arguments: Option<Json>) -> Answer {
        let (callee, what) = (Arc::clone(&target.callee), target.what.clone());
        let (mode, rest) = (Mode::Strict, self.rest.clone());
        let request = Request {
            target,
            arguments,
            rest,
            wanted: None,
            share: None,
            pick: None,
            script: None,
            mode,
        };
        let say = |outcome| {
            self.told(&callee.id, &what, outcome).unwrap_or_else(|error| error.to_reply())
        };
        let MetaTools { pipeline, origin, .. } = self.tools;
        Ok(pipeline.dispatch(self.snapshot, request, *origin, self.context, say).await)
    }

    fn told(&self, id: &str, what: &What, outcome: Result<Outcome, CallError>) -> Answer {
        let scrubber = &self.tools.pipeline.scrubber;
        match outcome {
            Ok(Outcome::Reply(Reply::Error(refusal))) => {
                let error = GatewayError::of_refusal(&refusal, id, scrubber);
                // All that a read says is which resource, so that is what is wrong
                // with it; newer servers have no other code for it.
                Err(match (what, error.code) {
                    (What::Resource { .. }, Code::ArgsInvalid) => {
                        GatewayError { code: Code::ResourceNotFound, ..error }
                    }
                    (
                        What::Resource { .. }
                        | What::Prompt { .. }
                        | What::Tool(_)
                        | What::Skill { .. }
                        | What::Task { .. }
                        | What::Help { .. }
                        | What::Completion { .. }
                        | What::Subscription { .. },
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
            // Nothing here is planned.
            // Nothing is planned or picked here.
            Ok(Outcome::Plan(_) | Outcome::Unpicked { .. }) => Ok(Reply::text("")),
            Err(CallError::BadArguments { problems }) => {
                let said: Vec<String> = problems.iter().map(ToString::to_string).collect();
                let each: Vec<Value> = problems
                    .iter()
                    .map(|problem| json!({"at": problem.at, "message": problem.message}))
                    .collect();
                let error = GatewayError::new(Code::ArgsInvalid, said.join("; "), id);
                Err(error.detail("problems", each))
            }
            Err(CallError::Refused(refusal)) => Err(refused(&refusal, id)),
            Err(CallError::Failed { cause, .. }) => {
                Err(GatewayError::of_failure(&cause, id, scrubber))
            }
        }
    }

    /// The source of a URI, for a caller who sees it.
    fn source_of(&self, uri: &str) -> Option<usize> {
        let viewer = Viewer {
            shows: &|thing| self.visible.shows_directly(thing),
            hides_resources: self.visible.hides_resources(),
        };
        self.snapshot.primitives().visible_resource(&self.snapshot.catalog, uri, &viewer)
    }

    /// What an id means, among what the caller sees.
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
        at.map(|at| &section.entries()[at]).ok_or_else(|| self.nothing_has(section, kind, id))
    }

    /// An id that leads nowhere, with what may be meant among what the caller
    /// sees: what is spelt almost like it, or what the search finds for it.
    fn nothing_has(&self, section: &Section, kind: Kind, id: &str) -> GatewayError {
        let code = match kind {
            Kind::Prompt => Code::PromptNotFound,
            Kind::Resource | Kind::Tool | Kind::Skill => Code::ResourceNotFound,
        };
        let error = GatewayError::new(code, "nothing has this id; browse for it", id);
        let seen = section.entries().iter().filter(|entry| self.shows(entry));
        let rated = nearest::rated(id, seen.map(|entry| entry.id.as_str()));
        let close = rated.into_iter().filter(|(score, _)| nearest::CLOSE <= *score);
        let mut near: Vec<&str> = close.take(NEAR).map(|(_, id)| id).collect();
        let entry = |place| self.directory().at(place).map(|at| &section.entries()[at]);
        let keep = |place| entry(place).is_some_and(|entry| self.shows(entry));
        if self.guessed_by() == GuessBy::SpellingAndMeaning && near.is_empty() {
            let meant = self.snapshot.catalog.nearest_items(kind, id, NEAR, &keep);
            near.extend(meant.into_iter().filter_map(|place| entry(place).map(|e| e.id.as_str())));
        }
        if near.is_empty() { error } else { error.detail("candidates", near) }
    }
}
