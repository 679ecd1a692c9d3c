//! Finds the function that a caller names, among those the caller may see.
//!
//! What is hidden from a caller resolves exactly like what does not exist.

use catalog::{Slot, Unresolved};

use super::request::CashRequest;

impl CashRequest<'_> {
    /// Returns whether the caller may see a function.
    pub(super) fn sees(&self, slot: Slot) -> bool {
        self.visible.shows_function(&self.snapshot.catalog, slot)
    }

    /// Resolves a function by namespace and name, in any spelling. One that the caller may
    /// not see is unknown.
    pub(super) fn resolve(&self, namespace: &str, function: &str) -> Result<Slot, Unresolved> {
        let catalog = &self.snapshot.catalog;
        match catalog.resolve(namespace, function) {
            Ok(slot) if self.sees(slot) => Ok(slot),
            Ok(_) | Err(Unresolved::Function) => Err(self.missing(namespace)),
            // Functions that the caller may not see do not make a name ambiguous.
            Err(Unresolved::Ambiguous) => match self.alike(namespace, function).as_slice() {
                [] => Err(self.missing(namespace)),
                [only] => Ok(*only),
                _ => Err(Unresolved::Ambiguous),
            },
            Err(unresolved) => Err(unresolved),
        }
    }

    /// Returns the functions that the caller may see whose names differ only in spelling.
    pub(super) fn alike(&self, namespace: &str, function: &str) -> Vec<Slot> {
        let alike = self.snapshot.catalog.lookalikes(namespace, function).iter().copied();
        alike.filter(|slot| self.sees(*slot)).collect()
    }

    /// Returns what does not exist: the function, or the whole namespace.
    fn missing(&self, namespace: &str) -> Unresolved {
        match self.snapshot.catalog.namespace(namespace) {
            Ok(found) if self.shows(found) => Unresolved::Function,
            Ok(_) | Err(_) => Unresolved::Namespace,
        }
    }

    /// Resolves a function whose namespace and name were given in one argument, the most
    /// common mistake; `/` and `:` count as dots.
    pub(super) fn resolve_joined(&self, namespace: &str, function: &str) -> Option<Slot> {
        let joined = format!("{namespace}.{function}").replace(['/', ':'], ".");
        let (path, name) = joined.trim_matches('.').rsplit_once('.')?;
        self.resolve(path, name).ok()
    }
}
