//! Reads a skill from its upstream when a caller asks for it.

use tool::text::without_invisible;
use tool::{Json, Object, Reply};

use super::arguments::LenientArguments;
use super::request::{CashRequest, ORIGIN};
use super::skill::cannot;
use crate::dispatch::{CallError, ForwardedRequest, RenderReply};
use crate::surface::oversize;
use policy::call::{CallMode, TargetKind};
use skills::upstream::{self, Route, cash};
use skills::{Content, Library, Skill};

/// The argument with the size limit.
const SIZE_LIMIT: &str = "sizelimit";

/// Removes invisible characters from the text of a skill.
fn without_hidden_characters(skill: Skill) -> Skill {
    let content = match skill.content {
        Content::Text { body, form } => {
            let body = without_invisible(&body).into_owned();
            Content::Text { body, form }
        }
        content @ Content::Upstream { .. } => content,
    };
    Skill { content, ..skill }
}

impl CashRequest<'_> {
    /// Reads a skill from its upstream.
    ///
    /// The request goes through the pipeline like every resource and prompt, so that the
    /// same rules and the same size limit hold.
    pub(super) async fn read_from_upstream(
        &self,
        skill: &Skill,
        asked: &LenientArguments,
        library: &Library,
    ) -> Reply {
        let render = |reply: &Reply| self.rendered(skill, reply, asked, library);
        let forwarded = match self.skill_request(skill, asked, &render) {
            Ok(forwarded) => forwarded,
            Err(why) => return cannot(skill, &why),
        };
        let gate = self.cash.pipeline.gate.load();
        let again = Some("the same `skill`");
        let to_reply = |outcome| match oversize::outcome_reply(&gate, "The skill", again, outcome) {
            Ok(reply) => reply,
            Err(CallError::BadArguments { problems }) => {
                let each: Vec<String> = problems.iter().map(ToString::to_string).collect();
                cannot(skill, &each.join("; "))
            }
            Err(CallError::Refused(refusal)) => cannot(skill, &refusal.message),
            Err(CallError::Failed { cause, .. }) => {
                cannot(skill, &self.scrubbed(&cause.to_string()))
            }
        };
        let (snapshot, context) = (self.snapshot, self.context);
        self.cash.pipeline.forward(snapshot, forwarded, ORIGIN, context, to_reply).await
    }

    /// Returns the request for a skill's text, or why there is none.
    fn skill_request<'r>(
        &self,
        skill: &Skill,
        asked: &LenientArguments,
        render: RenderReply<'r>,
    ) -> Result<ForwardedRequest<'r>, String> {
        let Content::Upstream { label, route } = &skill.content else {
            return Err("it is here".to_owned());
        };
        let sources = self.snapshot.catalog.sources();
        let source = sources.iter().position(|source| source.label == *label);
        let source = source.ok_or_else(|| format!("`{label}` is gone"))?;
        let mut other_params = Object::new();
        let (target, arguments) = match route {
            Route::Prompt { name, arguments } => {
                let values: Vec<(&str, &Json)> = asked.iter().collect();
                let arguments = upstream::arguments(arguments, &values)?;
                (self.snapshot.prompt(source, name), Some(arguments))
            }
            Route::Resource { uri, .. } => (self.snapshot.resource(source, uri), None),
            Route::Cash { namespace, name } => {
                let is_ours = |key: &str| catalog::name::canonical(key) == SIZE_LIMIT;
                let values: Vec<(&str, &Json)> =
                    asked.spelled().filter(|(key, _)| !is_ours(key)).collect();
                other_params = cash::arguments(namespace, name, &values);
                let (namespace, name) = (skill.namespace.clone(), skill.name.clone());
                let what = TargetKind::Skill { source, namespace, name };
                (self.snapshot.other_target(&skill.path(), source, &skill.name, what), None)
            }
        };
        Ok(ForwardedRequest {
            target,
            arguments,
            other_params,
            size_limit: asked.number(SIZE_LIMIT).filter(|size| 0 < *size),
            mode: CallMode::Strict,
            render: Some(render),
        })
    }

    /// Returns the text of a skill from what its upstream answered.
    fn rendered(
        &self,
        skill: &Skill,
        reply: &Reply,
        asked: &LenientArguments,
        library: &Library,
    ) -> Reply {
        let Content::Upstream { label, route } = &skill.content else { return reply.clone() };
        let result = match reply {
            Reply::Result(result) => result,
            Reply::Error(error) => return cannot(skill, &self.scrubbed(&error.message)),
        };
        let whole = match route {
            Route::Prompt { .. } => upstream::from_prompt_result(skill, result),
            Route::Resource { digest, .. } => {
                upstream::from_read_result(skill, digest.as_deref(), result)
            }
            Route::Cash { .. } => match reply.tool_result() {
                // The error of the other server, in its own words.
                Some(result) if result.is_error => {
                    return Reply::error_text(&without_invisible(&cash::result_text(&result)));
                }
                Some(result) => {
                    let has_namespace = |path: &str| self.has_namespace(path, library);
                    cash::from_result(skill, label, &result, &has_namespace)
                }
                None => Err("no text came".to_owned()),
            },
        };
        match whole.map(without_hidden_characters) {
            Ok(whole) => self.filled(&whole, asked, library),
            Err(why) => cannot(skill, &why),
        }
    }

    /// Returns whether a namespace of functions or of skills exists for this caller.
    fn has_namespace(&self, path: &str, library: &Library) -> bool {
        let namespace = self.snapshot.catalog.namespace(path);
        namespace.is_ok_and(|namespace| self.shows(namespace)) || library.has(path, self)
    }

    pub(super) fn scrubbed(&self, text: &str) -> String {
        self.cash.pipeline.scrubber.scrub_reason(text)
    }
}
