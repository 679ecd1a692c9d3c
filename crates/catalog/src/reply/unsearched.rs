//! The line of a reply that names the upstreams that could not be searched.

use tool::Listing;

use crate::{Catalog, Source, summary};

/// One line with the upstreams that could not be searched because they are unavailable
/// and their listings are unknown, each with the reason. `keep` says which labels may be
/// named.
pub fn unsearched(catalog: &Catalog, keep: &dyn Fn(&str) -> bool) -> Option<String> {
    let blank = |source: &&Source| {
        let Listing { tools, resources, templates, prompts, .. } = &*source.listing;
        tools.is_empty() && resources.is_empty() && templates.is_empty() && prompts.is_empty()
    };
    let sources = catalog.sources().iter().filter(blank);
    let away = sources.filter_map(|source| Some((source.label.as_str(), source.unavailable()?)));
    not_searched(away.filter(|(label, _)| keep(label)))
}

/// One line with the given upstreams (label and reason) that were not searched.
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
