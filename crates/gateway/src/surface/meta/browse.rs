//! `tool_browse`, `resource_browse` and `prompt_browse`: cards by query or by path.

use catalog::card::{Card, Draft, Kind as CardKind, Line};
use catalog::directory::{Entry, Section};
use catalog::index::{self, Verdict};
use catalog::source::{Role, Source};
use catalog::tree::{self, Branch, Node, Path};
use catalog::{ItemRef, Priors, id, reply, tokens};
use serde_json::{Map, Value};
use tool::{Json, Reply, Tool};

use super::card_format::CardFormat;
use super::request::{MAX_CARDS, Meta, bad_argument, parse_arguments, string_argument};
use crate::bounded_cache::BoundedCache;
use crate::builtin;
use crate::error::GatewayError;
use crate::search::SearchAnswer;
use artifacts::Owner;
use policy::code::Code;
use policy::visibility::Item;

/// The kind of items that is browsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum BrowsedKind {
    Tools,
    Resources,
    Prompts,
}

/// How many of the best hits are shown with their signature.
const MAX_SIGNATURES: usize = 5;
/// How many more tools are named than `top_k`.
const EXTRA_NAMES: usize = 15;
/// The most tokens of a page to which names are added.
const MAX_TOKENS_WITH_NAMES: usize = 400;
/// How many names the card of a branch mentions.
const MAX_BRANCH_NAMES: usize = 8;

/// The id of a card, and the card as it is rendered.
type RenderedCard = (String, String);

/// How many hits a search shows.
#[derive(Clone, Copy, Debug)]
struct Page {
    /// How many are shown as cards.
    cards: usize,
    /// How many more are only named.
    names: usize,
}

impl Page {
    /// Returns the page for callers who give no `top_k`: a few cards with signatures, and
    /// the names of further hits.
    fn default_for(top_k: usize) -> Page {
        let cards = top_k.min(MAX_SIGNATURES);
        Page { cards, names: top_k - cards + EXTRA_NAMES }
    }
}

/// The result of a browse.
struct FoundCards {
    cards: Vec<RenderedCard>,
    /// A remark about the whole result.
    remark: Option<String>,
    /// The indexes of the entries that are only named, best first.
    others: Vec<usize>,
}

/// The key of a cached browse by path: kind, path, format and visibility key.
type PathKey = (BrowsedKind, String, CardFormat, String);

/// How many results are cached before the cache is cleared.
const MAX_CACHED_PATHS: usize = 256;

/// Caches the cards of paths: counting what is below a path visits every tool.
struct PathCache(BoundedCache<PathKey, Vec<RenderedCard>>);

impl Default for PathCache {
    fn default() -> PathCache {
        PathCache(BoundedCache::new(MAX_CACHED_PATHS))
    }
}

impl Meta<'_> {
    /// Answers a browse.
    pub(super) fn browse(
        &self,
        kind: BrowsedKind,
        arguments: Option<&Json>,
    ) -> Result<SearchAnswer, GatewayError> {
        let arguments = parse_arguments(arguments)?;
        let format = match string_argument(&arguments, "format")?.as_deref() {
            None | Some("text") => CardFormat::Text,
            Some("json") => CardFormat::Json,
            Some(_) => return Err(bad_argument("`format` must be \"text\" or \"json\"")),
        };
        let top_k = self.top_k(&arguments)?;
        let FoundCards { cards, remark, others } =
            match (string_argument(&arguments, "query")?, string_argument(&arguments, "path")?) {
                (Some(query), None) => {
                    let is_asked = arguments.get("top_k").is_some_and(|asked| !asked.is_null());
                    let is_usual =
                        !is_asked && kind == BrowsedKind::Tools && format == CardFormat::Text;
                    let page = match is_usual {
                        true => Page::default_for(top_k),
                        false => Page { cards: top_k, names: 0 },
                    };
                    self.by_query(kind, &query, page, format)
                }
                (None, Some(path)) => {
                    let cards = self.by_path(kind, &path, format)?;
                    let remark = cards.is_empty().then(|| "nothing is here".to_owned());
                    FoundCards { cards, remark, others: Vec::new() }
                }
                (Some(_), Some(_)) | (None, None) => {
                    return Err(bad_argument("pass exactly one of `query` and `path`"));
                }
            };
        let cards = self.in_stable_order(cards, format);
        let mut ids: Vec<String> = cards.iter().map(|(id, _)| id.clone()).collect();
        let lines = cards.into_iter().map(|(_, line)| line);
        let reply = match format {
            // The remark is a block of its own, so that the first one is nothing but
            // JSON.
            CardFormat::Json => {
                let array = format!("[{}]", lines.collect::<Vec<_>>().join(","));
                Reply::texts([array.as_str()].into_iter().chain(remark.as_deref()))
            }
            CardFormat::Text => {
                let page = remark.into_iter().chain(lines).collect::<Vec<_>>().join("\n");
                let (page, n_named) = self.with_names(&page, &others);
                let named = &others[..n_named];
                let tools = self.section(kind).entries();
                ids.extend(named.iter().map(|at| tools[*at].id.clone()));
                Reply::text(&page)
            }
        };
        Ok(SearchAnswer { ids, reply })
    }

    fn top_k(&self, arguments: &Map<String, Value>) -> Result<usize, GatewayError> {
        match arguments.get("top_k") {
            None | Some(Value::Null) => Ok(self.config().top_k.clamp(1, MAX_CARDS)),
            Some(value) => {
                let wanted = value.as_u64().filter(|k| (1..=MAX_CARDS as u64).contains(k));
                let wanted = wanted.and_then(|k| usize::try_from(k).ok());
                wanted.ok_or_else(|| {
                    bad_argument(&format!("`top_k` must be an integer from 1 to {MAX_CARDS}"))
                })
            }
        }
    }

    fn section(&self, kind: BrowsedKind) -> &Section {
        match kind {
            BrowsedKind::Tools => &self.directory().tools,
            BrowsedKind::Resources => &self.directory().resources,
            BrowsedKind::Prompts => &self.directory().prompts,
        }
    }

    /// Adds a line with the names of further tools, as many as fit. Returns the page and
    /// how many were named.
    fn with_names(&self, page: &str, others: &[usize]) -> (String, usize) {
        let entries = self.directory().tools.entries();
        let (mut shown, mut n_shown) = (page.to_owned(), 0);
        for n in 1..=others.len() {
            let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
            for entry in others[..n].iter().map(|at| &entries[*at]) {
                match groups.iter_mut().find(|(namespace, _)| *namespace == entry.namespace) {
                    Some((_, names)) => names.push(entry.name.as_str()),
                    None => groups.push((entry.namespace.as_str(), vec![entry.name.as_str()])),
                }
            }
            let group = |(namespace, names): &(&str, Vec<&str>)| {
                format!("{namespace}: {}", names.join(", "))
            };
            let groups: Vec<String> = groups.iter().map(group).collect();
            let longer = format!("{page}\nAlso (tool_id is namespace:name) {}", groups.join("; "));
            if !tokens::fits(&longer, MAX_TOKENS_WITH_NAMES) {
                break;
            }
            (shown, n_shown) = (longer, n);
        }
        (shown, n_shown)
    }

    /// Searches by words.
    fn by_query(
        &self,
        kind: BrowsedKind,
        query: &str,
        page: Page,
        format: CardFormat,
    ) -> FoundCards {
        let priors = match kind {
            BrowsedKind::Tools => self.tools.search.priors(self.context, query),
            BrowsedKind::Resources | BrowsedKind::Prompts => Priors::new(),
        };
        let section = self.section(kind);
        let directory = self.directory();
        let kind = match kind {
            BrowsedKind::Tools => index::Kind::Tool,
            BrowsedKind::Resources => index::Kind::Resource,
            BrowsedKind::Prompts => index::Kind::Prompt,
        };
        // The search names only places of this kind, so positions are of this section.
        let entry = |place| directory.position(place).map(|at| &section.entries()[at]);
        let (catalog, visible) = (&self.snapshot.catalog, &self.visible);
        // Computed once, because `keep` runs for every item.
        let all = visible.shows_all();
        let keep = |place| match place {
            ItemRef::Tool(slot) => {
                !catalog.is_builtin(slot) && (all || visible.shows_function(catalog, slot))
            }
            ItemRef::Resource { .. }
            | ItemRef::Template { .. }
            | ItemRef::Prompt { .. }
            | ItemRef::Skill { .. } => entry(place).is_some_and(|entry| all || self.shows(entry)),
        };
        let depth = page.cards + page.names;
        let found = catalog.search_items(&[kind], query, depth, &priors, &keep);
        let verdict = match found.verdict {
            Verdict::Relevant => None,
            Verdict::Ambiguous => Some(reply::AMBIGUOUS.to_owned()),
            Verdict::Nothing => {
                let near = found.near.iter().filter_map(|place| entry(*place));
                Some(reply::nothing(near.map(|entry| entry.namespace.as_str())))
            }
        };
        let missing = builtin::unsearched(catalog, visible);
        let remarks: Vec<String> = verdict.into_iter().chain(missing).collect();
        let remark = (!remarks.is_empty()).then(|| remarks.join("\n"));
        let found = found.hits.into_iter();
        let mut hits: Vec<(usize, f32)> =
            found.filter_map(|(place, score)| Some((directory.position(place)?, score))).collect();
        let id = |at: usize| section.entries()[at].id.as_str();
        hits.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| id(a.0).cmp(id(b.0))));
        let stems = index::terms(query);
        let shown = |(rank, (at, score)): (usize, (usize, f32))| {
            let entry = &section.entries()[at];
            let line = match format {
                CardFormat::Text if rank < MAX_SIGNATURES => {
                    entry.line_with_signature(catalog, &stems)
                }
                CardFormat::Text => entry.line().to_owned(),
                CardFormat::Json if rank < MAX_SIGNATURES => {
                    entry.json_with_signature(catalog, &stems, f64::from(score))
                }
                CardFormat::Json => {
                    Line::json(&entry.card.clone().scored(Some(f64::from(score)))).into_string()
                }
            };
            (entry.id.clone(), line)
        };
        let others = hits.iter().skip(page.cards).map(|(at, _)| *at).collect();
        let cards = hits.into_iter().take(page.cards).enumerate().map(shown).collect();
        FoundCards { cards, remark, others }
    }

    fn by_path(
        &self,
        kind: BrowsedKind,
        path_text: &str,
        format: CardFormat,
    ) -> Result<Vec<RenderedCard>, GatewayError> {
        let section = self.section(kind);
        let invalid = |error: &dyn std::fmt::Display| {
            GatewayError::new(Code::PathInvalid, error.to_string(), path_text)
        };
        let path: Path = path_text.parse().map_err(|error| invalid(&error))?;
        let key = (kind, path_text.to_owned(), format, self.visible.key());
        let PathCache(cache) = self.snapshot.derived(PathCache::default);
        let cards =
            cache.get_or_try_insert_with(key, || self.walk(section, &path, path_text, format))?;
        Ok(cards.to_vec())
    }

    /// Returns the cards at a path.
    fn walk(
        &self,
        section: &Section,
        path: &Path,
        path_text: &str,
        format: CardFormat,
    ) -> Result<Vec<RenderedCard>, GatewayError> {
        let found = section.tree().walk(path).map(|found| self.children(section, found, format));
        let tools = std::ptr::eq(section, &self.directory().tools);
        match found {
            Some(cards) if path.depth() == 0 && tools => {
                Ok(self.with_empty_namespaces(cards, format))
            }
            Some(cards) if !cards.is_empty() || path.depth() == 0 => Ok(cards),
            Some(_) | None => {
                let first = path.segments().first().filter(|_| tools);
                if let Some((label, reason)) = first.and_then(|label| self.unlisted_upstream(label))
                {
                    let message = format!("nothing is known of `{label}` now: {reason}");
                    return Err(GatewayError::new(Code::UpstreamUnavailable, message, path_text)
                        .retryable(true));
                }
                if path.depth() == 1 && first.is_some_and(|label| self.has_no_tools(label)) {
                    return Ok(Vec::new());
                }
                let seen = |at: usize| self.shows(&section.entries()[at]);
                let (at, children) = section.tree().nearest(path, &seen);
                let children: Vec<&str> = children.into_iter().take(MAX_CARDS).collect();
                let message = format!("nothing is at this path; `{at}` has what `children` lists");
                Err(GatewayError::new(Code::PathNotFound, message, path_text)
                    .detail("at", at)
                    .detail("children", children))
            }
        }
    }

    /// Adds the cards of namespaces that have no tools, with the reason if they are
    /// unavailable.
    fn with_empty_namespaces(
        &self,
        mut cards: Vec<RenderedCard>,
        format: CardFormat,
    ) -> Vec<RenderedCard> {
        for source in self.snapshot.catalog.sources() {
            if !self.has_no_tools(&source.label) {
                continue;
            }
            let words = match source.unavailable() {
                Some(reason) => format!("unavailable: {}", self.scrubbed(reason)),
                None => "no tools".to_owned(),
            };
            let segment = namespace(&source.label);
            cards.push(branch_card(&format!("/{segment}"), &segment, &words, format));
        }
        cards.sort();
        cards
    }

    /// Returns whether the caller sees an upstream and it has no tools.
    fn has_no_tools(&self, label: &str) -> bool {
        let catalog = &self.snapshot.catalog;
        let named = |source: &&Source| {
            source.role == Role::Upstream && catalog::name::same(&source.label, label)
        };
        catalog.sources().iter().find(named).is_some_and(|source| {
            source.listing.tools.is_empty() && self.visible.shows(&Item::Namespace(&source.label))
        })
    }

    /// Returns the label of an upstream that was never listed and why it is unavailable.
    pub(super) fn unlisted_upstream(&self, label: &str) -> Option<(&str, String)> {
        if !self.has_no_tools(label) {
            return None;
        }
        let named = |source: &&Source| catalog::name::same(&source.label, label);
        let source = self.snapshot.catalog.sources().iter().find(named)?;
        Some((source.label.as_str(), self.scrubbed(source.unavailable()?)))
    }

    fn scrubbed(&self, reason: &str) -> String {
        self.tools.pipeline.scrubber.scrub_to_line(reason)
    }

    /// Renders what was found at a path.
    fn children(
        &self,
        section: &Section,
        found: tree::PathTarget<'_>,
        format: CardFormat,
    ) -> Vec<RenderedCard> {
        let entry = |at: usize| {
            let entry = &section.entries()[at];
            self.shows(entry).then(|| (entry.id.clone(), render(entry, format)))
        };
        let branch = |branch: &Branch| self.branch(section, branch, format);
        match found {
            tree::PathTarget::Leaf(at) => entry(at).into_iter().collect(),
            tree::PathTarget::Branches(branches) => {
                branches.into_iter().filter_map(branch).collect()
            }
            tree::PathTarget::Children(children) => {
                let child = |child: &Node| match child {
                    Node::Branch(below) => branch(below),
                    Node::Leaf { leaf, .. } => entry(*leaf),
                };
                children.iter().filter_map(child).collect()
            }
        }
    }

    /// Renders the card of a branch: how many entries it has, and the first names.
    fn branch(
        &self,
        section: &Section,
        branch: &Branch,
        format: CardFormat,
    ) -> Option<RenderedCard> {
        let n_visible = self.count_visible(section, branch);
        if n_visible == 0 {
            return None;
        }
        let keep = |at: usize| self.shows(&section.entries()[at]);
        let seen: Vec<&Node> = branch.children.iter().filter(|child| child.has(&keep)).collect();
        let mut names: Vec<&str> =
            seen.iter().take(MAX_BRANCH_NAMES).map(|child| child.segment()).collect();
        if MAX_BRANCH_NAMES < seen.len() {
            names.push("…");
        }
        let words =
            format!("{}{n_visible}: {}", self.unavailable_remark(&branch.path), names.join(", "));
        Some(branch_card(&branch.path, &branch.segment, &words, format))
    }

    /// Says that a namespace is unavailable, if it is.
    fn unavailable_remark(&self, path: &str) -> String {
        let mut sources = self.snapshot.catalog.sources().iter();
        let named = |source: &&Source| path.strip_prefix('/') == Some(&*namespace(&source.label));
        let away = sources.find(named).and_then(Source::unavailable);
        away.map_or_else(String::new, |reason| format!("unavailable ({}); ", self.scrubbed(reason)))
    }

    /// Counts the entries below a branch that the caller sees.
    fn count_visible(&self, section: &Section, branch: &Branch) -> usize {
        if self.sees_all() {
            return branch.n_leaves;
        }
        let child = |child: &Node| match child {
            Node::Branch(below) => self.count_visible(section, below),
            Node::Leaf { leaf, .. } => usize::from(self.shows(&section.entries()[*leaf])),
        };
        branch.children.iter().map(child).sum()
    }

    /// Orders cards so that repeated browses begin the same, if configured.
    fn in_stable_order(&self, cards: Vec<RenderedCard>, format: CardFormat) -> Vec<RenderedCard> {
        if !self.config().cache_stable {
            return cards;
        }
        self.history.with(self.tools.origin.surface, Owner::from_context(self.context), |seen| {
            seen.arrange(self.snapshot.generation, format, cards)
        })
    }
}

/// Renders the card of a branch.
fn branch_card(path: &str, name: &str, words: &str, format: CardFormat) -> RenderedCard {
    let card = Card::truncated(Draft::new(path, name, words, CardKind::Internal));
    let line = match format {
        CardFormat::Text => Line::text(&card, None),
        CardFormat::Json => Line::json(&card),
    };
    (path.to_owned(), line.into_string())
}

/// Returns the namespace of an upstream as ids and paths have it.
fn namespace(label: &str) -> String {
    let any = Tool::parse(serde_json::json!({"name": "any"}).into());
    let derived = any.map(|any| id::of_tool(&id::qualify(label, "any"), &any));
    derived.map_or_else(|_| label.to_owned(), |derived| derived.id.body.namespace().to_owned())
}

fn render(entry: &Entry, format: CardFormat) -> String {
    match format {
        CardFormat::Json => Line::json(&entry.card).into_string(),
        CardFormat::Text => entry.line().to_owned(),
    }
}
