//! Words that name tools interchangeably.
//!
//! A query word brings the other members of its groups along as weak terms.
//! The groups are verbs and nouns of tool names, not a thesaurus: a wrong pair
//! here costs more than a missing one, because the vectors cover the rest.

use std::collections::HashMap;

use rust_stemmers::Stemmer;

use crate::index::words;

/// Stem to the stems of its group, computed once per index.
#[derive(Clone, Debug)]
pub(crate) struct Synonyms(HashMap<String, Vec<String>>);

impl Synonyms {
    pub(crate) fn new(stemmer: &Stemmer) -> Synonyms {
        let mut by_stem: HashMap<String, Vec<String>> = HashMap::new();
        for group in GROUPS {
            let stems: Vec<String> =
                group.split(' ').map(|word| words::stem(stemmer, word)).collect();
            for stem in &stems {
                let others = by_stem.entry(stem.clone()).or_default();
                for other in stems.iter().filter(|other| *other != stem) {
                    if !others.contains(other) {
                        others.push(other.clone());
                    }
                }
            }
        }
        Synonyms(by_stem)
    }

    pub(crate) fn of(&self, stem: &str) -> &[String] {
        self.0.get(stem).map_or(&[], Vec::as_slice)
    }
}

const GROUPS: &[&str] = &[
    "create add new make insert register",
    "delete remove drop erase destroy",
    "list show enumerate display view",
    "find search query lookup locate discover",
    "get fetch retrieve read load",
    "send post publish deliver",
    "update edit modify change patch set",
    "write save store",
    "run execute invoke launch start",
    "stop cancel abort terminate kill",
    "calculate compute evaluate determine",
    "convert transform translate",
    "download fetch",
    "upload push",
    "schedule book reserve plan",
    "message chat text",
    "email mail",
    "image picture photo",
    "picture screenshot capture",
    "video clip movie film",
    "audio sound music song",
    "file document",
    "folder directory",
    "directory tree",
    "website site url webpage page",
    "browse navigate open visit",
    "repository repo",
    "ticket issue bug",
    "pull merge",
    "meeting event appointment calendar",
    "task todo",
    "note memo",
    "reminder alarm alert notification",
    "user account member person",
    "customer client",
    "order purchase buy",
    "price cost rate quote",
    "stock share equity",
    "currency money exchange",
    "pay payment charge",
    "invoice bill",
    "weather forecast",
    "location place position",
    "address geocode coordinate",
    "route direction path",
    "distance far",
    "flight airline",
    "hotel accommodation lodging",
    "restaurant food dining",
    "recipe dish cook",
    "job career vacancy",
    "doctor physician medical",
    "news headline",
    "paper article publication",
    "summary summarize abstract",
    "chart graph plot visualization",
    "table spreadsheet sheet excel",
    "database sql",
    "statistic metric analytics",
    "compare diff difference",
    "check verify validate test",
    "analyze analysis inspect examine",
    "copy duplicate clone",
    "rename move",
    "compress zip archive",
    "password credential secret",
    "login authenticate sign",
    "log history record",
    "group team channel",
    "comment reply respond",
    "suggest recommend",
    "generate produce build",
    "monitor track watch",
    "sort order arrange",
    "count number total",
    "average mean",
    "describe detail information",
    "list all",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_knows_its_group_by_stem() {
        let synonyms = Synonyms::new(&words::stemmer());
        assert!(synonyms.of("remov").contains(&"delet".to_owned()));
        assert!(synonyms.of("zebra").is_empty());
    }
}
