//! All functions of all upstreams, arranged in namespaces.
//!
//! Every tool of every source is reachable by exactly one pair of namespace
//! and function name, whatever it is called upstream. What had to be renamed,
//! merged or left out is a [`Finding`](tool::Finding).

mod build;
mod finder;
mod guess;
mod preamble;
mod purpose;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock};

use tool::Tool;

pub use guess::GuessBy;

use crate::index::{self, Index, Kind, Meaning, Query, Verdict};
use crate::source::Role;
use crate::{Contract, Source, name, signature};

/// The position of a function in one catalog. It means nothing in another: there it may be
/// the position of another function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(pub u32);

/// The position of any item in a catalog. `source` is the position of its upstream, and
/// `at` the position in the list of that kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ItemRef {
    Tool(Slot),
    Resource { source: usize, at: usize },
    Template { source: usize, at: usize },
    Prompt { source: usize, at: usize },
    Skill { source: usize, at: usize },
}

/// All tools, resources, prompts and skills that exist at one moment.
#[derive(Debug)]
pub struct Catalog {
    sources: Vec<Source>,
    functions: Vec<Function>,
    /// The root is the first; parents come before their children.
    namespaces: Vec<Namespace>,
    /// Canonical dotted path to namespace.
    paths: HashMap<String, usize>,
    /// By source: the sentence with which most of its descriptions begin.
    preambles: OnceLock<Vec<Option<String>>>,
    /// Whether searches compare meanings.
    meaning: Meaning,
    /// Shared with earlier catalogs of the same content.
    finder: Arc<OnceLock<Finder>>,
}

/// The search index over all kinds of items, and the item of each document.
#[derive(Debug)]
struct Finder {
    index: Index,
    /// By document; the functions first, in the order of their slots.
    items: Vec<ItemRef>,
}

/// One tool under the name by which it is called here.
#[derive(Debug)]
pub struct Function {
    /// The legal name, unique within its namespace.
    pub name: String,
    /// Position in [`Catalog::namespaces`].
    pub namespace: usize,
    /// Position in [`Catalog::sources`].
    pub source: usize,
    /// Position in the tools of the source's listing.
    pub tool: usize,
    /// Whether another function's name differs from this one only in spelling.
    pub has_lookalike: bool,
    contract: Arc<OnceLock<Contract>>,
}

/// One namespace: a level of the tree.
#[derive(Debug, Default)]
pub struct Namespace {
    /// The last level of the path; empty for the root.
    pub label: String,
    /// The whole dotted path; empty for the root.
    pub path: String,
    /// The source that it belongs to; `None` for the root.
    pub source: Option<usize>,
    /// What the operator or the server says it is for, in one line; often empty.
    /// [`Catalog::purpose`] falls back to the names of its functions.
    pub description: String,
    /// Positions of the namespaces right below.
    pub children: Vec<usize>,
    /// Functions right in it, in the order of the listing.
    pub functions: Vec<Slot>,
    by_name: HashMap<String, Slot>,
    /// Functions whose names differ only in `_`, `-` or case, by the canonical name that
    /// they share.
    lookalikes: HashMap<String, Vec<Slot>>,
}

/// One function found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hit {
    pub slot: Slot,
    /// Comparable within one answer only; higher is better.
    pub score: f32,
}

/// The result of a search for functions.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchResult {
    /// Best first; empty when nothing is relevant.
    pub hits: Vec<Hit>,
    pub verdict: Verdict,
    /// When nothing is relevant: the nearest functions, whose namespaces are suggested.
    pub near: Vec<Slot>,
}

/// The result of a search for items of any kind.
#[derive(Clone, Debug, PartialEq)]
pub struct ItemSearchResult {
    /// Best first, with scores that are comparable within one answer; empty
    /// when nothing is relevant.
    pub hits: Vec<(ItemRef, f32)>,
    pub verdict: Verdict,
    /// When nothing is relevant: the nearest items.
    pub near: Vec<ItemRef>,
}

/// How often functions were chosen after similar queries, from 0 to 1. The key is the
/// upstream's label and the tool's own name: `files/read_file`.
pub type Priors = BTreeMap<String, f32>;

/// Why a name cannot be resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unresolved {
    /// An empty level, such as in `orders..x`.
    Malformed,
    Namespace,
    Function,
    /// Several functions have this name but for `_`, `-` and case.
    Ambiguous,
}

impl Catalog {
    /// Switches the comparison of meanings in searches on or off; it is on by default.
    pub fn with_meaning(self, meaning: Meaning) -> Catalog {
        Catalog { meaning, finder: Arc::default(), ..self }
    }

    pub fn meaning(&self) -> Meaning {
        self.meaning
    }

    /// Takes over contracts and the index from an earlier catalog where the listings are
    /// the same, so that one changed upstream does not make the others start again.
    pub fn reusing(mut self, earlier: &Catalog) -> Catalog {
        let same = |one: &Source, other: &Source| Arc::ptr_eq(&one.listing, &other.listing);
        for function in &mut self.functions {
            let source = &self.sources[function.source];
            let Some(was) = earlier.sources.iter().position(|other| same(source, other)) else {
                continue;
            };
            // Functions lie in the order of their sources and tools.
            let place = |other: &Function| (other.source, other.tool);
            if let Ok(at) = earlier.functions.binary_search_by_key(&(was, function.tool), place) {
                function.contract = Arc::clone(&earlier.functions[at].contract);
            }
        }
        let is_same = self.meaning == earlier.meaning
            && self.sources.len() == earlier.sources.len()
            && self.sources.iter().zip(&earlier.sources).all(|(one, other)| {
                same(one, other)
                    && one.label == other.label
                    && one.description == other.description
                    && one.skills == other.skills
            });
        if is_same {
            self.finder = Arc::clone(&earlier.finder);
        }
        self
    }

    pub fn sources(&self) -> &[Source] {
        &self.sources
    }

    pub fn functions(&self) -> &[Function] {
        &self.functions
    }

    pub fn namespaces(&self) -> &[Namespace] {
        &self.namespaces
    }

    pub fn root(&self) -> &Namespace {
        &self.namespaces[0]
    }

    /// Every slot, in the order of the functions.
    pub fn slots(&self) -> impl Iterator<Item = Slot> + use<> {
        (0..self.functions.len() as u32).map(Slot)
    }

    pub fn function(&self, slot: Slot) -> &Function {
        &self.functions[slot.0 as usize]
    }

    /// The upstream's own definition.
    pub fn tool(&self, slot: Slot) -> &Tool {
        let function = self.function(slot);
        &self.sources[function.source].listing.tools[function.tool]
    }

    pub fn source(&self, slot: Slot) -> &Source {
        &self.sources[self.function(slot).source]
    }

    /// Whether this is one of gatelet's own functions.
    pub fn is_builtin(&self, slot: Slot) -> bool {
        self.source(slot).role == Role::Builtin
    }

    /// The dotted path of the namespace that holds a function.
    pub fn path(&self, slot: Slot) -> &str {
        &self.namespaces[self.function(slot).namespace].path
    }

    /// The namespace at a dotted path in any spelling.
    pub fn namespace(&self, path: &str) -> Result<&Namespace, Unresolved> {
        let segments = name::path(path).ok_or(Unresolved::Malformed)?;
        let at = self.paths.get(&segments.join(".")).ok_or(Unresolved::Namespace)?;
        Ok(&self.namespaces[*at])
    }

    /// The deepest namespace that exists along a path. Only as many levels are read as
    /// there can be.
    pub fn deepest_namespace(&self, path: &str) -> Option<&Namespace> {
        let ends = path.match_indices('.').map(|(end, _)| end).chain([path.len()]);
        ends.take(name::LEVELS).filter_map(|end| self.namespace(&path[..end]).ok()).last()
    }

    /// The function of that name in that namespace, in any spelling.
    pub fn resolve(&self, namespace: &str, function: &str) -> Result<Slot, Unresolved> {
        let namespace = self.namespace(namespace)?;
        let canonical = name::canonical(function);
        // A function is also found by its original name, which callers may know from
        // elsewhere.
        let is_own = |slot: &&Slot| {
            let own = &self.tool(**slot).name;
            own == function || own.rsplit('.').next() == Some(function)
        };
        if let Some(lookalikes) = namespace.lookalikes.get(&canonical) {
            // Lookalikes are told apart by their exact spelling only.
            let is_here = |slot: &&Slot| self.function(**slot).name == function;
            let exact = lookalikes.iter().find(is_own).or_else(|| lookalikes.iter().find(is_here));
            return exact.copied().ok_or(Unresolved::Ambiguous);
        }
        let found = namespace.by_name.get(&canonical).copied();
        let own = || namespace.functions.iter().find(is_own).copied();
        found.or_else(own).ok_or(Unresolved::Function)
    }

    /// The functions of that name, at most one of each namespace.
    pub(crate) fn named(&self, function: &str) -> impl Iterator<Item = Slot> {
        let canonical = name::canonical(function);
        self.namespaces
            .iter()
            .filter_map(move |namespace| namespace.by_name.get(&canonical).copied())
    }

    /// The candidates for a name that is [`Unresolved::Ambiguous`].
    pub fn lookalikes(&self, namespace: &str, function: &str) -> &[Slot] {
        let found = self.namespace(namespace).ok();
        let slots = found.and_then(|found| found.lookalikes.get(&name::canonical(function)));
        slots.map(Vec::as_slice).unwrap_or_default()
    }

    /// Whether another function's name differs from this one only in spelling.
    pub fn has_lookalike(&self, slot: Slot) -> bool {
        self.function(slot).has_lookalike
    }

    /// The contract for the function's arguments; parsed once, when first needed.
    pub fn contract(&self, slot: Slot) -> &Contract {
        let parse = || Contract::parse(&self.tool(slot).input_schema);
        self.function(slot).contract.get_or_init(parse)
    }

    /// The signature in at most `limit` characters:
    /// `search(query: string, limit?: integer)`.
    pub fn signature(&self, slot: Slot, limit: usize) -> String {
        signature::one_line(&self.function(slot).name, self.contract(slot), limit)
    }

    /// The signature with the members of required objects, where they fit.
    pub fn shaped_signature(&self, slot: Slot, limit: usize) -> String {
        signature::shaped(&self.function(slot).name, self.contract(slot), limit)
    }

    /// The signature for the reply to a search: arguments that the query's `stems` name
    /// stay when not everything fits.
    pub fn signature_for(&self, slot: Slot, limit: usize, stems: &[String]) -> String {
        signature::for_query(&self.function(slot).name, self.contract(slot), limit, stems)
    }

    /// The names of the arguments without their types.
    pub fn argument_names(&self, slot: Slot, limit: usize) -> String {
        signature::argument_names(self.contract(slot), limit)
    }

    /// The best functions for a query that `keep` lets through, best first;
    /// none when nothing is relevant.
    pub fn find(&self, query: &str, limit: usize, keep: &dyn Fn(Slot) -> bool) -> Vec<Hit> {
        self.search(query, limit, keep).hits
    }

    /// What [`Catalog::find`] finds, and how good it is.
    pub fn search(&self, query: &str, limit: usize, keep: &dyn Fn(Slot) -> bool) -> SearchResult {
        self.search_with(query, limit, &Priors::new(), keep)
    }

    /// Like [`Catalog::search`], but prefers functions that were chosen before.
    pub fn search_with(
        &self,
        query: &str,
        limit: usize,
        priors: &Priors,
        keep: &dyn Fn(Slot) -> bool,
    ) -> SearchResult {
        // Functions come first in the index, in their own order.
        let slot = |at: usize| Slot(at as u32);
        let query = self.with_priors(Query::new(query).limit(limit).kind(Kind::Tool), priors);
        let found = self.finder().index.search(&query, |at| keep(slot(at)));
        let hit = |hit: index::Hit| Hit { slot: slot(hit.document), score: hit.score };
        SearchResult {
            hits: found.hits.into_iter().map(hit).collect(),
            verdict: found.verdict,
            near: found.near.into_iter().map(slot).collect(),
        }
    }

    /// Explains a ranking, best function first: what each feature (in the order of
    /// [`index::FEATURE_NAMES`]) adds to the score.
    pub fn explain(&self, query: &str) -> Vec<(Slot, Vec<f32>)> {
        let query = Query::new(query).kind(Kind::Tool);
        let explained = self.finder().index.explain_weighted(&query);
        explained.into_iter().map(|(at, parts)| (Slot(at as u32), parts.to_vec())).collect()
    }

    /// Searches items of some kinds, or of all kinds when `kinds` is empty.
    pub fn search_items(
        &self,
        kinds: &[Kind],
        query: &str,
        limit: usize,
        priors: &Priors,
        keep: &dyn Fn(ItemRef) -> bool,
    ) -> ItemSearchResult {
        let finder = self.finder();
        let query = kinds.iter().fold(Query::new(query).limit(limit), |query, k| query.kind(*k));
        let query = self.with_priors(query, priors);
        let found = finder.index.search(&query, |at| keep(finder.items[at]));
        let place = |at: usize| finder.items[at];
        ItemSearchResult {
            hits: found.hits.into_iter().map(|hit| (place(hit.document), hit.score)).collect(),
            verdict: found.verdict,
            near: found.near.into_iter().map(place).collect(),
        }
    }

    /// The namespace or label that an item belongs to.
    pub fn namespace_of(&self, item: ItemRef) -> &str {
        match item {
            ItemRef::Tool(slot) => self.path(slot),
            ItemRef::Resource { source, .. }
            | ItemRef::Template { source, .. }
            | ItemRef::Prompt { source, .. } => &self.sources[source].label,
            ItemRef::Skill { source, at } => &self.sources[source].skills[at].namespace,
        }
    }

    /// The function of a tool, by the upstream's label and the tool's own name.
    fn slot_by_original_name(&self, name: &str) -> Option<Slot> {
        let (label, tool) = name.split_once('/')?;
        let source = self.sources.iter().position(|source| source.label == label)?;
        let at = self.sources[source].listing.tools.iter().position(|one| one.name == tool)?;
        // Functions lie in the order of their sources and tools.
        let place = |function: &Function| (function.source, function.tool);
        let found = self.functions.binary_search_by_key(&(source, at), place);
        found.ok().map(|at| Slot(at as u32))
    }

    /// Adds the boosts of earlier choices to a query.
    fn with_priors(&self, query: Query, priors: &Priors) -> Query {
        let known = priors
            .iter()
            .filter_map(|(name, share)| Some((self.slot_by_original_name(name)?, share)));
        known.fold(query, |query, (slot, share)| query.prefer(slot.0 as usize, *share))
    }

    /// Builds the index now, so that the first query does not have to.
    pub fn warm(&self) {
        self.finder();
    }

    /// Whether the index is built already.
    pub fn is_warm(&self) -> bool {
        self.finder.get().is_some()
    }

    /// The approximate heap bytes of the index.
    pub fn index_bytes(&self) -> usize {
        self.finder().index.bytes()
    }
}

#[cfg(test)]
mod tests;
