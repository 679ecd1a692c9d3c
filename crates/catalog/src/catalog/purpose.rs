//! Describes what a namespace is for, as far as the caller sees it.

use super::{Catalog, Namespace, Slot};
use crate::{name, purpose};

/// How many functions are looked at: enough for any line.
const LOOKED_AT: usize = 400;
/// How much of a function's own sentence is looked at.
const SENTENCE: usize = 200;

impl Catalog {
    /// What a namespace is for, in one line; empty when nothing tells. `sees`
    /// says which functions are there for the reader.
    pub fn purpose(&self, namespace: &Namespace, sees: &dyn Fn(Slot) -> bool) -> String {
        if !namespace.description.is_empty() {
            return namespace.description.clone();
        }
        let slots = self.inside(namespace, sees);
        if let [only] = slots.as_slice() {
            let line = purpose::one_line(&self.summary(*only, SENTENCE));
            if !line.is_empty() {
                return line;
            }
        }
        let names = slots.iter().map(|slot| self.function(*slot).name.as_str());
        let line = purpose::from_names(&namespace.label, names);
        if line.is_empty() { self.server_name(namespace).unwrap_or_default() } else { line }
    }

    /// The functions in a namespace and below it that the reader sees.
    fn inside(&self, namespace: &Namespace, sees: &dyn Fn(Slot) -> bool) -> Vec<Slot> {
        let mut slots = Vec::new();
        let mut open = vec![namespace];
        while let Some(namespace) = open.pop() {
            let left = LOOKED_AT.saturating_sub(slots.len());
            let seen = namespace.functions.iter().copied().filter(|slot| sees(*slot));
            slots.extend(seen.take(left));
            open.extend(namespace.children.iter().rev().map(|at| &self.namespaces()[*at]));
        }
        slots
    }

    /// Returns what the server calls itself, where that says more than its label
    /// here.
    fn server_name(&self, namespace: &Namespace) -> Option<String> {
        let top = Some(namespace).filter(|namespace| !namespace.path.contains('.'));
        let source = &self.sources()[top?.source?];
        let told = purpose::one_line(&source.listing.server.name);
        Some(told).filter(|told| !told.is_empty() && !name::same(told, &namespace.label))
    }
}
