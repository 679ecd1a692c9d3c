//! What a model reads after a search, and before it knows what to search for.
//!
//! Both texts are bounded in exact tokens. A hit has what a call needs: the name
//! as it must be written, a compact signature, the first sentence. The same
//! catalog, query and caller give the same bytes.

use std::fmt::Write;

use tool::Listing;

use crate::index::{Kind, Verdict};
use crate::{
    Catalog, ItemRef, ItemSearchResult, Priors, SearchResult, Slot, Source, summary, tokens,
};

/// How much a reply may say.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// The most hits.
    pub limit: usize,
    /// The most tokens of the whole reply.
    pub tokens: usize,
    pub spelling: Spelling,
}

/// How a namespace and a function are given in a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spelling {
    /// As one name: `files.read`.
    Dotted,
    /// Each by itself: `files / read`.
    Apart,
}

impl Config {
    /// Room for `limit` hits; five of them take at most 400 tokens.
    pub fn with_limit(limit: usize, spelling: Spelling) -> Config {
        Config { limit, tokens: PER_HIT * limit.max(5), spelling }
    }
}

const PER_HIT: usize = 80;

/// How hits are to be read where names are given apart.
const LEGEND: &str = "namespace / function(kwargs) — what it does\n";

/// How much room one hit gets, widest first; characters of the signature and of
/// the sentence.
const ROOMS: [(usize, usize); 5] = [(160, 120), (110, 90), (80, 60), (60, 40), (40, 0)];

/// The answer to a search, as text.
pub fn search(
    catalog: &Catalog,
    query: &str,
    config: &Config,
    priors: &Priors,
    keep: &dyn Fn(Slot) -> bool,
) -> String {
    functions(catalog, &catalog.search_with(query, config.limit, priors, keep), config)
}

/// What a search for functions found, in few words.
pub fn functions(catalog: &Catalog, found: &SearchResult, config: &Config) -> String {
    let slots: Vec<Slot> = found.hits.iter().map(|hit| hit.slot).collect();
    if found.verdict == Verdict::Nothing {
        let near = found.near.iter().map(|slot| catalog.path(*slot));
        return fitting(nothing(near), config.tokens);
    }
    let mut first = match config.spelling {
        Spelling::Dotted => String::new(),
        Spelling::Apart => LEGEND.to_owned(),
    };
    if found.verdict == Verdict::Ambiguous {
        first.push_str(AMBIGUOUS);
        first.push('\n');
    }
    for room in ROOMS {
        let text = first.clone() + &hits(catalog, &slots, room, config.spelling);
        if tokens::fits(&text, config.tokens) {
            return text;
        }
    }
    // Names alone, as many as fit.
    let mut text = String::new();
    for slot in slots {
        let name = &catalog.function(slot).name;
        let line = format!("{}\n", written(catalog, slot, name, config.spelling));
        if tokens::fits(&format!("{text}{line}"), config.tokens) {
            text.push_str(&line);
        }
    }
    text
}

/// The answer to a search for things of some kinds, of all kinds when none is
/// named. Each hit says what it is.
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

/// What a search for things of any kind found, in few words.
pub fn items(catalog: &Catalog, found: &ItemSearchResult, config: &Config) -> String {
    if found.verdict == Verdict::Nothing {
        let near = found.near.iter().map(|place| catalog.namespace_of(*place));
        return fitting(nothing(near), config.tokens);
    }
    let mut text = String::new();
    for (signature, sentence) in ROOMS {
        text.clear();
        if found.verdict == Verdict::Ambiguous {
            text.push_str(AMBIGUOUS);
            text.push('\n');
        }
        for (place, _) in &found.hits {
            text.push_str(&item(catalog, *place, signature, sentence));
        }
        if tokens::fits(&text, config.tokens) {
            return text;
        }
    }
    fitting(text, config.tokens)
}

/// One thing with its kind, on a line of its own.
fn item(catalog: &Catalog, place: ItemRef, signature: usize, sentence: usize) -> String {
    let listing = |source: usize| &catalog.sources()[source].listing;
    let home = catalog.namespace_of(place);
    let (kind, name, words) = match place {
        ItemRef::Tool(slot) => {
            let name = written(catalog, slot, &catalog.signature(slot, signature), Spelling::Apart);
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
    format!("{kind} {}{dash}{words}\n", summary::cut(&name, signature))
}

/// What lies behind gatelet, in one line: the first levels of the namespaces
/// that have a function to show. It changes when one comes or goes and not
/// with what is in them, so that a prompt that holds it stays cached.
pub fn map(catalog: &Catalog, limit: usize, keep: &dyn Fn(Slot) -> bool) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for slot in catalog.slots().filter(|slot| !catalog.is_builtin(*slot)) {
        let path = catalog.path(slot);
        let first = path.split_once('.').map_or(path, |(first, _)| first);
        // Functions lie together by source.
        if !first.is_empty() && parts.last() != Some(&first) && keep(slot) {
            parts.push(first);
        }
    }
    parts.sort_unstable();
    parts.dedup();
    let all = parts.len();
    // Names are rated by their length instead of counted: this text is in a
    // tool definition, and loading the vocabulary would hold up the first
    // answer. Three bytes a token is more than names ever take.
    let mut left = limit.saturating_sub(REST);
    let fits = |part: &&&str| {
        let cost = part.len().div_ceil(3) + 1;
        let fits = cost <= left;
        left = left.saturating_sub(cost);
        fits
    };
    let shown: Vec<&str> = parts.iter().take_while(fits).copied().collect();
    let mut text = shown.join(", ");
    if shown.len() < all && REST <= limit {
        let comma = if shown.is_empty() { "" } else { ", " };
        let _ = write!(text, "{comma}and {} more", all - shown.len());
    }
    text
}

/// What `and 12 more` takes, in tokens.
const REST: usize = 5;

fn hits(
    catalog: &Catalog,
    slots: &[Slot],
    (signature, sentence): (usize, usize),
    spelling: Spelling,
) -> String {
    let mut text = String::new();
    for slot in slots {
        let signature = catalog.signature(*slot, signature);
        text.push_str(&written(catalog, *slot, &signature, spelling));
        let line = catalog.summary(*slot, sentence);
        if 0 < sentence && !line.is_empty() {
            let _ = write!(text, " — {line}");
        }
        if catalog.source(*slot).unavailable().is_some() {
            text.push_str(" (unavailable)");
        }
        text.push('\n');
    }
    text
}

/// A function, with its namespace as a call wants it.
fn written(catalog: &Catalog, slot: Slot, function: &str, spelling: Spelling) -> String {
    match (catalog.path(slot), spelling) {
        ("", _) => function.to_owned(),
        (path, Spelling::Dotted) => format!("{path}.{function}"),
        (path, Spelling::Apart) => format!("{path} / {function}"),
    }
}

/// What is said before hits of several servers that are equally good.
pub const AMBIGUOUS: &str = "Several servers offer this; choose by server or say more.";

/// The most namespaces that are named when nothing matches.
const NEAREST: usize = 5;

/// The answer to a search that nothing matches; `near` are the namespaces of
/// what came nearest.
pub fn nothing<'a>(near: impl Iterator<Item = &'a str>) -> String {
    let mut paths: Vec<&str> = Vec::new();
    for path in near {
        if !path.is_empty() && !paths.contains(&path) && paths.len() < NEAREST {
            paths.push(path);
        }
    }
    let mut text = "Nothing matches. Say what should be done in other words".to_owned();
    if paths.is_empty() {
        text.push('.');
    } else {
        let _ = write!(text, "; the nearest namespaces are {}.", paths.join(", "));
    }
    text
}

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

/// A reply with a line of its own at the end, both within the budget.
pub fn with_line(
    line: Option<String>,
    config: &Config,
    reply: impl FnOnce(&Config) -> String,
) -> String {
    let Some(line) = line else { return reply(config) };
    let tokens = config.tokens.saturating_sub(tokens::count(&line) + 1);
    let text = reply(&Config { tokens, ..*config });
    format!("{}\n{line}\n", text.trim_end())
}

fn fitting(text: String, limit: usize) -> String {
    if tokens::fits(&text, limit) { text } else { summary::cut(&text, limit) }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;
    use tool::Tool;

    use super::*;
    use crate::{Source, State};

    fn source(label: &str, tools: &[(&str, String)]) -> Source {
        let read = |(name, description): &(&str, String)| {
            let schema = json!({"type": "object", "properties": {"path": {"type": "string"}},
                "required": ["path"]});
            let raw = json!({"name": name, "description": description, "inputSchema": schema});
            Tool::read(raw.into()).unwrap()
        };
        let tools = tools.iter().map(read).collect();
        Source::new(label, Arc::new(Listing { tools, ..Listing::default() }))
    }

    fn catalog() -> Catalog {
        let long = "Word ".repeat(500);
        Catalog::build(vec![
            source(
                "files",
                &[
                    ("read_file", format!("Reads a file. {long}")),
                    ("write_file", format!("Writes a file. {long}")),
                ],
            ),
            source("mail", &[("send", "Sends an email to somebody.".to_owned())]),
        ])
        .0
    }

    fn ask_for(query: &str, config: &Config) -> String {
        search(&catalog(), query, config, &Priors::new(), &|_| true)
    }

    #[test]
    fn a_hit_has_what_a_call_needs() {
        let ask = |spelling| ask_for("read a file", &Config::with_limit(1, spelling));
        let line = "files.read_file(path: string) — Reads a file.\n";
        assert_eq!(ask(Spelling::Dotted), line);
        assert_eq!(ask(Spelling::Apart), format!("{LEGEND}{}", line.replacen('.', " / ", 1)));
    }

    #[test]
    fn a_reply_stays_within_its_tokens() {
        for limit in [5, 20, 60, 400] {
            let config = Config { limit: 5, tokens: limit, spelling: Spelling::Dotted };
            let text = ask_for("read or write a file", &config);
            assert!(tokens::count(&text) <= limit, "{limit}: {text}");
        }
    }

    #[test]
    fn a_hopeless_query_is_told_so_with_what_is_near() {
        let config = Config::with_limit(5, Spelling::Dotted);
        let text = ask_for("photosynthesis of ferns", &config);
        assert!(text.starts_with("Nothing matches."), "{text}");
    }

    #[test]
    fn the_map_is_sorted_bounded_and_per_caller() {
        let catalog = catalog();
        assert_eq!(map(&catalog, 50, &|_| true), "files, mail");
        assert_eq!(map(&catalog, 50, &|slot| slot != Slot(2)), "files");
        let labels = ["delta", "alpha", "gamma", "beta", "epsilon", "zeta"];
        let sources = labels.map(|label| source(label, &[("f", String::new())])).to_vec();
        let many = map(&Catalog::build(sources).0, 8, &|_| true);
        assert!(many.starts_with("alpha, ") && many.ends_with(" more"), "{many}");
        assert!(tokens::count(&many) <= 8, "{many}");
        assert_eq!(map(&catalog, 0, &|_| true), "");
    }

    #[test]
    fn things_of_every_kind_are_found_together_and_apart() {
        let skill = crate::source::Skill {
            namespace: "mail".to_owned(),
            name: "triage".to_owned(),
            description: "How to sort an inbox by urgency.".to_owned(),
        };
        let prompt = json!({"name": "greet", "description": "Greets a guest by email."});
        let resource = json!({"uri": "log://today", "name": "log", "description": "The mail log."});
        let listing = Listing {
            prompts: vec![tool::Prompt::read(prompt.into()).unwrap()],
            resources: vec![tool::Resource::read(resource.into()).unwrap()],
            ..Listing::default()
        };
        let mut more = Source::new("desk", Arc::new(listing));
        more.skills = Arc::new([skill]);
        let tools = source("mail", &[("send", "Sends an email to somebody.".to_owned())]);
        let catalog = Catalog::build(vec![tools, more]).0;
        let ask = |kinds: &[Kind], query: &str| {
            let config = Config::with_limit(5, Spelling::Apart);
            search_items(&catalog, kinds, query, &config, &Priors::new(), &|_| true)
        };
        let sort = "skill mail / triage — How to sort an inbox by urgency.\n";
        assert_eq!(ask(&[Kind::Skill], "sort my inbox"), sort);
        assert!(ask(&[], "sort my inbox by urgency").starts_with(sort));
        assert!(ask(&[], "send an email").starts_with("function mail / send(path: string) — "));
        let prompts = ask(&[Kind::Prompt], "greet a guest");
        assert_eq!(prompts, "prompt desk / greet — Greets a guest by email.\n");
        let resources = ask(&[Kind::Resource], "mail log");
        assert_eq!(resources, "resource log://today — The mail log.\n");
        let none = ask(&[Kind::Prompt], "photosynthesis of ferns");
        assert!(none.starts_with("Nothing matches."), "{none}");
        assert_eq!(nothing(["a", "", "b", "a"].into_iter()).matches("are a, b.").count(), 1);
    }

    #[test]
    fn what_was_chosen_before_comes_first_among_equals() {
        let twins = ["one", "two"].map(|label| source(label, &[("save", "Saves it.".to_owned())]));
        let catalog = Catalog::build(twins.to_vec()).0;
        let first = |priors: &Priors| {
            catalog.path(catalog.search_with("save it", 5, priors, &|_| true).hits[0].slot)
        };
        let before = first(&Priors::new());
        let other = if before == "one" { "two" } else { "one" };
        let priors = |name: &str| Priors::from([(name.to_owned(), 0.8)]);
        assert_eq!(first(&priors(&format!("{other}/save"))), other);
        // What is gone, or never was, changes nothing.
        assert_eq!(first(&priors("three/save")), before);
        assert_eq!(first(&priors(other)), before);
    }

    #[test]
    fn what_could_not_be_searched_is_said_in_one_line_within_the_budget() {
        let away = |label: &str| Source {
            state: State::Unavailable { reason: "still starting".to_owned() },
            ..source(label, &[])
        };
        let mut sources = vec![source("mail", &[("send", "Sends an email.".to_owned())])];
        sources.extend((0..8).map(|n| away(&format!("slow{n}"))));
        let (catalog, _) = Catalog::build(sources);
        let line = unsearched(&catalog, &|label| label != "slow0").unwrap();
        assert!(line.starts_with("Not searched: slow1 (still starting), slow2"), "{line}");
        assert!(line.ends_with(" and 2 more.") && !line.contains("slow0"), "{line}");
        let config = Config::with_limit(5, Spelling::Dotted);
        let text = with_line(Some(line.clone()), &config, |config| {
            search(&catalog, "send an email", config, &Priors::new(), &|_| true)
        });
        assert!(text.starts_with("mail.send") && text.ends_with(&format!("\n{line}\n")), "{text}");
        assert!(tokens::fits(&text, config.tokens), "{text}");
        assert_eq!(unsearched(&catalog, &|_| false), None);
    }
}
