//! Renders the items of any kind that a search found, one line each.

use tool::text::escape_invisible_line;

use super::functions::qualified;
use super::{AMBIGUOUS, Config, Spelling, fitting, nothing};
use crate::index::{Kind, Verdict};
use crate::{Catalog, ItemRef, ItemSearchResult, Priors, summary, tokens};

/// The most characters of a hit's signature and of its sentence, widest first.
const BUDGETS: [(usize, usize); 5] = [(160, 120), (110, 90), (80, 60), (60, 40), (40, 0)];

/// Searches items of some kinds, or of all kinds when `kinds` is empty, and renders the
/// result.
pub fn search_items(
    catalog: &Catalog,
    kinds: &[Kind],
    query: &str,
    config: &Config,
    priors: &Priors,
    keep: &dyn Fn(ItemRef) -> bool,
) -> String {
    items(catalog, &catalog.search_items(kinds, query, config.limit, priors, keep), config)
}

/// Renders the result of a search for items.
pub fn items(catalog: &Catalog, found: &ItemSearchResult, config: &Config) -> String {
    if found.verdict == Verdict::Nothing {
        let near = found.near.iter().map(|item| catalog.namespace_of(*item));
        return fitting(nothing(near), config.tokens);
    }
    let mut text = String::new();
    for (signature, sentence) in BUDGETS {
        text.clear();
        if found.verdict == Verdict::Ambiguous {
            text.push_str(AMBIGUOUS);
            text.push('\n');
        }
        for (item, _) in &found.hits {
            text.push_str(&line(catalog, *item, signature, sentence));
        }
        if tokens::fits(&text, config.tokens) {
            return text;
        }
    }
    fitting(text, config.tokens)
}

/// One item with its kind, on one line.
fn line(catalog: &Catalog, item: ItemRef, signature: usize, sentence: usize) -> String {
    let listing = |source: usize| &catalog.sources()[source].listing;
    let home = catalog.namespace_of(item);
    let (kind, name, words) = match item {
        ItemRef::Tool(slot) => {
            let name =
                qualified(catalog, slot, &catalog.signature(slot, signature), Spelling::Apart);
            ("function", name, catalog.tool(slot).description.as_deref())
        }
        ItemRef::Resource { source, at } => {
            let resource = &listing(source).resources[at];
            ("resource", resource.uri.clone(), resource.description.as_deref())
        }
        ItemRef::Template { source, at } => {
            let template = &listing(source).templates[at];
            ("resource", template.uri_template.clone(), template.description.as_deref())
        }
        ItemRef::Prompt { source, at } => {
            let prompt = &listing(source).prompts[at];
            ("prompt", format!("{home} / {}", prompt.name), prompt.description.as_deref())
        }
        ItemRef::Skill { source, at } => {
            let skill = &catalog.sources()[source].skills[at];
            let slash = if home.is_empty() { "" } else { " / " };
            ("skill", format!("{home}{slash}{}", skill.name), Some(&*skill.description))
        }
    };
    let words = summary::sentence(words.unwrap_or_default(), sentence);
    let dash = if words.is_empty() || sentence == 0 { "" } else { " — " };
    let words = if dash.is_empty() { "" } else { &*words };
    let name = summary::cut(&escape_invisible_line(&name), signature);
    format!("{kind} {name}{dash}{words}\n")
}
