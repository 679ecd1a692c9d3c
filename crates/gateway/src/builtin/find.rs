//! `gatelet.find`: searches functions, resources, prompts and skills.

use std::sync::Arc;

use catalog::index::{Kind, Verdict};
use catalog::{Catalog, ItemRef, ItemSearchResult, Priors, Slot, reply};
use tool::{Context, Json, Reply};

use super::BuiltinTools;
use super::definitions::{DEFAULT_RESULTS, MAX_RESULTS};
use crate::lengths::too_long;
use crate::search::{SearchAnswer, SearchRequest};
use policy::refusal::Refusal;
use policy::visibility::{CallerView, Item};
use roster::Snapshot;
use skills::Skill;
use skills::skill_index::{CallerSkills, searchable};

/// How to read the resources that were found: no function of this namespace does.
const HOW_TO_READ: &str = "No function reads these: the client does, with `resources/read`; where there is \
     a tool `resource_read`, that does.";
/// How to get the prompts that were found.
const HOW_TO_GET: &str = "No function gets these: the client does, with `prompts/get`; where there is a tool \
     `prompt_get`, that does.";

/// A search by words among what a caller sees.
struct Query<'a> {
    words: String,
    /// The limit that the caller gave.
    callers_limit: Option<usize>,
    /// How many results there are at most: the caller's limit or the default.
    limit: usize,
    catalog: &'a Arc<Catalog>,
    visible: CallerView<'a>,
}

/// The text of the reply, and the items that it shows.
type FoundItems = (String, Vec<ItemRef>);

impl Query<'_> {
    fn config(&self) -> reply::Config {
        reply::Config::with_limit(self.limit, reply::Spelling::Apart)
    }

    /// Searches the catalog for these kinds of items, or for all kinds if there are none.
    fn search(&self, kinds: &[Kind], limit: usize) -> ItemSearchResult {
        let sees = |item| self.visible.shows_item(self.catalog, item);
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
        let callers_limit = arguments.member_as::<usize>("limit");
        let query = Query {
            words: arguments.member_as("query").unwrap_or_default(),
            callers_limit,
            limit: callers_limit.unwrap_or(DEFAULT_RESULTS).clamp(1, MAX_RESULTS),
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
        let request = SearchRequest::by_words(meta_tool, &query.words);
        let answer = async {
            let (text, items) = match kind.as_deref() {
                None | Some("function") => self.find_functions(&query, context),
                Some("resource") => find_listed(&query, Kind::Resource, HOW_TO_READ),
                Some("prompt") => find_listed(&query, Kind::Prompt, HOW_TO_GET),
                Some("skill") => {
                    let known = Box::pin(self.skills.for_caller(snapshot, context)).await;
                    self.find_skills(&query, &known)
                }
                Some(_) => {
                    let known = Box::pin(self.skills.for_caller(snapshot, context)).await;
                    self.find_all(&query, &known)
                }
            };
            Ok::<_, Refusal>(SearchAnswer::new(snapshot, items, Reply::text(&text)))
        };
        let answer = self.search.run(request, Ok(()), snapshot, context, answer).await;
        answer.unwrap_or_else(|refusal| Reply::error_text(&format!("**Error:** {refusal}")))
    }

    fn find_functions(&self, query: &Query<'_>, context: &Context) -> FoundItems {
        let Query { words, callers_limit, catalog, visible, .. } = query;
        let all = visible.shows_all();
        let sees = |slot| all || visible.shows_function(catalog, slot);
        let priors = self.search.priors(context, words);
        find_functions(catalog, words, *callers_limit, &priors, &sees, unsearched(catalog, visible))
    }

    /// Searches the skills of gatelet and of upstreams.
    fn find_skills(&self, query: &Query<'_>, known: &CallerSkills) -> FoundItems {
        let visible_skills = || self.visible_skills(query, known);
        let has_any = visible_skills().any(|skill| skill.is_at_upstream());
        let upstream_skills = has_any.then(|| searchable(visible_skills(), query.catalog));
        let mut items = Vec::new();
        let text =
            reply::with_line(
                known.unsearched(),
                &query.config(),
                |config| match &upstream_skills {
                    None => {
                        let result = query.search(&[Kind::Skill], config.limit);
                        items = item_refs(&result);
                        reply::items(query.catalog, &result, config)
                    }
                    Some(catalog) => search_skills(catalog, query, config),
                },
            );
        (text, items)
    }

    /// Searches everything.
    ///
    /// Skills of upstreams are not in the catalog, and the scores of two searches
    /// cannot be compared. So they come last, and get a fifth of the results, or as
    /// many as the others leave.
    fn find_all(&self, query: &Query<'_>, known: &CallerSkills) -> FoundItems {
        let Query { words, limit, catalog, .. } = query;
        let upstream_skills =
            self.visible_skills(query, known).filter(|skill| skill.is_at_upstream());
        let upstream_skills = searchable(upstream_skills, catalog);
        let sees = |item| query.visible.shows_item(catalog, item);
        let n_here = n_hits(catalog, &[], words, *limit, &sees);
        let room = limit.div_ceil(5).min(limit - 1).max(limit - n_here);
        let n_theirs = n_hits(&upstream_skills, &[Kind::Skill], words, room, &|_| true);
        let mut items = Vec::new();
        let mut here = |config: &reply::Config| {
            let result = query.search(&[], config.limit);
            items = item_refs(&result);
            reply::items(catalog, &result, config)
        };
        let text = reply::with_line(self.not_searched(query, known), &query.config(), |config| {
            if n_theirs == 0 {
                return here(config);
            }
            let tokens = config.tokens * n_theirs / limit;
            let few = reply::Config { tokens, limit: n_theirs, ..*config };
            let last = search_skills(&upstream_skills, query, &few);
            if n_here == 0 {
                return last;
            }
            let rest = reply::Config { limit: limit - n_theirs, ..*config };
            reply::with_line(Some(last.trim_end().to_owned()), &rest, here)
        });
        (text, items)
    }

    /// Says which upstreams could not be searched: those that were never listed, and
    /// those whose skills could not be listed.
    fn not_searched(&self, query: &Query<'_>, known: &CallerSkills) -> Option<String> {
        let is_told = |label: &str| known.unreachable.iter().any(|(other, _)| other == label);
        let rest = reply::unsearched(query.catalog, &|label| {
            !is_told(label) && query.visible.shows(&Item::Namespace(label))
        });
        let lines: Vec<String> = [known.unsearched(), rest].into_iter().flatten().collect();
        (!lines.is_empty()).then(|| lines.join("\n"))
    }

    /// Returns the newest version of every skill that the caller sees.
    fn visible_skills<'k>(
        &'k self,
        query: &'k Query<'_>,
        known: &'k CallerSkills,
    ) -> impl Iterator<Item = &'k Arc<Skill>> {
        known.library.newest().filter(|skill| self.skills.shows(&query.visible, skill))
    }
}

/// Searches what upstreams list of one kind, and adds `how_to_use` to the reply.
fn find_listed(query: &Query<'_>, kind: Kind, how_to_use: &str) -> FoundItems {
    let missing = unsearched(query.catalog, &query.visible);
    let result = query.search(&[kind], query.limit);
    let found = reply::with_line(missing, &query.config(), |config| {
        reply::items(query.catalog, &result, config)
    });
    (format!("{}\n\n{how_to_use}", found.trim_end()), item_refs(&result))
}

fn item_refs(result: &ItemSearchResult) -> Vec<ItemRef> {
    result.hits.iter().map(|(item, _)| *item).collect()
}

/// Searches a catalog of skills, all of which the caller sees.
fn search_skills(skills: &Catalog, query: &Query<'_>, config: &reply::Config) -> String {
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

/// Says which of the upstreams that the caller may see could not be searched.
pub(crate) fn unsearched(catalog: &Catalog, visible: &CallerView<'_>) -> Option<String> {
    reply::unsearched(catalog, &|label| visible.shows(&Item::Namespace(label)))
}

/// Searches functions: exactly `limit` of them, or without a limit a few, and the names
/// of more. `missing` says what could not be searched.
pub(crate) fn find_functions(
    catalog: &Catalog,
    query: &str,
    limit: Option<usize>,
    priors: &Priors,
    sees: &dyn Fn(Slot) -> bool,
    missing: Option<String>,
) -> FoundItems {
    let mut items = Vec::new();
    let text = reply::with_line(missing, &search_reply_config(limit), |config| {
        let reply = reply::search(catalog, query, config, priors, sees);
        items = reply.named.into_iter().map(ItemRef::Tool).collect();
        reply.text
    });
    (text, items)
}

/// Returns how long the reply to a search for functions may be.
pub(crate) fn search_reply_config(limit: Option<usize>) -> reply::Config {
    let limited = |limit: usize| {
        reply::Config::with_limit(limit.clamp(1, MAX_RESULTS), reply::Spelling::Apart)
    };
    limit.map_or_else(|| reply::Config::usual(reply::Spelling::Apart), limited)
}
