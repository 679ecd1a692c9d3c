//! Skills at upstreams, beside those that are here.

use std::time::Duration;

use tool::{Ask, GetPrompt, Json, Object, Read, Reply};

use super::View;
use crate::roster::Link;
use crate::skill::upstream::{self, Route};
use crate::skill::{Content, Library, Skill};

/// How long an upstream may take to list its skills. It is asked again later.
const PATIENCE: Duration = Duration::from_secs(5);

impl View<'_> {
    /// Every skill that there is for this caller, as far as upstreams say.
    pub(super) async fn library(&self) -> Library {
        let library = self.shared.skills.load_full();
        let sources = self.snapshot.catalog.sources().iter().enumerate();
        let listed = sources.filter_map(|(at, source)| {
            let link = self.snapshot.link(at)?;
            let namespace = self.snapshot.catalog.namespace(&source.label);
            let shown = namespace.is_ok_and(|namespace| self.shows(namespace));
            (shown && source.unavailable().is_none()).then_some((link, source))
        });
        let (mut here, mut asked) = (Vec::new(), Vec::new());
        for (link, source) in listed {
            if library.takes_prompts_of(&source.label) {
                here.extend(upstream::of_prompts(&source.label, &source.listing));
            }
            if upstream::offers(&source.listing.server) {
                asked.push(self.listed_by(link, &source.label));
            }
        }
        here.extend(futures::future::join_all(asked).await.into_iter().flatten());
        if here.is_empty() { library.as_ref().clone() } else { library.with(here).0 }
    }

    /// What an upstream lists; nothing when it does not say.
    async fn listed_by(&self, link: &Link, label: &str) -> Vec<Skill> {
        let subject = &self.context.caller.subject;
        if let Some(known) = self.shared.distant.recall(label, subject) {
            return known;
        }
        let mut skills = Vec::new();
        let mut cursor: Option<String> = None;
        let (mut lifetime, mut public) = (Duration::MAX, true);
        for _ in 0..upstream::PAGES {
            let mut params = Object::new();
            if let Some(cursor) = &cursor {
                params.push("cursor", Json::of(cursor));
            }
            let ask = Ask::Other { method: "skills/list".to_owned(), params };
            let context = tool::Context { patience: Some(PATIENCE), ..self.context.clone() };
            let page = match link.ask(ask, &context).await {
                Ok(Reply::Result(page)) => page,
                Ok(Reply::Error(error)) => {
                    tracing::warn!(upstream = label, error = error.message, "lists no skills");
                    break;
                }
                Err(failure) => {
                    tracing::warn!(upstream = label, %failure, "lists no skills");
                    break;
                }
            };
            let (more, next) = upstream::of_page(label, &page);
            lifetime = lifetime.min(upstream::lifetime(&page));
            public &= upstream::is_public(&page);
            skills.extend(more);
            skills.truncate(upstream::MOST);
            cursor = next;
            if cursor.is_none() || upstream::MOST <= skills.len() {
                break;
            }
        }
        // Who is silent is not asked again at once either.
        let lifetime = lifetime.min(Duration::from_secs(3600));
        let lifetime = if skills.is_empty() { PATIENCE * 2 } else { lifetime };
        let whose = (!public).then_some(subject.as_str());
        self.shared.distant.keep(label, whose, lifetime, skills.clone());
        skills
    }

    /// A skill with its text, wherever that is.
    pub(super) async fn with_text(
        &self,
        skill: &Skill,
        values: &[(&str, &Json)],
    ) -> Result<Skill, String> {
        let Content::Upstream { label, route } = &skill.content else { return Ok(skill.clone()) };
        let sources = self.snapshot.catalog.sources();
        let at = sources.iter().position(|source| source.label == *label);
        let at = at.ok_or_else(|| format!("`{label}` is gone"))?;
        let ask = match route {
            Route::Prompt { name, arguments } => {
                let arguments = Some(upstream::arguments(arguments, values)?);
                Ask::Prompt(GetPrompt { name: name.clone(), arguments, rest: Object::new() })
            }
            Route::Resource { uri, .. } => {
                Ask::Read(Read { uri: uri.clone(), rest: Object::new() })
            }
        };
        let result = match self.snapshot.ask(at, ask, self.context).await {
            Ok(Reply::Result(result)) => result,
            Ok(Reply::Error(error)) => return Err(self.scrubbed(&error.message)),
            Err(failure) => return Err(self.scrubbed(&failure.to_string())),
        };
        match route {
            Route::Prompt { .. } => upstream::of_prompt_result(skill, &result),
            Route::Resource { digest, .. } => {
                upstream::of_read_result(skill, digest.as_deref(), &result)
            }
        }
    }

    fn scrubbed(&self, text: &str) -> String {
        let text = self.shared.dispatcher.stages.scrubber.scrub(text);
        catalog::summary::cut(text.trim_end_matches('.'), 300)
    }
}
