//! Summaries of functions, without the sentence that a server repeats in most of its
//! descriptions.
//!
//! Some servers begin every description with the same sentence about themselves
//! ("This is the public REST API."). It says nothing about a function, so the sentence
//! after it is shown instead.

use std::collections::HashMap;

use super::{Catalog, Slot};
use crate::{Source, summary};

/// Fewer functions may begin with the same sentence by chance.
const LEAST: usize = 4;

impl Catalog {
    /// What the function does, in one line.
    pub fn summary(&self, slot: Slot, limit: usize) -> String {
        let tool = self.tool(slot);
        let text = tool.description.as_deref().or(tool.title.as_deref()).unwrap_or_default();
        let preambles = self.preambles.get_or_init(|| self.sources.iter().map(preamble).collect());
        if let Some(preamble) = &preambles[self.function(slot).source]
            && summary::sentence(text, usize::MAX) == *preamble
            && let Some(own) = summary::second_sentence(text, limit)
        {
            return own;
        }
        summary::sentence(text, limit)
    }
}

/// The first sentence that more than half of a source's functions share.
fn preamble(source: &Source) -> Option<String> {
    let mut counts: HashMap<String, usize> = HashMap::new();
    let tools = &source.listing.tools;
    for description in tools.iter().filter_map(|tool| tool.description.as_deref()) {
        *counts.entry(summary::sentence(description, usize::MAX)).or_default() += 1;
    }
    let most = tools.len() / 2;
    let shared = |(_, count): &(String, usize)| most.max(LEAST - 1) < *count;
    counts.into_iter().find(shared).map(|(sentence, _)| sentence)
}
