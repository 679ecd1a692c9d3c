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

/// The place of a function in one catalog.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(pub u32);

/// Where in a catalog something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ItemRef {
    Tool(Slot),
    Resource { source: usize, at: usize },
    Template { source: usize, at: usize },
    Prompt { source: usize, at: usize },
    Skill { source: usize, at: usize },
}

/// Which tools exist at one moment.
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
    /// Shared with the catalogs before it that hold the same.
    finder: Arc<OnceLock<Finder>>,
}

/// One index over all kinds, and what each of its documents stands for.
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
    /// Whether another function differs from it in nothing but spelling.
    pub has_double: bool,
    contract: Arc<OnceLock<Contract>>,
}

/// One level of the tree.
#[derive(Debug, Default)]
pub struct Namespace {
    /// The last level of the path; empty for the root.
    pub label: String,
    /// The whole dotted path; empty for the root.
    pub path: String,
    /// The source that it belongs to; `None` for the root.
    pub source: Option<usize>,
    /// One line in which the operator or the server says what it is for; often
    /// empty. [`Catalog::purpose`] always knows something.
    pub description: String,
    /// Positions of the namespaces right below.
    pub children: Vec<usize>,
    /// Functions right in it, in the order of the listing.
    pub functions: Vec<Slot>,
    by_name: HashMap<String, Slot>,
    /// Functions whose upstream tells them apart by `_`, `-` or case only, by
    /// the canonical name that they share.
    alike: HashMap<String, Vec<Slot>>,
}

/// One function found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hit {
    pub slot: Slot,
    /// Comparable within one answer only; higher is better.
    pub score: f32,
}

/// What a search came to.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchResult {
    /// Best first; empty when nothing is relevant.
    pub hits: Vec<Hit>,
    pub verdict: Verdict,
    /// When nothing is relevant: what came nearest, to name namespaces by.
    pub near: Vec<Slot>,
}

/// What a search for things of any kind came to.
#[derive(Clone, Debug, PartialEq)]
pub struct ItemSearchResult {
    /// Best first, with scores that are comparable within one answer; empty
    /// when nothing is relevant.
    pub hits: Vec<(ItemRef, f32)>,
    pub verdict: Verdict,
    /// When nothing is relevant: what came nearest.
    pub near: Vec<ItemRef>,
}

/// How often functions were chosen after such queries, from 0 to 1: by what an
/// upstream is called here and by the tool's name there, `files/read_file`.
pub type Priors = BTreeMap<String, f32>;

/// Why a name leads nowhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unresolved {
    /// An empty level, such as in `orders..x`.
    Malformed,
    Namespace,
    Function,
    /// Several functions are spelt so but for `_`, `-` and case.
    Ambiguous,
}

impl Catalog {
    /// Has searches compare meanings or not; they do unless told.
    pub fn with_meaning(self, meaning: Meaning) -> Catalog {
        Catalog { meaning, finder: Arc::default(), ..self }
    }

    pub fn meaning(&self) -> Meaning {
        self.meaning
    }

    /// Takes over what an earlier catalog found out about the same listings,
    /// so that an upstream that comes or goes costs the others nothing.
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
        let alike = self.meaning == earlier.meaning
            && self.sources.len() == earlier.sources.len()
            && self.sources.iter().zip(&earlier.sources).all(|(one, other)| {
                same(one, other)
                    && one.label == other.label
                    && one.description == other.description
                    && one.skills == other.skills
            });
        if alike {
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

    /// The deepest namespace that a path leads through, wherever it goes on to.
    /// No more of it is read than there can be levels.
    pub fn deepest_namespace(&self, path: &str) -> Option<&Namespace> {
        let ends = path.match_indices('.').map(|(end, _)| end).chain([path.len()]);
        ends.take(name::LEVELS).filter_map(|end| self.namespace(&path[..end]).ok()).last()
    }

    /// The function of that name in that namespace, in any spelling.
    pub fn resolve(&self, namespace: &str, function: &str) -> Result<Slot, Unresolved> {
        let namespace = self.namespace(namespace)?;
        let canonical = name::canonical(function);
        // A name that had to be replaced is still known to who reads it elsewhere.
        let is_own = |slot: &&Slot| {
            let own = &self.tool(**slot).name;
            own == function || own.rsplit('.').next() == Some(function)
        };
        if let Some(alike) = namespace.alike.get(&canonical) {
            // What an upstream tells apart is asked for as the upstream spells it.
            let is_here = |slot: &&Slot| self.function(**slot).name == function;
            let exact = alike.iter().find(is_own).or_else(|| alike.iter().find(is_here));
            return exact.copied().ok_or(Unresolved::Ambiguous);
        }
        let found = namespace.by_name.get(&canonical).copied();
        let own = || namespace.functions.iter().find(is_own).copied();
        found.or_else(own).ok_or(Unresolved::Function)
    }

    /// The functions that a name could mean which is [`Unresolved::Ambiguous`].
    pub fn alike(&self, namespace: &str, function: &str) -> &[Slot] {
        let found = self.namespace(namespace).ok();
        let alike = found.and_then(|found| found.alike.get(&name::canonical(function)));
        alike.map(Vec::as_slice).unwrap_or_default()
    }

    /// Whether another function differs from this one in nothing but spelling.
    pub fn has_double(&self, slot: Slot) -> bool {
        self.function(slot).has_double
    }

    /// What the function wants as arguments; read once, when first needed.
    pub fn contract(&self, slot: Slot) -> &Contract {
        let read = || Contract::read(&self.tool(slot).input_schema);
        self.function(slot).contract.get_or_init(read)
    }

    /// `search(query: string, limit?: integer)`.
    pub fn signature(&self, slot: Slot, limit: usize) -> String {
        signature::one_line(&self.function(slot).name, self.contract(slot), limit)
    }

    /// The same with the members of required objects, where they fit.
    pub fn shaped_signature(&self, slot: Slot, limit: usize) -> String {
        signature::shaped(&self.function(slot).name, self.contract(slot), limit)
    }

    /// The same for who searched for `stems`: what a query names stays when not
    /// everything fits.
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

    /// The same, preferring what was chosen before.
    pub fn search_with(
        &self,
        query: &str,
        limit: usize,
        priors: &Priors,
        keep: &dyn Fn(Slot) -> bool,
    ) -> SearchResult {
        // Functions come first in the index, in their own order.
        let slot = |at: usize| Slot(at as u32);
        let query = self.preferring(Query::new(query).limit(limit).kind(Kind::Tool), priors);
        let found = self.finder().index.search(&query, |at| keep(slot(at)));
        let hit = |hit: index::Hit| Hit { slot: slot(hit.document), score: hit.score };
        SearchResult {
            hits: found.hits.into_iter().map(hit).collect(),
            verdict: found.verdict,
            near: found.near.into_iter().map(slot).collect(),
        }
    }

    /// Why functions rank as they do for a query, best first: what each feature
    /// (in the order of [`index::NAMES`]) adds to the score.
    pub fn explain(&self, query: &str) -> Vec<(Slot, Vec<f32>)> {
        let query = Query::new(query).kind(Kind::Tool);
        let explained = self.finder().index.explain_weighted(&query);
        explained.into_iter().map(|(at, parts)| (Slot(at as u32), parts.to_vec())).collect()
    }

    /// The best things of some kinds for a query, of all kinds when none is
    /// named.
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
        let query = self.preferring(query, priors);
        let found = finder.index.search(&query, |at| keep(finder.items[at]));
        let place = |at: usize| finder.items[at];
        ItemSearchResult {
            hits: found.hits.into_iter().map(|hit| (place(hit.document), hit.score)).collect(),
            verdict: found.verdict,
            near: found.near.into_iter().map(place).collect(),
        }
    }

    /// The namespace or label that something belongs to.
    pub fn namespace_of(&self, place: ItemRef) -> &str {
        match place {
            ItemRef::Tool(slot) => self.path(slot),
            ItemRef::Resource { source, .. }
            | ItemRef::Template { source, .. }
            | ItemRef::Prompt { source, .. } => &self.sources[source].label,
            ItemRef::Skill { source, at } => &self.sources[source].skills[at].namespace,
        }
    }

    /// The function of a tool, by what its upstream is called here and by its
    /// own name there.
    fn slot_by_original_name(&self, name: &str) -> Option<Slot> {
        let (label, tool) = name.split_once('/')?;
        let source = self.sources.iter().position(|source| source.label == label)?;
        let at = self.sources[source].listing.tools.iter().position(|one| one.name == tool)?;
        // Functions lie in the order of their sources and tools.
        let place = |function: &Function| (function.source, function.tool);
        let found = self.functions.binary_search_by_key(&(source, at), place);
        found.ok().map(|at| Slot(at as u32))
    }

    fn preferring(&self, query: Query, priors: &Priors) -> Query {
        let known = priors
            .iter()
            .filter_map(|(name, share)| Some((self.slot_by_original_name(name)?, share)));
        known.fold(query, |query, (slot, share)| query.prefer(slot.0 as usize, *share))
    }

    /// Builds the index now, for who has time before the first query.
    pub fn warm(&self) {
        self.finder();
    }

    /// Whether the index is there already.
    pub fn is_warm(&self) -> bool {
        self.finder.get().is_some()
    }

    /// Heap bytes of the index, near enough to compare and to promise a bound.
    pub fn index_bytes(&self) -> usize {
        self.finder().index.bytes()
    }
}

#[cfg(test)]
mod tests;
