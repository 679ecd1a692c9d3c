//! How finding grows, from 100 to 100,000 tools: `cargo xtask bench find`.
//!
//! The catalogs are made up, always the same: servers of twelve tools with
//! names, descriptions and arguments from a vocabulary that grows with them.
//! The queries are short wishes, wishes with a slip of the pen, and whole tasks.
//! Everything is measured on one thread; a query's time is the best of five
//! rounds, because what else the machine does is no property of the search.
//! `find 500 16000` measures these sizes only.

#![expect(clippy::disallowed_methods, reason = "a program of its own, with files and a clock")]
#![expect(clippy::print_stdout, reason = "printing is what this is for")]

use std::sync::Arc;
use std::time::Instant;

use catalog::tree::{Node, Path, PathTarget};
use catalog::{Catalog, Directory, Source};
use serde_json::{Map, Value, json};
use tool::{Listing, Tool};

const SIZES: [usize; 7] = [100, 500, 1_000, 5_000, 10_000, 16_000, 100_000];
const TOOLS_PER_SERVER: usize = 12;
const QUERIES: usize = 500;
const ROUNDS: usize = 5;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let wanted: Vec<usize> =
        std::env::args().skip(1).map(|size| size.parse()).collect::<Result<_, _>>()?;
    let sizes = if wanted.is_empty() { &SIZES[..] } else { &wanted };
    println!(
        "| tools | catalog s | index s | index MB | resident MB | p50 µs | p99 µs | path µs |\n\
         |---|---|---|---|---|---|---|---|"
    );
    for size in sizes {
        measure(*size);
    }
    Ok(())
}

fn measure(size: usize) {
    let sources = sources(size);
    let before = resident();
    let started = Instant::now();
    let (catalog, _) = Catalog::build(sources);
    let built = started.elapsed().as_secs_f64();
    catalog.warm();
    let indexed = started.elapsed().as_secs_f64() - built;
    let grown = resident().zip(before).map_or("?".to_owned(), |(after, before)| {
        format!("{:.1}", after.saturating_sub(before) as f64 / 1e6)
    });
    let queries = queries(size);
    let mut times = vec![f64::MAX; queries.len()];
    for _ in 0..ROUNDS {
        for (query, best) in queries.iter().zip(&mut times) {
            let started = Instant::now();
            std::hint::black_box(catalog.search(query, 5, &|_| true));
            *best = best.min(started.elapsed().as_secs_f64() * 1e6);
        }
    }
    let (median, slow) = (at(&mut times, 0.5), at(&mut times, 0.99));
    let path = by_path(&Directory::build(&catalog));
    let megabytes = catalog.index_bytes() as f64 / 1e6;
    println!(
        "| {size} | {built:.3} | {indexed:.3} | {megabytes:.1} | {grown} | {median:.0} | \
         {slow:.0} | {path:.1} |"
    );
}

/// The time at a share of all times.
fn at(times: &mut [f64], share: f64) -> f64 {
    times.sort_by(f64::total_cmp);
    times[((times.len() as f64 * share) as usize).min(times.len() - 1)]
}

/// The 99th percentile of walking to a namespace and writing what is there.
fn by_path(directory: &Directory) -> f64 {
    let tree = directory.tools.tree();
    let mut times = Vec::new();
    let paths: Vec<String> = tree.namespaces().map(|branch| branch.path.clone()).collect();
    for path in paths.iter().cycle().take(1_000.max(2 * paths.len())) {
        let started = Instant::now();
        let path: Path = path.parse().expect("a path of the tree");
        let mut text = String::new();
        if let Some(PathTarget::Children(children)) = tree.walk(&path) {
            for child in children {
                match child {
                    Node::Branch(branch) => text.push_str(&branch.path),
                    Node::Leaf { leaf, .. } => {
                        text.push_str(directory.tools.entries()[*leaf].line());
                    }
                }
            }
        }
        std::hint::black_box(text);
        times.push(started.elapsed().as_secs_f64() * 1e6);
    }
    at(&mut times, 0.99)
}

/// Bytes of this process that are in memory, where the system says so.
fn resident() -> Option<usize> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    Some(text.split(' ').nth(1)?.parse::<usize>().ok()? * 4_096)
}

/// Numbers that look random and are always the same.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % sides
    }

    fn pick<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[self.roll(words.len())]
    }

    /// A word that no dictionary has.
    fn coin(&mut self) -> String {
        (0..3).map(|_| self.pick(SYLLABLES)).collect()
    }
}

fn sources(size: usize) -> Vec<Source> {
    let mut dice = Dice(7);
    let mut left = size;
    let mut made = Vec::new();
    while 0 < left {
        let (brand, field) = (dice.coin(), dice.pick(NOUNS));
        let tools = (0..left.min(TOOLS_PER_SERVER)).map(|n| tool(&mut dice, n, &brand, field));
        let listing = Listing { tools: tools.collect(), ..Listing::default() };
        left -= listing.tools.len();
        made.push(Source::new(&format!("{brand}_{}", made.len()), Arc::new(listing)));
    }
    made
}

fn tool(dice: &mut Dice, number: usize, brand: &str, field: &str) -> Tool {
    let (verb, noun, more) = (dice.pick(VERBS), dice.pick(NOUNS), dice.pick(MORE));
    let mut properties = Map::new();
    for _ in 0..2 + dice.roll(4) {
        let (name, about) = (dice.pick(NOUNS), dice.pick(MORE));
        let words = format!("The {about} {name} to {} by", dice.pick(VERBS));
        properties
            .insert(format!("{name}_{about}"), json!({"type": "string", "description": words}));
    }
    let raw = json!({
        "name": format!("{verb}_{more}_{noun}_{number}"),
        "description": format!(
            "{verb}s the {more} {noun} of a {brand} {field}. Use it to {} or {} every {} {} that \
             the {} has, with its {} and {}.",
            dice.pick(VERBS), dice.pick(VERBS), dice.pick(MORE), dice.pick(NOUNS),
            dice.pick(NOUNS), dice.pick(NOUNS), dice.pick(NOUNS)
        ),
        "inputSchema": {"type": "object", "properties": Value::Object(properties)},
    });
    Tool::parse(raw.into()).expect("it has a name")
}

/// Seven of ten are a short wish, two are misspelt, one is a task in steps.
fn queries(size: usize) -> Vec<String> {
    let mut dice = Dice(size as u64);
    let wish = |dice: &mut Dice| {
        let (verb, more, noun) = (dice.pick(VERBS), dice.pick(MORE), dice.pick(NOUNS));
        format!("{verb} the {more} {noun} for our {}", dice.pick(NOUNS))
    };
    let query = |n: usize| match n % 10 {
        0..7 => format!("please {}", wish(&mut dice)),
        7..9 => {
            let mut letters: Vec<char> = wish(&mut dice).chars().collect();
            let at = 5 + dice.roll(letters.len() - 7);
            letters.swap(at, at + 1);
            letters.into_iter().collect()
        }
        _ => (0..6).map(|_| wish(&mut dice)).collect::<Vec<_>>().join(", then "),
    };
    (0..QUERIES).map(query).collect()
}

const SYLLABLES: &[&str] = &[
    "ba", "co", "di", "fu", "gra", "hel", "jin", "ka", "lor", "mi", "nex", "or", "pla", "qui",
    "ro", "sta", "ti", "ul", "ver", "wex", "ya", "zor",
];
const VERBS: &[&str] = &[
    "create", "delete", "list", "search", "fetch", "send", "update", "save", "run", "stop",
    "compute", "convert", "schedule", "compare", "analyze", "export", "import", "merge", "assign",
    "approve", "copy", "move", "validate", "archive", "publish", "sync", "render", "encrypt",
];
const MORE: &[&str] = &[
    "daily",
    "shared",
    "remote",
    "local",
    "public",
    "private",
    "large",
    "recent",
    "old",
    "open",
    "closed",
    "weekly",
    "signed",
    "hidden",
    "draft",
    "final",
    "global",
    "regional",
    "nested",
    "binary",
    "temporary",
    "primary",
    "secondary",
    "failed",
    "pending",
    "cached",
];
const NOUNS: &[&str] = &[
    "file",
    "folder",
    "message",
    "channel",
    "calendar",
    "event",
    "invoice",
    "customer",
    "order",
    "payment",
    "repository",
    "issue",
    "branch",
    "commit",
    "pipeline",
    "deployment",
    "container",
    "cluster",
    "database",
    "table",
    "query",
    "report",
    "dashboard",
    "metric",
    "alert",
    "ticket",
    "contact",
    "campaign",
    "product",
    "warehouse",
    "shipment",
    "flight",
    "hotel",
    "weather",
    "recipe",
    "song",
    "playlist",
    "video",
    "image",
    "document",
    "translation",
    "embedding",
    "model",
    "dataset",
    "experiment",
    "sensor",
    "device",
    "account",
    "password",
    "certificate",
    "domain",
    "website",
    "page",
    "comment",
    "review",
    "survey",
    "course",
    "student",
    "patient",
    "prescription",
    "contract",
    "signature",
    "map",
    "route",
    "address",
    "currency",
    "stock",
    "portfolio",
    "tax",
    "budget",
];
