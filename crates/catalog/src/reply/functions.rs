//! Functions that were found: the first with how they are called, then names.

use std::fmt::Write;

use super::{Config, Spelling, fitting, nothing};
use crate::index::Verdict;
use crate::{Catalog, Hit, Priors, SearchResult, Slot, index, summary, tokens};

/// What a model reads after a search, and which functions it names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchReply {
    pub text: String,
    /// In the order of the text.
    pub named: Vec<Slot>,
}

/// How hits are to be read where names are given apart.
pub(super) const LEGEND: &str = "namespace / function(kwargs) — what it does\n";

/// How much room a hit gets: characters of the signature and of the sentence.
type Room = (usize, usize);
/// The room of the first hit and of each other one, widest first. The first is
/// most often the one that is called, so its arguments are the last to go.
const ROOMS: [(Room, Room); 7] = [
    ((240, 120), (160, 120)),
    ((240, 120), (110, 80)),
    ((240, 90), (80, 60)),
    ((200, 80), (60, 40)),
    ((180, 60), (60, 0)),
    ((160, 60), (40, 0)),
    ((40, 0), (40, 0)),
];

/// With a second score under this share of the first, the first is far ahead:
/// fewer hits get a signature.
const FAR_AHEAD: f32 = 0.80;
const SIGNED_BEHIND_ONE_AHEAD: usize = 3;

/// Two scores this close (as a share) are equally good.
const TIE: f32 = 0.97;
/// How many servers with the same offer are told apart, and how long the line
/// about each is.
const TOLD_APART: usize = 3;
const PURPOSE: usize = 40;

/// How many further functions of the namespace that a query is about have the names
/// of their arguments, and how many characters those take.
const WITH_ARGUMENTS: usize = 4;
const ARGUMENTS: usize = 60;

/// The answer to a search, as text.
pub fn search(
    catalog: &Catalog,
    query: &str,
    config: &Config,
    priors: &Priors,
    keep: &dyn Fn(Slot) -> bool,
) -> SearchReply {
    let found = catalog.search_with(query, config.depth(), priors, keep);
    functions(catalog, query, &found, config, keep)
}

/// What a search for `query` found, in few words.
pub fn functions(
    catalog: &Catalog,
    query: &str,
    found: &SearchResult,
    config: &Config,
    keep: &dyn Fn(Slot) -> bool,
) -> SearchReply {
    if found.verdict == Verdict::Nothing {
        let near = found.near.iter().map(|slot| catalog.path(*slot));
        return SearchReply { text: fitting(nothing(near), config.tokens), named: Vec::new() };
    }
    let page = Page { catalog, config, stems: index::terms(query) };
    let (signed, others) = page.arrange(&found.hits);
    let mut first = match config.spelling {
        Spelling::Dotted => String::new(),
        Spelling::Apart => LEGEND.to_owned(),
    };
    if found.verdict == Verdict::Ambiguous {
        first.push_str(&told_apart(catalog, &found.hits, keep));
        first.push('\n');
    }
    match page.signed(&first, &signed) {
        Some(text) => page.with_names(&text, &signed, &others),
        None => page.names_alone(&found.hits),
    }
}

/// A hit with a signature, and others of its namespace that take the same
/// arguments.
struct SignedHit {
    slot: Slot,
    alike: Vec<Slot>,
}

/// A reply that is being written.
struct Page<'a> {
    catalog: &'a Catalog,
    config: &'a Config,
    /// The words of the query.
    stems: Vec<String>,
}

impl Page<'_> {
    /// Which hits get a signature, and which are named after them. What takes the
    /// same arguments as an earlier hit of its namespace stands beside it.
    fn arrange(&self, hits: &[Hit]) -> (Vec<SignedHit>, Vec<Slot>) {
        let most = self.n_signed(hits);
        let (mut signed, mut others): (Vec<SignedHit>, Vec<Slot>) = (Vec::new(), Vec::new());
        for hit in hits {
            let same = signed.iter().position(|one| self.takes_the_same(one.slot, hit.slot));
            match same {
                Some(at) => signed[at].alike.push(hit.slot),
                None if signed.len() < most => {
                    signed.push(SignedHit { slot: hit.slot, alike: Vec::new() });
                }
                None => others.push(hit.slot),
            }
        }
        (signed, others)
    }

    /// How many hits get a signature.
    fn n_signed(&self, hits: &[Hit]) -> usize {
        match hits {
            [first, second, ..]
                if 0 < self.config.names && second.score < FAR_AHEAD * first.score =>
            {
                self.config.limit.min(SIGNED_BEHIND_ONE_AHEAD)
            }
            _ => self.config.limit,
        }
    }

    /// Whether two functions are of one namespace and take the same arguments.
    fn takes_the_same(&self, one: Slot, other: Slot) -> bool {
        let (a, b) = (self.catalog.contract(one), self.catalog.contract(other));
        self.catalog.function(one).namespace == self.catalog.function(other).namespace
            && a.is_declared()
            && b.is_declared()
            && a.parameters.len() == b.parameters.len()
            && a.parameters
                .iter()
                .zip(&b.parameters)
                .all(|(a, b)| a.name == b.name && a.kind == b.kind && a.required == b.required)
    }

    /// The hits with signatures after `first`, as wide as their share of the
    /// reply allows; nothing where not even the narrowest form fits.
    fn signed(&self, first: &str, signed: &[SignedHit]) -> Option<String> {
        let share = match self.config.names {
            0 => self.config.tokens,
            _ => self.aim() * 2 / 3,
        };
        let mut narrowest = None;
        for (widest, room) in ROOMS {
            let mut text = first.to_owned();
            for (at, hit) in signed.iter().enumerate() {
                text.push_str(&self.line(hit, if at == 0 { widest } else { room }));
            }
            if tokens::fits(&text, share) {
                return Some(text);
            }
            narrowest = Some(text);
        }
        narrowest.filter(|text| tokens::fits(text, self.config.tokens))
    }

    /// Up to how many tokens names are added: most replies stay well below the
    /// most that one may have.
    fn aim(&self) -> usize {
        self.config.tokens * 3 / 4
    }

    fn line(&self, hit: &SignedHit, (signature, sentence): Room) -> String {
        let SignedHit { slot, alike } = hit;
        let catalog = self.catalog;
        let signature = catalog.signature_for(*slot, signature, &self.stems);
        let mut line = written(catalog, *slot, &signature, self.config.spelling);
        let summary = catalog.summary(*slot, sentence);
        if 0 < sentence && !summary.is_empty() {
            let _ = write!(line, " — {summary}");
        }
        if !alike.is_empty() {
            let _ = write!(line, " Same kwargs: {}.", self.names(alike));
        }
        if catalog.source(*slot).unavailable().is_some() {
            line.push_str(" (unavailable)");
        }
        line.push('\n');
        line
    }

    /// The namespace that the query is about: it names it, or all hits with a
    /// signature are of it. What stands in it is likely to be called next.
    fn subject(&self, signed: &[SignedHit]) -> Option<usize> {
        let namespace = |slot: Slot| self.catalog.function(slot).namespace;
        let [first, rest @ ..] = signed else { return None };
        let subject = namespace(first.slot);
        let words = index::terms(&self.catalog.namespaces()[subject].path);
        let is_named = !words.is_empty() && words.iter().all(|word| self.stems.contains(word));
        let is_alone = !rest.is_empty() && rest.iter().all(|hit| namespace(hit.slot) == subject);
        (is_named || is_alone).then_some(subject)
    }

    /// Adds a line with the names of further hits, as many as fit; those of the
    /// namespace that the query is about come first, a few with their arguments.
    fn with_names(&self, text: &str, signed: &[SignedHit], others: &[Slot]) -> SearchReply {
        let subject = self.subject(signed);
        let is_subject = |slot: &Slot| Some(self.catalog.function(*slot).namespace) == subject;
        let mut others = others.to_vec();
        others.sort_by_key(|slot| !is_subject(slot));
        let mut named: Vec<Slot> = Vec::new();
        for hit in signed {
            named.push(hit.slot);
            named.extend(&hit.alike);
        }
        let mut reply = text.to_owned();
        let mut n_shown = 0;
        for n in 1..=others.len().min(self.config.names) {
            let longer = format!("{text}Also: {}\n", self.by_namespace(&others[..n], subject));
            if !tokens::fits(&longer, self.aim()) {
                break;
            }
            (reply, n_shown) = (longer, n);
        }
        named.extend(&others[..n_shown]);
        SearchReply { text: reply, named }
    }

    /// `git: git_log(repo_path, max_count?), git_show; github: list_commits`
    fn by_namespace(&self, slots: &[Slot], subject: Option<usize>) -> String {
        let mut groups: Vec<(usize, Vec<Slot>)> = Vec::new();
        for slot in slots {
            let namespace = self.catalog.function(*slot).namespace;
            match groups.iter_mut().find(|(other, _)| *other == namespace) {
                Some((_, group)) => group.push(*slot),
                None => groups.push((namespace, vec![*slot])),
            }
        }
        let group = |(namespace, slots): &(usize, Vec<Slot>)| {
            let path = &self.catalog.namespaces()[*namespace].path;
            let colon = if path.is_empty() { "" } else { ": " };
            if Some(*namespace) != subject {
                return format!("{path}{colon}{}", self.names(slots));
            }
            let (described, named) = slots.split_at(slots.len().min(WITH_ARGUMENTS));
            let described = described.iter().map(|slot| self.with_arguments(*slot));
            let mut names: Vec<String> = described.collect();
            names.extend((!named.is_empty()).then(|| self.names(named)));
            format!("{path}{colon}{}", names.join(", "))
        };
        groups.iter().map(group).collect::<Vec<_>>().join("; ")
    }

    /// `git_log(repo_path, max_count?)`
    fn with_arguments(&self, slot: Slot) -> String {
        let name = &self.catalog.function(slot).name;
        format!("{name}({})", self.catalog.argument_names(slot, ARGUMENTS))
    }

    fn names(&self, slots: &[Slot]) -> String {
        let name = |slot: &Slot| self.catalog.function(*slot).name.as_str();
        slots.iter().map(name).collect::<Vec<_>>().join(", ")
    }

    /// As many names as fit, a line each.
    fn names_alone(&self, hits: &[Hit]) -> SearchReply {
        let mut reply = SearchReply::default();
        for hit in hits.iter().take(self.config.limit) {
            let name = &self.catalog.function(hit.slot).name;
            let name = written(self.catalog, hit.slot, name, self.config.spelling);
            let longer = format!("{}{name}\n", reply.text);
            if tokens::fits(&longer, self.config.tokens) {
                reply.text = longer;
                reply.named.push(hit.slot);
            }
        }
        reply
    }
}

/// Which servers offer the same, each with what it is for.
fn told_apart(catalog: &Catalog, hits: &[Hit], keep: &dyn Fn(Slot) -> bool) -> String {
    let best = hits.first().map_or(0.0, |hit| hit.score);
    let mut sources: Vec<usize> = Vec::new();
    let mut servers: Vec<String> = Vec::new();
    for hit in hits.iter().take_while(|hit| TIE * best <= hit.score) {
        let source = catalog.function(hit.slot).source;
        if sources.contains(&source) || sources.len() == TOLD_APART {
            continue;
        }
        sources.push(source);
        let label = &catalog.sources()[source].label;
        let Ok(namespace) = catalog.namespace(label) else { continue };
        let purpose = catalog.purpose(namespace, keep);
        servers.push(format!("{label} ({})", summary::cut(&purpose, PURPOSE)));
    }
    match servers.len() {
        0 | 1 => super::AMBIGUOUS.to_owned(),
        _ => format!("Several servers offer this: {}.", servers.join("; ")),
    }
}

/// A function, with its namespace as a call wants it.
pub(super) fn written(catalog: &Catalog, slot: Slot, function: &str, spelling: Spelling) -> String {
    match (catalog.path(slot), spelling) {
        ("", _) => function.to_owned(),
        (path, Spelling::Dotted) => format!("{path}.{function}"),
        (path, Spelling::Apart) => format!("{path} / {function}"),
    }
}
