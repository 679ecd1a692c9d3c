//! `find`: what helps with a task, of one kind or of all.

use std::sync::Arc;

use catalog::index::{Kind, Verdict};
use catalog::{Catalog, ItemRef, ItemSearchResult, Priors, Slot, reply};
use tool::{Context, Json, Reply};

use super::{BuiltinTools, DEFAULT_RESULTS, MAX_RESULTS};
use crate::lengths::too_long;
use crate::search::{SearchAnswer, Wanted};
use policy::refusal::Refusal;
use policy::visibility::{Thing, Visible};
use roster::Snapshot;
use skills::Skill;
use skills::skill_index::{CallerSkills, searchable};

/// How to get what is not a function: this namespace has no function for it.
const READ: &str = "No function reads these: the client does, with `resources/read`; where there is \
     a tool `resource_read`, that does.";
const GET: &str = "No function gets these: the client does, with `prompts/get`; where there is a tool \
     `prompt_get`, that does.";

/// A search, and for whom.
struct Query<'a> {
    words: String,
    /// How many hits were asked for.
    asked_limit: Option<usize>,
    /// The same, or how many there are unless somebody asks.
    limit: usize,
    catalog: &'a Arc<Catalog>,
    visible: Visible<'a>,
}

/// The text of the reply, and the items found.
type Answer = (String, Vec<ItemRef>);

impl Query<'_> {
    fn config(&self) -> reply::Config {
        reply::Config::with_limit(self.limit, reply::Spelling::Apart)
    }

    /// The best of the catalog, of all kinds where none is named.
    fn sought(&self, kinds: &[Kind], limit: usize) -> ItemSearchResult {
        let sees = |place| self.visible.shows_item(self.catalog, place);
        self.catalog.search_items(kinds, &self.words, limit, &Priors::new(), &sees)
    }
}

impl BuiltinTools {
    pub(super) async fn find(
        &self,
        arguments: &Json,
        snapshot: &Snapshot,
        context: &Context,
    ) -> Reply {
        let asked_limit = arguments.member_as::<usize>("limit");
        let query = Query {
            words: arguments.member_as("query").unwrap_or_default(),
            asked_limit,
            limit: asked_limit.unwrap_or(DEFAULT_RESULTS).clamp(1, MAX_RESULTS),
            catalog: &snapshot.catalog,
            visible: self.policies.visible_to(&context.caller),
        };
        let kind = arguments.member_as::<String>("kind");
        let meta_tool = match kind.as_deref() {
            Some("resource") => "resource_browse",
            Some("prompt") => "prompt_browse",
            None | Some(_) => "tool_browse",
        };
        if let Some(why) = too_long("query", &query.words) {
            return Reply::error_text(&format!("**Error:** {why}."));
        }
        let wanted = Wanted::by_words(meta_tool, &query.words);
        let answer = async {
            let (text, places) = match kind.as_deref() {
                None | Some("function") => self.functions(&query, context),
                Some("resource") => listed(&query, Kind::Resource, READ),
                Some("prompt") => listed(&query, Kind::Prompt, GET),
                Some("skill") => {
                    let known = Box::pin(self.skills.for_caller(snapshot, context)).await;
                    self.skills(&query, &known)
                }
                Some(_) => {
                    let known = Box::pin(self.skills.for_caller(snapshot, context)).await;
                    self.all(&query, &known)
                }
            };
            Ok::<_, Refusal>(SearchAnswer::at(snapshot, places, Reply::text(&text)))
        };
        let answer = self.search.run(wanted, Ok(()), snapshot, context, answer).await;
        answer.unwrap_or_else(|refusal| Reply::error_text(&format!("**Error:** {refusal}")))
    }

    fn functions(&self, query: &Query<'_>, context: &Context) -> Answer {
        let Query { words, asked_limit, catalog, visible, .. } = query;
        let all = visible.shows_all();
        let sees = |slot| all || visible.shows_function(catalog, slot);
        let priors = self.search.priors(context, words);
        found(catalog, words, *asked_limit, &priors, &sees, unsearched(catalog, visible))
    }

    /// Skills, here and at upstreams.
    fn skills(&self, query: &Query<'_>, known: &CallerSkills) -> Answer {
        let seen = || self.seen(query, known);
        let theirs = seen().any(|skill| skill.is_at_upstream());
        let theirs = theirs.then(|| searchable(seen(), query.catalog));
        let mut places = Vec::new();
        let text = reply::with_line(known.unsearched(), &query.config(), |config| match &theirs {
            None => {
                let sought = query.sought(&[Kind::Skill], config.limit);
                places = self::places(&sought);
                reply::items(query.catalog, &sought, config)
            }
            Some(catalog) => sought_among(catalog, query, config),
        });
        (text, places)
    }

    /// Everything.
    ///
    /// Skills of upstreams are not in the catalog, and the scores of two searches
    /// cannot be compared. So they come last, and a fifth of the places is theirs,
    /// or what the others leave.
    fn all(&self, query: &Query<'_>, known: &CallerSkills) -> Answer {
        let Query { words, limit, catalog, .. } = query;
        let theirs = self.seen(query, known).filter(|skill| skill.is_at_upstream());
        let theirs = searchable(theirs, catalog);
        let sees = |place| query.visible.shows_item(catalog, place);
        let n_here = n_hits(catalog, &[], words, *limit, &sees);
        let room = limit.div_ceil(5).min(limit - 1).max(limit - n_here);
        let n_theirs = n_hits(&theirs, &[Kind::Skill], words, room, &|_| true);
        let mut places = Vec::new();
        let mut here = |config: &reply::Config| {
            let sought = query.sought(&[], config.limit);
            places = self::places(&sought);
            reply::items(catalog, &sought, config)
        };
        let text = reply::with_line(self.missing(query, known), &query.config(), |config| {
            if n_theirs == 0 {
                return here(config);
            }
            let tokens = config.tokens * n_theirs / limit;
            let few = reply::Config { tokens, limit: n_theirs, ..*config };
            let last = sought_among(&theirs, query, &few);
            if n_here == 0 {
                return last;
            }
            let rest = reply::Config { limit: limit - n_theirs, ..*config };
            reply::with_line(Some(last.trim_end().to_owned()), &rest, here)
        });
        (text, places)
    }

    /// What could not be searched: upstreams of which nothing is known, and those
    /// whose skills are not known.
    fn missing(&self, query: &Query<'_>, known: &CallerSkills) -> Option<String> {
        let is_told = |label: &str| known.unreachable.iter().any(|(other, _)| other == label);
        let rest = reply::unsearched(query.catalog, &|label| {
            !is_told(label) && query.visible.shows(&Thing::Namespace(label))
        });
        let lines: Vec<String> = [known.unsearched(), rest].into_iter().flatten().collect();
        (!lines.is_empty()).then(|| lines.join("\n"))
    }

    /// The latest skills that the caller sees.
    fn seen<'k>(
        &'k self,
        query: &'k Query<'_>,
        known: &'k CallerSkills,
    ) -> impl Iterator<Item = &'k Arc<Skill>> {
        known.library.newest().filter(|skill| self.skills.shows(&query.visible, skill))
    }
}

/// What upstreams list of one kind, and how to get it.
fn listed(query: &Query<'_>, kind: Kind, how: &str) -> Answer {
    let missing = unsearched(query.catalog, &query.visible);
    let sought = query.sought(&[kind], query.limit);
    let found = reply::with_line(missing, &query.config(), |config| {
        reply::items(query.catalog, &sought, config)
    });
    (format!("{}\n\n{how}", found.trim_end()), places(&sought))
}

fn places(sought: &ItemSearchResult) -> Vec<ItemRef> {
    sought.hits.iter().map(|(place, _)| *place).collect()
}

/// The best of skills that the caller sees.
fn sought_among(skills: &Catalog, query: &Query<'_>, config: &reply::Config) -> String {
    reply::search_items(skills, &[Kind::Skill], &query.words, config, &Priors::new(), &|_| true)
}

fn n_hits(
    catalog: &Catalog,
    kinds: &[Kind],
    query: &str,
    limit: usize,
    sees: &dyn Fn(ItemRef) -> bool,
) -> usize {
    let found = catalog.search_items(kinds, query, limit, &Priors::new(), sees);
    if found.verdict == Verdict::Nothing { 0 } else { found.hits.len() }
}

/// Which upstreams were not searched, among those that the caller may see.
pub(crate) fn unsearched(catalog: &Catalog, visible: &Visible<'_>) -> Option<String> {
    reply::unsearched(catalog, &|label| visible.shows(&Thing::Namespace(label)))
}

/// The best functions for a query, in few words, and where they are: exactly
/// `limit`, or a few and the names of more. `missing` is what could not be
/// searched.
pub(crate) fn found(
    catalog: &Catalog,
    query: &str,
    limit: Option<usize>,
    priors: &Priors,
    sees: &dyn Fn(Slot) -> bool,
    missing: Option<String>,
) -> Answer {
    let mut places = Vec::new();
    let text = reply::with_line(missing, &config(limit), |config| {
        let reply = reply::search(catalog, query, config, priors, sees);
        places = reply.named.into_iter().map(ItemRef::Tool).collect();
        reply.text
    });
    (text, places)
}

/// How much the reply to a search for functions may say.
pub(crate) fn config(limit: Option<usize>) -> reply::Config {
    let limited = |limit: usize| {
        reply::Config::with_limit(limit.clamp(1, MAX_RESULTS), reply::Spelling::Apart)
    };
    limit.map_or_else(|| reply::Config::usual(reply::Spelling::Apart), limited)
}
