//! Skills at upstreams, read when somebody asks for one.

use tool::text::without_invisible;
use tool::{Json, Object, Reply};

use super::arguments::LenientArguments;
use super::request::{CashRequest, ORIGIN};
use super::skill::cannot;
use crate::dispatch::{CallError, Outcome};
use crate::surface::oversize;
use policy::call::{Mode, Request, What};
use skills::upstream::{self, Route, cash};
use skills::{Content, Library, Skill};

/// The value that says how long a text may be.
const SIZE: &str = "sizelimit";

/// A skill without characters in its text that nobody sees.
fn readable(skill: Skill) -> Skill {
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
    /// What a reader gets for a skill that stands at an upstream.
    ///
    /// It goes the way of every read and every prompt, so that what rules deny
    /// there is denied here, and what is too long is kept.
    pub(super) async fn fetched(
        &self,
        skill: &Skill,
        asked: &LenientArguments,
        library: &Library,
    ) -> Reply {
        let request = match self.request(skill, asked) {
            Ok(request) => request,
            Err(why) => return cannot(skill, &why),
        };
        let render = |reply: &Reply| self.read(skill, reply, asked, library);
        let gate = self.cash.pipeline.gate.load();
        let again = "the same `skill`";
        let say = |outcome| match outcome {
            Ok(Outcome::Reply(reply)) => reply,
            Ok(Outcome::Kept { artifact, over }) => {
                oversize::kept(&gate, "The skill", Some(again), &artifact, &over)
            }
            Ok(Outcome::Unkept { over, why, beginning, .. }) => {
                oversize::lost(&gate, "The skill", &over, why, &beginning)
            }
            // Nothing is planned or picked here.
            Ok(Outcome::Plan(_) | Outcome::Unpicked { .. }) => Reply::text(""),
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
        self.cash
            .pipeline
            .dispatch_rendered(snapshot, request, ORIGIN, context, Some(&render), say)
            .await
    }

    /// What to ask the upstream of a skill for its text.
    fn request(&self, skill: &Skill, asked: &LenientArguments) -> Result<Request, String> {
        let Content::Upstream { label, route } = &skill.content else {
            return Err("it is here".to_owned());
        };
        let sources = self.snapshot.catalog.sources();
        let source = sources.iter().position(|source| source.label == *label);
        let source = source.ok_or_else(|| format!("`{label}` is gone"))?;
        let mut rest = Object::new();
        let (target, arguments) = match route {
            Route::Prompt { name, arguments } => {
                let values: Vec<(&str, &Json)> = asked.iter().collect();
                let arguments = upstream::arguments(arguments, &values)?;
                (self.snapshot.prompt(source, name), Some(arguments))
            }
            Route::Resource { uri, .. } => (self.snapshot.resource(source, uri), None),
            Route::Cash { namespace, name } => {
                let is_ours = |key: &str| catalog::name::canonical(key) == SIZE;
                let values: Vec<(&str, &Json)> =
                    asked.spelled().filter(|(key, _)| !is_ours(key)).collect();
                rest = cash::arguments(namespace, name, &values);
                let (namespace, name) = (skill.namespace.clone(), skill.name.clone());
                let what = What::Skill { source, namespace, name };
                (self.snapshot.other_target(&skill.path(), source, &skill.name, what), None)
            }
        };
        let wanted = asked.number(SIZE).filter(|size| 0 < *size);
        Ok(Request {
            target,
            arguments,
            rest,
            wanted,
            share: None,
            pick: None,
            script: None,
            mode: Mode::Strict,
        })
    }

    /// The text of a skill in what its upstream answered.
    fn read(
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
                // What the other side says about it.
                Some(result) if result.is_error => {
                    return Reply::error_text(&without_invisible(&cash::result_text(&result)));
                }
                Some(result) => {
                    let is_here = |path: &str| self.is_here(path, library);
                    cash::from_result(skill, label, &result, &is_here)
                }
                None => Err("no text came".to_owned()),
            },
        };
        match whole.map(readable) {
            Ok(whole) => self.filled(&whole, asked, library),
            Err(why) => cannot(skill, &why),
        }
    }

    /// Whether a namespace exists for this caller, of functions or of skills.
    fn is_here(&self, path: &str, library: &Library) -> bool {
        let namespace = self.snapshot.catalog.namespace(path);
        namespace.is_ok_and(|namespace| self.shows(namespace)) || library.has(path, self)
    }

    pub(super) fn scrubbed(&self, text: &str) -> String {
        self.cash.pipeline.scrubber.scrub_reason(text)
    }
}
