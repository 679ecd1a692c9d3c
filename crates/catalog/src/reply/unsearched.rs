//! What a search could not look into.

use tool::Listing;

use crate::{Catalog, Source, summary};

/// What a search could not look into, in one line: the upstreams of which
/// nothing is known yet, each with why. `keep` says whose label may be told.
pub fn unsearched(catalog: &Catalog, keep: &dyn Fn(&str) -> bool) -> Option<String> {
    let blank = |source: &&Source| {
        let Listing { tools, resources, templates, prompts, .. } = &*source.listing;
        tools.is_empty() && resources.is_empty() && templates.is_empty() && prompts.is_empty()
    };
    let sources = catalog.sources().iter().filter(blank);
    let away = sources.filter_map(|source| Some((source.label.as_str(), source.unavailable()?)));
    not_searched(away.filter(|(label, _)| keep(label)))
}

/// Upstreams that were not searched, each with why, in one line.
pub fn not_searched<'a>(away: impl IntoIterator<Item = (&'a str, &'a str)>) -> Option<String> {
    let mut away = away.into_iter();
    let name = |(label, why): (&str, &str)| format!("{label} ({})", summary::cut(why, 40));
    let named: Vec<String> = away.by_ref().take(UNSEARCHED).map(name).collect();
    if named.is_empty() {
        return None;
    }
    let rest = match away.count() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Some(format!("Not searched: {}{rest}.", named.join(", ")))
}

/// The most upstreams that are named as not searched.
const UNSEARCHED: usize = 5;
