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
        let mut text = String::new();
        let before = (page - 1).saturating_mul(PAGE);
        let mut shown = 0;
        for slot in slots.iter().skip(before).take(PAGE) {
            let declared = self.declaration(*slot);
            if limit < text.len() + declared.len() && shown != 0 {
                break;
            }
            text.push_str(&declared);
            shown += 1;
        }
        let left = slots.len().saturating_sub(before + shown);
        if left != 0 {
            text.push_str(&format!("// {left} more: name a function, or `page` {}\n", page + 1));
        }
        Reply::text(&text)
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
