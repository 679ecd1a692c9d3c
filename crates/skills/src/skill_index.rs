//! Every skill that a caller can read: gatelet's own and those of upstreams.
//!
//! Upstreams list their skills per caller, so these are not in the catalog: an
//! upstream is asked when a caller wants them, and its answer is cached for as
//! long as it allows.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use catalog::source::Role;
use catalog::{Catalog, Source};
use tool::text::without_invisible;
use tool::{Ask, Context, Json, Listing, Object, Reply};

use crate::library::Library;
use crate::route::Route;
use crate::skill::{Content, Skill};
use crate::upstream::{self, SkillCache, cash};
use policy::live::LiveStages;
use policy::visibility::{CallerView, Item};
use redact::Scrubber;
use roster::{BUILTIN, Snapshot, SupervisedUpstream};

/// How long an upstream may take to list its skills, or one page of them.
const PAGE_TIMEOUT: Duration = Duration::from_secs(5);
/// How long it may take for all pages together.
const LIST_TIMEOUT: Duration = Duration::from_secs(10);

/// Finds the skills of gatelet and of all upstreams.
pub struct SkillIndex {
    /// gatelet's own skills.
    skills: Arc<ArcSwap<Library>>,
    /// The skills that upstreams listed.
    cache: SkillCache,
    policies: Arc<LiveStages>,
    scrubber: Arc<Scrubber>,
}

/// All skills that one caller can read.
pub struct CallerSkills {
    pub library: Library,
    /// The labels of upstreams whose skills could not be listed, each with the reason.
    pub unreachable: Vec<(String, String)>,
}

impl CallerSkills {
    /// Renders the upstreams that a search leaves out, in one line.
    pub fn unsearched(&self) -> Option<String> {
        let unreachable =
            self.unreachable.iter().map(|(label, why)| (label.as_str(), why.as_str()));
        catalog::reply::not_searched(unreachable)
    }
}

/// Builds a catalog of these skills alone, to search them as the catalog `like` does.
pub fn searchable<'s>(skills: impl Iterator<Item = &'s Arc<Skill>>, like: &Catalog) -> Catalog {
    let skills = skills.map(|skill| skill.listed()).collect();
    let source = Source { skills, role: Role::Builtin, ..Source::new(BUILTIN, Arc::default()) };
    Catalog::build(vec![source]).0.with_meaning(like.meaning())
}

/// How an upstream lists its skills.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ListMethod {
    /// By MCP's skills extension.
    Extension,
    /// As a CaSH server.
    Cash,
}

impl ListMethod {
    fn of_listing(listing: &Listing) -> Option<ListMethod> {
        if cash::offers(listing) {
            Some(ListMethod::Cash)
        } else if upstream::offers(&listing.server) {
            Some(ListMethod::Extension)
        } else {
            None
        }
    }
}

impl SkillIndex {
    pub fn new(
        skills: Arc<ArcSwap<Library>>,
        policies: Arc<LiveStages>,
        scrubber: Arc<Scrubber>,
    ) -> SkillIndex {
        SkillIndex { skills, cache: SkillCache::default(), policies, scrubber }
    }

    /// gatelet's own skills.
    pub fn own(&self) -> Arc<Library> {
        self.skills.load_full()
    }

    /// Returns whether a caller may see a skill.
    pub fn shows(&self, visible: &CallerView<'_>, skill: &Skill) -> bool {
        let shows = |thing: Item<'_>| visible.shows(&thing);
        let Skill { namespace, name, .. } = skill;
        let route = match &skill.content {
            Content::Upstream { label: upstream, route: Route::Prompt { name, .. } } => {
                shows(Item::Prompt { upstream, name })
            }
            Content::Upstream { label: upstream, route: Route::Resource { uri, .. } } => {
                shows(Item::Resource { upstream, uri })
            }
            // Only its name as a skill decides.
            Content::Upstream { route: Route::Cash { .. }, .. } | Content::Text { .. } => true,
        };
        route && shows(Item::Skill { namespace, name })
    }

    /// Every skill that this caller can read.
    pub async fn for_caller(&self, snapshot: &Snapshot, context: &Context) -> CallerSkills {
        self.listed_for(snapshot, context, |_| true).await
    }

    /// Every skill that this caller can read, but without asking CaSH servers.
    pub async fn of_extension(&self, snapshot: &Snapshot, context: &Context) -> CallerSkills {
        let asks = |method| method == ListMethod::Extension;
        self.listed_for(snapshot, context, asks).await
    }

    async fn listed_for(
        &self,
        snapshot: &Snapshot,
        context: &Context,
        asks: impl Fn(ListMethod) -> bool,
    ) -> CallerSkills {
        let library = self.skills.load_full();
        let (catalog, subject) = (&snapshot.catalog, &context.caller.subject);
        let visible = self.policies.visible_to(&context.caller);
        let (mut here, mut asked, mut unreachable) = (Vec::new(), Vec::new(), Vec::new());
        for (at, source) in catalog.sources().iter().enumerate() {
            let Some(upstream) = snapshot.upstream(at) else { continue };
            let namespace = catalog.namespace(&source.label);
            let shows = |namespace| visible.shows_namespace(catalog, namespace);
            if !namespace.is_ok_and(shows) {
                continue;
            }
            if library.takes_prompts_of(&source.label) {
                here.extend(upstream::from_prompts(&source.label, &source.listing));
            }
            let method = ListMethod::of_listing(&source.listing).filter(|it| asks(*it));
            match (source.unavailable(), method) {
                (None, Some(method)) => {
                    asked.push(self.listed_by(upstream, &source.label, method, context))
                }
                (None, None) => {}
                (Some(why), method) => {
                    let skills = self.cache.last(&source.label, subject);
                    // An upstream that was never listed may have skills.
                    let might = method.is_some() || source.listing.tools.is_empty();
                    if skills.is_empty() && might {
                        unreachable.push((source.label.clone(), self.scrubber.scrub_reason(why)));
                    }
                    here.extend(skills);
                }
            }
        }
        here.extend(futures::future::join_all(asked).await.into_iter().flatten());
        let library = if here.is_empty() { (*library).clone() } else { library.with(here).0 };
        CallerSkills { library, unreachable }
    }

    /// Returns the skills of an upstream: cached, or listed now, or, if it does not answer,
    /// those that it listed before.
    async fn listed_by(
        &self,
        upstream: &SupervisedUpstream,
        label: &str,
        method: ListMethod,
        context: &Context,
    ) -> Vec<Skill> {
        let subject = &context.caller.subject;
        if let Some(known) = self.cache.fresh(label, subject) {
            return known;
        }
        let listed = match method {
            ListMethod::Extension => list_by_extension(upstream, label, context).await,
            ListMethod::Cash => {
                let page = page(upstream, label, cash::LIST, Object::new(), context).await;
                page.map(|page| SkillList {
                    skills: cash::from_list(label, &page),
                    lifetime: upstream::lifetime(&page),
                    is_public: false,
                })
            }
        };
        let Some(SkillList { mut skills, lifetime, is_public }) = listed else {
            // An upstream that does not answer is not asked again at once.
            return self.cache.postpone(label, subject, PAGE_TIMEOUT * 2);
        };
        // Descriptions of an upstream may contain secrets.
        for skill in &mut skills {
            skill.description =
                without_invisible(&self.scrubber.scrub(&skill.description)).into_owned();
            // An entry must agree with its file, so one that contains a secret is not served
            // at all.
            if let Content::Upstream { route: Route::Resource { entry, .. }, .. } =
                &mut skill.content
                && self.scrubber.scrub_json(entry) != *entry
            {
                *entry = Json::null();
            }
        }
        let lifetime = if skills.is_empty() { PAGE_TIMEOUT * 2 } else { lifetime };
        let only_for = (!is_public).then_some(subject.as_str());
        self.cache.insert(label, only_for, lifetime, skills.clone());
        skills
    }
}

/// Asks an upstream for one page of its skills.
async fn page(
    upstream: &SupervisedUpstream,
    label: &str,
    method: &str,
    params: Object,
    context: &Context,
) -> Option<Json> {
    let ask = Ask::Other { method: method.to_owned(), params };
    let context = Context { timeout: Some(PAGE_TIMEOUT), ..context.clone() };
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

/// What an upstream listed.
struct SkillList {
    skills: Vec<Skill>,
    /// How long it may be cached.
    lifetime: Duration,
    /// Whether it is the same for every caller.
    is_public: bool,
}

/// Lists the skills of an upstream by the extension.
async fn list_by_extension(
    upstream: &SupervisedUpstream,
    label: &str,
    context: &Context,
) -> Option<SkillList> {
    let (skills, lifetime) = (Vec::new(), Duration::from_secs(3600));
    let mut listed = SkillList { skills, lifetime, is_public: true };
    let pages = fetch_pages(upstream, label, context, &mut listed);
    let whole = tokio::time::timeout(LIST_TIMEOUT, pages).await;
    match whole {
        Ok(true) => return Some(listed),
        Ok(false) => {}
        Err(_) => {
            tracing::warn!(
                upstream = label,
                "takes too long to list its skills: some are left out"
            );
        }
    }
    (!listed.skills.is_empty()).then_some(listed)
}

/// Adds page after page to `listed`, and returns whether all could be fetched.
async fn fetch_pages(
    upstream: &SupervisedUpstream,
    label: &str,
    context: &Context,
    listed: &mut SkillList,
) -> bool {
    let SkillList { skills, lifetime, is_public } = listed;
    let mut cursor: Option<String> = None;
    for _ in 0..upstream::MAX_PAGES {
        let mut params = Object::new();
        if let Some(cursor) = &cursor {
            params.push("cursor", Json::encode(cursor));
        }
        let Some(page) = page(upstream, label, "skills/list", params, context).await else {
            return false;
        };
        let (more, next) = upstream::from_page(label, &page);
        *lifetime = (*lifetime).min(upstream::lifetime(&page));
        *is_public &= upstream::is_public(&page);
        skills.extend(more);
        skills.truncate(upstream::MAX_SKILLS);
        cursor = next;
        if cursor.is_none() {
            return true;
        }
        if upstream::MAX_SKILLS <= skills.len() {
            break;
        }
    }
    tracing::warn!(upstream = label, n_skills = skills.len(), "has more skills than are read");
    true
}
