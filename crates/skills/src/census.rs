//! Every skill that there is for a caller: those that are here, and those that
//! upstreams say they have.
//!
//! An upstream says so to each caller, not to the catalog: it is asked when
//! somebody wants to know, and what it says is believed for as long as it says.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use catalog::source::Role;
use catalog::{Catalog, Source};
use tool::{Ask, Context, Json, Object, Reply, Server};

use super::upstream::{self, Memory, Route, cash};
use super::{Content, Library, Skill};
use policy::live::LiveStages;
use policy::visibility::{Thing, Visible};
use redact::Scrubber;
use roster::{BUILTIN, Snapshot, SupervisedUpstream};

/// How long an upstream may take to list its skills, or a page of them. It is
/// asked again later.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long it may take for all pages together.
const IN_ALL: Duration = Duration::from_secs(10);

/// Knows who has which skills.
pub struct Census {
    /// Those that are here.
    skills: Arc<ArcSwap<Library>>,
    /// What upstreams say of theirs.
    memory: Memory,
    policies: Arc<LiveStages>,
    scrubber: Arc<Scrubber>,
}

/// What there is for a caller.
pub struct Known {
    pub library: Library,
    /// Upstreams whose skills nobody can tell now, and why.
    pub away: Vec<(String, String)>,
}

impl Known {
    /// Which upstreams a search cannot look into, in one line.
    pub fn unsearched(&self) -> Option<String> {
        let away = self.away.iter().map(|(label, why)| (label.as_str(), why.as_str()));
        catalog::reply::not_searched(away)
    }
}

/// Skills to be searched like everything in a catalog, made for the occasion.
pub fn searchable<'s>(skills: impl Iterator<Item = &'s Arc<Skill>>, like: &Catalog) -> Catalog {
    let skills = skills.map(|skill| skill.listed()).collect();
    let source = Source { skills, role: Role::Builtin, ..Source::new(BUILTIN, Arc::default()) };
    Catalog::build(vec![source]).0.with_meaning(like.meaning())
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

impl Census {
    pub fn new(
        skills: Arc<ArcSwap<Library>>,
        policies: Arc<LiveStages>,
        scrubber: Arc<Scrubber>,
    ) -> Census {
        Census { skills, memory: Memory::default(), policies, scrubber }
    }

    /// Those that are here.
    pub fn here(&self) -> Arc<Library> {
        self.skills.load_full()
    }

    /// Whether a skill exists as far as a caller is concerned.
    pub fn shows(&self, visible: &Visible<'_>, skill: &Skill) -> bool {
        let shows = |thing: Thing<'_>| visible.shows(&thing);
        let Skill { namespace, name, .. } = skill;
        let route = match &skill.content {
            Content::Upstream { label: upstream, route: Route::Prompt { name, .. } } => {
                shows(Thing::Prompt { upstream, name })
            }
            Content::Upstream { label: upstream, route: Route::Resource { uri, .. } } => {
                shows(Thing::Resource { upstream, uri })
            }
            // Its namespace is ours, so its name says it all.
            Content::Upstream { route: Route::Cash { .. }, .. } | Content::Text { .. } => true,
        };
        route && shows(Thing::Skill { namespace, name })
    }

    /// Every skill that there is for this caller, as far as upstreams say.
    pub async fn taken(&self, snapshot: &Snapshot, context: &Context) -> Known {
        let library = self.skills.load_full();
        let (catalog, subject) = (&snapshot.catalog, &context.caller.subject);
        let visible = self.policies.visible_to(&context.caller);
        let (mut here, mut asked, mut away) = (Vec::new(), Vec::new(), Vec::new());
        for (at, source) in catalog.sources().iter().enumerate() {
            let Some(upstream) = snapshot.upstream(at) else { continue };
            let namespace = catalog.namespace(&source.label);
            let shows = |namespace| visible.shows_namespace(catalog, namespace);
            if !namespace.is_ok_and(shows) {
                continue;
            }
            if library.takes_prompts_of(&source.label) {
                here.extend(upstream::of_prompts(&source.label, &source.listing));
            }
            let way = Way::of(&source.listing.server);
            match (source.unavailable(), way) {
                (None, Some(way)) => {
                    asked.push(self.listed_by(upstream, &source.label, way, context))
                }
                (None, None) => {}
                (Some(why), way) => {
                    let skills = self.memory.remembered(&source.label, subject);
                    // One that never came might have some.
                    let might = way.is_some() || source.listing.tools.is_empty();
                    if skills.is_empty() && might {
                        away.push((source.label.clone(), self.scrubber.reason(why)));
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
    async fn listed_by(
        &self,
        upstream: &SupervisedUpstream,
        label: &str,
        way: Way,
        context: &Context,
    ) -> Vec<Skill> {
        let subject = &context.caller.subject;
        if let Some(known) = self.memory.recall(label, subject) {
            return known;
        }
        let listed = match way {
            Way::Extension => pages(upstream, label, context).await,
            Way::Cash => {
                let page = page(upstream, label, cash::LIST, Object::new(), context).await;
                page.map(|page| (cash::of_list(label, &page), upstream::lifetime(&page), false))
            }
        };
        let Some((mut skills, lifetime, public)) = listed else {
            // Who is silent is not asked again at once.
            return self.memory.postpone(label, subject, PATIENCE * 2);
        };
        // Somebody else's words may hold somebody's secrets.
        for skill in &mut skills {
            skill.description = self.scrubber.scrub(&skill.description).into_owned();
        }
        let lifetime = if skills.is_empty() { PATIENCE * 2 } else { lifetime };
        let whose = (!public).then_some(subject.as_str());
        self.memory.keep(label, whose, lifetime, skills.clone());
        skills
    }
}

/// One answer of an upstream about its skills.
async fn page(
    upstream: &SupervisedUpstream,
    label: &str,
    method: &str,
    params: Object,
    context: &Context,
) -> Option<Json> {
    let ask = Ask::Other { method: method.to_owned(), params };
    let context = Context { timeout: Some(PATIENCE), ..context.clone() };
    match upstream.ask(ask, &context).await {
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
async fn pages(
    upstream: &SupervisedUpstream,
    label: &str,
    context: &Context,
) -> Option<(Vec<Skill>, Duration, bool)> {
    let mut read = (Vec::new(), Duration::from_secs(3600), true);
    let whole = tokio::time::timeout(IN_ALL, read_pages(upstream, label, context, &mut read)).await;
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
    upstream: &SupervisedUpstream,
    label: &str,
    context: &Context,
    read: &mut (Vec<Skill>, Duration, bool),
) -> bool {
    let (skills, lifetime, public) = read;
    let mut cursor: Option<String> = None;
    for _ in 0..upstream::PAGES {
        let mut params = Object::new();
        if let Some(cursor) = &cursor {
            params.push("cursor", Json::encode(cursor));
        }
        let Some(page) = page(upstream, label, "skills/list", params, context).await else {
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
