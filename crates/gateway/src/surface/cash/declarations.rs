//! `help(…, format="ts")`: TypeScript declarations of functions, for scripts.

use catalog::{Slot, typescript};
use tool::Reply;

use super::arguments::LenientArguments;
use super::request::CashRequest;

/// How many functions one page declares.
const PAGE: usize = 60;

impl CashRequest<'_> {
    /// Declares a function, or all functions of a namespace.
    pub(super) fn declarations(&self, asked: &LenientArguments) -> Reply {
        let namespace = asked.text("namespace").unwrap_or_default();
        let function = asked.text("function").filter(|function| !function.is_empty());
        let slots: Vec<Slot> = match &function {
            Some(function) => match self.resolve(&namespace, function) {
                Ok(slot) => vec![slot],
                Err(why) => return Reply::error_text(&self.no_such(&why, &namespace, function)),
            },
            None => match self.snapshot.catalog.namespace(&namespace) {
                Ok(found) if self.shows(found) => {
                    found.functions.iter().copied().filter(|slot| self.sees(*slot)).collect()
                }
                Ok(_) | Err(_) => {
                    let why = catalog::Unresolved::Namespace;
                    return Reply::error_text(&self.no_such(&why, &namespace, ""));
                }
            },
        };
        if slots.is_empty() {
            return Reply::text("No functions are here; `help()` lists namespaces.");
        }
        let limit = self.cash.pipeline.gate.load().limit(asked.number("sizelimit"));
        let page = asked.number("page").unwrap_or(1).max(1);
        let (mut text, mut left) = (String::new(), slots.as_slice());
        // Where a page begins depends on how long those before it are.
        for _ in 0..page {
            text.clear();
            left = self.declare_page(left, limit, &mut text);
            if left.is_empty() {
                break;
            }
        }
        if !left.is_empty() {
            let (n_left, next) = (left.len(), page + 1);
            text.push_str(&format!("// {n_left} more: name a function, or `page` {next}\n"));
        }
        Reply::text(&text)
    }

    /// Declares as many functions as fit a page, at least one. Returns the others.
    fn declare_page<'s>(&self, slots: &'s [Slot], limit: usize, text: &mut String) -> &'s [Slot] {
        for (shown, slot) in slots.iter().enumerate().take(PAGE) {
            let declared = self.declaration(*slot);
            if limit < text.len() + declared.len() && shown != 0 {
                return &slots[shown..];
            }
            text.push_str(&declared);
        }
        slots.get(PAGE..).unwrap_or_default()
    }

    /// Declares one function: `tools.orders.create(args: …): Promise<…>`.
    fn declaration(&self, slot: Slot) -> String {
        let catalog = &self.snapshot.catalog;
        let declared = typescript::declaration(&catalog.function(slot).name, catalog.tool(slot));
        let (comment, declared) = match declared.split_once("*/\n") {
            Some((comment, declared)) => (format!("{comment}*/\n"), declared),
            None => (String::new(), declared.as_str()),
        };
        let path = catalog.path(slot);
        match declared.strip_prefix('"') {
            Some(_) => format!("{comment}// tools.{path}[…]\n{declared}\n"),
            None => format!("{comment}tools.{path}.{declared}\n"),
        }
    }
}
