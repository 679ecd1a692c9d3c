//! Builds the tree of namespaces from the listings of all upstreams.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, OnceLock};

use tool::{Finding, Listing, Severity};

use super::{Catalog, Function, Namespace, Slot};
use crate::index::Meaning;
use crate::source::Role;
use crate::{Source, name, purpose};

impl Catalog {
    /// Builds the catalog, and the findings about what had to be renamed or left out.
    ///
    /// Sources must be in the operator's order: of two sources with the same label, the
    /// first keeps it and the second gets a number (`orders_2`).
    pub fn build(mut sources: Vec<Source>) -> (Catalog, Vec<Finding>) {
        let mut findings = Vec::new();
        // gatelet's own label is reserved, so it is assigned first.
        sources.sort_by_key(|source| source.role != Role::Builtin);
        resolve_labels(&mut sources, &mut findings);
        let mut tree = Tree::new();
        for (at, source) in sources.iter().enumerate() {
            tree.add_source(at, source, &mut findings);
        }
        let mut catalog = Catalog {
            sources,
            functions: tree.functions,
            namespaces: tree.namespaces,
            paths: tree.paths,
            preambles: OnceLock::new(),
            meaning: Meaning::Compared,
            finder: Arc::default(),
        };
        describe(&mut catalog);
        (catalog, findings)
    }
}

/// Gives every source a legal, unique label.
fn resolve_labels(sources: &mut [Source], findings: &mut Vec<Finding>) {
    let mut taken: HashSet<String> = HashSet::new();
    for source in sources {
        let legal = name::alias(&source.label);
        let mut label = legal.clone();
        let mut number = 2;
        while !taken.insert(name::canonical(&label)) {
            label = format!("{legal}_{number}");
            number += 1;
        }
        if label != source.label {
            let message = format!("`{}` is called `{label}` here", source.label);
            findings.push(renamed("label-alias", &source.label, message));
            source.label = label;
        }
    }
}

/// The tree while it grows.
struct Tree {
    functions: Vec<Function>,
    namespaces: Vec<Namespace>,
    paths: HashMap<String, usize>,
}

/// A tool that is about to be added to the tree.
struct NewFunction<'a> {
    tool: usize,
    /// The upstream's own name.
    original: &'a str,
    alias: String,
    namespace: usize,
}

impl Tree {
    fn new() -> Tree {
        Tree {
            functions: Vec::new(),
            namespaces: vec![Namespace::default()],
            paths: HashMap::from([(String::new(), 0)]),
        }
    }

    fn add_source(&mut self, at: usize, source: &Source, findings: &mut Vec<Finding>) {
        let top = self.namespace(0, &source.label, at);
        let new_functions = self.new_functions(top, at, source, findings);
        let (names, groups) = names(&new_functions);
        let first = self.functions.len();
        let lookalikes: HashSet<usize> = groups.iter().flatten().copied().collect();
        for group in groups {
            let key = name::canonical(&new_functions[group[0]].alias);
            let slots = group.iter().map(|at| Slot((first + at) as u32)).collect();
            self.namespaces[new_functions[group[0]].namespace].lookalikes.insert(key, slots);
        }
        for (number, (function, name)) in new_functions.iter().zip(names).enumerate() {
            // Not worth a finding where the original name still resolves to it.
            let last = function.original.rsplit('.').next().unwrap_or_default();
            if !name::same(&name, last) {
                let subject = format!("{}/{}", source.label, function.original);
                let path = &self.namespaces[function.namespace].path;
                let message = format!("is called `{name}` in namespace `{path}` here");
                findings.push(renamed("name-alias", &subject, message));
            }
            self.add(at, function, name, lookalikes.contains(&number));
        }
    }

    fn new_functions<'a>(
        &mut self,
        top: usize,
        at: usize,
        source: &'a Source,
        findings: &mut Vec<Finding>,
    ) -> Vec<NewFunction<'a>> {
        let listing: &'a Listing = &source.listing;
        let mut seen: HashSet<&str> = HashSet::new();
        let mut new_functions = Vec::with_capacity(listing.tools.len());
        for (tool, definition) in listing.tools.iter().enumerate() {
            let original = definition.name.as_str();
            if !seen.insert(original) {
                let subject = format!("{}/{original}", source.label);
                let message = "is listed twice: the first definition counts";
                findings.push(Finding::new(Severity::Error, "duplicate-tool", subject, message));
                continue;
            }
            let (levels, alias) = name::place(&source.label, original);
            let mut namespace = top;
            for level in &levels {
                namespace = self.namespace(namespace, level, at);
            }
            new_functions.push(NewFunction { tool, original, alias, namespace });
        }
        new_functions
    }

    /// The namespace `label` below `parent`, created when it is missing.
    fn namespace(&mut self, parent: usize, label: &str, source: usize) -> usize {
        let dot = if self.namespaces[parent].path.is_empty() { "" } else { "." };
        let path = format!("{}{dot}{label}", self.namespaces[parent].path);
        let canonical = path.split('.').map(name::canonical).collect::<Vec<_>>().join(".");
        if let Some(found) = self.paths.get(&canonical) {
            return *found;
        }
        let at = self.namespaces.len();
        let label = label.to_owned();
        self.namespaces.push(Namespace {
            label,
            path,
            source: Some(source),
            ..Namespace::default()
        });
        self.namespaces[parent].children.push(at);
        self.paths.insert(canonical, at);
        at
    }

    fn add(
        &mut self,
        source: usize,
        function: &NewFunction<'_>,
        name: String,
        has_lookalike: bool,
    ) {
        let slot = Slot(self.functions.len() as u32);
        let namespace = &mut self.namespaces[function.namespace];
        namespace.functions.push(slot);
        namespace.by_name.insert(name::canonical(&name), slot);
        self.functions.push(Function {
            name,
            namespace: function.namespace,
            source,
            tool: function.tool,
            has_lookalike,
            contract: Arc::default(),
        });
    }
}

/// The name of each function, unique within its namespace, and the groups of lookalikes
/// by position.
///
/// Of several lookalikes, the one that is spelled legally upstream comes first, then
/// alphabetical order; it keeps the name and the others get a tag of their original
/// name. So no name depends on the order of listing.
fn names(new_functions: &[NewFunction<'_>]) -> (Vec<String>, Vec<Vec<usize>>) {
    let mut groups: BTreeMap<(usize, String), Vec<usize>> = BTreeMap::new();
    for (at, function) in new_functions.iter().enumerate() {
        let key = (function.namespace, name::canonical(&function.alias));
        groups.entry(key).or_default().push(at);
    }
    let mut taken: HashSet<(usize, String)> = groups.keys().cloned().collect();
    let mut names: Vec<String> = new_functions.iter().map(|s| s.alias.clone()).collect();
    groups.retain(|_, group| 1 < group.len());
    for group in groups.values_mut() {
        group.sort_by_key(|at| {
            let function = &new_functions[*at];
            let last = function.original.rsplit('.').next();
            (last != Some(function.alias.as_str()), function.original)
        });
        for at in &group[1..] {
            names[*at] = tagged(&new_functions[*at], &mut taken);
        }
    }
    (names, groups.into_values().collect())
}

fn tagged(function: &NewFunction<'_>, taken: &mut HashSet<(usize, String)>) -> String {
    let tags = (4..=16).map(|digits| name::tag(function.original, digits));
    let numbers = (2..).map(|number| format!("{}_{number}", name::tag(function.original, 16)));
    let free = tags
        .chain(numbers)
        .map(|tag| format!("{}_{tag}", function.alias))
        .find(|name| taken.insert((function.namespace, name::canonical(name))));
    free.unwrap_or_default()
}

/// Sets the descriptions of the upstreams' top namespaces.
fn describe(catalog: &mut Catalog) {
    for namespace in catalog.namespaces.iter_mut().filter(|one| !one.path.contains('.')) {
        let stated = namespace.source.and_then(|at| purpose::stated(&catalog.sources[at]));
        namespace.description = stated.unwrap_or_default();
    }
}

fn renamed(code: &str, subject: &str, message: String) -> Finding {
    Finding::new(Severity::Info, code, subject, message)
}
