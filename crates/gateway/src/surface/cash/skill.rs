//! `skill`: lists skills, searches them, or returns one.

use std::collections::BTreeSet;
use std::sync::Arc;

use catalog::index::Kind;
use catalog::{Catalog, GuessBy, ItemRef, Priors, nearest};
use tool::{Json, Reply};

use super::arguments::LenientArguments;
use super::request::CashRequest;
use crate::builtin;
use crate::search::{SearchAnswer, SearchRequest};
use skills::skill_index::{CallerSkills, searchable};
use skills::{Content, Library, Lookup, Reader, Reference, Skill};

/// How many similar names an error suggests.
const MAX_SIMILAR: usize = 3;

impl Reader for CashRequest<'_> {
    fn sees(&self, skill: &Skill) -> bool {
        self.cash.skills.shows(&self.visible, skill)
    }

    fn signature(&self, reference: &Reference) -> Option<String> {
        self.resolve(&reference.namespace, &reference.function).ok()?;
        reference.signature(&self.snapshot.catalog)
    }

    fn unavailable(&self, skill: &Skill) -> Option<String> {
        let Content::Upstream { label, .. } = &skill.content else { return None };
        let source = self.snapshot.catalog.sources().iter().find(|one| one.label == *label)?;
        source.unavailable().map(|why| self.scrubbed(why))
    }
}

impl CashRequest<'_> {
    /// Answers `skill`.
    pub(super) async fn skill(&self, arguments: Option<&Json>) -> Reply {
        let asked = LenientArguments::parse(arguments);
        let known = self.cash.skills.for_caller(self.snapshot, self.context).await;
        let CallerSkills { library, unreachable } = &known;
        let namespace = asked.text("namespace").unwrap_or_default();
        // Models also write `name` or `skill`.
        let wanted = ["skillname", "name", "skill"].iter().find_map(|key| asked.text(key));
        let wanted = wanted.filter(|name| !name.is_empty());
        if let Some(path) = asked.text("path") {
            return Reply::error_text(&format!(
                "**Error:** Skills are text only: no file `{}` is given out.",
                catalog::summary::cut(&path, 80)
            ));
        }
        let Some(wanted) = wanted else {
            if let Some(function) = asked.text("function") {
                return self.skills_referring_to(library, &namespace, &function);
            }
            if let Some(query) = asked.text("query") {
                return self.search_skills(&known, &query).await;
            }
            let away = unreachable_lines(unreachable, &namespace);
            return match library.index(&namespace, self) {
                Some(text) => Reply::text(&(text + &away)),
                None if !away.is_empty() => Reply::text(&format!("# Skills\n{away}")),
                None => Reply::error_text(&self.no_skills_in(library, &namespace)),
            };
        };
        let version = asked.text("version");
        match library.look_up(&namespace, &wanted, version.as_deref(), self) {
            Lookup::Found(skill) => self.read_skill(library, &skill, &asked).await,
            Lookup::Unknown { close, similar } => {
                let text = self.no_such_skill(&namespace, &wanted, close, similar);
                let away =
                    unreachable.iter().filter(|(label, _)| is_namespace_of(label, &namespace));
                let away = away.map(|(label, why)| format!(" `{label}` is unavailable: {why}."));
                Reply::error_text(&(text + &away.collect::<String>()))
            }
            other @ (Lookup::Ambiguous(_) | Lookup::NoSuchVersion(_)) => {
                Reply::error_text(&not_found(&wanted, &version.unwrap_or_default(), &other))
            }
        }
    }

    /// Answers a search for skills.
    async fn search_skills(&self, known: &CallerSkills, query: &str) -> Reply {
        let answer = async {
            let away = known.unsearched().map(|line| format!("\n{line}\n")).unwrap_or_default();
            let reply = Reply::text(&(self.find_skills(&known.library, query) + &away));
            Ok(SearchAnswer { ids: Vec::new(), reply })
        };
        let (search, request) = (&self.cash.search, SearchRequest::functions(query));
        let answer = search.run(request, Ok(()), self.snapshot, self.context, answer).await;
        answer.unwrap_or_else(|refusal| self.refusal(&refusal))
    }

    /// Lists the best skills for a query, found by the same search as functions.
    ///
    /// The skills of upstreams are listed per caller and are not in the catalog:
    /// if there are any, a catalog is made for this search.
    fn find_skills(&self, library: &Library, query: &str) -> String {
        let distant = library.latest(self).any(|skill| skill.is_at_upstream());
        let catalog = match distant {
            true => &Arc::new(searchable(library.latest(self), &self.snapshot.catalog)),
            false => &self.snapshot.catalog,
        };
        let sees = |place| distant || self.visible.shows_item(catalog, place);
        let found = catalog.search_items(
            &[Kind::Skill],
            query,
            builtin::DEFAULT_RESULTS,
            &Priors::new(),
            &sees,
        );
        if found.hits.is_empty() {
            return "No skill matches. `skill()` lists all.".to_owned();
        }
        let line = |(place, _): &(ItemRef, f32)| match place {
            ItemRef::Skill { source, at } => {
                let words = &catalog.sources()[*source].skills[*at].description;
                let address = address(catalog, *place)?;
                Some(format!("- {address} — {}\n", catalog::summary::sentence(words, 120)))
            }
            ItemRef::Tool(_)
            | ItemRef::Resource { .. }
            | ItemRef::Template { .. }
            | ItemRef::Prompt { .. } => None,
        };
        found.hits.iter().filter_map(line).collect()
    }

    /// The error for a name that no skill has, with suggestions: names spelt almost the
    /// same first (`close`), then what the search finds, then `similar` names.
    fn no_such_skill(
        &self,
        namespace: &str,
        wanted: &str,
        close: Vec<String>,
        similar: Vec<String>,
    ) -> String {
        let catalog = &self.snapshot.catalog;
        let sees = |place| self.visible.shows_item(catalog, place);
        let words = format!("{namespace} {wanted}");
        let mut near = close;
        let by = self.visible.guesses_by();
        if by == GuessBy::SpellingAndMeaning && near.len() < MAX_SIMILAR {
            let meant = catalog.nearest_items(Kind::Skill, &words, MAX_SIMILAR, &sees);
            near.extend(meant.into_iter().filter_map(|place| address(catalog, place)));
        }
        near.extend(similar);
        let mut named: Vec<String> = Vec::new();
        for one in near {
            if named.len() < MAX_SIMILAR && !named.contains(&one) {
                named.push(one);
            }
        }
        let near = match named.as_slice() {
            [] => String::new(),
            near => format!(" Nearest: {}.", near.join(", ")),
        };
        let wanted = catalog::summary::cut(&wanted.replace('`', " "), 80);
        format!("**Error:** No skill `{wanted}`.{near} Use `skill()` to list all.")
    }

    /// The error for a namespace without skills, with similar ones that have some.
    fn no_skills_in(&self, library: &Library, namespace: &str) -> String {
        let namespaces: BTreeSet<&str> =
            library.latest(self).map(|skill| skill.namespace.as_str()).collect();
        let near = nearest::nearest(namespace, namespaces, MAX_SIMILAR);
        let near: Vec<String> =
            near.iter().map(|near| format!("`skill(namespace=\"{near}\")`")).collect();
        let near = match near.as_slice() {
            [] => String::new(),
            near => format!(" Nearest: {}.", near.join(", ")),
        };
        let namespace = catalog::summary::echo(namespace);
        format!("**Error:** No skills in namespace `{namespace}`.{near} Use `skill()` to list all.")
    }

    /// Returns a skill, from its upstream if it is there.
    async fn read_skill(
        &self,
        library: &Library,
        skill: &Skill,
        asked: &LenientArguments,
    ) -> Reply {
        match &skill.content {
            Content::Upstream { .. } => self.read_from_upstream(skill, asked, library).await,
            Content::Text { .. } => self.filled(skill, asked, library),
        }
    }

    /// Fills values into the text of a skill, and puts warnings before it.
    pub(super) fn filled(
        &self,
        whole: &Skill,
        asked: &LenientArguments,
        library: &Library,
    ) -> Reply {
        let values: Vec<(&str, &Json)> = asked.iter().collect();
        let text = match whole.fill(&values) {
            Ok(text) => text,
            Err(why) => return cannot(whole, &why.to_string()),
        };
        let flags = library.flags(whole, self);
        if flags.is_empty() {
            return Reply::text(&text);
        }
        let lines: Vec<String> = flags.iter().map(|flag| format!("> - {flag}")).collect();
        Reply::text(&format!("> Before you follow this:\n{}\n\n{text}", lines.join("\n")))
    }

    /// Lists the skills that refer to a function.
    fn skills_referring_to(&self, library: &Library, namespace: &str, function: &str) -> Reply {
        let path = if namespace.is_empty() {
            function.to_owned()
        } else {
            format!("{namespace}.{function}")
        };
        let skills = match Reference::parse(&path) {
            Some(reference) => library.referring_to(&reference, self),
            None => Vec::new(),
        };
        let path = catalog::summary::cut(&path.replace('`', " "), 80);
        if skills.is_empty() {
            return Reply::text(&format!(
                "No skill speaks of `{path}`. Use `skill()` to list all."
            ));
        }
        let line = |skill: &std::sync::Arc<Skill>| {
            format!("{} — {}", library.line(skill, self), skill.address())
        };
        let lines: Vec<String> = skills.iter().map(line).collect();
        Reply::text(&format!("# Skills that speak of {path}\n\n{}\n", lines.join("\n")))
    }
}

/// The error for a skill that cannot be returned.
pub(super) fn cannot(skill: &Skill, why: &str) -> Reply {
    Reply::error_text(&format!("**Error:** `{}` cannot be given out: {why}.", skill.path()))
}

/// Returns whether a namespace belongs to an upstream; an empty one belongs to all.
fn is_namespace_of(label: &str, namespace: &str) -> bool {
    let first = namespace.split('.').next().unwrap_or_default();
    first.is_empty() || catalog::name::same(first, label)
}

/// Renders the call that returns a skill.
fn address(catalog: &Catalog, place: ItemRef) -> Option<String> {
    match place {
        ItemRef::Skill { source, at } => {
            let skill = &catalog.sources()[source].skills[at];
            Some(skills::address(&skill.namespace, &skill.name))
        }
        ItemRef::Tool(_)
        | ItemRef::Resource { .. }
        | ItemRef::Template { .. }
        | ItemRef::Prompt { .. } => None,
    }
}

/// Renders the upstreams whose skills could not be listed.
fn unreachable_lines(unreachable: &[(String, String)], namespace: &str) -> String {
    let away = unreachable.iter().filter(|(label, _)| is_namespace_of(label, namespace));
    let line = |(label, why): &(String, String)| {
        format!("\n## namespace {label}\n\navailable: false — unavailable: {why}\n")
    };
    away.map(line).collect()
}

fn not_found(wanted: &str, version: &str, lookup: &Lookup) -> String {
    let wanted = catalog::summary::cut(&wanted.replace('`', " "), 80);
    match lookup {
        Lookup::Ambiguous(addresses) => {
            format!("**Error:** `{wanted}` is the name of several: {}.", addresses.join(", "))
        }
        Lookup::NoSuchVersion(versions) if versions.is_empty() => {
            format!("**Error:** `{wanted}` has no versions: leave `version` out.")
        }
        Lookup::NoSuchVersion(versions) => format!(
            "**Error:** `{wanted}` has no version `{}`. There are: {}.",
            catalog::summary::cut(&version.replace('`', " "), 40),
            versions.join(", ")
        ),
        Lookup::Unknown { .. } => format!("**Error:** No skill `{wanted}`."),
        Lookup::Found(skill) => format!("**Error:** `{}` is there.", skill.path()),
    }
}

#[cfg(test)]
mod tests;
