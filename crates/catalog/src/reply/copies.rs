//! Finds functions that several servers offer alike, such as those of numbered copies of
//! one server, so that a reply shows them once and names the other servers.

use crate::{Catalog, Hit, Slot};

/// A hit, and the equal functions of other namespaces that it stands for.
#[derive(Clone, Debug)]
pub(super) struct FoldedHit {
    pub(super) slot: Slot,
    pub(super) score: f32,
    /// In the order of their namespaces' names.
    pub(super) copies: Vec<Slot>,
}

/// Two scores this close (as a fraction) are equally good.
const TIE: f32 = 0.97;

/// The first `most` hits that are no copies of an earlier one, each with all its copies
/// that `keep` accepts. Of copies that are equally good the one is shown whose namespace
/// stands in the reply already.
pub(super) fn fold(
    catalog: &Catalog,
    hits: &[Hit],
    most: usize,
    keep: &dyn Fn(Slot) -> bool,
) -> Vec<FoldedHit> {
    let mut folded: Vec<FoldedHit> = Vec::new();
    for hit in hits {
        let is_there = |one: &FoldedHit| one.slot == hit.slot || one.copies.contains(&hit.slot);
        if folded.iter().any(is_there) {
            continue;
        }
        if folded.len() == most {
            break;
        }
        let namespace = |slot: Slot| catalog.function(slot).namespace;
        let is_shown = |slot: Slot| folded.iter().any(|one| namespace(one.slot) == namespace(slot));
        let copies = copies_of(catalog, hit.slot, keep);
        let as_good = |slot: &&Slot| {
            let score = hits.iter().find(|other| other.slot == **slot).map(|other| other.score);
            is_shown(**slot) && score.is_some_and(|score| TIE * hit.score <= score)
        };
        let slot = match is_shown(hit.slot) {
            true => hit.slot,
            false => copies.iter().find(as_good).copied().unwrap_or(hit.slot),
        };
        let copies = if slot == hit.slot { copies } else { copies_of(catalog, slot, keep) };
        folded.push(FoldedHit { slot, score: hit.score, copies });
    }
    folded
}

/// The functions of other namespaces with the same name, description and arguments. One that
/// cannot be called now is no copy of one that can.
fn copies_of(catalog: &Catalog, slot: Slot, keep: &dyn Fn(Slot) -> bool) -> Vec<Slot> {
    let (function, tool) = (catalog.function(slot), catalog.tool(slot));
    let is_away = catalog.source(slot).unavailable().is_some();
    let is_copy = |other: Slot| {
        let (function_there, tool_there) = (catalog.function(other), catalog.tool(other));
        function_there.namespace != function.namespace
            && function_there.name == function.name
            && tool_there.description == tool.description
            && tool_there.input_schema == tool.input_schema
            && catalog.source(other).unavailable().is_some() == is_away
            && keep(other)
    };
    let mut copies: Vec<Slot> =
        catalog.named(&function.name).filter(|other| is_copy(*other)).collect();
    copies.sort_by_cached_key(|slot| {
        let label = Label::new(catalog.path(*slot));
        (label.stem.to_owned(), label.number.map(|(_, number)| number))
    });
    copies
}

/// The most names, or ranges of names, in [`list`].
const MAX_PARTS: usize = 8;

/// The namespaces of copies in few words, `mail, _1 … _4, _7`, and how many of them that
/// names. After a name, those that differ from it only in the number are given by that
/// alone.
pub(super) fn list(catalog: &Catalog, copies: &[Slot]) -> (String, usize) {
    let labels: Vec<Label<'_>> =
        copies.iter().map(|slot| Label::new(catalog.path(*slot))).collect();
    let mut parts: Vec<String> = Vec::new();
    let mut at = 0;
    while at < labels.len() && parts.len() < MAX_PARTS {
        let run = labels[at..].windows(2).take_while(|pair| pair[1].follows(&pair[0])).count();
        let is_known = 0 < at && labels[at - 1].stem == labels[at].stem;
        let first = if is_known { labels[at].suffix() } else { labels[at].whole };
        if run < 2 {
            parts.push(first.to_owned());
            at += 1;
        } else {
            parts.push(format!("{first} … {}", labels[at + run].suffix()));
            at += run + 1;
        }
    }
    let rest = match labels.len() - at {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    (format!("{}{rest}", parts.join(", ")), at)
}

/// A namespace's name, as a stem and a number where it ends in one.
struct Label<'a> {
    whole: &'a str,
    stem: &'a str,
    /// With the separator, as it is written; and its value.
    number: Option<(&'a str, u32)>,
}

impl<'a> Label<'a> {
    fn new(whole: &'a str) -> Label<'a> {
        let digits = whole.len() - whole.trim_end_matches(|c: char| c.is_ascii_digit()).len();
        let (before, digits) = whole.split_at(whole.len() - digits);
        let stem = before.trim_end_matches(['_', '-']);
        // `_07` is not the seventh of a range.
        let number = digits.parse().ok().filter(|_| digits == "0" || !digits.starts_with('0'));
        match number {
            Some(number) if stem.len() + 1 == before.len() && !stem.is_empty() => {
                Label { whole, stem, number: Some((&whole[stem.len()..], number)) }
            }
            _ => Label { whole, stem: whole, number: None },
        }
    }

    /// The number with its separator, or the whole name where it has none.
    fn suffix(&self) -> &'a str {
        self.number.map_or(self.whole, |(suffix, _)| suffix)
    }

    /// Whether this is the name after `other`: `mail_3` after `mail_2`.
    fn follows(&self, other: &Label<'_>) -> bool {
        let next = self.number.zip(other.number);
        self.stem == other.stem
            && next.is_some_and(|((suffix, own), (before, other))| {
                suffix.as_bytes()[0] == before.as_bytes()[0] && other.checked_add(1) == Some(own)
            })
    }
}
