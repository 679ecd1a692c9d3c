//! Describes what a namespace is for, by the functions that a reader may see.

use super::{Catalog, Namespace, Slot};
use crate::{name, purpose};

/// The most functions that are considered.
const MAX_FUNCTIONS: usize = 400;
/// The most characters of a function's summary that are considered.
const MAX_SUMMARY_CHARS: usize = 200;

impl Catalog {
    /// What a namespace is for, in one line; empty when nothing is known. `sees` says
    /// which functions the reader may see.
    pub fn purpose(&self, namespace: &Namespace, sees: &dyn Fn(Slot) -> bool) -> String {
        if !namespace.description.is_empty() {
            return namespace.description.clone();
        }
        let slots = self.inside(namespace, sees);
        if let [only] = slots.as_slice() {
            let line = purpose::one_line(&self.summary(*only, MAX_SUMMARY_CHARS));
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
            let left = MAX_FUNCTIONS.saturating_sub(slots.len());
            let seen = namespace.functions.iter().copied().filter(|slot| sees(*slot));
            slots.extend(seen.take(left));
            open.extend(namespace.children.iter().rev().map(|at| &self.namespaces()[*at]));
        }
        slots
    }

    /// The server's own name, for the namespace of a whole server whose label differs from
    /// it; `None` for any other namespace.
    fn server_name(&self, namespace: &Namespace) -> Option<String> {
        let top = Some(namespace).filter(|namespace| !namespace.path.contains('.'));
        let source = &self.sources()[top?.source?];
        let name = purpose::one_line(&source.listing.server.name);
        Some(name).filter(|name| !name.is_empty() && !name::same(name, &namespace.label))
    }
}
