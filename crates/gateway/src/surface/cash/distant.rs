//! Skills at upstreams, beside those that are here.

use std::time::Duration;

use tool::{Ask, Json, Object, Reply, Server};

use super::arguments::Loose;
use super::skills::cannot;
use super::{Surface, View, gated};
use crate::dispatch::{CallError, Mode, Outcome, Request, Target, What};
use crate::roster::Link;
use crate::skill::upstream::{self, Route, cash};
use crate::skill::{Content, Library, Skill};

/// How long an upstream may take to list its skills, or a page of them. It is
/// asked again later.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long it may take for all pages together.
const IN_ALL: Duration = Duration::from_secs(10);

/// The value that says how long a text may be.
const SIZE: &str = "sizelimit";

/// What there is for a caller.
pub(super) struct Known {
    pub(super) library: Library,
    /// Upstreams whose skills nobody can tell now, and why.
    pub(super) away: Vec<(String, String)>,
}

/// How an upstream is asked for its skills.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Extension,
    Cash,
}

impl Way {
    fn of(server: &Server) -> Option<Way> {
        if cash::offers(server) {
            Some(Way::Cash)
        } else if upstream::offers(server) {
            Some(Way::Extension)
        } else {
            None
        }
    }
}

impl View<'_> {
    /// Every skill that there is for this caller, as far as upstreams say.
    pub(super) async fn known(&self) -> Known {
        let library = self.shared.skills.load_full();
        let (mut here, mut asked, mut away) = (Vec::new(), Vec::new(), Vec::new());
        for (at, source) in self.snapshot.catalog.sources().iter().enumerate() {
            let Some(link) = self.snapshot.link(at) else { continue };
            let namespace = self.snapshot.catalog.namespace(&source.label);
            if !namespace.is_ok_and(|namespace| self.shows(namespace)) {
                continue;
            }
            if library.takes_prompts_of(&source.label) {
                here.extend(upstream::of_prompts(&source.label, &source.listing));
            }
            let way = Way::of(&source.listing.server);
            match (source.unavailable(), way) {
                (None, Some(way)) => asked.push(self.listed_by(link, &source.label, way)),
                (None, None) => {}
                (Some(why), way) => {
                    let subject = &self.context.caller.subject;
                    let skills = self.shared.distant.remembered(&source.label, subject);
                    // One that never came might have some.
                    let might = way.is_some() || source.listing.tools.is_empty();
                    if skills.is_empty() && might {
                        away.push((source.label.clone(), self.scrubbed(why)));
                    }
                    here.extend(skills);
                }
            }
        }
        here.extend(futures::future::join_all(asked).await.into_iter().flatten());
        let library = if here.is_empty() { (*library).clone() } else { library.with(here).0 };
        Known { library, away }
    }

    /// What an upstream lists; what it listed before when it does not say.
    async fn listed_by(&self, link: &Link, label: &str, way: Way) -> Vec<Skill> {
        let subject = &self.context.caller.subject;
        if let Some(known) = self.shared.distant.recall(label, subject) {
            return known;
        }
        let listed = match way {
            Way::Extension => self.pages(link, label).await,
            Way::Cash => {
                let page = self.page(link, label, cash::LIST, Object::new()).await;
                page.map(|page| (cash::of_list(label, &page), upstream::lifetime(&page), false))
            }
        };
        let Some((mut skills, lifetime, public)) = listed else {
            // Who is silent is not asked again at once.
            return self.shared.distant.postpone(label, subject, PATIENCE * 2);
        };
        // Somebody else's words may hold somebody's secrets.
        let scrubber = &self.shared.dispatcher.scrubber;
        for skill in &mut skills {
            skill.description = scrubber.scrub(&skill.description).into_owned();
        }
        let lifetime = if skills.is_empty() { PATIENCE * 2 } else { lifetime };
        let whose = (!public).then_some(subject.as_str());
        self.shared.distant.keep(label, whose, lifetime, skills.clone());
        skills
    }

    /// One answer of an upstream about its skills.
    async fn page(&self, link: &Link, label: &str, method: &str, params: Object) -> Option<Json> {
        let ask = Ask::Other { method: method.to_owned(), params };
        let context = tool::Context { patience: Some(PATIENCE), ..self.context.clone() };
        match link.ask(ask, &context).await {
            Ok(Reply::Result(page)) => Some(page),
            Ok(Reply::Error(error)) => {
                tracing::warn!(upstream = label, error = error.message, "lists no skills");
                None
            }
            Err(failure) => {
                tracing::warn!(upstream = label, %failure, "lists no skills");
                None
            }
        }
    }

    /// The skills of the extension, for how long, and whether for everybody.
    async fn pages(&self, link: &Link, label: &str) -> Option<(Vec<Skill>, Duration, bool)> {
        let mut read = (Vec::new(), Duration::from_secs(3600), true);
        let whole = tokio::time::timeout(IN_ALL, self.read_pages(link, label, &mut read)).await;
        match whole {
            Ok(true) => return Some(read),
            Ok(false) => {}
            Err(_) => {
                tracing::warn!(
                    upstream = label,
                    "takes too long to list its skills: some are left out"
                );
            }
        }
        (!read.0.is_empty()).then_some(read)
    }

    /// Reads page after page; whether that was all.
    async fn read_pages(
        &self,
        link: &Link,
        label: &str,
        read: &mut (Vec<Skill>, Duration, bool),
    ) -> bool {
        let (skills, lifetime, public) = read;
        let mut cursor: Option<String> = None;
        for _ in 0..upstream::PAGES {
            let mut params = Object::new();
            if let Some(cursor) = &cursor {
                params.push("cursor", Json::of(cursor));
            }
            let Some(page) = self.page(link, label, "skills/list", params).await else {
                return false;
            };
            let (more, next) = upstream::of_page(label, &page);
            *lifetime = (*lifetime).min(upstream::lifetime(&page));
            *public &= upstream::is_public(&page);
            skills.extend(more);
            skills.truncate(upstream::MOST);
            cursor = next;
            if cursor.is_none() {
                return true;
            }
            if upstream::MOST <= skills.len() {
                break;
            }
        }
        tracing::warn!(upstream = label, n_skills = skills.len(), "has more skills than are read");
        true
    }

    /// What a reader gets for a skill that stands at an upstream.
    ///
    /// It goes the way of every read and every prompt, so that what rules deny
    /// there is denied here, and what is too long is kept.
    pub(super) async fn fetched(&self, skill: &Skill, asked: &Loose, library: &Library) -> Reply {
        let request = match self.request(skill, asked) {
            Ok(request) => request,
            Err(why) => return cannot(skill, &why),
        };
        let telling = |reply: &Reply| self.read(skill, reply, asked, library);
        let gate = self.shared.dispatcher.gate.load();
        let again = "the same `skill`";
        let say = |outcome| match outcome {
            Ok(Outcome::Reply(reply)) => reply,
            Ok(Outcome::Kept { artifact, over }) => {
                gated::kept(&gate, "The skill", Some(again), &artifact, &over)
            }
            Ok(Outcome::Unkept { artifact, over, why }) => {
                gated::lost(&gate, "The skill", &artifact, &over, why)
            }
            Ok(Outcome::Plan(_)) => Reply::text(""),
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
        self.shared
            .dispatcher
            .dispatch_told(snapshot, request, Surface::Cash, context, Some(&telling), say)
            .await
    }

    /// What to ask the upstream of a skill for its text.
    fn request(&self, skill: &Skill, asked: &Loose) -> Result<Request, String> {
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
                (Target { id: skill.path(), what }, None)
            }
        };
        let wanted = asked.number(SIZE).filter(|size| 0 < *size);
        Ok(Request { target, arguments, rest, wanted, mode: Mode::Strict })
    }

    /// The text of a skill in what its upstream answered.
    fn read(&self, skill: &Skill, reply: &Reply, asked: &Loose, library: &Library) -> Reply {
        let Content::Upstream { label, route } = &skill.content else { return reply.clone() };
        let result = match reply {
            Reply::Result(result) => result,
            Reply::Error(error) => return cannot(skill, &self.scrubbed(&error.message)),
        };
        let whole = match route {
            Route::Prompt { .. } => upstream::of_prompt_result(skill, result),
            Route::Resource { digest, .. } => {
                upstream::of_read_result(skill, digest.as_deref(), result)
            }
            Route::Cash { .. } => match reply.tool_result() {
                // What the other side says about it.
                Some(result) if result.is_error => {
                    return Reply::error_text(&cash::told(&result));
                }
                Some(result) => {
                    let is_here = |path: &str| self.is_here(path, library);
                    cash::of_result(skill, label, &result, &is_here)
                }
                None => Err("no text came".to_owned()),
            },
        };
        match whole {
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
        let text = self.shared.dispatcher.scrubber.scrub(text);
        catalog::summary::cut(text.trim_end_matches('.'), 300)
    }
}
