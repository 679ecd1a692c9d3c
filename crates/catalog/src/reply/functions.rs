//! Renders the functions that a search found: the first with signatures, then names.

use std::collections::HashSet;
use std::fmt::Write;

use super::copies::{self, FoldedHit};
use super::{Config, Spelling, fitting, nothing};
use crate::index::Verdict;
use crate::{Catalog, Priors, Slot, index, summary, tokens};

/// The reply to a search, and the functions that it names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchReply {
    pub text: String,
    /// In the order of the text.
    pub named: Vec<Slot>,
}

/// The header line that explains hits where namespace and name are separate.
pub(super) const LEGEND: &str = "namespace / function(kwargs) — what it does\n";

/// The most characters of a hit's signature and of its sentence. What the query names
/// stays in a signature that is shorter.
type CharBudget = (usize, usize);
/// The budgets of the first hit and of each other one, widest first: sentences are cut
/// before types of arguments. The first hit is called most often, so its arguments are
/// the last to be cut.
const BUDGETS: [(CharBudget, CharBudget); 8] = [
    ((240, 120), (160, 120)),
    ((240, 120), (110, 80)),
    ((240, 90), (110, 60)),
    ((240, 60), (80, 40)),
    ((200, 60), (60, 40)),
    ((180, 60), (60, 0)),
    ((160, 40), (40, 0)),
    ((40, 0), (40, 0)),
];

/// With a second score under this fraction of the first, the first is far ahead, and
/// fewer hits get a signature.
const FAR_AHEAD: f32 = 0.80;
const SIGNED_BEHIND_ONE_AHEAD: usize = 3;

/// Two scores this close (as a fraction) are equally good.
const TIE: f32 = 0.97;
/// The most servers with an equally good function that are listed, and the most
/// characters about each.
const MAX_SERVERS: usize = 3;
const PURPOSE: usize = 40;

/// The most further functions that are shown with their argument names, where they are in
/// the namespace that the query is about; and the most characters for those names.
const WITH_ARGUMENTS: usize = 4;
const ARGUMENTS: usize = 60;

/// How many hits are searched for each that the reply may show: others may be copies.
const WITH_COPIES: usize = 6;

/// Searches, and renders the result.
pub fn search(
    catalog: &Catalog,
    query: &str,
    config: &Config,
    priors: &Priors,
    keep: &dyn Fn(Slot) -> bool,
) -> SearchReply {
    let (most, limit) = (config.depth(), WITH_COPIES * config.depth());
    let found = catalog.search_with(query, limit, priors, keep);
    if found.verdict == Verdict::Nothing {
        let near = found.near.iter().map(|slot| catalog.path(*slot));
        return SearchReply { text: fitting(nothing(near), config.tokens), named: Vec::new() };
    }
    let mut hits = copies::fold(catalog, &found.hits, most, keep);
    if hits.len() < most && hits.len() < found.hits.len() {
        // Of a server that is there hundreds of times, all hits may be copies of a few.
        let copies: HashSet<Slot> = hits.iter().flat_map(|hit| hit.copies.clone()).collect();
        let others = |slot| keep(slot) && !copies.contains(&slot);
        let further = catalog.search_with(query, limit, priors, &others);
        hits = copies::fold(catalog, &further.hits, most, keep);
    }
    functions(catalog, query, found.verdict, &hits, config, keep)
}

/// Renders the hits of a search for `query`.
fn functions(
    catalog: &Catalog,
    query: &str,
    verdict: Verdict,
    hits: &[FoldedHit],
    config: &Config,
    keep: &dyn Fn(Slot) -> bool,
) -> SearchReply {
    let writer = ReplyWriter { catalog, config, stems: index::terms(query) };
    let (signed, others) = writer.arrange(hits);
    let mut first = match config.spelling {
        Spelling::Dotted => String::new(),
        Spelling::Apart => LEGEND.to_owned(),
    };
    if verdict == Verdict::Ambiguous {
        first.push_str(&list_servers(catalog, hits, keep));
    }
    match writer.render_signed(&first, &signed) {
        Some(text) => writer.with_names(&text, &signed, &others),
        None => writer.names_alone(hits),
    }
}

/// A hit that is shown with its signature.
struct SignedHit<'a> {
    hit: &'a FoldedHit,
    /// Other hits of its namespace that take the same arguments and have the same copies.
    same_arguments: Vec<&'a FoldedHit>,
}

/// Renders one reply.
struct ReplyWriter<'a> {
    catalog: &'a Catalog,
    config: &'a Config,
    /// The stems of the query's words.
    stems: Vec<String>,
}

impl ReplyWriter<'_> {
    /// The hits that get a signature, and those that are only named. A hit that takes the
    /// same arguments as an earlier one of its namespace is shown beside it.
    fn arrange<'b>(&self, hits: &'b [FoldedHit]) -> (Vec<SignedHit<'b>>, Vec<&'b FoldedHit>) {
        let most = self.n_signed(hits);
        let (mut signed, mut others) = (Vec::<SignedHit<'b>>::new(), Vec::new());
        for hit in hits {
            let is_beside = |one: &SignedHit<'_>| {
                self.are_beside(one.hit, hit) && self.takes_the_same(one.hit.slot, hit.slot)
            };
            match signed.iter().position(is_beside) {
                Some(at) => signed[at].same_arguments.push(hit),
                None if signed.len() < most => {
                    signed.push(SignedHit { hit, same_arguments: Vec::new() });
                }
                None => others.push(hit),
            }
        }
        (signed, others)
    }

    fn namespaces(&self, slots: &[Slot]) -> impl Iterator<Item = usize> {
        slots.iter().map(|slot| self.catalog.function(*slot).namespace)
    }

    /// How many hits get a signature.
    fn n_signed(&self, hits: &[FoldedHit]) -> usize {
        match hits {
            [first, second, ..]
                if 0 < self.config.names && second.score < FAR_AHEAD * first.score =>
            {
                self.config.limit.min(SIGNED_BEHIND_ONE_AHEAD)
            }
            _ => self.config.limit,
        }
    }

    /// Whether two functions are in one namespace, and their copies in the same others.
    fn are_beside(&self, one: &FoldedHit, other: &FoldedHit) -> bool {
        let function = |hit: &FoldedHit| self.catalog.function(hit.slot);
        function(one).namespace == function(other).namespace
            && self.namespaces(&one.copies).eq(self.namespaces(&other.copies))
    }

    /// Whether two functions take the same arguments.
    fn takes_the_same(&self, one: Slot, other: Slot) -> bool {
        let (a, b) = (self.catalog.contract(one), self.catalog.contract(other));
        a.is_declared()
            && b.is_declared()
            && a.parameters.len() == b.parameters.len()
            && a.parameters
                .iter()
                .zip(&b.parameters)
                .all(|(a, b)| a.name == b.name && a.kind == b.kind && a.required == b.required)
    }

    /// The hits with signatures after the text `first`, with the widest budget that fits;
    /// `None` where not even the narrowest does.
    fn render_signed(&self, first: &str, signed: &[SignedHit<'_>]) -> Option<String> {
        let share = match self.config.names {
            0 => self.config.tokens,
            _ => self.target_tokens() * 2 / 3,
        };
        let mut narrowest = None;
        for (widest, room) in BUDGETS {
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

    /// The number of tokens up to which names are added, so that most replies stay well
    /// below the maximum.
    fn target_tokens(&self) -> usize {
        self.config.tokens * 3 / 4
    }

    fn line(&self, signed: &SignedHit<'_>, (signature, sentence): CharBudget) -> String {
        let SignedHit { hit: FoldedHit { slot, copies, .. }, same_arguments } = signed;
        let catalog = self.catalog;
        let signature = catalog.signature_for(*slot, signature, &self.stems);
        let mut line = qualified(catalog, *slot, &signature, self.config.spelling);
        let summary = catalog.summary(*slot, sentence);
        if 0 < sentence && !summary.is_empty() {
            let _ = write!(line, " — {summary}");
        }
        let goes_on = !same_arguments.is_empty() || !copies.is_empty();
        if goes_on && line.ends_with(char::is_alphanumeric) {
            line.push('.');
        }
        if !same_arguments.is_empty() {
            let same: Vec<Slot> = same_arguments.iter().map(|hit| hit.slot).collect();
            let _ = write!(line, " Same kwargs: {}.", self.names(&same));
        }
        if !copies.is_empty() {
            let _ = write!(line, " Same in: {}.", copies::list(catalog, copies).0);
        }
        if catalog.source(*slot).unavailable().is_some() {
            line.push_str(" (unavailable)");
        }
        line.push('\n');
        line
    }

    /// The namespace that the query is about: the query names it, or all hits with a
    /// signature are in it. Its functions are likely to be called next.
    fn subject(&self, signed: &[SignedHit<'_>]) -> Option<usize> {
        let [first, rest @ ..] = signed else { return None };
        let subject = self.catalog.function(first.hit.slot).namespace;
        let words = index::terms(&self.catalog.namespaces()[subject].path);
        let is_named = !words.is_empty() && words.iter().all(|word| self.stems.contains(word));
        let is_alone =
            !rest.is_empty() && rest.iter().all(|signed| self.are_beside(signed.hit, first.hit));
        (is_named || is_alone).then_some(subject)
    }

    /// Adds a line with the names of further hits, as many as fit; those of the
    /// namespace that the query is about come first, a few with their arguments.
    fn with_names(
        &self,
        text: &str,
        signed: &[SignedHit<'_>],
        others: &[&FoldedHit],
    ) -> SearchReply {
        let subject = self.subject(signed);
        let is_subject =
            |hit: &&FoldedHit| Some(self.catalog.function(hit.slot).namespace) == subject;
        let mut others = others.to_vec();
        others.sort_by_key(|hit| !is_subject(hit));
        let mut reply = text.to_owned();
        let mut n_shown = 0;
        for n in 1..=others.len().min(self.config.names) {
            let longer = format!("{text}Also: {}\n", self.by_namespace(&others[..n], subject));
            if !tokens::fits(&longer, self.target_tokens()) {
                break;
            }
            (reply, n_shown) = (longer, n);
        }
        let with_signature =
            signed.iter().flat_map(|one| [one.hit].into_iter().chain(one.same_arguments.clone()));
        let shown = with_signature.chain(others[..n_shown].iter().copied());
        SearchReply { text: reply, named: shown.flat_map(|hit| self.named_slots(hit)).collect() }
    }

    /// The function of a hit, and those of its copies that are named.
    fn named_slots(&self, hit: &FoldedHit) -> Vec<Slot> {
        let (_, n_named) = copies::list(self.catalog, &hit.copies);
        [hit.slot].into_iter().chain(hit.copies[..n_named].iter().copied()).collect()
    }

    /// `git: git_log(repo_path, max_count?), git_show; mail: send (same in mail_1, _2)`
    fn by_namespace(&self, hits: &[&FoldedHit], subject: Option<usize>) -> String {
        let mut groups: Vec<Vec<&FoldedHit>> = Vec::new();
        for hit in hits {
            match groups.iter_mut().find(|group| self.are_beside(group[0], hit)) {
                Some(group) => group.push(hit),
                None => groups.push(vec![hit]),
            }
        }
        let groups = groups.iter().map(|group| self.name_group(group, subject));
        groups.collect::<Vec<_>>().join("; ")
    }

    /// The names of functions of one namespace that have copies in the same others.
    fn name_group(&self, group: &[&FoldedHit], subject: Option<usize>) -> String {
        let slots: Vec<Slot> = group.iter().map(|hit| hit.slot).collect();
        let namespace = self.catalog.function(slots[0]).namespace;
        let path = &self.catalog.namespaces()[namespace].path;
        let colon = if path.is_empty() { "" } else { ": " };
        let described = if Some(namespace) == subject { WITH_ARGUMENTS } else { 0 };
        let (described, named) = slots.split_at(slots.len().min(described));
        let described = described.iter().map(|slot| self.with_arguments(*slot));
        let mut names: Vec<String> = described.collect();
        names.extend((!named.is_empty()).then(|| self.names(named)));
        let copies = match &*group[0].copies {
            [] => String::new(),
            copies => format!(" (same in {})", copies::list(self.catalog, copies).0),
        };
        format!("{path}{colon}{}{copies}", names.join(", "))
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

    /// As many names as fit, one per line.
    fn names_alone(&self, hits: &[FoldedHit]) -> SearchReply {
        let mut reply = SearchReply::default();
        for hit in hits.iter().take(self.config.limit) {
            let name = &self.catalog.function(hit.slot).name;
            let name = qualified(self.catalog, hit.slot, name, self.config.spelling);
            let longer = format!("{}{name}\n", reply.text);
            if tokens::fits(&longer, self.config.tokens) {
                reply.text = longer;
                reply.named.push(hit.slot);
            }
        }
        reply
    }
}

/// The line that lists the servers of equally good hits, each with its purpose; none where
/// the hits are copies of one function on servers of the same purpose.
fn list_servers(catalog: &Catalog, hits: &[FoldedHit], keep: &dyn Fn(Slot) -> bool) -> String {
    let best = hits.first().map_or(0.0, |hit| hit.score);
    let tied = hits.iter().take_while(|hit| TIE * best <= hit.score);
    let slots = tied.flat_map(|hit| [hit.slot].into_iter().chain(hit.copies.iter().copied()));
    let mut sources: Vec<usize> = Vec::new();
    let mut servers: Vec<(&str, String)> = Vec::new();
    for source in slots.map(|slot| catalog.function(slot).source) {
        if sources.contains(&source) || servers.len() == MAX_SERVERS {
            continue;
        }
        sources.push(source);
        let label = &catalog.sources()[source].label;
        let Ok(namespace) = catalog.namespace(label) else { continue };
        let purpose = summary::cut(&catalog.purpose(namespace, keep), PURPOSE);
        if servers.iter().all(|(_, other)| *other != purpose) {
            servers.push((label, purpose));
        }
    }
    let source = |hit: &FoldedHit| catalog.function(hit.slot).source;
    let are_copies =
        hits.iter().all(|hit| hit.score < TIE * best || source(hit) == source(&hits[0]));
    match servers.as_slice() {
        [] | [_] if are_copies => String::new(),
        [] | [_] => format!("{}\n", super::AMBIGUOUS),
        servers => {
            let server = |(label, purpose): &(&str, String)| format!("{label} ({purpose})");
            let servers: Vec<String> = servers.iter().map(server).collect();
            format!("Several servers offer this: {}.\n", servers.join("; "))
        }
    }
}

/// A function with its namespace, in the notation of a call.
pub(super) fn qualified(
    catalog: &Catalog,
    slot: Slot,
    function: &str,
    spelling: Spelling,
) -> String {
    match (catalog.path(slot), spelling) {
        ("", _) => function.to_owned(),
        (path, Spelling::Dotted) => format!("{path}.{function}"),
        (path, Spelling::Apart) => format!("{path} / {function}"),
    }
}
