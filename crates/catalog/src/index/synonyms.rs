//! Synonyms of words in the names of tools.
//!
//! A query word adds the other members of its groups as weak terms. The groups are verbs
//! and nouns of tool names, not a thesaurus: a wrong pair costs more than a missing one,
//! because embeddings cover the rest.

use std::collections::HashMap;

use rust_stemmers::Stemmer;

use super::words;

/// The synonyms of a word that the index has.
#[derive(Clone, Debug)]
pub(crate) struct Synonyms {
    /// For words that the index has.
    by_term: HashMap<u32, Vec<u32>>,
    /// For words that the index does not have.
    by_stem: HashMap<String, Vec<u32>>,
}

impl Synonyms {
    /// `term` finds the term of a stem.
    pub(crate) fn new(stemmer: &Stemmer, term: impl Fn(&str) -> Option<u32>) -> Synonyms {
        let mut synonyms = Synonyms { by_term: HashMap::new(), by_stem: HashMap::new() };
        for group in GROUPS {
            let stems: Vec<_> = group.split(' ').map(|word| words::stem(stemmer, word)).collect();
            for stem in &stems {
                let others = match term(stem) {
                    Some(term) => synonyms.by_term.entry(term).or_default(),
                    None => synonyms.by_stem.entry(stem.to_string()).or_default(),
                };
                for other in stems.iter().filter(|other| *other != stem) {
                    others.extend(term(other).filter(|other| !others.contains(other)));
                }
            }
        }
        synonyms
    }

    pub(crate) fn of_term(&self, term: u32) -> &[u32] {
        self.by_term.get(&term).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn of_stem(&self, stem: &str) -> &[u32] {
        self.by_stem.get(stem).map_or(&[], Vec::as_slice)
    }
}

/// Groups of synonyms.
const GROUPS: &[&str] = &[
    "create add new make insert register",
    "delete remove drop erase destroy",
    "list show enumerate display view",
    "find search query lookup locate discover",
    "get fetch retrieve read load",
    "send post publish deliver",
    "update edit modify change patch set amend revise alter",
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
    "assign delegate reassign allocate",
    "priority urgent urgency importance",
    "manager boss supervisor",
    "colleague coworker teammate",
    "permission right access privilege",
    "owner holder",
    "holder shareholder",
    "author writer creator",
    "survey form questionnaire poll",
    "answer response reply",
    "fix repair mend",
    "error failure exception crash problem fault",
    "incident outage problem",
    "vulnerability weakness exploit",
    "mock fake stub dummy",
    "mute silence quiet",
    "presence online availability",
    "availability free busy",
    "uptime availability",
    "restart reboot reset",
    "snapshot checkpoint",
    "rollback revert undo restore",
    "backup restore",
    "stash shelve",
    "pipeline workflow build",
    "workflow automation flow",
    "trigger webhook",
    "environment env",
    "variable var",
    "configuration config setting preference",
    "timezone tz",
    "kubernetes k8s",
    "container docker",
    "function lambda",
    "certificate ssl tls https",
    "domain dns hostname",
    "metric usage utilization",
    "alarm alert",
    "audience reach",
    "campaign advertisement ad",
    "ad advert advertisement",
    "trial study",
    "symptom disease illness condition",
    "drug medication medicine",
    "gene mutation variant",
    "citation reference bibliography",
    "transcript subtitle caption",
    "speech voice",
    "voice speaker",
    "picture draw drawing illustration",
    "slide presentation powerpoint deck",
    "word docx",
    "excel xlsx workbook",
    "column field",
    "schema structure",
    "chart diagram",
    "dropdown select option",
    "popup dialog",
    "click tap press",
    "type fill enter",
    "back previous",
    "forward next",
    "nearby near",
    "elevation altitude height",
    "traffic congestion jam",
    "pollution smog",
    "rain precipitation snow",
    "temperature warm hot cold",
    "profit income revenue earnings",
    "earnings quarterly",
    "balance fund money",
    "gainer winner",
    "portfolio holding position",
    "dividend payout",
    "recommendation analyst rating",
    "symbol ticker",
    "attendee participant guest",
    "attendance attended",
    "decline reject refuse",
    "accept approve confirm",
    "vacation holiday absence",
    "inbox mailbox",
    "reaction emoji",
    "follower subscriber",
    "broadcast announce",
    "call phone dial ring",
    "sms text",
    "sprint cycle iteration",
    "epic initiative",
    "comment remark feedback note",
    "blame author",
    "branch fork",
    "diff change",
    "symbol class function method",
    "usage reference",
    "pattern regex",
    "shell terminal command bash",
    "snippet code",
    "binary executable",
    "decompile disassemble",
    "light lamp",
    "deploy release rollout",
    "secret token credential",
    "row record entry",
    "thread conversation discussion",
    "hotel apartment stay",
    "memory remember recall",
    "visitor user",
    "machine instance vm",
    "overdue late aging",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_knows_its_group_whether_the_index_has_it_or_not() {
        let terms = ["delet", "drop"];
        let term = |stem: &str| terms.iter().position(|term| *term == stem).map(|at| at as u32);
        let synonyms = Synonyms::new(&words::stemmer(), term);
        assert_eq!(synonyms.of_stem("remov"), [0, 1]);
        assert_eq!(synonyms.of_term(0), [1]);
        assert!(synonyms.of_stem("zebra").is_empty());
    }
}
