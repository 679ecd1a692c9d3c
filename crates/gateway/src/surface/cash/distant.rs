//! Skills at upstreams, beside those that are here.

use std::time::Duration;

use tool::{Ask, GetPrompt, Json, Object, Read, Reply, Server};

use super::View;
use super::arguments::Loose;
use crate::roster::Link;
use crate::skill::upstream::{self, Route, cash};
use crate::skill::{Content, Library, Skill};

/// How long an upstream may take to list its skills. It is asked again later.
const PATIENCE: Duration = Duration::from_secs(5);

/// What there is for a caller.
pub(super) struct Known {
    pub(super) library: Library,
    /// Upstreams whose skills nobody can tell now, and why.
    pub(super) away: Vec<(String, String)>,
}

/// Why a text did not come.
pub(super) enum Unread {
    /// What we have to say about it.
    Because(String),
    /// What the other side says about it.
    Told(String),
}

impl From<String> for Unread {
    fn from(why: String) -> Unread {
        Unread::Because(why)
    }
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
        let Some((skills, lifetime, public)) = listed else {
            // Who is silent is not asked again at once.
            return self.shared.distant.postpone(label, subject, PATIENCE * 2);
        };
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
        let mut skills = Vec::new();
        let mut cursor: Option<String> = None;
        let (mut lifetime, mut public) = (Duration::from_secs(3600), true);
        for _ in 0..upstream::PAGES {
            let mut params = Object::new();
            if let Some(cursor) = &cursor {
                params.push("cursor", Json::of(cursor));
            }
            let Some(page) = self.page(link, label, "skills/list", params).await else { break };
            let (more, next) = upstream::of_page(label, &page);
            lifetime = lifetime.min(upstream::lifetime(&page));
            public &= upstream::is_public(&page);
            skills.extend(more);
            skills.truncate(upstream::MOST);
            cursor = next;
            if cursor.is_none() || upstream::MOST <= skills.len() {
                return Some((skills, lifetime, public));
            }
        }
        (!skills.is_empty()).then_some((skills, lifetime, public))
    }

    /// A skill with its text, wherever that is.
    pub(super) async fn with_text(
        &self,
        skill: &Skill,
        asked: &Loose,
        library: &Library,
    ) -> Result<Skill, Unread> {
        let Content::Upstream { label, route } = &skill.content else { return Ok(skill.clone()) };
        let sources = self.snapshot.catalog.sources();
        let at = sources.iter().position(|source| source.label == *label);
        let at = at.ok_or_else(|| format!("`{label}` is gone"))?;
        let ask = match route {
            Route::Prompt { name, arguments } => {
                let values: Vec<(&str, &Json)> = asked.iter().collect();
                let arguments = Some(upstream::arguments(arguments, &values)?);
                Ask::Prompt(GetPrompt { name: name.clone(), arguments, rest: Object::new() })
            }
            Route::Resource { uri, .. } => {
                Ask::Read(Read { uri: uri.clone(), rest: Object::new() })
            }
            Route::Cash { namespace, name } => {
                let values: Vec<(&str, &Json)> = asked.spelled().collect();
                let params = cash::arguments(namespace, name, &values);
                Ask::Other { method: cash::READ.to_owned(), params }
            }
        };
        let reply = self.snapshot.ask(at, ask, self.context).await;
        let reply = reply.map_err(|failure| self.scrubbed(&failure.to_string()))?;
        let result = match &reply {
            Reply::Result(result) => result,
            Reply::Error(error) => return Err(self.scrubbed(&error.message).into()),
        };
        Ok(match route {
            Route::Prompt { .. } => upstream::of_prompt_result(skill, result)?,
            Route::Resource { digest, .. } => {
                upstream::of_read_result(skill, digest.as_deref(), result)?
            }
            Route::Cash { .. } => {
                let result = reply.tool_result().ok_or_else(|| "no text came".to_owned())?;
                if result.is_error {
                    return Err(Unread::Told(cash::told(&result)));
                }
                cash::of_result(skill, label, &result, &|path| self.is_here(path, library))?
            }
        })
    }

    /// Whether a namespace exists for this caller, of functions or of skills.
    fn is_here(&self, path: &str, library: &Library) -> bool {
        let namespace = self.snapshot.catalog.namespace(path);
        namespace.is_ok_and(|namespace| self.shows(namespace)) || library.has(path, self)
    }

    pub(super) fn scrubbed(&self, text: &str) -> String {
        let text = self.shared.dispatcher.stages.scrubber.scrub(text);
        catalog::summary::cut(text.trim_end_matches('.'), 300)
    }
}
