//! `tool_browse`, `resource_browse`, `prompt_browse`.

use catalog::card::{Card, Draft, Kind as CardKind, Line};
use catalog::directory::{Entry, Section};
use catalog::index::{self, Verdict};
use catalog::source::{Role, Source};
use catalog::tree::{self, Branch, Node, Path};
use catalog::{ItemRef, Priors, id, reply, tokens};
use serde_json::{Map, Value};
use tool::{Json, Reply, Tool};

use super::card_form::Form;
use super::request::{MAX_CARDS, Meta, bad, members, text};
use crate::bounded_cache::BoundedCache;
use crate::builtin;
use crate::error::GatewayError;
use crate::search::SearchAnswer;
use artifacts::Owner;
use policy::code::Code;
use policy::visibility::Thing;

/// What is browsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    Tools,
    Resources,
    Prompts,
}

/// How many of the best hits say how they are called.
const SIGNED: usize = 5;
/// How many more are named than are asked for.
const MORE: usize = 15;
/// Tokens up to which names are added to cards.
const WITH_NAMES: usize = 400;
/// How many names a branch mentions.
const NAMED: usize = 8;

/// A card on its way out: its id, and how it is written.
type Shown = (String, String);

/// How much a search shows.
#[derive(Clone, Copy, Debug)]
struct Page {
    cards: usize,
    /// How many more are named.
    names: usize,
}

impl Page {
    /// The page of who does not say how many cards there should be: a few, with
    /// how they are called, and the names of the others and of more.
    fn usual(top_k: usize) -> Page {
        let cards = top_k.min(SIGNED);
        Page { cards, names: top_k - cards + MORE }
    }
}

/// What was found.
struct Found {
    cards: Vec<Shown>,
    /// What is said about all of them.
    remark: Option<String>,
    /// The places of those that are only named, best first.
    others: Vec<usize>,
}

/// A walk to a path, in a form, by callers who see what this key stands for.
type Walk = (Kind, String, Form, String);

/// How many walks are kept before all are made again.
const WALKS: usize = 256;

/// The cards at the end of paths: counting what is below takes a look at every
/// tool.
struct Walks(BoundedCache<Walk, Vec<Shown>>);

impl Default for Walks {
    fn default() -> Walks {
        Walks(BoundedCache::new(WALKS))
    }
}

impl Meta<'_> {
    /// The ids of the cards, and the cards as they go out.
    pub(super) fn browse(
        &self,
        kind: Kind,
        arguments: Option<&Json>,
    ) -> Result<SearchAnswer, GatewayError> {
        let arguments = members(arguments)?;
        let form = match text(&arguments, "format")?.as_deref() {
            None | Some("text") => Form::Text,
            Some("json") => Form::Json,
            Some(_) => return Err(bad("`format` must be \"text\" or \"json\"")),
        };
        let top_k = self.top_k(&arguments)?;
        let Found { cards, remark, others } =
            match (text(&arguments, "query")?, text(&arguments, "path")?) {
                (Some(query), None) => {
                    let is_asked = arguments.get("top_k").is_some_and(|asked| !asked.is_null());
                    let is_usual = !is_asked && kind == Kind::Tools && form == Form::Text;
                    let page = match is_usual {
                        true => Page::usual(top_k),
                        false => Page { cards: top_k, names: 0 },
                    };
                    self.by_query(kind, &query, page, form)
                }
                (None, Some(path)) => {
                    let cards = self.by_path(kind, &path, form)?;
                    let remark = cards.is_empty().then(|| "nothing is here".to_owned());
                    Found { cards, remark, others: Vec::new() }
                }
                (Some(_), Some(_)) | (None, None) => {
                    return Err(bad("pass exactly one of `query` and `path`"));
                }
            };
        let cards = self.arranged(cards, form);
        let mut ids: Vec<String> = cards.iter().map(|(id, _)| id.clone()).collect();
        let lines = cards.into_iter().map(|(_, line)| line);
        let reply = match form {
            // What is said beside the cards stands in a block of its own, so
            // that the first one is nothing but JSON.
            Form::Json => {
                let array = format!("[{}]", lines.collect::<Vec<_>>().join(","));
                Reply::texts([array.as_str()].into_iter().chain(remark.as_deref()))
            }
            Form::Text => {
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
                    bad(&format!("`top_k` must be an integer from 1 to {MAX_CARDS}"))
                })
            }
        }
    }

    fn section(&self, kind: Kind) -> &Section {
        match kind {
            Kind::Tools => &self.directory().tools,
            Kind::Resources => &self.directory().resources,
            Kind::Prompts => &self.directory().prompts,
        }
    }

    /// Adds a line with the names of further tools, as many as fit.
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
            if !tokens::fits(&longer, WITH_NAMES) {
                break;
            }
            (shown, n_shown) = (longer, n);
        }
        (shown, n_shown)
    }

    /// The best cards, what is to be said about all of them, and what comes next.
    fn by_query(&self, kind: Kind, query: &str, page: Page, form: Form) -> Found {
        let shares = match kind {
            Kind::Tools => self.tools.search.priors(self.context, query),
            Kind::Resources | Kind::Prompts => Priors::new(),
        };
        let section = self.section(kind);
        let directory = self.directory();
        let kind = match kind {
            Kind::Tools => index::Kind::Tool,
            Kind::Resources => index::Kind::Resource,
            Kind::Prompts => index::Kind::Prompt,
        };
        // The search names only places of this kind, so positions are of this section.
        let entry = |place| directory.at(place).map(|at| &section.entries()[at]);
        let (catalog, visible) = (&self.snapshot.catalog, &self.visible);
        // Asked of every document there is.
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
        let found = catalog.search_items(&[kind], query, depth, &shares, &keep);
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
            found.filter_map(|(place, score)| Some((directory.at(place)?, score))).collect();
        let id = |at: usize| section.entries()[at].id.as_str();
        hits.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| id(a.0).cmp(id(b.0))));
        let shown = |(rank, (at, score)): (usize, (usize, f32))| {
            let entry = &section.entries()[at];
            let line = match form {
                Form::Text if rank < SIGNED => entry.signed(&self.snapshot.catalog).to_owned(),
                Form::Text => entry.line().to_owned(),
                Form::Json if rank < SIGNED => {
                    entry.signed_json(&self.snapshot.catalog, f64::from(score))
                }
                Form::Json => {
                    Line::json(&entry.card.clone().scored(Some(f64::from(score)))).into_string()
                }
            };
            (entry.id.clone(), line)
        };
        let others = hits.iter().skip(page.cards).map(|(at, _)| *at).collect();
        let cards = hits.into_iter().take(page.cards).enumerate().map(shown).collect();
        Found { cards, remark, others }
    }

    fn by_path(&self, kind: Kind, text: &str, form: Form) -> Result<Vec<Shown>, GatewayError> {
        let section = self.section(kind);
        let invalid = |error: &dyn std::fmt::Display| {
            GatewayError::new(Code::PathInvalid, error.to_string(), text)
        };
        let path: Path = text.parse().map_err(|error| invalid(&error))?;
        let walk = (kind, text.to_owned(), form, self.visible.key());
        let Walks(walks) = self.snapshot.derived(Walks::default);
        let cards = walks.get_or(walk, || self.walk(section, &path, text, form))?;
        Ok(cards.to_vec())
    }

    /// The cards at the end of a path.
    fn walk(
        &self,
        section: &Section,
        path: &Path,
        text: &str,
        form: Form,
    ) -> Result<Vec<Shown>, GatewayError> {
        let found = section.tree().walk(path).map(|found| self.children(section, found, form));
        let tools = std::ptr::eq(section, &self.directory().tools);
        match found {
            Some(cards) if path.depth() == 0 && tools => Ok(self.with_bare(cards, form)),
            Some(cards) if !cards.is_empty() || path.depth() == 0 => Ok(cards),
            Some(_) | None => {
                let first = path.segments().first().filter(|_| tools);
                if let Some((label, reason)) = first.and_then(|label| self.blank(label)) {
                    let message = format!("nothing is known of `{label}` now: {reason}");
                    return Err(
                        GatewayError::new(Code::UpstreamUnavailable, message, text).retryable(true)
                    );
                }
                if path.depth() == 1 && first.is_some_and(|label| self.bare(label)) {
                    return Ok(Vec::new());
                }
                let seen = |at: usize| self.shows(&section.entries()[at]);
                let (at, children) = section.tree().nearest(path, &seen);
                let children: Vec<&str> = children.into_iter().take(MAX_CARDS).collect();
                let message = format!("nothing is at this path; `{at}` has what `children` lists");
                Err(GatewayError::new(Code::PathNotFound, message, text)
                    .detail("at", at)
                    .detail("children", children))
            }
        }
    }

    /// The cards of all namespaces: of those, too, that have no tools, with the
    /// reason where there is one.
    fn with_bare(&self, mut cards: Vec<Shown>, form: Form) -> Vec<Shown> {
        for source in self.snapshot.catalog.sources() {
            if !self.bare(&source.label) {
                continue;
            }
            let words = match source.unavailable() {
                Some(reason) => format!("unavailable: {}", self.shown(reason)),
                None => "no tools".to_owned(),
            };
            let segment = namespace(&source.label);
            cards.push(place(&format!("/{segment}"), &segment, &words, form));
        }
        cards.sort();
        cards
    }

    /// Whether an upstream is there for the caller, and has no tools.
    fn bare(&self, label: &str) -> bool {
        let catalog = &self.snapshot.catalog;
        let named = |source: &&Source| {
            source.role == Role::Upstream && catalog::name::same(&source.label, label)
        };
        catalog.sources().iter().find(named).is_some_and(|source| {
            source.listing.tools.is_empty() && self.visible.shows(&Thing::Namespace(&source.label))
        })
    }

    /// An upstream that cannot be reached and of which nothing is known: its
    /// label, and why.
    pub(super) fn blank(&self, label: &str) -> Option<(&str, String)> {
        if !self.bare(label) {
            return None;
        }
        let named = |source: &&Source| catalog::name::same(&source.label, label);
        let source = self.snapshot.catalog.sources().iter().find(named)?;
        Some((source.label.as_str(), self.shown(source.unavailable()?)))
    }

    fn shown(&self, reason: &str) -> String {
        self.tools.pipeline.scrubber.scrub_to_line(reason)
    }

    fn children(&self, section: &Section, found: tree::Found<'_>, form: Form) -> Vec<Shown> {
        let entry = |at: usize| {
            let entry = &section.entries()[at];
            self.shows(entry).then(|| (entry.id.clone(), write(entry, form)))
        };
        let branch = |branch: &Branch| self.branch(section, branch, form);
        match found {
            tree::Found::Leaf(at) => entry(at).into_iter().collect(),
            tree::Found::Branches(branches) => branches.into_iter().filter_map(branch).collect(),
            tree::Found::Children(children) => {
                let child = |child: &Node| match child {
                    Node::Branch(below) => branch(below),
                    Node::Leaf { leaf, .. } => entry(*leaf),
                };
                children.iter().filter_map(child).collect()
            }
        }
    }

    /// The card of a branch: how much is there, and what it is called.
    fn branch(&self, section: &Section, branch: &Branch, form: Form) -> Option<Shown> {
        let visible = self.visible(section, branch);
        if visible == 0 {
            return None;
        }
        let keep = |at: usize| self.shows(&section.entries()[at]);
        let seen: Vec<&Node> = branch.children.iter().filter(|child| child.has(&keep)).collect();
        let mut names: Vec<&str> = seen.iter().take(NAMED).map(|child| child.segment()).collect();
        if NAMED < seen.len() {
            names.push("…");
        }
        let words = format!("{}{visible}: {}", self.remark(&branch.path), names.join(", "));
        Some(place(&branch.path, &branch.segment, &words, form))
    }

    /// That what is in a namespace cannot be called now, if so.
    fn remark(&self, path: &str) -> String {
        let mut sources = self.snapshot.catalog.sources().iter();
        let named = |source: &&Source| path.strip_prefix('/') == Some(&*namespace(&source.label));
        let away = sources.find(named).and_then(Source::unavailable);
        away.map_or_else(String::new, |reason| format!("unavailable ({}); ", self.shown(reason)))
    }

    fn visible(&self, section: &Section, branch: &Branch) -> usize {
        if self.sees_all() {
            return branch.n_leaves;
        }
        let child = |child: &Node| match child {
            Node::Branch(below) => self.visible(section, below),
            Node::Leaf { leaf, .. } => usize::from(self.shows(&section.entries()[*leaf])),
        };
        branch.children.iter().map(child).sum()
    }

    fn arranged(&self, cards: Vec<Shown>, form: Form) -> Vec<Shown> {
        if !self.config().cache_stable {
            return cards;
        }
        self.history.with(self.tools.origin.surface, Owner::from_context(self.context), |seen| {
            seen.arrange(self.snapshot.generation, form, cards)
        })
    }
}

/// The card of a place that has others below it.
fn place(path: &str, name: &str, words: &str, form: Form) -> Shown {
    let card = Card::cut(Draft::new(path, name, words, CardKind::Internal));
    let line = match form {
        Form::Text => Line::text(&card, None),
        Form::Json => Line::json(&card),
    };
    (path.to_owned(), line.into_string())
}

/// The namespace of an upstream, as it stands in ids and paths.
fn namespace(label: &str) -> String {
    let any = Tool::parse(serde_json::json!({"name": "any"}).into());
    let derived = any.map(|any| id::of_tool(&id::qualify(label, "any"), &any));
    derived.map_or_else(|_| label.to_owned(), |derived| derived.id.body.namespace().to_owned())
}

fn write(entry: &Entry, form: Form) -> String {
    match form {
        Form::Json => Line::json(&entry.card).into_string(),
        Form::Text => entry.line().to_owned(),
    }
}
