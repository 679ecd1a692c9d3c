//! `find`: what there is for a task, of one kind or of all.

use std::sync::Arc;

use catalog::index::{Kind, Verdict};
use catalog::{Catalog, Place, Shares, Slot, reply};
use tool::{Context, Identity, Json, Reply};

use super::{FOUND, MOST_FOUND, Own};
use crate::roster::Snapshot;
use crate::skill::Skill;
use crate::skill::census::{Known, searchable};
use crate::stage::Trust;
use crate::surface::meta;
use crate::visibility::Thing;

/// How what is no function is had: this namespace has nothing for it.
const READ: &str = "No function reads these: the client does, with `resources/read`; where there is \
     a tool `resource_read`, that does.";
const GET: &str = "No function gets these: the client does, with `prompts/get`; where there is a tool \
     `prompt_get`, that does.";

/// What is looked for, and for whom.
struct Wanted<'a> {
    query: String,
    limit: usize,
    catalog: &'a Arc<Catalog>,
    caller: &'a Identity,
}

impl Wanted<'_> {
    fn config(&self) -> reply::Config {
        reply::Config::of(self.limit, reply::Spelling::Apart)
    }
}

impl Own {
    pub(super) async fn find(
        &self,
        arguments: &Json,
        snapshot: &Snapshot,
        context: &Context,
    ) -> Reply {
        let wanted = Wanted {
            query: arguments.member_as("query").unwrap_or_default(),
            limit: arguments.member_as("limit").unwrap_or(FOUND).clamp(1, MOST_FOUND),
            catalog: &snapshot.catalog,
            caller: &context.caller,
        };
        let told = match arguments.member_as::<String>("kind").as_deref() {
            None | Some("function") => self.functions(&wanted, context),
            Some("resource") => format!("{}\n\n{READ}", self.listed(&wanted, Kind::Resource)),
            Some("prompt") => format!("{}\n\n{GET}", self.listed(&wanted, Kind::Prompt)),
            Some("skill") => {
                let known = Box::pin(self.census.taken(snapshot, context)).await;
                self.skills(&wanted, &known)
            }
            Some(_) => {
                let known = Box::pin(self.census.taken(snapshot, context)).await;
                self.all(&wanted, &known)
            }
        };
        Reply::text(&told)
    }

    fn functions(&self, wanted: &Wanted<'_>, context: &Context) -> String {
        let Wanted { query, limit, catalog, caller } = wanted;
        let all = self.trust.sees_all(caller);
        let sees = |slot| all || self.trust.sees(caller, catalog, slot);
        let shares = self.learning.asked(context, query);
        found(catalog, query, *limit, &shares, &sees, unsearched(catalog, &*self.trust, caller))
    }

    /// What upstreams list of one kind.
    fn listed(&self, wanted: &Wanted<'_>, kind: Kind) -> String {
        let missing = unsearched(wanted.catalog, &*self.trust, wanted.caller);
        let found = reply::with_line(missing, &wanted.config(), |config| {
            self.sought(wanted, &[kind], config)
        });
        found.trim_end().to_owned()
    }

    /// Skills, here and at upstreams.
    fn skills(&self, wanted: &Wanted<'_>, known: &Known) -> String {
        let seen = || self.seen(wanted, known);
        let theirs = seen().any(|skill| skill.is_distant());
        let theirs = theirs.then(|| searchable(seen(), wanted.catalog));
        reply::with_line(known.unsearched(), &wanted.config(), |config| match &theirs {
            None => self.sought(wanted, &[Kind::Skill], config),
            Some(catalog) => sought_among(catalog, wanted, config),
        })
    }

    /// Everything.
    ///
    /// Skills of upstreams are not in the catalog, and what two searches think
    /// of their hits cannot be compared. So they come last, and a fifth of the
    /// room is theirs, or what the others leave.
    fn all(&self, wanted: &Wanted<'_>, known: &Known) -> String {
        let Wanted { query, limit, catalog, caller } = wanted;
        let theirs = self.seen(wanted, known).filter(|skill| skill.is_distant());
        let theirs = searchable(theirs, catalog);
        let sees = |place| meta::sees(&*self.trust, catalog, caller, place);
        let n_here = n_hits(catalog, &[], query, *limit, &sees);
        let room = limit.div_ceil(5).min(limit - 1).max(limit - n_here);
        let n_theirs = n_hits(&theirs, &[Kind::Skill], query, room, &|_| true);
        reply::with_line(self.missing(wanted, known), &wanted.config(), |config| {
            if n_theirs == 0 {
                return self.sought(wanted, &[], config);
            }
            let tokens = config.tokens * n_theirs / limit;
            let few = reply::Config { tokens, limit: n_theirs, ..*config };
            let last = sought_among(&theirs, wanted, &few);
            if n_here == 0 {
                return last;
            }
            let rest = reply::Config { limit: limit - n_theirs, ..*config };
            reply::with_line(Some(last.trim_end().to_owned()), &rest, |config| {
                self.sought(wanted, &[], config)
            })
        })
    }

    /// What of everything could not be searched: upstreams of which nothing is
    /// known, and those of which only the skills are not.
    fn missing(&self, wanted: &Wanted<'_>, known: &Known) -> Option<String> {
        let is_told = |label: &str| known.away.iter().any(|(away, _)| away == label);
        let rest = reply::unsearched(wanted.catalog, &|label| {
            !is_told(label) && self.trust.knows(wanted.caller, &Thing::Namespace(label))
        });
        let lines: Vec<String> = [known.unsearched(), rest].into_iter().flatten().collect();
        (!lines.is_empty()).then(|| lines.join("\n"))
    }

    /// The latest skills that the caller sees.
    fn seen<'k>(
        &'k self,
        wanted: &'k Wanted<'_>,
        known: &'k Known,
    ) -> impl Iterator<Item = &'k Arc<Skill>> {
        known.library.newest().filter(|skill| self.census.sees(wanted.caller, skill))
    }

    /// The best in the catalog, of all kinds where none is named.
    fn sought(&self, wanted: &Wanted<'_>, kinds: &[Kind], config: &reply::Config) -> String {
        let Wanted { query, catalog, caller, .. } = wanted;
        let sees = |place| meta::sees(&*self.trust, catalog, caller, place);
        reply::seek(catalog, kinds, query, config, &Shares::new(), &sees)
    }
}

/// The best of skills that the caller sees.
fn sought_among(skills: &Catalog, wanted: &Wanted<'_>, config: &reply::Config) -> String {
    reply::seek(skills, &[Kind::Skill], &wanted.query, config, &Shares::new(), &|_| true)
}

fn n_hits(
    catalog: &Catalog,
    kinds: &[Kind],
    query: &str,
    limit: usize,
    sees: &dyn Fn(Place) -> bool,
) -> usize {
    let found = catalog.seek(kinds, query, limit, &Shares::new(), sees);
    if found.verdict == Verdict::Nothing { 0 } else { found.hits.len() }
}

/// Which upstreams a search could not look into, as far as a caller knows them.
pub(crate) fn unsearched(
    catalog: &Catalog,
    trust: &dyn Trust,
    caller: &Identity,
) -> Option<String> {
    reply::unsearched(catalog, &|label| trust.knows(caller, &Thing::Namespace(label)))
}

/// The best functions for a query, in few words; `missing` is what could not be
/// searched.
pub(crate) fn found(
    catalog: &Catalog,
    query: &str,
    limit: usize,
    shares: &Shares,
    sees: &dyn Fn(Slot) -> bool,
    missing: Option<String>,
) -> String {
    let config = reply::Config::of(limit, reply::Spelling::Apart);
    reply::with_line(missing, &config, |config| reply::search(catalog, query, config, shares, sees))
}
